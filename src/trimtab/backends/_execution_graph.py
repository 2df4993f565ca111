"""OpenVINO's execution graph: operators, kernels and precision as they were really chosen.

Each node says which kernel runs it (``primitiveType``), the element type it computes in (``runtimePrecision``), its
mean time so far in whole microseconds, and the names of the operators it was made from. Names that transformations
invented on the way are left out of ``fused``, so it is a lower bound.

A product of float activations with weights of bytes shows a float kernel either way: where the program quantises
activations while it runs (OpenVINO does so by default, in groups of 32) the product is one of integers, else of floats.
Seen in the answers: 0.5 % off with groups of 32, as numpy computes it too, and exact without.

The mean holds the first run of a shape. With m1 the mean after one run and mn after n, the warm mean is
(n mn - m1) / (n - 1), never below 0; rounding leaves an error of about 1 us an operator.
"""

from __future__ import annotations

from typing import Any

from trimtab.backends._precision import BYTES, named, widest
from trimtab.domain.profile import Operator

NOT_OPERATORS = ("Const", "Input", "Output")
CONVERSIONS = ("Convert", "Reorder")
PRODUCT = "FullyConnected"
FLOATS = ("f32", "bf16", "f16")


def mean_times(graph: Any) -> dict[str, int]:
    """Node name -> mean time so far, us; what has not run, or took less than 1 us, is 0."""
    times = {op.get_friendly_name(): _fact(op, "execTimeMcs") for op in graph.get_ops()}
    return {name: int(took) if took.isdigit() else 0 for name, took in times.items()}


def operators(
    graph: Any, originals: set[str], first: dict[str, int], runs: int, dynamic: bool = False
) -> tuple[Operator, ...]:
    """The execution graph after ``runs`` runs (2 or more), without constants, in execution order.

    ``originals``: names of operators in the network as it was read; ``first``: ``mean_times`` after the first run;
    ``dynamic``: the program quantises activations while it runs.
    """
    means = mean_times(graph)
    constant: set[str] = set()
    found = []
    for node in sorted(graph.get_ops(), key=lambda op: int(_fact(op, "execOrder"))):
        name, kind = node.get_friendly_name(), _fact(node, "layerType")
        sources = {value.get_node().get_friendly_name() for value in node.input_values()}
        if kind == "Const" or (sources and sources <= constant):
            constant.add(name)
            continue
        if kind in NOT_OPERATORS:
            continue
        folded = [part for part in _fact(node, "originalLayersNames").split(",") if part in originals]
        warm = (runs * means[name] - first[name]) / (runs - 1)
        found.append(
            Operator(
                name=name,
                kind=kind,
                kernel=_fact(node, "primitiveType"),
                precision=_precision(node, dynamic),
                ns=round(max(warm, 0) * 1000),
                fused=tuple(part for part in folded if part != name),
            )
        )
    return tuple(found)


def _precision(node: Any, dynamic: bool) -> str:
    """What a node computed in. ``runtimePrecision`` is the type of its inputs; bytes may still be widened first."""
    kind, given = _fact(node, "layerType"), _fact(node, "runtimePrecision")
    if kind in CONVERSIONS:
        return widest((given, _fact(node, "outputPrecisions")))
    kernel = _fact(node, "primitiveType").rpartition("_")[2]
    if given in BYTES and kernel in FLOATS and not (dynamic and kind == PRODUCT):
        return kernel  # weights of bytes, widened before they are multiplied
    return named(given)


def _fact(node: Any, key: str) -> str:
    value = node.get_rt_info()[key]
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)


def computes(op: Any) -> bool:
    """Whether an operator of a graph that was read is one: no constant, input or output."""
    return op.get_type_name() not in {"Constant", "Parameter", "Result"}


def is_quantised(network: Any) -> bool:
    """Whether a network that was read is quantised already: it rounds to few levels, or has weights of bytes."""
    return any(
        op.get_type_name() == "FakeQuantize"
        or (op.get_type_name() == "Constant" and op.get_element_type().get_type_name() in BYTES and len(op.shape) > 1)
        for op in network.get_ops()
    )
