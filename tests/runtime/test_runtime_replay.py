"""Replay with real worker processes: everything that can happen to one, and that nothing outlives the driver."""

from __future__ import annotations

import functools
import gc
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_kit import CORES, JOB, MODEL, load, plan_of, request_of

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.trace import MARK_KINDS
from trimtab.errors import MachineError, RunError, StudyError, UsageError
from trimtab.runtime import link, starved, wire
from trimtab.runtime.link import ProcessCrew
from trimtab.runtime.replay import replay
from trimtab.runtime.solo import solo
from trimtab.runtime.worker import Job


def errors(trace) -> list[str]:
    return [ERROR_KINDS[code] for code in trace.requests["error"].tolist()]


def marks(trace) -> list[str]:
    return [MARK_KINDS[kind] for kind in trace.marks["kind"].tolist()]


def test_a_replay_measures_every_batch() -> None:
    before = os.sched_getaffinity(0)
    trace = replay(request_of(load(range(0, 400, 40), range(1, 11)), plan_of(warm=((1, 5),), base_us=500, mode="spin")))
    req, batch = trace.requests, trace.batches
    assert errors(trace) == ["none"] * 10
    assert (trace.run.complete, trace.run.note) == (True, "")
    assert (req["scheduled"] <= req["enqueued"]).all()
    assert (req["dispatched"] <= req["started"]).all()
    assert (req["started"] < req["ended"]).all()
    assert (req["ended"] <= req["done"]).all()
    assert batch["exec.width"].tolist() == list(range(1, 11))
    assert batch["first_seen"].tolist() == [w != 5 for w in range(1, 11)]
    assert set(batch["core"].tolist()) == {CORES[-1]}
    assert (batch["on_cpu"] >= 500_000).all()
    assert (batch["runqueue"] >= 0).all()
    assert (batch["migrations"] == 0).all()
    assert (batch["minor_faults"] >= 0).all()
    assert (batch["peak_bytes"] > 2**20).all()
    assert len(trace.samples) > 0
    assert 0 < trace.run.driver_cpu_share < 1.5
    assert os.sched_getaffinity(0) == before
    assert gc.isenabled()


def test_pace_runs_in_the_gaps_and_takes_at_most_one_percent() -> None:
    trace = replay(request_of(load([0, 400]), plan_of()))
    pace = trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("pace"))
    took = (pace["end"] - pace["t"]).sum()
    assert 1 <= len(pace) <= 45  # a run of 0.1 ms or more allows the next one 10 ms later
    assert (pace["value"] > 10_000).all()
    assert (pace["value2"] > 10_000).all()
    assert took > 0


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"crash_on_batch": "width=9"}, "crash"),
        ({"hang_on_batch": "width=9"}, "hang"),
        ({"error_on_batch": "width=9"}, "backend-error"),
        ({"out_of_memory_on_batch": "width=9"}, "out-of-memory"),
        ({"bad_output_on_batch": "width=9"}, "bad-output"),
    ],
)
def test_a_fault_ends_its_own_request_and_no_other(option: dict[str, str], expected: str) -> None:
    trace = replay(request_of(load([0, 10, 20, 30], [5, 9, 5, 6]), plan_of(base_us=100, **option), hang_s=0.3))
    assert errors(trace) == ["none", expected, "none", "none"]
    assert trace.run.complete
    lost = expected in ("crash", "hang")
    assert ("worker-down" in marks(trace)) == lost
    assert marks(trace).count("worker-up") == (2 if lost else 1)
    assert trace.run.note != ""


def test_a_worker_killed_by_hand_is_replaced_in_mid_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    start, send = ProcessCrew.start, ProcessCrew.send

    def telling(self: ProcessCrew, worker: int) -> None:
        start(self, worker)
        started.append(self.pids[worker])

    def killing(self: ProcessCrew, worker: int, order: wire.Order) -> None:
        send(self, worker, order)
        if isinstance(order, wire.Run) and order.batch == 10:
            os.kill(started[0], signal.SIGKILL)

    monkeypatch.setattr(ProcessCrew, "start", telling)
    monkeypatch.setattr(ProcessCrew, "send", killing)
    trace = replay(request_of(load(range(0, 600, 20)), plan_of(base_us=15_000)))
    assert errors(trace) == ["none"] * 10 + ["crash"] + ["none"] * 19
    assert (trace.run.complete, trace.run.note) == (True, "worker 0: killed by SIGKILL")
    assert len(started) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)


def test_a_kill_is_an_out_of_memory_kill_only_where_the_kernel_counted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fate(kills: list[int | None]) -> str:
        monkeypatch.setattr(starved, "oom_kills", lambda: kills.pop(0))
        monkeypatch.setattr(starved, "machine_oom_kills", lambda: None)
        crew = ProcessCrew(JOB, [(CORES[-1],)], 1)
        crew.start(0)
        os.kill(crew.pids[0], signal.SIGKILL)
        ((worker, gone),) = crew.wait(crew.now() + 5_000_000_000)
        crew.stop()
        assert worker == 0
        assert isinstance(gone, link.Gone)
        return gone.error

    assert fate([7, 8]) == "out-of-memory"
    assert fate([7, 7]) == "crash"
    assert fate([None, None]) == "crash"


def test_a_worker_is_pinned_before_it_says_hello() -> None:
    with solo(JOB, CORES[-1]) as worker:
        assert worker.hello.cores == (CORES[-1],)
        assert worker.hello.unread == {}


def test_an_entry_that_kills_its_worker_every_time_stops_the_start() -> None:
    request = request_of(load([0]), plan_of(warm=((1, 5),), crash_on_batch="width=5"))
    with pytest.raises(RunError, match="cannot get ready to serve: killed by SIGKILL") as caught:
        replay(request)
    assert caught.value.where == "worker 0, tried 3 times"


def no_backend() -> None:
    raise OSError("libnothing.so: cannot open shared object file")


def test_a_backend_that_does_not_start_is_named_once() -> None:
    with pytest.raises(RunError, match=r"OSError: libnothing\.so"):
        replay(request_of(load([0]), plan_of(), backend=functools.partial(no_backend)))


def test_a_core_that_does_not_exist_is_refused_before_anything_starts() -> None:
    with pytest.raises(MachineError, match="core 4095 does not exist") as caught:
        replay(request_of(load([0]), plan_of(), cores=(4095,)))
    assert caught.value.where
    assert caught.value.fix


def test_the_drivers_core_is_its_own() -> None:
    with pytest.raises(StudyError, match="driver's"):
        replay(request_of(load([0]), plan_of(), driver_core=CORES[-1], share_driver_core=False))


def test_what_is_defined_in_the_main_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(no_backend, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "no_backend", no_backend, raising=False)
    with pytest.raises(UsageError, match="main program"):
        ProcessCrew(Job(no_backend, MODEL, None), [(0,)], 1)


def test_the_sink_gets_every_row() -> None:
    rows: list[tuple[str, int]] = []
    request = request_of(load([0, 5, 10]), plan_of(), sink=lambda table, new: rows.append((table, len(new))))
    trace = replay(request)
    assert sum(n for table, n in rows if table == "requests") == len(trace.requests) == 3


# --- the driver's own end -----------------------------------------------------------------------------------


def victim(service_us: int, batch: int) -> tuple[subprocess.Popen[str], int]:
    """A driver in a process of its own that has sent its ``batch``-th batch, and the process id of its worker."""
    program = str(Path(__file__).parent / "runtime_victim.py")
    process = subprocess.Popen(
        [sys.executable, program, str(service_us), str(batch)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def ends(pid: int, within_s: float) -> bool:
    """Whether the process ``pid`` ends in time. It is not ours, so its descriptor is polled."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    gone = bool(poll.poll(within_s * 1000))
    os.close(fd)
    return gone


@pytest.mark.parametrize(("service_us", "batch"), [(1000, 3), (20_000_000, 1)])
def test_workers_do_not_outlive_a_driver_that_is_killed(service_us: int, batch: int) -> None:
    """Idle, it sees its pipe end; in the middle of a long batch, the kernel ends it."""
    process, worker = victim(service_us, batch)
    process.kill()
    process.wait()
    process.stdout.close()
    assert ends(worker, 10)


def test_ctrl_c_keeps_the_trace_so_far() -> None:
    process, worker = victim(1000, 3)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[0]
    assert said.strip() == "False True True stopped by Ctrl-C"
    assert process.returncode == 0
    assert ends(worker, 10)


@pytest.mark.slow
def test_two_workers_share_the_queue() -> None:
    request = request_of(load(range(200), [5] * 200), plan_of(workers=2, base_us=1500), share_driver_core=True)
    trace = replay(request)
    assert errors(trace) == ["none"] * 200
    assert np.unique(trace.batches["worker"]).tolist() == [0, 1]
