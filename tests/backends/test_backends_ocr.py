"""A real network: the text recogniser that the demo serves."""

from __future__ import annotations

import importlib.metadata

import backends_nets as nets
import numpy as np
import pytest

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
