"""The recorder: a hand-written stream of events and commands, and the columns it becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serving_kit import ANY, LARGE, Checked, load, machine_of, plan_of

from parts import run_info
from trimtab.domain.events import (
    Arrived,
    BatchDone,
    BatchReport,
    EntryAsked,
    EntryFailed,
    EntryReady,
    Event,
    Occupied,
    Released,
    Remapped,
    Stopped,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.plan import CompileSpec
from trimtab.domain.trace import MARK_KINDS, Table
from trimtab.errors import RunError
from trimtab.serving.record import Recorder
from trimtab.serving.rows import Row, Sink, columns, schemas

WORKLOAD = load([0, 10, 20, 30, 40, 50], widths=[150, 160, 401, 170, 180, 190], streams=[0, 1, 2, 3, 0, 1])


def recorder(sink: Sink | None = None) -> Recorder:
    return Recorder(run_info(workers=1), WORKLOAD, ("any",), (6,), sink)


def play(note: Recorder, machine: Checked, *events: Event) -> None:
    for event in events:
        note.note(event, machine.handle(event))


def arrive(request: int, late: int = 1) -> Arrived:
    t = int(WORKLOAD.scheduled[request])
    return Arrived(t + late, request, int(WORKLOAD.stream[request]), (int(WORKLOAD.dims[request, 0]),), t)


def rows(table: Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*[table[name].tolist() for name in names], strict=True))


def scene(sink: Sink | None = None) -> Recorder:
    """0 and 1 share the start; 2 is rejected; 3 falls with the worker; 4 runs until the end; 5 never comes."""
    note, machine = recorder(sink), machine_of(plan_of(ANY), ready=False)
    play(note, machine, WorkerUp(0, 0), EntryReady(0, 0, "any", ()), arrive(0), arrive(1))
    play(note, machine, BatchDone(18, 0, 0, 3, 17, "none", BatchReport(13, 1, 5, 6, 7, 8, 9)))
    play(note, machine, arrive(2), BatchDone(25, 0, 1, 19, 24, "bad-output"))
    play(note, machine, arrive(3), WorkerDown(35, 0, "crash"), WorkerUp(36, 0), EntryReady(37, 0, "any", ()))
    play(note, machine, arrive(4), Stopped(60))
    return note


def test_one_row_for_each_request_of_the_workload() -> None:
    table = scene().trace().requests
    assert rows(
        table, "id", "stream", "dim.width", "scheduled", "enqueued", "batched", "dispatched", "started", "ended", "done"
    ) == [
        (0, 0, 150, 0, 1, 1, 1, 3, 17, 18),
        (1, 1, 160, 10, 11, 11, 18, 19, 24, 25),
        (2, 2, 401, 20, 21, -1, -1, -1, -1, 21),
        (3, 3, 170, 30, 31, 31, 31, -1, -1, 35),
        (4, 0, 180, 40, 41, 41, 41, -1, -1, 60),
        (5, 1, 190, 50, -1, -1, -1, -1, -1, -1),
    ]
    # routes: 2 dynamic, 4 rejected; errors: 0 ok, 1 rejected, 2 crash, 6 bad output, 8 unfinished
    assert rows(table, "batch", "route", "error") == [
        (0, 2, 0),
        (1, 2, 6),
        (-1, 4, 1),
        (2, 2, 2),
        (3, 2, 8),
        (-1, -1, 8),
    ]


def test_latency_counts_from_the_schedule_and_failures_are_infinite() -> None:
    assert scene().trace().latency.tolist() == [18e-9, np.inf, np.inf, np.inf, np.inf, np.inf]


def test_one_row_for_each_batch_in_order_of_dispatch() -> None:
    table = scene().trace().batches
    assert rows(table, "id", "worker", "core", "entry", "size", "executed_size", "exec.width", "error") == [
        (0, 0, 6, 0, 1, 1, 150, 0),
        (1, 0, 6, 0, 1, 1, 160, 6),
        (2, 0, 6, 0, 1, 1, 170, 2),
        (3, 0, 6, 0, 1, 1, 180, 8),
    ]
    assert rows(table, "dispatched", "started", "ended", "done", "first_seen", "changed") == [
        (1, 3, 17, 18, True, False),
        (18, 19, 24, 25, True, True),
        (31, -1, -1, 35, True, True),
        (41, -1, -1, 60, True, False),
    ]
    assert rows(
        table, "on_cpu", "runqueue", "minor_faults", "major_faults", "migrations", "peak_bytes", "compile_events"
    )[:2] == [
        (13, 1, 5, 6, 7, 8, 9),
        (-1, -1, -1, -1, -1, -1, 0),
    ]


def test_marks_tell_the_life_of_the_workers() -> None:
    trace = scene().trace()
    assert [
        (t, MARK_KINDS[kind], worker, trace.details[detail] if detail >= 0 else "")
        for t, kind, worker, detail in rows(trace.marks, "t", "kind", "worker", "detail")
    ] == [
        (0, "worker-up", 0, ""),
        (0, "entry-ready", 0, "any"),
        (35, "worker-down", 0, "crash"),
        (36, "worker-up", 0, ""),
        (37, "entry-ready", 0, "any"),
        (60, "stopped", -1, ""),
    ]


def test_pace_and_warm_up_are_intervals_with_their_values() -> None:
    note, machine = recorder(), machine_of(plan_of(ANY))
    play(note, machine, Occupied(1, 0, "warm-up"), Released(5, 0, "warm-up"), Occupied(7, 0, "pace"))
    note.pace(0, 300.0, 400.0)
    play(note, machine, Released(8, 0, "pace"), Occupied(9, 0, "warm-up"), WorkerDown(12, 0, "hang"))
    play(note, machine, EntryFailed(13, 0, "any", "no memory"), Occupied(14, 0, "pace"))
    trace = note.trace()
    marks = rows(trace.marks, "t", "end", "kind", "value", "value2")
    assert [(t, end, MARK_KINDS[kind]) for t, end, kind, _, _ in marks] == [
        (1, 5, "warm-up"), (7, 8, "pace"), (9, 12, "warm-up"), (12, 12, "worker-down"), (13, 13, "entry-failed"),
        (14, -1, "pace"),
    ]  # fmt: skip
    assert [mark[3:] for mark in marks if not np.isnan(mark[3])] == [(300.0, 400.0)]
    assert trace.details == ("hang", "any: no memory")


def test_a_driver_that_marks_nonsense_is_stopped() -> None:
    note = recorder()
    with pytest.raises(RunError, match="worker 0 is not pacing"):
        note.pace(0, 1.0, 2.0)
    with pytest.raises(RunError, match="no mark is called 'lunch'"):
        note.note(Occupied(1, 0, "lunch"), [])


def test_samples_keep_what_can_be_read() -> None:
    note = recorder()
    note.sample(5, core=1, busy=0.5)
    table = note.trace().samples
    assert rows(table, "t", "core", "busy", "throttled", "rss_bytes") == [(5, 1, 0.5, -1, -1)]
    assert np.isnan(table["mhz"]).all()


def test_columns_have_the_declared_types_even_when_empty() -> None:
    for trace in (recorder().trace(), scene().trace()):
        for name, schema in schemas(("width",)).items():
            table = getattr(trace, name)
            assert {column: str(values.dtype) for column, values in table.columns.items()} == schema


def test_a_trace_in_mid_run_knows_who_waits_and_who_runs() -> None:
    note, machine = recorder(), machine_of(plan_of(ANY))
    play(note, machine, arrive(0), arrive(1))
    trace = note.trace(complete=False)
    assert trace.run.complete is False
    assert rows(trace.requests, "enqueued", "done", "error")[:3] == [(1, -1, 8), (11, -1, 8), (-1, -1, 8)]
    assert len(trace.batches) == 0


@pytest.mark.parametrize("flush_early", [False, True])
def test_the_sink_sees_every_row_once(flush_early: bool) -> None:
    seen: dict[str, list[Row]] = {}
    note = scene(lambda table, fresh: seen.setdefault(table, []).extend(fresh))
    if flush_early:
        note.flush()
    trace = note.trace()
    assert {name: len(got) for name, got in seen.items()} == {"requests": 5, "batches": 4, "marks": 6, "details": 2}
    assert seen["details"] == [(0, "any"), (1, "crash")]
    again = columns(seen["batches"], schemas(("width",))["batches"])
    assert rows(again, *again.columns) == rows(trace.batches, *again.columns)


def test_the_sink_is_fed_every_256_requests_and_every_second() -> None:
    workload = load([10_000_000 * i for i in range(700)] + [100_000_000_000])
    seen: list[tuple[str, int]] = []
    note = Recorder(
        run_info(workers=1), workload, ("any",), (0,), lambda table, fresh: seen.append((table, len(fresh)))
    )
    machine = machine_of(plan_of(ANY))
    for i in range(300):  # 100 a second
        t = 10_000_000 * i
        play(note, machine, Arrived(t, i, 0, (50,), t), BatchDone(t + 5, 0, i, t, t + 5))
    for i in range(300, 600):  # all at once
        play(note, machine, Arrived(t, i, 0, (50,), t), BatchDone(t + 5, 0, i, t, t + 5))
    assert seen == [(table, n) for n in (100, 100, 256) for table in ("requests", "batches")]


def test_rows_that_were_kept_make_the_trace_again() -> None:
    kept: list[tuple[str, Row]] = []
    dead = scene(lambda table, fresh: kept.extend((table, row) for row in fresh))
    dead.flush()
    written: list[str] = []
    again = recorder(lambda table, fresh: written.append(table))
    for table, row in kept:
        again.restore(table, row)
    one, two = dead.trace(), again.trace()
    for name in ("requests", "batches", "marks"):
        np.testing.assert_equal(getattr(one, name).columns, getattr(two, name).columns)
    assert (one.details, written) == (two.details, [])


def test_an_entry_that_came_while_it_served_is_kept_with_the_rows_that_name_it() -> None:
    kept: list[tuple[str, Row]] = []
    note = recorder(lambda table, fresh: kept.extend((table, row) for row in fresh))
    machine, spec = machine_of(plan_of(ANY)), CompileSpec(backend="null", entries=(LARGE, ANY))
    play(note, machine, EntryAsked(0, 0, LARGE), EntryReady(7, 0, "large", ()), Remapped(7, spec))
    play(note, machine, arrive(0), BatchDone(18, 0, 0, 3, 17))
    note.flush()
    again = recorder()
    for table, row in kept:
        again.restore(table, row)
    one, two = note.trace(), again.trace(complete=False)
    assert one.entries == two.entries == ("any", "large")
    assert rows(two.batches, "entry", "exec.width") == [(1, 200)]
    assert [row for table, row in kept if table == "entries"] == [(1, "large")]


def test_a_compile_beside_that_failed_is_no_preparation() -> None:
    note, machine = recorder(), machine_of(plan_of(ANY))
    play(note, machine, EntryAsked(0, 0, LARGE), EntryFailed(7, 0, "large", "no kernel"), Stopped(60))
    assert [MARK_KINDS[kind] for kind in note.trace().marks["kind"].tolist()] == ["entry-failed", "stopped"]
