"""Tiny networks to quantise, quantised already, and in half precision."""

from __future__ import annotations

from pathlib import Path

import backends_nets as nets
import numpy as np
import onnx
from msgspec.structs import replace
from onnx import TensorProto, helper, numpy_helper

from trimtab.domain.ports import Arrays, ModelFile
from trimtab.domain.study import CalibrationSpec, Crop, InputSpec, OutputSpec

RNG = np.random.default_rng(11)
FIRST = RNG.normal(size=(64, 128)).astype(np.float32)
SECOND = RNG.normal(size=(128, 16)).astype(np.float32)
INPUTS = (InputSpec(name="x", shape=("batch", "length", 64)),)
OUTPUTS = (OutputSpec(name="y", crop=(Crop(axis=1, dim="length"),)),)
WHOLE = nets.entry("dynamic", (1,), (64,))


def dense(folder: Path) -> ModelFile:
    """y[batch, length, 16] = sigmoid(x[batch, length, 64] @ first) @ second, all of it float."""
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"], name="a"),
        helper.make_node("Sigmoid", ["a"], ["s"], name="s"),
        helper.make_node("MatMul", ["s", "second"], ["y"], name="y"),
    ]
    return nets.write(folder, "dense", nodes, nets.spec(INPUTS, OUTPUTS), ("length",), first=FIRST, second=SECOND)


def dense_reference(inputs: Arrays) -> np.ndarray:
    return (1 / (1 + np.exp(-inputs["x"] @ FIRST))) @ SECOND


def calibrated(model: ModelFile, *, bank: dict[str, np.ndarray] | None = None, samples: int = 8) -> ModelFile:
    """The model with calibration inputs in a folder of their own: normal numbers, stored times 10, several lengths."""
    folder = Path(model.path).parent / "examples"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(5)
    if bank is None:
        bank = {f"x/{length:03d}": (rng.normal(size=(length, 64)) * 10).astype(np.float32) for length in range(1, 21)}
    np.savez(folder / "calibration.npz", **bank)
    spec = replace(model.spec, calibration=CalibrationSpec(bank="calibration.npz", scale=0.1, samples=samples))
    return replace(model, spec=spec, calibration=str(folder / "calibration.npz"), calibration_sha256="c")


def weights_only(folder: Path) -> ModelFile:
    """y = x @ (scale * weight): weights are stored as bytes, and every product is one of floats."""
    weight = RNG.integers(-127, 128, size=(64, 128)).astype(np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["weight", "scale", "zero"], ["w"], name="w"),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="y"),
    ]
    return nets.write(
        folder, "weights", nodes, nets.spec(INPUTS, OUTPUTS), ("length",),
        weight=weight, scale=np.array(0.01, np.float32), zero=np.array(0, np.int8),
    )  # fmt: skip


def weights_only_error(model: ModelFile, inputs: Arrays, outputs: np.ndarray) -> float:
    """Largest difference from the exact product, as a share of the largest output."""
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(model.path).graph.initializer}
    want = inputs["x"].astype(np.float64) @ (stored["weight"] * np.float64(stored["scale"]))
    return float(np.abs(outputs - want).max() / np.abs(want).max())


def half(folder: Path) -> ModelFile:
    """y = x @ weight with inputs, weights and outputs in half precision."""
    inputs = (InputSpec(name="x", shape=("batch", "length", 64), dtype="f16"),)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="y")],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["batch", "length", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(FIRST.astype(np.float16), "w")],
    )
    path = folder / "half.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return ModelFile(path=str(path), sha256="", spec=nets.spec(inputs, OUTPUTS), dim_names=("length",))
