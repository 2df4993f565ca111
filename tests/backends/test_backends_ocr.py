"""A real network: the text recogniser that the demo serves."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from types import ModuleType

import backends_nets as nets
import numpy as np
import onnx
import pytest
from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import InputSpec, OutputSpec

PACKAGE, FILE = "rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx"


@pytest.fixture(scope="module")
def recogniser() -> ModelFile:
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")
    path = next(str(f.locate()) for f in files if f.name == FILE)
    inputs = (InputSpec(name="x", shape=("batch", 3, 48, "width")),)
    spec = nets.spec(inputs, (OutputSpec(name="softmax_11.tmp_0"),))
    return ModelFile(path=path, sha256="", spec=spec, dim_names=("width",))


@pytest.mark.slow
def test_the_recogniser_reads_the_same_on_both_runtimes(recogniser: ModelFile) -> None:
    whole = nets.entry("dynamic", (25,), (1630,), (1, 4))
    outputs = {}
    for name, precision in (("onnxruntime", "default"), ("openvino", "f32"), ("openvino", "default")):
        entry = backends.factory(name)().compile(recogniser, whole, CompileOptions(precision=precision))
        assert not isinstance(entry, CompileFailure), entry
        outputs[name, precision] = [
            entry.run(nets.inputs(recogniser, n, width))["softmax_11.tmp_0"] for n, width in ((1, 96), (2, 321))
        ]
        found = entry.inspect(nets.inputs(recogniser, 1, 192))
        assert 50 < len(found.operators) < found.operators_before
        assert found.fusions > 30
        entry.close()
    reference = outputs["onnxruntime", "default"]
    for got, want in zip(outputs["openvino", "f32"], reference, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-3)
    for got, want in zip(outputs["openvino", "default"], reference, strict=True):
        assert (got.argmax(-1) == want.argmax(-1)).mean() > 0.95


@pytest.mark.slow
def test_more_fusion_saves_launches_of_the_recogniser_and_holds_more_at_once(recogniser: ModelFile) -> None:
    backend, fixed, given = (
        backends.factory("iree")(),
        nets.entry("static", (96,), (96,)),
        nets.inputs(recogniser, 1, 96),
    )
    found, outputs = {}, {}
    for fusion in ("default", "aggressive"):
        entry = backend.compile(recogniser, fixed, CompileOptions(extra={"fusion": fusion}))
        assert not isinstance(entry, CompileFailure), entry
        outputs[fusion] = entry.run(given)["softmax_11.tmp_0"]
        found[fusion] = entry.inspect(given)
        entry.close()
    np.testing.assert_allclose(outputs["aggressive"], outputs["default"], atol=1e-3)
    plain, fused = found["default"], found["aggressive"]
    assert len(fused.operators) < len(plain.operators) < plain.operators_before
    assert fused.workspace_bytes > plain.workspace_bytes


def network_module() -> ModuleType:
    """The example's file that makes the torch network."""
    path = Path(__file__).parents[2] / "examples" / "ocr" / "network.py"
    spec = importlib.util.spec_from_file_location("ocr_network", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_constants_of_a_target_are_read_from_two_shapes() -> None:
    target = network_module().target
    assert target([([2, 8, 1, 17], [2, 8, 17]), ([5, 8, 1, 41], [5, 8, 41])]) == [0, 8, -1]
    assert target([([2, 17, 360], [2, 17, 3, 8, 15]), ([5, 41, 360], [5, 41, 3, 8, 15])]) == [0, 0, 3, 8, 15]
    with pytest.raises(ValueError, match="more than one axis"):
        target([([2, 34, 4], [2, 2, 17, 4]), ([5, 410, 4], [5, 10, 41, 4])])


@pytest.mark.slow
def test_constant_targets_change_no_answer_of_the_recogniser(recogniser: ModelFile, tmp_path: Path) -> None:
    changed = network_module().with_constant_targets(onnx.load(recogniser.path))
    computed = {node.output[0] for node in changed.graph.node}
    assert not any(node.input[1] in computed for node in changed.graph.node if node.op_type == "Reshape")
    onnx.save(changed, tmp_path / "changed.onnx")
    backend, whole = backends.factory("onnxruntime")(), nets.entry("dynamic", (25,), (1630,), (1, 4))
    answers = []
    for model in (recogniser, replace(recogniser, path=str(tmp_path / "changed.onnx"))):
        entry = backend.compile(model, whole, CompileOptions())
        assert not isinstance(entry, CompileFailure), entry
        answers.append([entry.run(nets.inputs(model, n, width)) for n, width in ((1, 60), (3, 321), (1, 1630))])
    for before, after in zip(*answers, strict=True):
        np.testing.assert_allclose(after["softmax_11.tmp_0"], before["softmax_11.tmp_0"], atol=1e-5)


@pytest.mark.live
def test_the_recogniser_reads_the_same_under_torch(recogniser: ModelFile) -> None:
    """What CI does not install: torch, and onnx2torch with its torchvision."""
    for package in ("torch", "onnx2torch"):
        pytest.importorskip(package)
    twin = replace(recogniser, torch=f"{network_module().__file__}:recogniser")
    whole = nets.entry("dynamic", (25,), (1630,), (1, 4))
    answers = {}
    for name, extra in (("onnxruntime", {}), ("torch", {"mode": "eager"})):
        entry = backends.factory(name)().compile(twin, whole, CompileOptions(extra=extra))
        assert not isinstance(entry, CompileFailure), entry
        answers[name] = [entry.run(nets.inputs(twin, n, width)) for n, width in ((1, 60), (3, 321))]
    for ours, theirs in zip(answers["torch"], answers["onnxruntime"], strict=True):
        np.testing.assert_allclose(ours["softmax_11.tmp_0"], theirs["softmax_11.tmp_0"], atol=1e-4)
