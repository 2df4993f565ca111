"""ONNX files: reading, fixing input shapes, and finding which operators an optimiser folded into which.

An optimised graph keeps no record of what it was made from, but it keeps tensor names. Every operator of the optimised
graph is taken to compute certain tensors of the original graph; the original operators that lie between them and the
tensors that other optimised operators compute were folded into it, each into one. Operators that depend on constants
and shapes only are not counted: they were computed in advance, or are bookkeeping. ONNX Runtime's blocked convolutions
rename their outputs; they are found again by their own names, their folded addition and activation by their inputs and
attributes. Limit: a fusion that renames both itself and its outputs in another way shows no folded operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trimtab.backends._options import brief
from trimtab.backends._precision import CONVERSIONS, INTEGER_KERNELS
from trimtab.backends._shapes import Range, check_network, check_outputs
from trimtab.domain.plan import Entry
from trimtab.domain.ports import ModelFile
from trimtab.errors import ModelError

BLOCKED = re.compile(r"^(?P<tensor>.+)_nchwc(_token_\d+)?$")
SHAPE_OF = ("Shape", "Size")


def read(path: str) -> Any:
    """The network without its external weights; raises ModelError where the file is not ONNX."""
    import onnx

    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception as error:  # the parser's own type comes from an untyped package; whatever it is, the file is bad
        raise ModelError(
            f"the file is not a readable ONNX network: {brief(error)}", where=path, fix="export or download it again"
        ) from error
    if not proto.graph.node:
        raise ModelError("the network has no operators", where=path, fix="export or download it again")
    _name_all(proto.graph.node)
    return proto


def fix_inputs(proto: Any, ranges: Mapping[str, tuple[Range, ...]]) -> None:
    """Write every axis with one size into the network's inputs; axes with a range stay as they are."""
    for value in proto.graph.input:
        for dim, (lo, hi) in zip(value.type.tensor_type.shape.dim, ranges.get(value.name, ()), strict=False):
            if lo == hi:
                dim.dim_value = lo


def element_type(code: int) -> str:
    """An ONNX element type in the study's words (``f32``, ``i64``, ``bool`` ...)."""
    import onnx

    return short_type(onnx.TensorProto.DataType.Name(code).lower())


def short_type(name: str) -> str:
    """``float`` -> ``f32``, ``int64`` -> ``i64``, ``bfloat16`` -> ``bf16``; others as they are."""
    known = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16"}
    short = re.sub(r"^uint(\d+)$", r"u\1", re.sub(r"^int(\d+)$", r"i\1", name))
    return known.get(name, short)


def inputs_of(proto: Any) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Input name -> (element type, size of each axis; None = open), initialisers left out."""
    constants = {t.name for t in proto.graph.initializer}
    found = {}
    for value in proto.graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        sizes = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
        found[value.name] = (element_type(kind.elem_type), sizes)
    return found


def outputs_of(proto: Any) -> tuple[str, ...]:
    return tuple(value.name for value in proto.graph.output)


def axes_of(values: Iterable[Any]) -> dict[str, tuple[int | str | None, ...] | None]:
    """Name of an input or output -> its axes: a size, the name that the file gives to an open one, or None. None for
    all of them: the file gives no shape."""
    found: dict[str, tuple[int | str | None, ...] | None] = {}
    for value in values:
        kind = value.type.tensor_type
        found[value.name] = tuple(map(_axis, kind.shape.dim)) if kind.HasField("shape") else None
    return found


def _axis(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return str(dim.dim_param) or None


def checked(model: ModelFile, entry: Entry) -> Any:
    """The network of ``model``, read once, whose inputs and outputs are those that the study names for ``entry``."""
    network = read(model.path)
    check_network(model, entry, inputs_of(network))
    check_outputs(model, outputs_of(network))
    return network


def operators_of(proto: Any) -> int:
    """How many operators the network has, constants left out."""
    return sum(node.op_type != "Constant" for node in proto.graph.node)


def quantised_operators(proto: Any) -> int:
    """How many operators are quantised: those that multiply bytes by their own kind, and those that a DequantizeLinear
    feeds. Whether the runtime then computes in bytes is another matter."""
    nodes = [node for node in proto.graph.node if node.op_type not in CONVERSIONS]
    real = {tensor for node in proto.graph.node if node.op_type == "DequantizeLinear" for tensor in node.output}
    return sum(
        node.op_type.startswith(INTEGER_KERNELS) or any(tensor in real for tensor in node.input) for node in nodes
    )


def multiplies_bytes(node: Any) -> bool:
    """Whether an operator with packed weights rounds its activations to bytes and multiplies integers.

    ONNX Runtime does so by default (level 4) where it turns weights of bytes into a MatMulNBits, and its profiler does
    not say it: answers were 0.5 % off, as with bytes in numpy, and exact at level 1.
    """
    if node is None or node.op_type != "MatMulNBits":
        return False
    return any(item.name == "accuracy_level" and item.i == 4 for item in node.attribute)


def holds_type(proto: Any, element: str) -> bool:
    """Whether any input or weight of the network is of this element type (in a study's words)."""
    inputs = {kind for kind, _ in inputs_of(proto).values()}
    constants = (a.t for node in proto.graph.node if node.op_type == "Constant" for a in node.attribute)
    weights = (*proto.graph.initializer, *constants)
    return element in inputs or any(element_type(t.data_type) == element for t in weights)


def folded(original: Any, optimised: Any) -> dict[str, tuple[str, ...]]:
    """Name of an optimised operator -> names of the original operators that were folded into it, its own left out."""
    maker = {tensor: node for node in original.graph.node for tensor in node.output}
    users: dict[str, list[Any]] = {}
    for node in original.graph.node:
        for tensor in node.input:
            users.setdefault(tensor, []).append(node)
    constant = _constants(original)
    ends = {node.name: _ends(node, maker, users) for node in optimised.graph.node}
    ends = _drop_layout_changes(optimised, ends)
    cut = {tensor for tensors in ends.values() for tensor in tensors} | {t.name for t in optimised.graph.initializer}
    result = {}
    taken: set[str] = set()
    for node in optimised.graph.node:
        inside = [n for n in _between(ends[node.name], cut, maker, constant) if n.name not in taken]
        taken.update(n.name for n in inside)
        alike = [n for n in inside if n.name == node.name] + [n for n in inside if n.op_type == node.op_type] + inside
        result[node.name] = tuple(n.name for n in reversed(inside) if n is not alike[0])
    return result


def _name_all(nodes: Iterable[Any]) -> None:
    """Give every operator a name of its own: names link the original, the optimised graph and the profile."""
    taken: set[str] = set()
    for i, node in enumerate(nodes):
        if not node.name or node.name in taken:
            node.name = f"{node.op_type}_{i}"
        taken.add(node.name)


def _ends(node: Any, maker: Mapping[str, Any], users: Mapping[str, list[Any]]) -> list[str]:
    """Which tensors of the original graph an optimised operator computes."""
    found = [tensor for tensor in node.output if tensor in maker]
    blocked = BLOCKED.match(node.name)
    if found or not blocked or blocked["tensor"] not in maker:
        return found
    end = blocked["tensor"]
    activation = next((a.s.decode() for a in node.attribute if a.name == "activation"), "")
    for kind in (["Add"] if len(node.input) > 3 and node.input[3] else []) + ([activation] if activation else []):
        follower = next((user for user in users.get(end, []) if user.op_type == kind), None)
        end = follower.output[0] if follower is not None else end
    return [end]


def _drop_layout_changes(optimised: Any, ends: dict[str, list[str]]) -> dict[str, list[str]]:
    """A layout change computes nothing of the original: its tensor belongs to the operator before it."""
    producer = {tensor: node.name for node in optimised.graph.node for tensor in node.output}
    for node in optimised.graph.node:
        if node.op_type != "ReorderOutput":
            continue
        before = producer.get(node.input[0])
        if before is not None:
            ends[before] = ends[node.name] or ends[before]
        ends[node.name] = []
    return ends


def _constants(original: Any) -> set[str]:
    """Tensors that depend on no input's values, at most on its shape."""
    known = {t.name for t in original.graph.initializer} | {""}
    for node in original.graph.node:
        if node.op_type in SHAPE_OF or all(tensor in known for tensor in node.input):
            known.update(node.output)
    return known


def _between(ends: list[str], cut: set[str], maker: Mapping[str, Any], constant: set[str]) -> list[Any]:
    """Original operators behind ``ends`` and before other tensors of ``cut``, last one first."""
    inside: list[Any] = []
    names: set[str] = set()
    stack = list(ends)
    while stack:
        node = maker.get(stack.pop())
        if node is None or node.name in names or all(t in constant for t in node.output):
            continue
        names.add(node.name)
        inside.append(node)
        stack += [tensor for tensor in node.input if tensor not in cut and tensor not in constant]
    return inside


def folder_of(path: str) -> str:
    """Where the network's external weights are looked for."""
    return str(Path(path).resolve().parent)
