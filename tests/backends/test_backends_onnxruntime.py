"""What only ONNX Runtime does: optimisation levels, fusions read back from graphs, external weights."""

from __future__ import annotations

from pathlib import Path

import backends_nets as nets
import numpy as np
import onnx
import pytest
from backends_kit import compiled_with
from onnx import TensorProto, helper

from trimtab import backends
from trimtab.backends import _onnx
from trimtab.backends.onnxruntime import Arguments, Event, _operators
from trimtab.domain.ports import Backend
from trimtab.domain.profile import CompileFailure, CompileOptions

WHOLE = nets.entry("dynamic", (1,), (40,))


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("onnxruntime")()


@pytest.mark.parametrize(
    ("level", "kinds", "fusions"),
    [
        ("off", ["Conv", "Relu"], 0),
        ("basic", ["Conv", "Relu"], 0),
        ("extended", ["FusedConv"], 1),
    ],
)
def test_levels_change_the_operators(backend: Backend, tmp_path: Path, level: str, kinds, fusions) -> None:
    model = nets.line(tmp_path)
    found = compiled_with(backend, model, WHOLE, optimisation=level).inspect(nets.inputs(model, 1, 16))
    assert [op.kind for op in found.operators] == kinds
    assert found.operators_before == 2
    assert found.fusions == fusions
    assert {op.precision for op in found.operators} == {"f32"}


def test_the_default_level_is_all(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    given = nets.inputs(model, 1, 16)
    by_level = {
        level: [
            (op.kind, op.kernel)
            for op in compiled_with(backend, model, WHOLE, optimisation=level).inspect(given).operators
        ]
        for level in ("default", "all", "off")
    }
    assert by_level["default"] == by_level["all"] != by_level["off"]


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_it_lowers_no_precision(backend: Backend, tmp_path: Path, precision: str) -> None:
    failure = backend.compile(nets.line(tmp_path), WHOLE, CompileOptions(precision=precision))
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unsupported"
    assert repr(precision) in failure.message


def test_options_leave_the_result_alone(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    given = nets.inputs(model, 1, 16)
    extra = {"spinning": "on", "arena": "off", "memory_pattern": "off"}
    plain, other = compiled_with(backend, model, WHOLE), compiled_with(backend, model, WHOLE, extra=extra, threads=2)
    np.testing.assert_allclose(plain.run(given)["y"], other.run(given)["y"], rtol=1e-6)


def test_weights_beside_the_file_are_found(backend: Backend, tmp_path: Path) -> None:
    model = nets.heavy(tmp_path, mib=1)
    proto = onnx.load(model.path)
    onnx.save(proto, model.path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    given = nets.inputs(model, 1, 2)
    entry = compiled_with(backend, model, nets.entry("static", (2,), (2,)))
    assert entry.run(given)["y"].shape == (1, 2, 1024)
    assert [op.kind for op in entry.inspect(given).operators] == ["MatMul"]


def test_a_graph_that_the_runtime_refuses_is_a_compile_failure(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    proto = onnx.load(model.path)
    proto.graph.node[0].op_type = "Convolve"
    onnx.save(proto, model.path)
    failure = backend.compile(model, WHOLE, CompileOptions())
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "compiler-error"
    assert "Convolve" in failure.message


def graph(*nodes: str, constants: tuple[str, ...] = ()) -> onnx.ModelProto:
    """ "name: Kind(in, in) -> out" lines as a graph."""
    made = []
    for line in nodes:
        name, rest = line.split(": ")
        call, out = rest.split(" -> ")
        kind, given = call.rstrip(")").split("(")
        activation = {"activation": "Relu"} if kind.endswith("+Relu") else {}
        made.append(helper.make_node(kind.split("+")[0], given.split(", "), out.split(", "), name=name, **activation))
    values = [helper.make_tensor(name, TensorProto.FLOAT, [1], [0.0]) for name in constants]
    return helper.make_model(helper.make_graph(made, "g", [], [], values))


BEFORE = graph(
    "conv: Conv(x, w) -> c", "bn: BatchNormalization(c, s) -> b", "add: Add(b, x) -> a", "relu: Relu(a) -> r",
    "shape: Shape(r) -> n", "cast: Cast(n) -> m", "flat: Reshape(r, m) -> y",
    constants=("w", "s"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("after", "folded"),
    [
        (BEFORE, {}),
        (graph("conv: FusedConv(x, w, x) -> r", "flat: Reshape(r, m) -> y"), {"conv": ("bn", "add", "relu")}),
        (
            graph("c: Conv(x, w) -> b", "a/Fusion: AddRelu(b, x) -> r", "flat: Reshape(r, k) -> y"),
            {"c": ("bn",), "a/Fusion": ("add",)},
        ),
        (
            graph("b_nchwc: Conv+Relu(t1, w, s, t0) -> t2", "out: ReorderOutput(t2) -> r", "flat: Reshape(r, k) -> y"),
            {"b_nchwc": ("bn", "add", "relu")},
        ),
        (
            graph("b_nchwc_token_3: Conv+Relu(t1, w, s, t0) -> t2", "next: Other(t2) -> t3"),
            {"b_nchwc_token_3": ("bn", "add", "relu")},
        ),
    ],
)
def test_folded_operators_are_found_between_the_tensors_that_are_left(after, folded) -> None:
    assert {name: parts for name, parts in _onnx.folded(BEFORE, after).items() if parts} == folded


def test_operators_without_a_name_or_with_a_taken_one_get_their_own(tmp_path: Path) -> None:
    proto = graph(": Relu(x) -> a", "same: Relu(a) -> b", "same: Relu(b) -> y")
    onnx.save(proto, tmp_path / "net.onnx")
    assert [node.name for node in _onnx.read(str(tmp_path / "net.onnx")).graph.node] == ["Relu_0", "same", "Relu_2"]


@pytest.mark.parametrize(
    ("long", "short"),
    [("float", "f32"), ("float16", "f16"), ("bfloat16", "bf16"), ("double", "f64"), ("int64", "i64"), ("uint8", "u8"),
     ("bool", "bool")],
)  # fmt: skip
def test_element_types_are_written_as_in_a_study(long: str, short: str) -> None:
    assert _onnx.short_type(long) == short


def test_an_operators_time_is_the_median_of_its_warm_runs() -> None:
    """Four runs, the first cold; ``loop`` runs twice in each; ``out`` lies before any run."""
    events = [Event(name="model_run", ts=start, dur=90) for start in (0, 100, 200, 300)]
    times = {"conv": (50, 7, 40, 8), "loop": (9, 1, 2, 3)}
    arguments = Arguments(op_name="Conv", provider="CPU", input_type_shape=({"float": (1,)},))
    events += [Event(name="out_kernel_time", cat="Node", ts=-5, dur=1000, args=arguments)]
    for name, durations in times.items():
        for start, took in zip((0, 100, 200, 300), durations, strict=True):
            for again in range(2 if name == "loop" else 1):
                events.append(
                    Event(name=f"{name}_kernel_time", cat="Node", ts=start + 1 + again, dur=took, args=arguments)
                )
    found = _operators(events, graph("conv: Conv(x, w) -> c"), {"conv": ("relu",)})
    assert [(op.name, op.ns, op.kernel, op.precision, op.fused) for op in found] == [
        ("conv", 8_000, "CPU/Conv", "f32", ("relu",)),
        ("loop", 4_000, "CPU/Conv", "f32", ()),
    ]
