"""An entry that is compiled beside a worker which goes on serving: threads, counters, failures, falls."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from msgspec.structs import replace
from runtime_kit import ANY, CORES, JOB, FakeCrew, NoCounters, Refitting, fake_crew, load, plan_of, request_of
from test_runtime_driver import FOUR, TERMS, at_request, drive

from trimtab.backends import null
from trimtab.backends.null import NullBackend
from trimtab.domain.events import ERROR_KINDS, BatchDone, Event
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.ports import BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.runtime import wire
from trimtab.runtime.affinity import threads
from trimtab.runtime.beside import ABILITY, Beside
from trimtab.runtime.counters import Counters
from trimtab.runtime.link import ProcessCrew
from trimtab.runtime.own_threads import OwnThreads
from trimtab.runtime.replay import replay
from trimtab.runtime.worker import Worker

MS = 1_000_000
PLAIN = CompileOptions()
WIDE = Entry(id="wide", kind="bucket", lo=(1,), hi=(16,), batch=(1, 4))


def marks(trace: Trace) -> list[str]:
    return [MARK_KINDS[kind] for kind in trace.marks["kind"].tolist()]


def served_by(trace: Trace) -> list[str]:
    return [trace.entries[code] for code in trace.batches["entry"].tolist()]


def after_batch(number: int):
    def is_it(event: Event) -> bool:
        return isinstance(event, BatchDone) and event.batch == number

    return is_it


def refitting(plan: Plan, crew: FakeCrew, ms: list[float], **terms: int) -> Trace:
    """Requests of width 4 at these times; the entry for them is asked for when the third has ended."""
    controller = Refitting(plan, FOUR, after_batch(2))
    trace, why, _ = drive(load(ms, [4] * len(ms)), plan, crew, TERMS._replace(**terms), controller=controller)
    assert why == ""
    return trace


# --- the driver's side, under a clock that only moves when it waits ---------------------------------------------------


def test_the_worker_serves_while_the_entry_is_compiled_and_takes_it_when_it_is_whole() -> None:
    plan = plan_of(base_us=1000, compile_us=35_000)
    with fake_crew() as crew:
        trace = refitting(plan, crew, [0, 10, 20, 30, 40, 50, 60, 70])
    assert served_by(trace) == ["any"] * 6 + ["four"] * 2
    assert (trace.batches["ended"] - trace.batches["started"]).tolist() == [MS] * 8
    prepared = trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("prepare"))
    assert (prepared["t"].tolist(), prepared["end"].tolist()) == ([21 * MS], [56 * MS])


class Refusing(NullBackend):
    """Compiles all but one entry."""

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        if entry.id == FOUR.id:
            return CompileFailure(entry=entry.id, kind="compiler-error", message="no kernel for it")
        return super().compile(model, entry, options)


def test_a_compile_that_fails_beside_is_a_row_and_every_request_is_served() -> None:
    with fake_crew() as crew:
        crew.job = JOB._replace(backend=Refusing)
        trace = refitting(plan_of(base_us=1000), crew, [0, 10, 20, 30, 40])
    assert trace.requests["error"].tolist() == [0] * 5
    failed = trace.marks["detail"][trace.marks["kind"] == MARK_KINDS.index("entry-failed")]
    assert [trace.details[number] for number in failed] == ["four: no kernel for it"]
    assert served_by(trace) == ["any"] * 5


def test_a_worker_that_falls_in_the_middle_of_a_compile_is_asked_again_and_nothing_is_lost() -> None:
    with fake_crew() as crew:
        asked: list[int] = []
        crew_send = crew.send

        def send(worker: int, order: wire.Order) -> None:
            crew_send(worker, order)
            if isinstance(order, wire.CompileBeside):
                asked.append(crew.t)
                if len(asked) == 1:
                    crew.fall(worker)

        crew.send = send
        trace = refitting(plan_of(base_us=1000, compile_us=5000), crew, [0, 10, 20, 30, 40, 50, 60])
    assert trace.requests["error"].tolist() == [0] * 7
    assert len(asked) == 2
    assert [kind for kind in marks(trace) if kind in ("worker-down", "prepare", "remap")] == [
        "worker-down", "prepare", "remap",
    ]  # fmt: skip
    assert served_by(trace)[-1] == "four"


def test_a_compile_that_takes_too_long_is_a_hang_of_its_worker() -> None:
    with fake_crew() as crew:
        crew_send = crew.send
        swallowed: list[wire.Order] = []

        def send(worker: int, order: wire.Order) -> None:
            if isinstance(order, wire.CompileBeside) and not swallowed:
                swallowed.append(order)
            else:
                crew_send(worker, order)

        crew.send = send
        trace = refitting(plan_of(base_us=1000), crew, [0, 10, 20, 30, 200, 300], prepare_ns=100 * MS)
    assert trace.requests["error"].tolist() == [0] * 6
    fell = trace.marks["t"][trace.marks["kind"] == MARK_KINDS.index("worker-down")]
    assert fell.tolist() == [121 * MS]
    assert served_by(trace)[-1] == "four"


def test_one_entry_at_a_time_is_compiled_on_the_spare_core() -> None:
    plan = plan_of(workers=2, base_us=1000, compile_us=10_000)
    with fake_crew() as crew:
        controller = Refitting(plan, FOUR, at_request(1))
        trace, _, _ = drive(load([0, 10, 60], [4] * 3), plan, crew, controller=controller)
    prepared = trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("prepare"))
    assert (prepared["t"].tolist(), prepared["end"].tolist()) == ([10 * MS, 10 * MS], [20 * MS, 30 * MS])


# --- the worker's side ------------------------------------------------------------------------------------------------


class Unsaid(NullBackend):
    """Does not say that it can."""

    def info(self) -> BackendInfo:
        told = super().info()
        return replace(told, abilities=tuple(a for a in told.abilities if a.name != ABILITY))


def test_a_runtime_that_does_not_say_that_it_can_is_refused() -> None:
    reply = Worker(Unsaid(), JOB, NoCounters()).compile_beside(wire.Compile(ANY, PLAIN, ()))
    assert isinstance(reply, wire.Refused)
    assert (reply.failure.kind, reply.failure.message) == (
        "unsupported", "null does not say that it can compile beside serving",
    )  # fmt: skip


def test_an_entry_that_cannot_be_warmed_is_refused_and_never_seen() -> None:
    made = Worker(NullBackend(), JOB, NoCounters())
    reply = made.compile_beside(wire.Compile(FOUR, PLAIN, ((1, 9),)))
    assert isinstance(reply, wire.Refused)
    assert reply.failure.message.startswith("warming (1, 9): ")
    ran = made.handle(wire.Run(0, "four", (1, 4), ((0, (4,)),)))
    assert (ran.error, ran.message) == ("backend-error", "KeyError: 'four'")


class Threaded(NullBackend):
    """Starts a thread of its own for each entry, and notes where all of them may run while it compiles."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.cores: list[set[int]] = []
        self.own: list[int] = []

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        helper = threading.Thread(target=self.end.wait)
        helper.start()
        self.own.append(helper.native_id or 0)
        self.cores = [os.sched_getaffinity(tid) for tid in (0, *self.own)]
        return super().compile(model, entry, options)


def answered(worker: Worker, counters: Counters, cores: tuple[int, ...]) -> tuple[Beside, wire.Reply]:
    """One compile beside, to its end."""
    replies: list[wire.Reply] = []
    there = threading.Event()

    def post(reply: wire.Reply) -> None:
        replies.append(reply)
        there.set()

    beside = Beside(worker, counters, post)
    beside.start(wire.CompileBeside(wire.Compile(WIDE, PLAIN, ()), cores))
    assert there.wait(60)
    return beside, replies[0]


def test_the_compile_keeps_to_the_spare_core_and_the_runtimes_threads_come_to_the_workers() -> None:
    backend, counters, mine = Threaded(), Counters(), os.sched_getaffinity(0)
    try:
        worker = Worker(backend, JOB, counters)
        beside, reply = answered(worker, counters, CORES[:1])
        assert isinstance(reply, wire.Beside)
        assert isinstance(reply.reply, wire.Compiled)
        assert backend.cores == [{CORES[0]}] * 2
        assert set(backend.own) <= set(threads())
        assert os.sched_getaffinity(backend.own[0]) == mine == os.sched_getaffinity(0)
        beside.settle()
        worker.handle(wire.Forget(WIDE.id))
        answered(worker, counters, CORES[:1])
        assert backend.cores == [{CORES[0]}] * 3, "the thread of the closed entry is taken along"
        assert [os.sched_getaffinity(tid) for tid in backend.own] == [mine] * 2
    finally:
        backend.end.set()
        counters.close()


def test_a_thread_of_a_closed_entry_that_works_again_is_the_next_entrys() -> None:
    own, go, worked, end = OwnThreads(), threading.Event(), threading.Event(), threading.Event()

    def serve() -> None:
        go.wait()
        spin([])
        worked.set()
        end.wait()

    helper = threading.Thread(target=serve)
    with own.noted("first"):
        helper.start()
    own.closed("first")
    with own.noted("second"):
        pass
    assert own.idle == {helper.native_id}
    with own.noted("third"):
        go.set()
        worked.wait()
    assert own.idle == set()
    own.closed("third")
    assert own.idle == {helper.native_id}
    end.set()
    helper.join()


def test_cores_that_cannot_be_had_are_a_refusal() -> None:
    counters = Counters()
    _, reply = answered(Worker(NullBackend(), JOB, counters), counters, (4095,))
    counters.close()
    assert isinstance(reply, wire.Beside)
    assert isinstance(reply.reply, wire.Refused)
    assert reply.reply.failure.message.startswith("its cores (4095,) cannot be had: ")


def spin(own: list[int]) -> None:
    end = time.thread_time_ns() + 30 * MS
    while time.thread_time_ns() < end:
        pass
    own.append(time.thread_time_ns())


def beside_a_batch(counters: Counters) -> tuple[int, int]:
    """On-core time of a batch that only waits, and of the thread beside it."""
    own: list[int] = []
    before = counters.begin()
    thread = threading.Thread(target=spin, args=(own,))
    thread.start()
    thread.join()
    return counters.end(before).on_cpu_ns, own[0]


def test_counters_leave_out_what_is_compiled_beside_a_batch() -> None:
    counters = Counters()
    counted, own = beside_a_batch(counters)
    assert counted > own
    counters.set_aside()
    left_out, own = beside_a_batch(counters)
    assert 0 < left_out < own / 2
    report = counters.end(counters.begin())
    assert (report.minor_faults, report.major_faults) == (-1, -1)
    assert report.runqueue_ns >= 0
    counters.take_back(0)
    counted, own = beside_a_batch(counters)
    counters.close()
    assert counted > own


def test_a_thread_that_is_about_to_end_counts_for_nobody() -> None:
    counters, end = Counters(), threading.Event()
    counters.set_aside()
    thread = threading.Thread(target=end.wait)
    thread.start()
    counters.take_back(thread.native_id or 0)
    before = counters.begin()
    end.set()
    thread.join()
    report = counters.end(before)
    counters.close()
    assert before.delays is not None
    assert thread.native_id not in before.delays
    assert report.migrations >= 0


# --- real processes ---------------------------------------------------------------------------------------------------


def errors(trace: Trace) -> list[str]:
    return [ERROR_KINDS[code] for code in trace.requests["error"].tolist()]


def test_a_worker_process_serves_while_it_compiles() -> None:
    plan = plan_of(base_us=500, compile_us=200_000)
    controller = Refitting(plan, FOUR, after_batch(2))
    trace = replay(request_of(load(range(0, 800, 20), [4] * 40), plan, controller=controller))
    assert errors(trace) == ["none"] * 40
    row = int((trace.marks["kind"] == MARK_KINDS.index("prepare")).argmax())
    asked, ready = int(trace.marks["t"][row]), int(trace.marks["end"][row])
    started = trace.batches["started"]
    assert ready - asked >= 200 * MS
    assert ((started > asked) & (started < ready)).sum() >= 1
    assert "four" in served_by(trace)
    assert (trace.batches["on_cpu"] >= 0).all()


def test_a_worker_process_that_is_killed_while_it_compiles_loses_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed in a wide gap: nothing runs or waits then."""
    asked: list[int] = []
    send = ProcessCrew.send

    def killing(self: ProcessCrew, worker: int, order: wire.Order) -> None:
        send(self, worker, order)
        if isinstance(order, wire.CompileBeside):
            asked.append(self.pids[worker])
            if len(asked) == 1:
                os.kill(asked[0], signal.SIGKILL)

    monkeypatch.setattr(ProcessCrew, "send", killing)
    plan = plan_of(base_us=500, compile_us=50_000)
    workload = load([0, 20, 40, 400, 420, 440], [4] * 6)
    trace = replay(request_of(workload, plan, controller=Refitting(plan, FOUR, after_batch(2))))
    assert errors(trace) == ["none"] * 6
    assert marks(trace).count("worker-down") == 1
    assert len(set(asked)) == 2


def test_a_worker_that_is_told_to_stop_does_not_wait_for_its_compile() -> None:
    crew = ProcessCrew(JOB, [(CORES[-1],)], 1)
    crew.start(0)
    process = crew._links[0].process
    try:
        while not (said := crew.wait(crew.now() + 60_000 * MS)):
            pass
        assert isinstance(said[0][1], wire.Hello)
        forever = CompileOptions(extra={"compile_us": "3600000000"})
        crew.send(0, wire.CompileBeside(wire.Compile(ANY, forever, ()), CORES[:1]))
    finally:
        crew.stop()
    assert process.returncode == 0


def test_null_says_that_it_can() -> None:
    assert any(ability.name == ABILITY and ability.ok for ability in null.make().info().abilities)
