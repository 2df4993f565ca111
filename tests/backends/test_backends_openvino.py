"""What only OpenVINO does: lost errors, silent bfloat16, bounds."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import backends_nets as nets
import numpy as np
import pytest
from backends_kit import compiled_with

from trimtab import backends
from trimtab.backends._execution_graph import mean_times, operators
from trimtab.domain.ports import Backend, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Operator

WHOLE = nets.entry("dynamic", (1,), (40,))


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("openvino")()


def can(backend: Backend, ability: str) -> bool:
    return next(a.ok for a in backend.info().abilities if a.name == ability)


def survive_an_error(model: ModelFile, threads: int) -> None:
    entry = compiled_with(backends.factory("openvino")(), model, WHOLE, threads=threads)
    good, better = nets.inputs(model, 1, 9, seed=1), nets.inputs(model, 1, 9, seed=2)
    first, second = entry.run(good)["y"], entry.run(better)["y"]
    assert not np.array_equal(first, second)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="AvgPool"):
            entry.run(nets.inputs(model, 1, 3))
        np.testing.assert_array_equal(entry.run(good)["y"], first)
        np.testing.assert_array_equal(entry.run(better)["y"], second)
    entry.close()


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.skipif("multiprocessing.cpu_count() < 2"))])
def test_an_error_inside_the_graph_is_raised_and_harms_no_later_run_nor_the_process(
    tmp_path: Path, threads: int
) -> None:
    worker = multiprocessing.get_context("spawn").Process(target=survive_an_error, args=(nets.pool(tmp_path), threads))
    worker.start()
    worker.join()
    assert worker.exitcode == 0


def test_empty_outputs_are_outputs(backend: Backend, tmp_path: Path) -> None:
    model = nets.nonzero(tmp_path)
    entry = compiled_with(backend, model, WHOLE)
    where = entry.run({"x": np.array([[0, 5, 0, 7]], np.float32)})["y"]
    assert where.tolist() == [[0, 0], [1, 3]]
    assert entry.run({"x": np.zeros((1, 4), np.float32)})["y"].shape == (2, 0)


def test_left_alone_it_shows_the_precision_that_it_chose(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    given = nets.inputs(model, 1, 32)
    silent = "bf16" if can(backend, "precision bf16") else "f32"
    kernels = {}
    for precision in ("default", "f32"):
        found = compiled_with(backend, model, WHOLE, precision=precision).inspect(given)
        kernels[precision] = next(op for op in found.operators if op.kind == "Convolution")
    assert kernels["default"].precision == silent
    assert kernels["default"].kernel.endswith(silent)
    assert kernels["f32"].precision == "f32"


def test_f32_is_exact_where_the_default_need_not_be(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    given = nets.inputs(model, 2, 32)
    want = nets.line_reference(given)["y"]
    np.testing.assert_allclose(
        compiled_with(backend, model, nets.entry("dynamic", (1,), (40,), (1, 2)), precision="f32").run(given)["y"],
        want,
        atol=1e-5,
    )


def test_a_precision_that_the_device_does_not_list_is_refused(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    for precision in ("bf16", "f16"):
        result = backend.compile(model, WHOLE, CompileOptions(precision=precision))
        if can(backend, f"precision {precision}"):
            assert not isinstance(result, CompileFailure)
        else:
            assert isinstance(result, CompileFailure)
            assert result.kind == "unsupported"
            assert f"does not compute in {precision}" in result.message


def test_bounds_are_off_unless_asked_for(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    outside = nets.inputs(model, 1, 41)
    assert compiled_with(backend, model, WHOLE).run(outside)["y"].shape == (1, 4, 41)
    bounded = compiled_with(backend, model, WHOLE, extra={"bounds": "on"})
    assert bounded.run(nets.inputs(model, 1, 40))["y"].shape == (1, 4, 40)
    with pytest.raises(RuntimeError, match="are incompatible"):
        bounded.run(outside)


def test_what_openvino_would_silently_lower_is_a_failure(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    threads = backend.compile(model, WHOLE, CompileOptions(threads=4096))
    assert isinstance(threads, CompileFailure)
    assert "instead of 4096" in threads.message
    level = backend.compile(model, WHOLE, CompileOptions(optimisation="basic"))
    assert isinstance(level, CompileFailure)
    assert level.message == "OpenVINO has no graph-optimisation levels; 'basic' cannot be chosen"


def test_a_shape_that_the_network_cannot_take_is_a_compile_failure(backend: Backend, tmp_path: Path) -> None:
    failure = backend.compile(nets.pool(tmp_path), nets.entry("static", (3,), (3,)), CompileOptions())
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "compiler-error"
    assert failure.message.startswith("OpenVINO refuses shape x[1,2,3]: ")


class Node:
    """What the reader uses of a node of OpenVINO's execution graph."""

    def __init__(self, order: int, name: str, kind: str, took: str, made_from: str, *sources: Node) -> None:
        self.name, self.sources = name, sources
        self.facts = {
            "execOrder": str(order),
            "layerType": kind,
            "execTimeMcs": took,
            "originalLayersNames": made_from,
            "primitiveType": f"jit_{kind.lower()}",
            "runtimePrecision": "bf16",
        }

    def get_friendly_name(self) -> str:
        return self.name

    def get_rt_info(self) -> dict[str, str]:
        return self.facts

    def input_values(self) -> list[Node]:
        return list(self.sources)

    def get_node(self) -> Node:
        return self


def test_the_execution_graph_is_read_without_what_was_computed_in_advance() -> None:
    x = Node(0, "x", "Input", "not_executed", "x")
    weight = Node(1, "w", "Const", "not_executed", "w")
    packed = Node(2, "w_packed", "Reorder", "35", "", weight)
    conv = Node(3, "Multiply_7", "Convolution", "51", "Multiply_7,bn,HSwish_9,add", x, packed)
    view = Node(4, "flat", "Reshape", "not_executed", "flat", conv)
    out = Node(5, "y/out", "Output", "not_executed", "y", view)

    class Graph:
        def get_ops(self) -> list[Node]:
            return [out, conv, x, view, packed, weight]

    first = {"x": 0, "w": 0, "w_packed": 35, "Multiply_7": 84, "flat": 0, "y/out": 0}
    assert mean_times(Graph()) == {"x": 0, "w": 0, "w_packed": 35, "Multiply_7": 51, "flat": 0, "y/out": 0}
    assert operators(Graph(), {"bn", "add", "flat", "y"}, first, runs=4) == (
        Operator(
            name="Multiply_7", kind="Convolution", kernel="jit_convolution", precision="bf16", ns=40_000,
            fused=("bn", "add"),
        ),
        Operator(name="flat", kind="Reshape", kernel="jit_reshape", precision="bf16", ns=0),
    )  # fmt: skip
