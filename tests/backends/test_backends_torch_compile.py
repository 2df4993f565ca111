"""torch.compile for real: what is compiled when, what a limit leaves to run uncompiled, what fusion settings change.

The first compile of a process takes some 10 s, each further one a second; all share one backend for that reason.
"""

from __future__ import annotations

import os
from pathlib import Path

import backends_nets as nets
import msgspec
import numpy as np
import psutil
import pytest
from backends_kit import compiled_with

from trimtab import backends
from trimtab.backends._torch_inductor import FOLDER, missing
from trimtab.domain.events import BatchReport
from trimtab.domain.ports import Arrays, Backend, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Inspection
from trimtab.domain.study import InputSpec, OutputSpec
from trimtab.runtime import wire
from trimtab.runtime.worker import Job, Worker

nets.needs("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()) and not os.environ.get("CI"), reason=missing()),
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated"),  # torch's own use, on import
]

ANY = nets.entry("dynamic", (3,), (40,))
BLOCKS = """
import torch

class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.linear = torch.nn.Linear(8, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x):
        rows = torch.relu(self.conv(x)).mean(dim=2).transpose(1, 2)
        return torch.softmax(self.norm(torch.nn.functional.gelu(self.linear(rows))), -1)

class Whole(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], 2, -1, 8).sum(-1)

class Hidden(torch.nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return x + 1

class Apart(torch.nn.Module):
    def forward(self, a, b):
        return torch.sigmoid(a) * 2, torch.tanh(b) + 1

def apart():
    return Apart().eval()

def blocks():
    return Blocks().eval()

def whole():
    return Whole().eval()

def hidden():
    return Hidden().eval()
"""


@pytest.fixture(scope="module")
def backend() -> Backend:
    return backends.factory("torch")()


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    import backends_torch_nets

    return backends_torch_nets.twin(nets.line(tmp_path_factory.mktemp("line")))


def model_of(folder: Path, name: str, *shape: int) -> ModelFile:
    (folder / "net.py").write_text(BLOCKS)
    spec = nets.spec((InputSpec(name="x", shape=("batch", *shape, "width")),), (OutputSpec(name="y"),))
    return ModelFile(path="", sha256="", spec=spec, dim_names=("width",), torch=f"{folder / 'net.py'}:{name}")


def agrees(program: CompiledEntry, given: Arrays) -> bool:
    return np.allclose(program.run(given)["y"], nets.line_reference(given)["y"], atol=1e-5)


class NoCounters:
    unread: dict[str, str] = {}

    def begin(self) -> None:
        return None

    def end(self, before: None, assembly_ns: int) -> BatchReport:
        return BatchReport()

    def peak_bytes(self) -> int:
        return 0

    def resident_bytes(self) -> int:
        return 0


class Ones:
    def request(self, payload: int, dims: tuple[int, ...]) -> Arrays:
        return {"x": np.ones((1, 2, *dims), np.float32)}


def test_a_worker_tells_in_which_batch_torch_recompiled_why_and_when_it_gave_up(
    backend: Backend, line: ModelFile
) -> None:
    worker = Worker(backend, Job(lambda: backend, line, Ones()), NoCounters())
    limited = CompileOptions(extra={"dynamic": "never", "recompile_limit": "2"})
    assert isinstance(worker.handle(wire.Compile(ANY, limited, ())), wire.Compiled)
    ran = [worker.handle(wire.Run(n, ANY.id, (1, w), ((0, (w,)),))) for n, w in enumerate((40, 9, 9, 17, 23))]
    assert [run.error for run in ran] == ["none"] * 5
    assert [run.report.compile_events for run in ran] == [0, 1, 0, 1, 0]
    (recompiled,), (gave_up,) = ran[1].report.compiled, ran[3].report.compiled
    assert (recompiled.kind, gave_up.kind) == ("recompile", "eager")
    assert recompiled.reason == "tensor 'x' size mismatch at index 2. expected 40, actual 9"
    assert gave_up.reason.startswith("recompile limit reached: tensor 'x' size mismatch at index 2")
    assert recompiled.ns > 0


def test_compiling_leaves_a_range_that_is_served_without_recompiling(backend: Backend, line: ModelFile) -> None:
    program = compiled_with(backend, line, nets.entry("dynamic", (3,), (40,), (1, 4)))
    assert program.events() == (), "what compiling compiled is no event"
    for executed in [(1, 3), (4, 40), (2, 17), (3, 33), (1, 12)]:
        assert agrees(program, nets.inputs(line, *executed))
    assert program.events() == ()
    assert agrees(program, nets.inputs(line, 1, 1)), "outside of the range, and a size that torch treats apart"
    assert [event.kind for event in program.events()] == ["recompile"]


def test_a_declared_range_is_one_program_and_its_end_a_guard(backend: Backend, line: ModelFile) -> None:
    program = compiled_with(backend, line, ANY, extra={"dynamic": "always"})
    assert all(agrees(program, nets.inputs(line, 1, width)) for width in (3, 17, 39, 40))
    assert program.events() == ()
    assert agrees(program, nets.inputs(line, 1, 41))
    (event,) = program.events()
    assert (event.kind, event.reason) == ("recompile", "3 <= x.size()[2] <= 40")


def test_a_range_that_the_network_does_not_have_is_a_failure(backend: Backend, tmp_path: Path) -> None:
    model, wide = model_of(tmp_path, "whole", 2), nets.entry("dynamic", (8,), (40,))
    failure = backend.compile(model, wide, CompileOptions(extra={"dynamic": "always"}))
    assert isinstance(failure, CompileFailure)
    assert failure.kind == "compiler-error"


def test_what_torch_finds_nothing_to_compile_in_is_a_failure_and_never_silently_eager(
    backend: Backend, tmp_path: Path
) -> None:
    failure = backend.compile(model_of(tmp_path, "hidden", 2), ANY, CompileOptions())
    assert isinstance(failure, CompileFailure)
    assert failure.message.startswith("torch would run it uncompiled: ")


def test_entries_share_neither_programs_nor_limits(backend: Backend, line: ModelFile) -> None:
    one = {"recompile_limit": "1"}
    programs = {w: compiled_with(backend, line, nets.entry("bucket", (1,), (w,)), extra=one) for w in (8, 16, 24)}
    for width, program in programs.items():
        assert agrees(program, nets.inputs(line, 1, width))
        assert program.events() == ()


def test_inspecting_is_nobodys_event_and_changes_nothing(backend: Backend, line: ModelFile) -> None:
    program, given = compiled_with(backend, line, nets.entry("static", (16,), (16,))), nets.inputs(line, 1, 16)
    found = program.inspect(given)
    assert (found.executed, found.operators_before) == ((1, 16), 2)
    assert [op.kind for op in found.operators if op.kernel.startswith("aten::")] == ["convolution"]
    assert any(op.kernel.startswith("cpp_fused") and "relu" in op.kind for op in found.operators)
    assert all(op.ns > 0 and op.precision == "f32" for op in found.operators)
    assert program.events() == ()
    assert agrees(program, given)


def test_more_is_fused_at_a_higher_level(backend: Backend, tmp_path: Path) -> None:
    model, fixed = model_of(tmp_path, "blocks", 3, 16), nets.entry("static", (24,), (24,))
    given, found, answers = nets.inputs(model, 1, 24), {}, {}
    for level in ("off", "basic", "all"):
        program = compiled_with(backend, model, fixed, optimisation=level)
        answers[level], found[level] = program.run(given)["y"], program.inspect(given)
    for level in ("basic", "all"):
        np.testing.assert_allclose(answers[level], answers["off"], atol=1e-5)
    assert {inspection.operators_before for inspection in found.values()} == {8}
    assert len(found["off"].operators) > len(found["basic"].operators) >= len(found["all"].operators)
    assert found["off"].fusions < found["basic"].fusions
    assert kernels(found["all"]) & {"mkldnn::_convolution_pointwise"}
    assert not kernels(found["basic"]) & {"mkldnn::_convolution_pointwise"}


def test_aggressive_fusion_joins_loops_that_have_nothing_in_common(backend: Backend, tmp_path: Path) -> None:
    inputs = tuple(InputSpec(name=name, shape=("batch", "width")) for name in ("a", "b"))
    spec = nets.spec(inputs, (OutputSpec(name="y"), OutputSpec(name="z")))
    model = msgspec.structs.replace(model_of(tmp_path, "apart"), spec=spec)
    kinds = {}
    for fusion in ("on", "aggressive"):
        program = compiled_with(backend, model, nets.entry("static", (24,), (24,)), extra={"fusion": fusion})
        kinds[fusion] = [op.kind for op in program.inspect(nets.inputs(model, 1, 24)).operators]
    assert kinds == {"on": ["mul_sigmoid", "add_tanh"], "aggressive": ["add_mul_sigmoid_tanh"]}


def kernels(inspection: Inspection) -> set[str]:
    return {op.kernel for op in inspection.operators}


def test_compiled_code_lies_in_a_folder_of_the_backend_and_no_process_is_left(
    backend: Backend, line: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = str(tmp_path / "shared")
    monkeypatch.setenv(FOLDER, users)
    before = set(psutil.Process().children())  # of other runtimes' tests
    other = backends.factory("torch")()
    compiled_with(other, line, nets.entry("static", (7,), (7,)))
    fresh = Path(os.environ[FOLDER])
    assert fresh.name.startswith("trimtab-inductor-")
    assert any(fresh.rglob("*.so"))
    compiled_with(other, line, nets.entry("static", (6,), (6,)), extra={"cache": "shared"})
    assert os.environ[FOLDER] == users
    assert set(psutil.Process().children()) <= before
    del other
    assert not fresh.exists()
