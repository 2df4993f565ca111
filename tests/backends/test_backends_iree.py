"""What only IREE does: levels and fusion of its compiler, a compiler in a process of its own, kernels read back."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import backends_nets as nets
import numpy as np
import onnx
import pytest
from backends_kit import compiled_with
from onnx import helper

from trimtab import backends
from trimtab.backends import _iree_compiler
from trimtab.backends._iree_dispatches import Launch, members, operators
from trimtab.backends._iree_profile import one_run
from trimtab.domain.ports import Backend, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Operator
from trimtab.domain.study import InputSpec, OutputSpec

WHOLE = nets.entry("dynamic", (1,), (40,))
FIXED = nets.entry("static", (16,), (16,))


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("iree")()


def network(folder: Path, name: str, *nodes: onnx.NodeProto, **weights: np.ndarray) -> ModelFile:
    """y from x[batch, 8, width]."""
    spec = nets.spec((InputSpec(name="x", shape=("batch", 8, "width")),), (OutputSpec(name="y"),))
    return nets.write(folder, name, list(nodes), spec, ("width",), **weights)


def normalised(folder: Path) -> ModelFile:
    """y = (x - mean) / deviation over 8 channels: two reductions, of which one needs the other's result."""
    node = helper.make_node
    return network(
        folder,
        "normalised",
        node("ReduceMean", ["x"], ["m"], name="mean", axes=[1]),
        node("Sub", ["x", "m"], ["d"], name="sub"),
        node("Mul", ["d", "d"], ["q"], name="square"),
        node("ReduceMean", ["q"], ["v"], name="variance", axes=[1]),
        node("Sqrt", ["v"], ["r"], name="root"),
        node("Div", ["d", "r"], ["y"], name="y"),
    )


@pytest.mark.parametrize(
    ("level", "fusion", "launches"),
    [
        ("default", "default", 2),
        ("default", "aggressive", 1),
        ("extended", "default", 1),
        ("extended", "less", 2),
    ],
)
def test_fusion_changes_the_launches_and_not_the_result(
    backend: Backend, tmp_path: Path, level: str, fusion: str, launches: int
) -> None:
    model = normalised(tmp_path)
    given = nets.inputs(model, 1, 16)
    entry = compiled_with(backend, model, FIXED, optimisation=level, extra={"fusion": fusion})
    x = given["x"]
    np.testing.assert_allclose(
        entry.run(given)["y"], (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), rtol=1e-4
    )
    found = entry.inspect(given)
    assert [op.precision for op in found.operators] == ["f32"] * launches
    assert (found.operators_before, found.fusions) == (6, 6 - launches)
    assert 2 * x.nbytes <= found.workspace_bytes < 2**16


def test_options_leave_the_result_alone(backend: Backend, tmp_path: Path) -> None:
    model = nets.line(tmp_path)
    given = nets.inputs(model, 1, 16)
    plain = compiled_with(backend, model, WHOLE).run(given)["y"]
    tiled = {"convolution": "im2col", "data_tiling": "on", "target_cpu": "generic"}
    for options in ({"optimisation": "all"}, {"extra": tiled}):
        np.testing.assert_allclose(compiled_with(backend, model, WHOLE, **options).run(given)["y"], plain, atol=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_it_lowers_no_precision(backend: Backend, tmp_path: Path, precision: str) -> None:
    failure = backend.compile(nets.line(tmp_path), WHOLE, CompileOptions(precision=precision))
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "unsupported"
    assert repr(precision) in failure.message


def two_pools(model: ModelFile) -> None:
    backend, given = backends.factory("iree")(), nets.inputs(model, 1, 16)
    alone, pooled = (compiled_with(backend, model, FIXED, threads=threads) for threads in (1, 2))
    np.testing.assert_allclose(pooled.run(given)["y"], alone.run(given)["y"], rtol=1e-6)
    assert pooled.inspect(given).fusions == 1
    failure = backend.compile(model, FIXED, CompileOptions(threads=3))
    assert isinstance(failure, CompileFailure)
    assert failure.message == "IREE has one pool a process, and this one has 2 threads, not 3"


def test_a_second_pool_that_the_runtime_would_silently_leave_out_is_a_failure(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("spawn").Process(target=two_pools, args=(nets.line(tmp_path),))
    worker.start()
    worker.join()
    assert worker.exitcode == 0


def test_a_shape_whose_size_is_in_the_data_comes_back_as_it_is(backend: Backend, tmp_path: Path) -> None:
    entry = compiled_with(backend, nets.nonzero(tmp_path), WHOLE)
    assert entry.run({"x": np.array([[0, 5, 0, 7]], np.float32)})["y"].tolist() == [[0, 0], [1, 3]]
    assert entry.run({"x": np.zeros((1, 4), np.float32)})["y"].shape == (2, 0)


def test_an_error_inside_the_network_is_raised_and_harms_no_later_run(backend: Backend, tmp_path: Path) -> None:
    model = nets.pool(tmp_path)
    entry, good = compiled_with(backend, model, WHOLE), nets.inputs(model, 1, 9)
    first = entry.run(good)["y"]
    with pytest.raises(RuntimeError, match="shape element count overflows") as caught:
        entry.run(nets.inputs(model, 1, 3))
    assert "bytecode" not in str(caught.value)
    np.testing.assert_array_equal(entry.run(good)["y"], first)


def test_networks_of_older_operator_sets_are_raised_to_what_iree_converts(backend: Backend, tmp_path: Path) -> None:
    one = np.ones(8, np.float32)
    normalise = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], name="norm")
    model = network(tmp_path, "old", normalise, s=2 * one, b=one, m=0 * one, v=one)
    old = onnx.load(model.path)
    old.opset_import[0].version = 9
    onnx.save(old, model.path)
    given = nets.inputs(model, 1, 16)
    entry = compiled_with(backend, model, FIXED)
    np.testing.assert_allclose(entry.run(given)["y"], 2 * given["x"] + 1, atol=1e-4)
    assert [op.kind for op in entry.inspect(given).operators] == ["BatchNormalization"]


def test_weights_beside_the_file_are_found(backend: Backend, tmp_path: Path) -> None:
    model = nets.heavy(tmp_path, mib=1)
    onnx.save(onnx.load(model.path), model.path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    given = nets.inputs(model, 1, 2)
    entry = compiled_with(backend, model, nets.entry("static", (2,), (2,)))
    weight = np.fromfile(tmp_path / "weights.bin", np.float32).reshape(256, 1024)
    np.testing.assert_allclose(entry.run(given)["y"], given["x"] @ weight, atol=1e-3)


@pytest.mark.parametrize(
    ("net", "kind", "shape", "message"),
    [
        ("line", "Convolve", (16,), "ONNX has no operator Convolve"),
        ("pool", "AveragePool", (3,), 'loc("pool"): '),
    ],
)
def test_what_the_compiler_refuses_is_a_failure_in_its_own_words(
    backend: Backend, tmp_path: Path, net: str, kind: str, shape: tuple[int], message: str
) -> None:
    model = getattr(nets, net)(tmp_path)
    proto = onnx.load(model.path)
    proto.graph.node[0].op_type = kind
    onnx.save(proto, model.path)
    failure = backend.compile(model, nets.entry("static", shape, shape), CompileOptions())
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "compiler-error"
    assert message in failure.message


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("echo 'Stack dump:' >&2; kill -SEGV $$", "crash", "IREE's compiler ended by SIGSEGV: Stack dump:"),
        ("echo 'LLVM ERROR: out of memory' >&2; exit 1", "out-of-memory", "IREE's compiler: LLVM ERROR: out of memory"),
        ("exit 3", "compiler-error", "IREE's compiler: it said nothing"),
        ("echo no program", "compiler-error", "IREE's runtime refuses the program: "),
    ],
)
def test_a_compiler_that_dies_is_the_failure_of_one_entry_and_leaves_no_file(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, kind: str, message: str
) -> None:
    model, tool, scratch = nets.line(tmp_path), tmp_path / "iree-compile", tmp_path / "scratch"
    tool.write_text(f'#!/bin/sh\ntouch "$TMPDIR/half a program"\n{script}\n')
    tool.chmod(0o755)
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("IREE_TOOL_PATH", str(tmp_path))
    failure = backend.compile(model, FIXED, CompileOptions())
    assert isinstance(failure, CompileFailure)
    assert failure.kind == kind
    assert failure.message.startswith(message)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("", "it said nothing"),
        ("warning: slow\nstopped", "stopped"),
        (
            '<unknown>:0: error: loc("conv"): failed to legalize: %4 = "torch.operator"(%3)\n<unknown>:0: note: see',
            'loc("conv"): failed to legalize',
        ),
        (
            'a: error: loc("c"): failed for backend #hal.executable.target<"llvm-cpu">\na: error: again',
            'loc("c"): failed for backend (and 1 more errors)',
        ),
    ],
)
def test_a_complaint_is_the_first_error_without_the_ir(said: str, complaint: str) -> None:
    assert _iree_compiler.complaint(said) == complaint


FLOW = """\
module {
  util.global private @__device_0 = #hal.device.target<"local", []> : !hal.device loc(unknown)
  flow.executable private @main$async_dispatch_0 {
    flow.executable.export public @main$async_dispatch_0_slow_memcpy workgroups(%arg0: index loc("conv")) {
      flow.return %x : index loc("conv")
    } loc("conv")
    builtin.module {
      func.func @main$async_dispatch_0_slow_memcpy(%arg0: tensor<4xf32> loc("before")) {
        %0 = iree_tensor_ext.dispatch.tensor.load %arg0 : tensor<4xf32> loc("conv")
        return loc("conv")
      } loc("conv")
    } loc("conv")
  } loc("conv")
  flow.executable private @main$async_dispatch_1 {
    flow.executable.export public @main$async_dispatch_1_conv_8x16x8x3_f32 workgroups() {
    } loc("conv")
    builtin.module {
      func.func @main$async_dispatch_1_conv_8x16x8x3_f32(%arg0: tensor<4xf32> loc("before")) {
        %cst = arith.constant 0.0 : f32 loc("elsewhere")
        %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<4xf32>) -> tensor<4xf32> loc("elsewhere")
        %8 = linalg.generic {iterator_types = ["parallel"]} ins(%5 : tensor<4xf32>) {
        ^bb0(%in: f32 loc("before"), %out: f32 loc(unknown)):
          %10 = arith.mulf %in, %in_1 : f32 loc(unknown)
        } -> tensor<4xf32> loc("conv")
        %9 = linalg.generic {iterator_types = ["parallel"]} ins(%8 : tensor<4xf32>) {
          %11 = math.exp %in : f32 loc(fused["exp", "add"])
        } -> tensor<4xf32> loc("add")
      } loc("conv")
    } loc("conv")
  } loc("conv")
  util.func public @main$async(%arg0: !hal.buffer_view) -> !hal.buffer_view {
    %3 = arith.addi %1, %c2 : index loc("after")
  } loc("graph:main")
} loc(unknown)
"""
KNOWN = ("before", "conv", "exp", "add", "elsewhere", "after")


def test_a_kernel_computes_what_its_arithmetic_comes_from() -> None:
    assert members(FLOW, KNOWN) == {
        "main$async_dispatch_0_slow_memcpy": (),
        "main$async_dispatch_1_conv_8x16x8x3_f32": ("conv", "exp", "add"),
    }


def row(name: str, kind: str, kernel: str, precision: str, ns: int, *fused: str) -> Operator:
    return Operator(name=name, kind=kind, kernel=kernel, precision=precision, ns=ns, fused=fused)


def test_each_launch_is_a_row_named_after_the_operator_that_does_the_most_work() -> None:
    launches = (
        Launch("main$async_dispatch_0_slow_memcpy", 5),
        Launch("main$async_dispatch_1_conv_8x16_i8xi8xf32", 900),
        Launch("main$async_dispatch_2_reduction_16x8_f32", 30),
        Launch("main$async_dispatch_3_softmax_8x16xf32_dispatch_tensor_store", 40),
        Launch("main$async_dispatch_1_conv_8x16_i8xi8xf32", 910),
    )
    parts = {
        launches[1].kernel: ("conv", "exp", "add"),
        launches[2].kernel: ("softmax",),
        launches[3].kernel: ("add", "softmax"),
    }
    kinds = {"conv": "Conv", "exp": "Exp", "add": "Add", "softmax": "Softmax"}
    assert operators(launches, parts, kinds) == (
        row("main$async_dispatch_0", "slow_memcpy", "slow_memcpy", "none", 5),
        row("main$async_dispatch_1", "Conv", "conv_8x16_i8xi8xf32", "int8", 900, "exp", "add"),
        row("main$async_dispatch_2", "reduction", "reduction_16x8_f32", "f32", 30),
        row("main$async_dispatch_3", "Softmax", "softmax_8x16xf32_dispatch_tensor_store", "f32", 40),
        row("main$async_dispatch_1#2", "Conv", "conv_8x16_i8xi8xf32", "int8", 910),
    )


def launched(kernels: str) -> list[Launch]:
    """One launch a letter, which takes its number in the record."""
    return [Launch(kernel, number) for number, kernel in enumerate(kernels)]


@pytest.mark.parametrize(
    ("record", "one"),
    [
        ("", ()),
        ("ababab", (("a", 3), ("b", 4))),
        ("wwababab", (("a", 5), ("b", 6))),
        ("aaaaaa", (("a", 3), ("a", 4))),
        ("zaabaabaab", (("a", 6), ("a", 6), ("b", 8))),
    ],
)
def test_a_run_is_what_repeats_at_the_end_with_the_median_time_of_all_but_the_first(record: str, one) -> None:
    assert one_run(launched(record), 3) == one


def test_a_record_without_equal_runs_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(RuntimeError, match="does not show 2 runs"):
        one_run(launched("abcd"), 2)


SERVES = """
import os, pickle, sys
from multiprocessing import Pipe
from pathlib import Path

import backends_nets as nets
from trimtab import backends
from trimtab.domain.profile import CompileOptions
from trimtab.runtime import process, wire
from trimtab.runtime.worker import Job

driver, served = Pipe()
driver.send_bytes(pickle.dumps(tuple(Job(backends.factory("iree"), nets.line(Path(sys.argv[1])), None))))
entry = nets.entry("dynamic", (1,), (40,))
for order in (wire.Compile(entry, CompileOptions(), ((1, 12),)), wire.Stop()):
    driver.send_bytes(wire.encode(order))
process.serve(os.dup(served.fileno()))
while driver.poll():
    print(type(wire.decode_reply(driver.recv_bytes())).__name__)
"""


def test_a_worker_that_has_served_is_not_said_to_leak(tmp_path: Path) -> None:
    """What a worker keeps out of every collection is let go before its end: the bindings list what is left there."""
    done = subprocess.run(
        [sys.executable, "-c", SERVES, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])},
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (["Hello", "Compiled"], "")
