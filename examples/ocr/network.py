"""The text recogniser as a torch network: the one ONNX file, converted by onnx2torch, in a form that torch compiles.

    pip install --no-deps onnx2torch==1.5.15

The file computes some of its shapes while it runs: how long a row of features is, from the sizes of the tensor before.
Torch's compiler cannot follow sizes through tensors: it would run these places uncompiled and cut the network there. So
before it is converted, every target of a Reshape is written down as a constant (0 = the size of the same axis before,
-1 = the one that is left). Which is which is read from the targets at two shapes that have no size in common. After it
is converted, sizes and the ends of slices, which onnx2torch keeps as tensors, become plain numbers.

Used as the torch network of a study: ``torch = "network.py:recogniser"``.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

PACKAGE, FILE = "rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx"
HEIGHT = 48
PROBES = ((2, 136), (5, 328))
"""Batch and width of two runs, chosen so that no size of the one is a size of the other unless the network fixes it."""


def recogniser() -> Any:
    """The network in eval form: f32[batch, 3, 48, width] -> f32[batch, steps, characters]."""
    with _without_torchvision():
        from onnx2torch import convert
    return _numbered(convert(with_constant_targets(onnx.load(packaged())))).eval()


@contextmanager
def _without_torchvision() -> Iterator[None]:
    """onnx2torch imports torchvision for two operators that the recogniser does not have. Its usual build asks for a
    GPU build of torch, so that modules with nothing in them stand in for it meanwhile."""
    whole, ops = ModuleType("torchvision"), ModuleType("torchvision.ops")
    whole.__dict__["ops"], ops.__dict__["roi_align"] = ops, None
    stand_ins = {"torchvision": whole, "torchvision.ops": ops}
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in before.items():
            del sys.modules[name]
            sys.modules.update({} if module is None else {name: module})


def packaged() -> Path:
    """The recogniser's file in the installed package."""
    files = importlib.metadata.files(PACKAGE) or []
    return next(Path(str(file.locate())) for file in files if file.name == FILE)


# --- before it is converted -------------------------------------------------------------------------------------


def with_constant_targets(network: onnx.ModelProto) -> onnx.ModelProto:
    """The same network, changed in place: no Reshape computes its target, and constants are initialisers."""
    _lift_constants(network.graph)
    known = {tensor.name for tensor in network.graph.initializer}
    computed = [node for node in network.graph.node if node.op_type == "Reshape" and node.input[1] not in known]
    seen = [_sizes_at(network, computed, batch, width) for batch, width in PROBES]
    for node, *pairs in zip(computed, *seen, strict=True):
        name = f"{node.name or node.output[0]}.target"
        network.graph.initializer.append(numpy_helper.from_array(np.array(target(pairs), np.int64), name))
        node.input[1] = name
    return network


def target(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[int]:
    """Constants that stand for a computed target. ``pairs``: (sizes before, target) of each probe.

    Raises ValueError where more than one axis follows the input in a way of its own.
    """
    befores, targets = zip(*pairs, strict=True)
    found = []
    for axis, sizes in enumerate(zip(*targets, strict=True)):
        if len(set(sizes)) == 1:
            found.append(sizes[0])
        elif all(axis < len(before) and before[axis] == size for before, size in zip(befores, sizes, strict=True)):
            found.append(0)
        else:
            found.append(-1)
    if found.count(-1) > 1:
        raise ValueError(f"more than one axis of a Reshape follows the input: {targets}")
    return found


def _lift_constants(graph: onnx.GraphProto) -> None:
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
        graph.node.remove(node)


def _sizes_at(
    network: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], batch: int, width: int
) -> list[tuple[list[int], list[int]]]:
    """Sizes before, and target, of each Reshape in one run."""
    import onnxruntime

    watched = onnx.ModelProto()
    watched.CopyFrom(network)
    names = list(dict.fromkeys(name for node in nodes for name in node.input))
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {network.graph.input[0].name: np.zeros((batch, 3, HEIGHT, width), np.float32)}
    found = dict(zip(names, session.run(names, given), strict=True))
    return [(list(found[node.input[0]].shape), found[node.input[1]].tolist()) for node in nodes]


# --- after it is converted --------------------------------------------------------------------------------------


def reshaped(tensor: Any, sizes: Sequence[int]) -> Any:
    """``tensor`` with ``sizes``, where 0 keeps the size of the same axis and one -1 takes what is left."""
    return tensor.reshape([tensor.shape[axis] if size == 0 else size for axis, size in enumerate(sizes)])


def sliced(tensor: Any, ends: Sequence[tuple[int, int, int, int]]) -> Any:
    """``tensor`` cut along axes: (axis, start, end, step) each."""
    cuts = {axis % tensor.ndim: slice(start, end, step) for axis, start, end, step in ends}
    return tensor[tuple(cuts.get(axis, slice(None)) for axis in range(tensor.ndim))]


def _numbered(module: Any) -> Any:
    """The converted module, changed in place: sizes and ends of slices are numbers, and what only computed them is
    gone."""
    from onnx2torch.node_converters.reshape import OnnxReshape
    from onnx2torch.node_converters.slice import OnnxSlice

    parts = dict(module.named_modules())
    for node in [node for node in module.graph.nodes if node.op == "call_module"]:
        part = parts[node.target]
        if isinstance(part, OnnxReshape):
            _call(module.graph, node, reshaped, _constant(module, node.args[1]))
        elif isinstance(part, OnnxSlice) and all(other.op == "get_attr" for other in node.args[1:]):
            columns = [_constant(module, other) for other in node.args[1:]]
            starts, ends, axes, steps = (*columns, *([1] * len(columns[0]) for _ in range(4 - len(columns))))
            _call(module.graph, node, sliced, list(zip(axes, starts, ends, steps, strict=True)))
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def _constant(module: Any, node: Any) -> list[int]:
    value = module
    for name in node.target.split("."):
        value = getattr(value, name)
    return list(value.tolist())


def _call(graph: Any, node: Any, function: Any, numbers: Any) -> None:
    with graph.inserting_before(node):
        node.replace_all_uses_with(graph.call_function(function, (node.args[0], numbers)))
    graph.erase_node(node)
