"""Declared precision against executed precision: int8 made here, int8 that computes in floats, half precision."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path

import backends_nets as nets
import backends_quantised as quantised
import numpy as np
import onnx
import pytest
from backends_kit import compiled
from msgspec.structs import replace
from onnx import helper, numpy_helper

from trimtab import backends
from trimtab.backends import _kept, _onnx
from trimtab.backends._precision import precision
from trimtab.backends._quantise import QuantiseError, Quantiser
from trimtab.domain.plan import Precision
from trimtab.domain.ports import Backend, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, Inspection
from trimtab.domain.study import QualitySpec
from trimtab.evidence import compile as compiled_evidence

WHOLE = quantised.WHOLE
STATIC = {"quantise": "static"}
MADE = [("onnxruntime", "dynamic"), ("onnxruntime", "static"), ("openvino", "static")]


@pytest.fixture(scope="module")
def made() -> dict[str, Backend]:
    return {name: backends.factory(name)() for name in ("onnxruntime", "openvino")}


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    return quantised.calibrated(quantised.dense(tmp_path_factory.mktemp("dense")))


def int8(backend: Backend, model: ModelFile, **extra: str) -> CompiledEntry:
    return compiled(backend.compile(model, WHOLE, CompileOptions(precision="int8", extra=extra)))


def by_kernel(found: Inspection) -> dict[str, str]:
    """Kind of each operator that multiplies -> the precision it computed in."""
    return {op.name: op.precision for op in found.operators if "MatMul" in op.kind or "FullyConnected" in op.kind}


def evened(found: Inspection) -> Inspection:
    """The same operators, each with the same time: shares no longer depend on the machine."""
    return replace(found, operators=tuple(replace(op, ns=1000) for op in found.operators))


def said_of(found: Inspection, declared: Precision) -> list[str]:
    """What the compile stage says of a plan that declares a precision and was inspected so."""
    profile = CompileProfile(
        plan="candidate", entry=WHOLE.id, backend="any", versions={}, options=CompileOptions(precision=declared),
        compile_ns=1, memory_bytes=0, peak_bytes=0, inspection=evened(found), timings=(),
    )  # fmt: skip
    findings = compiled_evidence.findings([profile], [], QualitySpec()).findings
    return [finding.text for finding in findings if "its options declare" in finding.text]


@pytest.mark.parametrize(("name", "way"), MADE)
def test_a_network_that_is_quantised_here_computes_in_integers(name: str, way: str, made, dense: ModelFile) -> None:
    entry = int8(made[name], dense, quantise=way)
    given = nets.inputs(dense, 1, 20)
    found = entry.inspect(given)
    assert set(by_kernel(found).values()) == {"int8"}
    assert len(by_kernel(found)) == 2
    assert 0 < found.precision_share()["int8"] <= 1
    assert f"quantised to int8 ({way}" in found.note
    want = quantised.dense_reference(given)
    np.testing.assert_allclose(entry.run(given)["y"], want, atol=0.05 * np.abs(want).max())


@pytest.mark.parametrize(("name", "way"), MADE)
def test_quantising_changes_answers_and_writes_nothing_beside_the_network(
    name: str, way: str, made, tmp_path: Path
) -> None:
    model = quantised.calibrated(quantised.dense(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    given = nets.inputs(model, 1, 20)
    rounded = int8(made[name], model, quantise=way).run(given)["y"]
    exact = compiled(made[name].compile(model, WHOLE, CompileOptions(precision="f32"))).run(given)["y"]
    assert not np.allclose(rounded, exact, rtol=1e-5)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_same_recipe_gives_the_same_network_in_another_process(dense: ModelFile) -> None:
    notes = [
        int8(backends.factory("onnxruntime")(), dense, **STATIC).inspect(nets.inputs(dense, 1, 4)).note
        for _ in range(2)
    ]
    assert notes[0] == notes[1]
    assert "(static, per channel, Clip Conv ConvTranspose Gemm MatMul Relu, 8 calibration inputs) by onnxr" in notes[0]
    assert ": 3 operators, sha256 " in notes[0]


def test_calibration_inputs_set_the_range_and_what_lies_outside_is_clipped(made, dense: ModelFile, tmp_path) -> None:
    """Inputs ten times smaller than those that are served: ten times the error, at least."""
    small = {f"x/{n}": np.random.default_rng(n).normal(size=(9, 64)).astype(np.float32) for n in range(4)}
    narrow = quantised.calibrated(quantised.dense(tmp_path), bank=small)
    given = nets.inputs(dense, 1, 20)
    want = quantised.dense_reference(given)
    right, wrong = (
        np.abs(int8(made["onnxruntime"], model, **STATIC).run(given)["y"] - want).max() for model in (dense, narrow)
    )
    assert wrong > 10 * right


def test_only_the_operators_that_are_named_are_quantised(made, dense: ModelFile) -> None:
    entry = int8(made["onnxruntime"], dense, quantise="static", quantise_operators="Sigmoid")
    assert set(by_kernel(entry.inspect(nets.inputs(dense, 1, 20))).values()) == {"f32"}


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (CompileOptions(extra=STATIC), "unsupported", "quantise makes int8, but the plan declares 'default'"),
        (CompileOptions(precision="int8"), "unsupported", 'set option quantise = "dynamic" or "static"'),
        (
            CompileOptions(precision="int8", extra={"quantise_per_channel": "on"}),
            "unknown-option",
            "quantise_per_channel does nothing without quantise",
        ),
        (
            CompileOptions(precision="int8", extra=STATIC | {"quantise_operators": "Conv, MatMull"}),
            "unknown-option",
            "no 'MatMull': did you mean `MatMul`",
        ),
        (
            CompileOptions(precision="int8", extra=STATIC | {"quantise_operators": " ,"}),
            "unknown-option",
            "quantise_operators is empty",
        ),
        (
            CompileOptions(precision="int8", extra=STATIC | {"quantise_operators": "Conv"}),
            "unsupported",
            "nothing was quantised: the tools left every operator float (asked for: Conv)",
        ),
    ],
)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_what_cannot_be_quantised_as_asked_is_a_failure(
    name: str, options: CompileOptions, kind: str, said: str, made, dense: ModelFile
) -> None:
    failure = made[name].compile(dense, WHOLE, options)
    assert isinstance(failure, CompileFailure)
    assert (failure.kind, said in failure.message) == (kind, True), failure


def test_static_needs_calibration_inputs_that_can_be_read(made, tmp_path: Path) -> None:
    plain = quantised.dense(tmp_path)
    options = CompileOptions(precision="int8", extra=STATIC)
    banks = {"other/1": np.zeros(3)}, {"x/1": np.zeros((2, 3), np.float32)}
    failures = [made["onnxruntime"].compile(plain, WHOLE, options)]
    failures += [made["onnxruntime"].compile(quantised.calibrated(plain, bank=b), WHOLE, options) for b in banks]
    broken = quantised.calibrated(plain)
    Path(broken.calibration).write_bytes(b"not an archive")
    failures.append(made["onnxruntime"].compile(replace(broken, calibration_sha256="d"), WHOLE, options))
    said = [failure.message for failure in failures if isinstance(failure, CompileFailure)]
    assert len(said) == 4
    assert "name them in model.calibration.bank" in said[0]
    assert "calibration.npz: no array is named x/<key>" in said[1]
    assert "calibration.npz: operands could not be broadcast" in said[2]
    assert "calibration.npz: " in said[3]


def test_the_folder_of_a_quantised_network_goes_with_the_last_who_holds_it(dense: ModelFile) -> None:
    quantiser = Quantiser()
    file = quantiser.file_for(dense, CompileOptions(precision="int8", extra={"quantise": "dynamic"}))
    path = Path(file.path)
    del quantiser
    assert path.is_file()
    del file
    assert not path.parent.exists()


def test_a_kept_network_is_only_loaded_by_the_next_worker(
    dense: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, options = replace(dense, kept=str(tmp_path / "networks")), CompileOptions(precision="int8", extra=STATIC)
    first = Quantiser().file_for(model, options)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    again = Quantiser().file_for(model, options)
    assert (again.path, again.note, again.made) == (first.path, first.note, True)
    digest = hashlib.sha256(Path(first.path).read_bytes()).hexdigest()
    assert (Path(first.path).name, first.note.endswith(digest)) == (f"{digest}.onnx", True)
    for other in (replace(model, sha256="another"), replace(model, calibration_sha256="d")):
        with pytest.raises(QuantiseError, match="exit code 1"):
            Quantiser().file_for(other, options)
    with pytest.raises(QuantiseError, match="exit code 1"):
        Quantiser().file_for(model, replace(options, extra=STATIC | {"quantise_per_channel": "off"}))
    assert sorted(path.suffix for path in (tmp_path / "networks").iterdir()) == [".json", ".onnx"]


@pytest.mark.parametrize("damage", ["cut", "altered", "gone", "no index"])
def test_what_is_kept_and_damaged_is_made_again(damage: str, dense: ModelFile, tmp_path: Path) -> None:
    model, options = replace(dense, kept=str(tmp_path)), CompileOptions(precision="int8", extra={"quantise": "dynamic"})
    path = Path(Quantiser().file_for(model, options).path)
    whole, (index,) = path.read_bytes(), tmp_path.glob("*.json")
    if damage == "no index":
        index.write_bytes(index.read_bytes()[:20])
    elif damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-9] if damage == "cut" else b"x" + whole[1:])
    assert _kept.find(tmp_path, index.stem) is None
    assert Path(Quantiser().file_for(model, options).path) == path
    assert path.read_bytes() == whole
    assert _kept.find(tmp_path, index.stem) is not None


def test_a_folder_that_cannot_be_written_is_a_failure_that_says_so(made, dense: ModelFile, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    options = CompileOptions(precision="int8", extra={"quantise": "dynamic"})
    failure = made["onnxruntime"].compile(replace(dense, kept=str(tmp_path / "file" / "networks")), WHOLE, options)
    assert isinstance(failure, CompileFailure)
    assert failure.message.startswith("the quantised network cannot be kept: ")


def test_a_quantiser_that_dies_is_a_failure(made, dense: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    options = CompileOptions(precision="int8", extra=STATIC | {"quantise_operators": "MatMul"})
    failure = made["onnxruntime"].compile(dense, WHOLE, options)
    assert isinstance(failure, CompileFailure)
    assert (failure.kind, failure.message) == ("compiler-error", "the quantiser ended with exit code 1")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_bytes_that_are_widened_before_they_are_used_are_no_int8(name: str, made, tmp_path: Path) -> None:
    """A network that is int8 by its file alone: taken as declared, and the profile says what it computed in."""
    model = quantised.weights_only(tmp_path)
    found = int8(made[name], model, integer_kernels="off").inspect(nets.inputs(model, 1, 20))
    assert set(by_kernel(found).values()) == {"f32"}
    assert [text.split(":")[0] for text in said_of(found, "int8")] == [
        f"candidate.{WHOLE.id} does not execute int8, which its options declare"
    ]
    again = made[name].compile(model, WHOLE, CompileOptions(precision="int8", extra={"quantise": "static"}))
    assert isinstance(again, CompileFailure)
    assert "already quantised" in again.message


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_activations_that_are_rounded_on_the_way_make_int8(name: str, made, tmp_path: Path) -> None:
    """Both runtimes round float activations by default where weights are bytes: the label agrees with the answers."""
    model = quantised.weights_only(tmp_path)
    given = nets.inputs(model, 1, 20)
    errors = {}
    for kernels, computes in (("on", "int8"), ("off", "f32")):
        entry = int8(made[name], model, integer_kernels=kernels)
        errors[computes] = quantised.weights_only_error(model, given, entry.run(given)["y"])
        assert set(by_kernel(entry.inspect(given)).values()) == {computes}
    assert errors["f32"] < 1e-5 < 1e-3 < errors["int8"] < 2e-2


@pytest.mark.parametrize(("name", "way"), MADE)
def test_int8_that_is_executed_is_no_finding_of_none(name: str, way: str, made, dense: ModelFile) -> None:
    found = int8(made[name], dense, quantise=way).inspect(nets.inputs(dense, 1, 20))
    assert not any("does not execute" in text for text in said_of(found, "int8"))


def test_openvino_computes_the_same_network_in_floats_when_told(made, dense: ModelFile) -> None:
    entry = int8(made["openvino"], dense, quantise="static", integer_kernels="off")
    found = entry.inspect(nets.inputs(dense, 1, 20))
    assert set(by_kernel(found).values()) == {"f32"}
    assert "does not execute int8" in said_of(found, "int8")[0]


def test_what_int8_leaves_float_is_f32_unless_told(made, dense: ModelFile) -> None:
    given = nets.inputs(dense, 1, 20)
    only = {"quantise": "static", "quantise_operators": "Sigmoid"}
    assert set(by_kernel(int8(made["openvino"], dense, **only).inspect(given)).values()) == {"f32"}
    lower = made["openvino"].compile(
        dense, WHOLE, CompileOptions(precision="int8", extra=only | {"float_precision": "bf16"})
    )
    if next(a.ok for a in made["openvino"].info().abilities if a.name == "precision bf16"):
        assert set(by_kernel(compiled(lower).inspect(given)).values()) == {"bf16"}
    else:
        assert isinstance(lower, CompileFailure)
    alone = made["openvino"].compile(dense, WHOLE, CompileOptions(extra={"float_precision": "bf16"}))
    assert isinstance(alone, CompileFailure)
    assert "is for what int8 leaves float" in alone.message


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other CPUs have kernels for half precision")
def test_half_precision_is_computed_in_f32_by_onnx_runtime_and_that_is_a_finding(made, tmp_path: Path) -> None:
    model = quantised.half(tmp_path)
    entry = compiled(made["onnxruntime"].compile(model, WHOLE, CompileOptions(precision="f16")))
    found = entry.inspect({"x": np.ones((1, 20, 64), np.float16)})
    assert {op.precision for op in found.operators} == {"f32"}
    assert "does not execute f16, which its options declare: 100.0 % in f32" in said_of(found, "f16")[0]


def test_the_types_of_a_network_are_those_of_inputs_weights_and_constants() -> None:
    half, double = (numpy_helper.from_array(np.zeros(2, kind), kind) for kind in ("float16", "float64"))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=half),
        helper.make_node("Constant", [], ["f"], value_float=1.0),
    ]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    network = helper.make_model(helper.make_graph(nodes, "g", [given], [], [double]))
    known = ("f16", "bf16", "f32", "f64", "i64")
    assert [kind for kind in known if _onnx.holds_type(network, kind)] == ["f16", "f32", "f64"]


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "computes"),
    [
        ("Conv", ["f32", "f32"], ["f32"], "f32"),
        ("QLinearConv", ["u8", "f32", "u8", "i8"], ["u8"], "int8"),
        ("QLinearConcat", ["f32", "u8", "u8"], ["u8"], "int8"),
        ("DynamicQuantizeMatMul", ["f32", "i8", "f32"], ["f32"], "int8"),
        ("MatMulIntegerToFloat", ["u8", "i8"], ["f32"], "int8"),
        ("MaxPool", ["u8"], ["u8"], "int8"),
        ("QuantizeLinear", ["f32", "f32", "u8"], ["u8"], "f32"),
        ("DequantizeLinear", ["u8", "f32", "u8"], ["f32"], "f32"),
        ("DynamicQuantizeLinear", ["f32"], ["u8", "f32", "u8"], "f32"),
        ("Cast", ["f16"], ["f32"], "f32"),
        ("Cast", ["i32"], ["f32"], "f32"),
        ("Cast", ["u8"], ["bf16"], "bf16"),
        ("Shape", ["f32"], ["i64"], "f32"),
        ("Constant", [], ["i64"], "i64"),
        ("Nothing", [], [], "none"),
    ],
)
def test_precision_by_kind_and_element_types(kind: str, inputs, outputs, computes: str) -> None:
    assert precision(kind, inputs, outputs) == computes
