"""Memory: what a profile keeps of it, and what is known of a process that ran out of it."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
from runtime_kit import ANY, BUCKET, CORES, MODEL, Ramp, load, plan_of, request_of

from trimtab.backends import factory
from trimtab.domain.events import ERROR_KINDS, BatchReport
from trimtab.domain.profile import CompileOptions, CompileProfile, MemoryPoint, ServedRun
from trimtab.runtime import starved, wire
from trimtab.runtime.cgroup import machine_oom_kills
from trimtab.runtime.counters import Counters
from trimtab.runtime.grid import GridPoint, grid, prelude
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.replay import replay
from trimtab.runtime.solo import LostError, solo
from trimtab.runtime.starved import Kills, cause, refused
from trimtab.runtime.timed import GROWTH_POINTS, Timed
from trimtab.runtime.worker import Job

MIB = 2**20
CORE = CORES[-1]
COMPILED = wire.Compiled("any", 0, 5, 100 * MIB, 140 * MIB, 150 * MIB, ())


def ran(peak: int, held: int, ns: int = 7) -> wire.Ran:
    return wire.Ran(0, 10, 10 + ns, "none", BatchReport(on_cpu_ns=3, peak_bytes=peak, resident_bytes=held))


def timed(*shapes: tuple[int, int]) -> Timed:
    return Timed(COMPILED, tuple(GridPoint(shape, ()) for shape in shapes), dynamic=True)


def test_peak_and_scratch_of_an_entry() -> None:
    entry = timed((1, 3), (1, 9))
    entry.first(0, ran(180 * MIB, 145 * MIB), 140 * MIB)
    entry.warm(0, ran(165 * MIB, 145 * MIB), 145 * MIB, sent=6, known=19)
    assert (entry.memory_bytes, entry.peak_bytes, entry.scratch_bytes) == (40 * MIB, 180 * MIB, 40 * MIB)
    assert [(t.first_ns, t.wall_ns, t.cpu_ns) for t in entry.timings] == [(7, (7,), (3,)), (0, (), ())]
    assert [(t.dispatch_ns, t.completion_ns) for t in entry.timings] == [((4,), (2,)), ((), ())]
    assert entry.growth == ()


def served(entry: Timed, shape: tuple[int, int], after: int, before: int) -> None:
    """A request of the prelude: 2 ns on the way, 7 ns of run, 3 ns until the answer is there."""
    entry.served(shape, ran(-1 if after < 0 else 0, after), before, sent=8, known=20, idle=50)


def test_growth_counts_each_new_shape_and_none_again() -> None:
    entry = timed((1, 3), (1, 9))
    served(entry, (1, 4), 147 * MIB, 145 * MIB)
    served(entry, (1, 9), 148 * MIB, 147 * MIB)
    served(entry, (1, 4), 148 * MIB, 148 * MIB)
    assert [(p.shapes, p.resident_bytes // MIB) for p in entry.growth] == [(0, 145), (1, 147), (2, 148)]
    assert [run.executed for run in entry.first_runs] == [(1, 4), (1, 9)]
    assert [entry.has_run(at) for at in (0, 1)] == [False, True]
    assert [t.first_ns for t in entry.timings] == [0, 7]


def test_what_comes_again_is_kept_with_what_surrounds_it() -> None:
    entry = timed((1, 3))
    for _ in range(2):
        served(entry, (1, 4), 0, 0)
    assert entry.again == [ServedRun(executed=(1, 4), ns=7, idle_ns=50, dispatch_ns=2, completion_ns=3)]


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    entry = timed((1, 1))
    for at in range(200):
        served(entry, (1, 2 + at), (at + 1) * MIB, at * MIB)
    curve = entry.growth
    assert len(curve) == GROWTH_POINTS
    assert (curve[0], curve[-1]) == (
        MemoryPoint(shapes=0, resident_bytes=0),
        MemoryPoint(shapes=200, resident_bytes=200 * MIB),
    )


def test_memory_that_cannot_be_read_is_never() -> None:
    entry = timed((1, 3))
    served(entry, (1, 4), -1, -1)
    assert (entry.peak_bytes, entry.scratch_bytes, entry.growth) == (150 * MIB, -1, ())


def test_a_report_says_what_is_held_after_the_batch() -> None:
    counters = Counters()
    before = counters.begin()
    kept = np.ones(8 * MIB)
    held = counters.end(before).resident_bytes
    del kept
    assert counters.end(counters.begin()).resident_bytes < held - 32 * MIB
    counters.close()


def test_a_profile_carries_scratch_and_growth_of_dynamic_entries_only() -> None:
    traffic = load(range(8), [3, 8, 9, 10, 20, 40, 40, 60])
    plan = plan_of(BUCKET, ANY)
    points = grid(traffic, plan, 2)
    due = prelude(traffic, plan)
    found = profile_plan(plan, MODEL, factory("null"), Ramp(), points, 3, CORE, prelude=due)
    bucket, dynamic = (result for result in found if isinstance(result, CompileProfile))
    assert bucket.growth == ()
    assert [point.shapes for point in dynamic.growth] == [0, 1, 2, 3, 4, 5]
    assert all(MIB < point.resident_bytes <= dynamic.peak_bytes for point in dynamic.growth)
    assert dynamic.scratch_bytes >= 0


# --- out of memory ------------------------------------------------------------------------------------------

NONE = Kills(0, 0)


@pytest.mark.parametrize(
    ("code", "words", "after", "why"),
    [
        (-signal.SIGKILL, "", Kills(1, 1), "killed by the kernel: the memory limit"),
        (-signal.SIGKILL, "", Kills(0, 1), "killed by SIGKILL; while it lived"),
        (-signal.SIGKILL, "", NONE, ""),
        (-signal.SIGKILL, "", Kills(None, None), ""),
        (-signal.SIGSEGV, "", Kills(1, 1), ""),
        (-signal.SIGABRT, "; its last line: what():  std::bad_alloc", NONE, "an allocation was refused"),
        (1, "; its last line: MemoryError", NONE, "an allocation was refused"),
        (0, "; its last line: MemoryError", NONE, ""),
    ],
)
def test_what_is_known_of_an_end(code: int, words: str, after: Kills, why: str) -> None:
    found = cause(code, words, NONE, after)
    assert found.startswith(why)
    assert bool(found) is bool(why)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for requested buffer of size 9", True),
        ("std::bad_alloc", True),
        ("[Errno 12] Cannot allocate memory", True),
        ("the input does not fit", False),
    ],
)
def test_runtimes_say_it_in_their_own_words(text: str, known: bool) -> None:
    assert refused(text) is known


def test_the_machines_own_count_is_read_from_vmstat(tmp_path: Path) -> None:
    assert machine_oom_kills(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "vmstat").write_text("nr_free_pages 7\noom_kill 3\n")
    assert machine_oom_kills(tmp_path) == 3


class Wide(Ramp):
    """Payload 1 reserves 4 GiB of address space and touches none of it."""

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, np.ndarray]:
        if payload == 1:
            np.empty(2**29)
        return super().request(payload, dims)


def test_an_address_space_that_ends_is_out_of_memory_and_not_the_end_of_the_worker() -> None:
    def error(payload: int) -> str:
        ran = worker.ask(wire.Run(0, "any", (1, 5), ((payload, (5,)),)))
        assert isinstance(ran, wire.Ran)
        return ran.error

    with solo(Job(factory("null"), MODEL, Wide()), CORE) as worker:
        worker.ask(wire.Compile(ANY, CompileOptions(), ()))
        before = error(0)
        resource.prlimit(worker.hello.pid, resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
        assert (before, error(1), error(0)) == ("none", "out-of-memory", "none")


def test_the_kernel_takes_a_worker_before_its_driver() -> None:
    def score(pid: str) -> int:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    with solo(Job(factory("null"), MODEL, Ramp()), CORE) as worker:
        assert score(str(worker.hello.pid)) > score("self")


def test_an_out_of_memory_kill_ends_its_requests_with_that_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker really dies by SIGKILL; only the kernel's count is ours."""
    counts = iter(range(1000))
    monkeypatch.setattr(starved, "oom_kills", lambda: next(counts))
    plan = plan_of(ANY, crash_on_batch="width=9", base_us=200)
    trace = replay(request_of(load([0, 30, 60], [5, 9, 5]), plan))
    kinds = [ERROR_KINDS[code] for code in trace.requests["error"].tolist()]
    assert kinds == ["none", "out-of-memory", "none"]
    assert "killed by the kernel: the memory limit of its control group" in trace.run.note
    assert "out-of-memory" in trace.details


GROUPS = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def group() -> Path:
    """A control group of 128 MiB that we may make, below our own."""
    if not (GROUPS / "memory.limit_in_bytes").exists() or os.geteuid() != 0:
        pytest.skip("needs root and the version 1 memory controller")
    made = GROUPS / f"trimtab-{os.getpid()}"
    try:
        made.mkdir()
        (made / "memory.limit_in_bytes").write_text(str(128 * MIB))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    yield made
    made.rmdir()


class Greedy(Ramp):
    """Payload 1 takes 512 MiB and touches it."""

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, np.ndarray]:
        if payload == 1:
            np.ones(2**26)
        return super().request(payload, dims)


@pytest.mark.live
def test_a_worker_that_the_kernel_kills_for_memory_is_known_by_the_kernels_count(group: Path) -> None:
    with solo(Job(factory("null"), MODEL, Greedy()), CORE) as worker:
        worker.ask(wire.Compile(ANY, CompileOptions(), ()))
        (group / "cgroup.procs").write_text(str(worker.hello.pid))
        with pytest.raises(LostError) as caught:
            worker.ask(wire.Run(0, "any", (1, 5), ((1, (5,)),)))
    assert caught.value.error == "out-of-memory"
