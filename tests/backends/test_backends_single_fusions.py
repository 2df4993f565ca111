"""One fusion less: what ONNX Runtime and OpenVINO can be told to leave out, and that they do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import backends_nets as nets
import onnxruntime
import pytest
from onnx import helper

from trimtab import backends
from trimtab.backends import onnxruntime as onnxruntime_backend
from trimtab.backends._optimisers import CHUNK, OPTIMISERS, absent
from trimtab.domain.plan import Entry
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import Crop, InputSpec, OutputSpec

LIBRARY = Path(onnxruntime.capi.onnxruntime_pybind11_state.__file__)
WHOLE = nets.entry("dynamic", (1,), (40,))


def kinds(name: str, model: ModelFile, entry: Entry = WHOLE, **options: object) -> list[str]:
    program = backends.factory(name)().compile(model, entry, CompileOptions(**options))
    assert not isinstance(program, CompileFailure), program
    return [op.kind for op in program.inspect(nets.inputs(model, 1, 16)).operators]


def chain(folder: Path) -> ModelFile:
    """y = sigmoid(x + x * x) * x: small operators only."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"], name="square"),
        helper.make_node("Add", ["x", "square"], ["sum"], name="sum"),
        helper.make_node("Sigmoid", ["sum"], ["gate"], name="gate"),
        helper.make_node("Mul", ["gate", "x"], ["y"], name="y"),
    ]
    inputs = (InputSpec(name="x", shape=("batch", 2, "width")),)
    outputs = (OutputSpec(name="y", crop=(Crop(axis=2, dim="width"),)),)
    return nets.write(folder, "chain", nodes, nets.spec(inputs, outputs), ("width",))


@pytest.mark.parametrize(
    ("level", "disable", "found"),
    [
        ("extended", None, ["FusedConv"]),
        ("extended", "ConvActivationFusion", ["Conv", "Relu"]),
        ("extended", "GemmActivationFusion", ["FusedConv"]),
        ("all", "NchwcTransformer, ConvActivationFusion", ["Conv", "Relu"]),
    ],
)
def test_onnx_runtime_leaves_out_the_fusions_that_are_named(tmp_path: Path, level, disable, found) -> None:
    extra = {"disable": disable} if disable else {}
    assert kinds("onnxruntime", nets.line(tmp_path), optimisation=level, extra=extra) == found


@pytest.mark.parametrize(
    ("disable", "said"),
    [
        ("ConvActivationFuson", "no 'ConvActivationFuson': did you mean `ConvActivationFusion`"),
        ("ConvActivationFusion GemmActivationFusion", "no 'ConvActivationFusion GemmActivationFusion'"),
        ("", "option disable is empty"),
    ],
)
def test_an_optimiser_that_is_not_known_is_a_failure_and_not_ignored(tmp_path: Path, disable: str, said: str) -> None:
    options = CompileOptions(extra={"disable": disable})
    failure = backends.factory("onnxruntime")().compile(nets.line(tmp_path), WHOLE, options)
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unknown-option"
    assert said in failure.message


LOGGED = """
import sys, onnxruntime
settings = onnxruntime.SessionOptions()
settings.log_severity_level = 0
onnxruntime.InferenceSession(sys.argv[1], settings, providers=["CPUExecutionProvider"])
"""


RULES = {
    "CastElimination", "ClipQuantRewrite", "ConvAddFusion", "ConvBNFusion", "ConvMulFusion", "DivMulFusion",
    "EliminateDropout", "EliminateIdentity", "EliminateSlice", "ExpandElimination", "FuseReluClip", "GemmSumFusion",
    "GemmTransposeFusion", "LabelEncoderFusion", "MatMul_BatchNormalization_Fusion", "NoopElimination",
    "NotWhereFusion", "Pad_Fusion", "PreShapeNodeElimination", "ReluQuantRewrite", "UnsqueezeElimination",
}  # fmt: skip
"""Optimisers of single patterns: they run inside others, and the log does not name them."""


def test_the_list_holds_what_onnx_runtime_says_it_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOGGED, nets.line(tmp_path).path]
    log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    named = set(re.findall(r"GraphTransformer (\w+) modified", log))
    assert set(OPTIMISERS) - RULES - named == set()


def test_every_name_on_the_list_stands_in_the_library() -> None:
    assert absent(OPTIMISERS, LIBRARY) == []
    assert absent(["ConvActivationFusion", "GoneFusion"], LIBRARY) == ["GoneFusion"]


def test_a_name_across_two_pieces_of_a_file_is_found(tmp_path: Path) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"x" * (CHUNK - 4) + b"LateFusion" + b"x" * 9)
    assert absent(["LateFusion", "TransposeOptimizer_CPUExecutionProvider"], file) == [
        "TransposeOptimizer_CPUExecutionProvider"
    ]


def test_a_listed_name_that_this_version_lacks_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(onnxruntime_backend.LISTS, "disable", (*OPTIMISERS, "GoneFusion"))
    options = CompileOptions(extra={"disable": "GemmActivationFusion, GoneFusion"})
    failure = backends.factory("onnxruntime")().compile(nets.line(tmp_path), WHOLE, options)
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unknown-option"
    assert failure.message.endswith("has no optimiser 'GoneFusion'")


def test_openvino_leaves_out_its_generated_kernels(tmp_path: Path) -> None:
    model, fixed = chain(tmp_path), nets.entry("static", (16,), (16,))
    found = {s: kinds("openvino", model, fixed, precision="f32", extra={"snippets": s}) for s in ("on", "off")}
    assert found == {"on": ["Subgraph"], "off": ["Eltwise", "Eltwise", "Eltwise"]}
