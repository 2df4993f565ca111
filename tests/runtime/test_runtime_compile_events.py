"""A runtime that compiles while it serves: the event, its reason and its batch, from the entry to the trace."""

from __future__ import annotations

import numpy as np
from runtime_kit import ANY, JOB, NO_PROMISE, FakeCrew, NoCounters, fake_crew, info, load, plan_of

from trimtab.backends.null import NullBackend
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Arrays, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileEvent, CompileFailure, CompileOptions, Inspection
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.mapping.route import Router
from trimtab.runtime import wire
from trimtab.runtime.driver import Driver, Terms
from trimtab.runtime.worker import Worker
from trimtab.serving.machine import Machine
from trimtab.serving.record import Recorder

PLAIN = CompileOptions()
WIDER = CompileEvent(kind="recompile", reason="expected 5, actual 9", ns=2_000)
GAVE_UP = CompileEvent(kind="eager", reason="recompile limit reached: expected 9, actual 7", ns=-1)


class Recompiling(CompiledEntry):
    """Compiles when a width comes that it has not met; gives up at the third."""

    def __init__(self, program: CompiledEntry) -> None:
        self._program = program
        self._widths = {5}
        self._new: list[CompileEvent] = []

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        width = inputs["x"].shape[1]
        if width not in self._widths and len(self._widths) < 3:
            self._new.append((WIDER, GAVE_UP)[len(self._widths) - 1])
            self._widths.add(width)
        return self._program.run(inputs)

    def inspect(self, inputs: Arrays) -> Inspection:
        return self._program.inspect(inputs)

    def events(self) -> tuple[CompileEvent, ...]:
        told, self._new = tuple(self._new), []
        return told

    def close(self) -> None:
        self._program.close()


class RecompilingBackend(NullBackend):
    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        made = super().compile(model, entry, options)
        return made if isinstance(made, CompileFailure) else Recompiling(made)


def worker() -> Worker:
    made = Worker(RecompilingBackend(), JOB, NoCounters())
    made.handle(wire.Compile(ANY, PLAIN, ()))
    return made


def run(width: int) -> wire.Run:
    return wire.Run(0, "any", (1, width), ((0, (width,)),))


def replayed(*widths: int) -> Trace:
    plan = plan_of(ANY)
    workload, router = load([2.0 * at for at in range(len(widths))], widths), Router(plan.compile)
    with fake_crew() as crew:
        crew.job = JOB._replace(backend=RecompilingBackend)
        return drive(crew, Driver(
            workload,
            Machine(plan, router, NO_PROMISE, (0,)),
            Recorder(info(1), workload, tuple(router.entries), (0,)),
            crew,
            PLAIN,
            Terms(hang_ns=10**9, prepare_ns=10**9, pace=False, spare_core=0),
        ))  # fmt: skip


def drive(crew: FakeCrew, driver: Driver) -> Trace:
    driver.start()
    assert driver.serve() == ""
    return driver.recorder.trace()


def test_an_event_is_told_with_the_run_in_which_it_was_and_only_there() -> None:
    made = worker()
    reports = [made.handle(run(width)).report for width in (5, 9, 9, 7, 6)]
    assert [report.compile_events for report in reports] == [0, 1, 0, 1, 0]
    assert [report.compiled for report in reports] == [(), (WIDER,), (), (GAVE_UP,), ()]


def test_warming_a_shape_leaves_no_event_for_the_first_batch() -> None:
    made = Worker(RecompilingBackend(), JOB, NoCounters())
    made.handle(wire.Compile(ANY, PLAIN, ((1, 9),)))
    assert made.handle(run(9)).report.compile_events == 0


def test_a_run_of_an_entry_that_is_not_there_has_no_events() -> None:
    ran = worker().handle(wire.Run(0, "other", (1, 5), ((0, (5,)),)))
    assert (ran.error, ran.report.compile_events) == ("backend-error", 0)


def test_a_runtime_that_says_nothing_of_compiling_has_no_events() -> None:
    made = Worker(NullBackend(), JOB, NoCounters())
    made.handle(wire.Compile(ANY, PLAIN, ()))
    assert made.handle(run(9)).report.compiled == ()


def test_events_survive_the_wire() -> None:
    made = worker()
    ran = made.handle(run(9))
    assert wire.decode_reply(wire.encode(ran)) == ran


def test_the_trace_counts_events_by_batch_and_keeps_their_reasons() -> None:
    trace = replayed(5, 9, 9, 7, 6)
    assert trace.batches["compile_events"].tolist() == [0, 1, 0, 1, 0]
    kinds = trace.marks["kind"]
    marks = trace.marks.take((kinds == MARK_KINDS.index("recompile")) | (kinds == MARK_KINDS.index("eager")))
    assert [MARK_KINDS[kind] for kind in marks["kind"]] == ["recompile", "eager"]
    assert [trace.details[detail] for detail in marks["detail"]] == [WIDER.reason, GAVE_UP.reason]
    assert marks["value2"].tolist() == [1.0, 3.0], "the batches in which they were"
    assert marks["value"][0] == 2_000
    assert np.isnan(marks["value"][1]), "the runtime did not say how long it took"
    rows = trace.batches.take(trace.batches["compile_events"] > 0)
    assert marks["t"].tolist() == rows["started"].tolist()
    assert marks["end"].tolist() == rows["ended"].tolist()
