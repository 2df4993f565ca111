"""OpenVINO's execution graph: operators, kernels and precision as they were really chosen.

Each node says which kernel runs it (``primitiveType``), the element type it computes in (``runtimePrecision``), its
mean time so far, and the names of the operators it was made from. Names that transformations invented on the way are
left out of ``fused``, so it is a lower bound.
"""

from __future__ import annotations

from typing import Any

from trimtab.domain.profile import Operator

NOT_OPERATORS = ("Const", "Input", "Output")


def operators(graph: Any, originals: set[str]) -> tuple[Operator, ...]:
    """The execution graph without constants, in execution order. An operator that takes less than 1 us has time 0."""
    constant: set[str] = set()
    operators = []
    for node in sorted(graph.get_ops(), key=lambda op: int(_fact(op, "execOrder"))):
        name, kind = node.get_friendly_name(), _fact(node, "layerType")
        sources = {value.get_node().get_friendly_name() for value in node.input_values()}
        if kind == "Const" or (sources and sources <= constant):
            constant.add(name)
            continue
        if kind in NOT_OPERATORS:
            continue
        folded = [part for part in _fact(node, "originalLayersNames").split(",") if part in originals]
        took = _fact(node, "execTimeMcs")
        operators.append(
            Operator(
                name=name,
                kind=kind,
                kernel=_fact(node, "primitiveType"),
                precision=_fact(node, "runtimePrecision"),
                ns=int(took) * 1000 if took.isdigit() else 0,
                fused=tuple(part for part in folded if part != name),
            )
        )
    return tuple(operators)


def _fact(node: Any, key: str) -> str:
    value = node.get_rt_info()[key]
    return str(value.astype(str)) if hasattr(value, "astype") else str(value)


def computes(op: Any) -> bool:
    """Whether an operator of a graph that was read is one: no constant, input or output."""
    return op.get_type_name() not in {"Constant", "Parameter", "Result"}
