"""Tiny networks for the contract suite, each with what numpy says it computes."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from trimtab.domain.plan import Entry
from trimtab.domain.ports import Arrays, ModelFile
from trimtab.domain.study import Crop, InputSpec, ModelSpec, OutputSpec

RNG = np.random.default_rng(7)
KERNEL = RNG.normal(size=(4, 2, 3)).astype(np.float32)
IMAGE_KERNEL = RNG.normal(size=(2, 1, 2, 2)).astype(np.float32)
TABLE = RNG.normal(size=(10, 8)).astype(np.float32)
WEIGHT = RNG.normal(size=(8, 5)).astype(np.float32)
ELEMENT = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64}


def needs(package: str) -> None:
    """Skip a test module where an optional package is missing; in CI it must be there."""
    if importlib.util.find_spec(package) is None and not os.environ.get("CI"):
        pytest.skip(f"{package} is not installed", allow_module_level=True)


def write(
    folder: Path, name: str, nodes: list, spec: ModelSpec, dims: tuple[str, ...], **weights: np.ndarray
) -> ModelFile:
    """Save a network with the inputs and outputs of ``spec``; every dim name becomes an open axis."""
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info(i.name, ELEMENT[i.dtype], list(i.shape)) for i in spec.inputs],
        [helper.make_tensor_value_info(o.name, TensorProto.FLOAT, None) for o in spec.outputs],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return ModelFile(path=str(path), sha256="", spec=spec, dim_names=dims)


def spec(inputs: tuple[InputSpec, ...], outputs: tuple[OutputSpec, ...]) -> ModelSpec:
    return ModelSpec(path="net.onnx", revision="1", inputs=inputs, outputs=outputs)


def line(folder: Path) -> ModelFile:
    """y[batch, 4, width] = relu(conv(x[batch, 2, width]))"""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], name="c", pads=[1, 1]),
        helper.make_node("Relu", ["c"], ["y"], name="y"),
    ]
    inputs = (InputSpec(name="x", shape=("batch", 2, "width")),)
    outputs = (OutputSpec(name="y", crop=(Crop(axis=2, dim="width"),)),)
    return write(folder, "line", nodes, spec(inputs, outputs), ("width",), k=KERNEL)


def line_reference(inputs: Arrays) -> dict[str, np.ndarray]:
    x = np.pad(inputs["x"], ((0, 0), (0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
    return {"y": np.maximum(np.einsum("nciw,ocw->noi", windows, KERNEL), 0)}


def words(folder: Path) -> ModelFile:
    """y[batch, length, 5] = (table[ids] * mask) @ weight: two inputs, one of them of integers."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], name="gather"),
        helper.make_node("Mul", ["e", "mask"], ["m"], name="mul"),
        helper.make_node("MatMul", ["m", "w"], ["y"], name="matmul"),
    ]
    inputs = (
        InputSpec(name="ids", shape=("batch", "length"), dtype="i64"),
        InputSpec(name="mask", shape=("batch", "length", 1)),
    )
    outputs = (OutputSpec(name="y", crop=(Crop(axis=1, dim="length"),)),)
    return write(folder, "words", nodes, spec(inputs, outputs), ("length",), table=TABLE, w=WEIGHT)


def words_reference(inputs: Arrays) -> dict[str, np.ndarray]:
    return {"y": (TABLE[inputs["ids"]] * inputs["mask"]) @ WEIGHT}


def image(folder: Path) -> ModelFile:
    """y[batch, 2, height // 2, width // 2] = conv with stride 2: two dynamic dims."""
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"], name="conv", strides=[2, 2])]
    inputs = (InputSpec(name="x", shape=("batch", 1, "height", "width")),)
    outputs = (OutputSpec(name="y", crop=(Crop(axis=2, dim="height", down=2), Crop(axis=3, dim="width", down=2))),)
    return write(folder, "image", nodes, spec(inputs, outputs), ("height", "width"), k=IMAGE_KERNEL)


def image_reference(inputs: Arrays) -> dict[str, np.ndarray]:
    windows = np.lib.stride_tricks.sliding_window_view(inputs["x"], (2, 2), axis=(2, 3))[:, :, ::2, ::2]
    return {"y": np.einsum("nchwij,ocij->nohw", windows, IMAGE_KERNEL)}


def pool(folder: Path) -> ModelFile:
    """y[batch, 2, width - 4]: an average over 5 positions, so a width below 5 is an error inside the graph."""
    nodes = [helper.make_node("AveragePool", ["x"], ["y"], name="pool", kernel_shape=[5])]
    inputs = (InputSpec(name="x", shape=("batch", 2, "width")),)
    return write(folder, "pool", nodes, spec(inputs, (OutputSpec(name="y"),)), ("width",))


def nonzero(folder: Path) -> ModelFile:
    """y[2, count]: the positions of what is not zero, so an output without elements is possible."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["positions"], name="positions"),
        helper.make_node("Cast", ["positions"], ["y"], name="y", to=TensorProto.FLOAT),
    ]
    inputs = (InputSpec(name="x", shape=("batch", "width")),)
    return write(folder, "nonzero", nodes, spec(inputs, (OutputSpec(name="y"),)), ("width",))


def heavy(folder: Path, mib: int) -> ModelFile:
    """y[batch, rows, n] = x[batch, rows, 256] @ w, with ``mib`` MiB of weights."""
    weight = np.random.default_rng(3).normal(size=(256, mib * 1024)).astype(np.float32)
    inputs = (InputSpec(name="x", shape=("batch", "rows", 256)),)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")]
    return write(folder, "heavy", nodes, spec(inputs, (OutputSpec(name="y"),)), ("rows",), w=weight)


NETS: dict[str, tuple[Callable[[Path], ModelFile], Callable[[Arrays], dict[str, np.ndarray]]]] = {
    "line": (line, line_reference),
    "words": (words, words_reference),
    "image": (image, image_reference),
}


def inputs(model: ModelFile, n: int, *dims: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Random inputs at executed dims."""
    rng = np.random.default_rng(seed)
    size = {"batch": n, **dict(zip(model.dim_names, dims, strict=True))}
    arrays = {}
    for item in model.spec.inputs:
        shape = [size.get(axis, axis) for axis in item.shape]
        arrays[item.name] = (
            rng.integers(0, 10, shape) if item.dtype == "i64" else rng.normal(size=shape).astype(np.float32)
        )
    return arrays


def entry(kind: str, lo: tuple[int, ...], hi: tuple[int, ...], batch: tuple[int, int] = (1, 1)) -> Entry:
    return Entry(id=f"{kind}-entry", kind=kind, lo=lo, hi=hi, batch=batch)
