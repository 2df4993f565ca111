"""The Recorder: events and commands in, a Trace out. Both drivers use it, so both write the same columns.

There is one row for each request that has ended, batch that has ended, mark and sample (:mod:`.rows`). A request's
``route`` is that of its batch (``rejected`` where it was refused, NEVER where it never ran for another reason).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import (
    ERROR_KINDS,
    Arrived,
    BatchDone,
    BatchReport,
    Command,
    Dispatch,
    EntryAsked,
    EntryDropped,
    EntryFailed,
    EntryReady,
    ErrorKind,
    Event,
    Finish,
    Occupied,
    PlanChange,
    Released,
    Remapped,
    Stopped,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import NEVER, EntryId, Ns
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.trace import (
    MARK_KINDS,
    RunInfo,
    Table,
    Trace,
)
from trimtab.domain.workload import Workload
from trimtab.errors import RunError
from trimtab.serving.rows import Row, Rows, Sink

_NO_REPORT = BatchReport()
_ERROR = {kind: code for code, kind in enumerate(ERROR_KINDS)}
_ROUTE = {kind: code for code, kind in enumerate(ROUTE_KINDS)}
_MARK = {kind: code for code, kind in enumerate(MARK_KINDS)}
_NAN = float("nan")


class _Sent(msgspec.Struct, frozen=True):
    """A batch under way: its command, when it was sent, and its members' arrivals."""

    command: Dispatch
    t: Ns
    arrivals: tuple[Arrived, ...]


class Recorder:
    """Builds the Trace of one run. ``cores``: the core of each worker, NEVER = not pinned. ``entries``: those of the
    plan; what a controller asks for joins them."""

    def __init__(
        self,
        run: RunInfo,
        workload: Workload,
        entries: Sequence[EntryId],
        cores: Sequence[int],
        sink: Sink | None = None,
    ) -> None:
        self._run = run
        self._workload = workload
        self._cores = tuple(cores)
        self._rows = Rows(workload.dim_names, entries, sink)
        self._entries = self._rows.entries
        self._requests, self._batches = self._rows.of["requests"], self._rows.of["batches"]
        self._waiting: dict[int, Arrived] = {}
        self._sent: dict[int, _Sent] = {}
        self._asked: dict[tuple[int, EntryId], Ns] = {}
        self._busy: dict[tuple[int, str], tuple[Ns, float, float]] = {}

    def note(self, event: Event, commands: Sequence[Command]) -> None:
        """Take one event and what the machine made of it."""
        if isinstance(event, Arrived):
            self._waiting[event.request] = event
        elif isinstance(event, BatchDone):
            self._done(event)
        else:
            self._other(event)
        for command in commands:
            if isinstance(command, Dispatch):
                arrivals = tuple([self._waiting.pop(member) for member in command.members])
                self._sent[command.batch] = _Sent(command, event.t, arrivals)
            elif isinstance(command, Finish) and command.request in self._waiting:
                self._never_ran(event.t, command)
        self._rows.flush_if_due(event.t)

    def answered(self, t: Ns, request: int, error: ErrorKind) -> None:
        """A server that is not ours answered ``request``, or never will: nothing of its batch is known."""
        self._never_ran(t, Finish(NEVER, request, error))
        self._rows.flush_if_due(t)

    def pace(self, worker: int, compute_ns: float, stream_ns: float) -> None:
        """What the pace kernel measured; call it between the worker's Occupied and Released with label ``pace``."""
        if (worker, "pace") not in self._busy:
            raise RunError(f"worker {worker} is not pacing", where="driver", fix="send Occupied first")
        start, _, _ = self._busy[worker, "pace"]
        self._busy[worker, "pace"] = (start, compute_ns, stream_ns)

    def sample(
        self,
        t: Ns,
        core: int = NEVER,
        busy: float = _NAN,
        stolen: float = _NAN,
        mhz: float = _NAN,
        throttled: int = NEVER,
        throttled_ns: Ns = NEVER,
        celsius: float = _NAN,
        rss_bytes: int = NEVER,
    ) -> None:
        """One reading of the envelope; what cannot be read keeps its default."""
        self._rows.of["samples"].append((t, core, busy, stolen, mhz, throttled, throttled_ns, celsius, rss_bytes))

    def flush(self) -> None:
        """Hand every row that the sink has not seen to it."""
        self._rows.flush()

    def restore(self, table: str, row: Row) -> None:
        """Take a row that a sink was given, as if it had been noted here: how a killed run becomes a trace."""
        self._rows.restore(table, row)

    def trace(self, complete: bool = True) -> Trace:
        """The Trace so far: a request without a row has not ended and is ``unfinished``."""
        for (worker, label), start in sorted(self._busy.items()):
            self._mark(start[0], NEVER, label, worker, start[1], start[2])
        self._busy.clear()
        self.flush()
        batches = self._rows.table("batches")
        return Trace(
            run=msgspec.structs.replace(self._run, complete=complete),
            dim_names=self._workload.dim_names,
            streams=self._workload.streams,
            entries=tuple(self._entries),
            details=tuple(self._rows.details),
            requests=self._request_table(),
            batches=batches.take(np.argsort(batches["id"], kind="stable")),
            marks=self._rows.table("marks"),
            samples=self._rows.table("samples"),
        )

    def _request_table(self) -> Table:
        load, schema = self._workload, self._rows.schemas["requests"]
        ended = self._rows.table("requests")
        table: dict[str, NDArray[Any]] = {name: np.full(len(load), NEVER, dtype=kind) for name, kind in schema.items()}
        table["error"][:] = _ERROR["unfinished"]
        for name in ("predicted_at_compile", "predicted_at_dispatch"):
            table[name][:] = 0
        for arrival in (*self._waiting.values(), *[a for sent in self._sent.values() for a in sent.arrivals]):
            table["enqueued"][arrival.request] = arrival.t
        for name, column in ended.columns.items():
            table[name][ended["id"]] = column
        table["id"][:] = np.arange(len(load))
        table["stream"][:] = load.stream
        table["scheduled"][:] = load.scheduled
        for axis, name in enumerate(load.dim_names):
            table[f"dim.{name}"][:] = load.dims[:, axis]
        return Table(table)

    def _done(self, event: BatchDone) -> None:
        sent = self._sent.pop(event.batch, None)
        if sent is not None:  # otherwise the machine gave this batch up long ago
            self._close(sent, event.started, event.ended, event.t, event.error, event.report)

    def _close(self, sent: _Sent, started: Ns, ended: Ns, done: Ns, error: ErrorKind, report: BatchReport) -> None:
        batch, code = sent.command, _ERROR[error]
        route, ready = _ROUTE[batch.kind], batch.ready
        for a in sent.arrivals:
            batched = ready if ready > a.t else a.t
            self._requests.append((
                a.request, a.stream, a.scheduled, a.t, batched, sent.t, started, ended, done,
                batch.batch, route, batch.promised, batch.expected, code, *a.dims,
            ))  # fmt: skip
        worker, executed = batch.worker, batch.executed
        self._batches.append((
            batch.batch, worker, self._cores[worker], self._entries[batch.entry], len(batch.members), executed[0],
            route, batch.first_seen, batch.changed, batch.outside, report.compile_events,
            sent.t, started, ended, done, batch.promised, batch.expected, report.on_cpu_ns, report.runqueue_ns,
            report.minor_faults, report.major_faults, report.migrations, report.peak_bytes, code, *executed[1:],
        ))  # fmt: skip
        for compiled in report.compiled:
            took = _NAN if compiled.ns == NEVER else compiled.ns
            self._mark(started, ended, compiled.kind, worker, took, batch.batch, compiled.reason)

    def _never_ran(self, t: Ns, finish: Finish) -> None:
        a = self._waiting.pop(finish.request)
        route = _ROUTE["rejected"] if finish.error == "rejected" else NEVER
        self._requests.append((
            a.request, a.stream, a.scheduled, a.t, NEVER, NEVER, NEVER, NEVER, t,
            NEVER, route, 0, 0, _ERROR[finish.error], *a.dims,
        ))  # fmt: skip

    def _give_up(self, t: Ns, worker: int | None, error: ErrorKind) -> None:
        lost = [b for b, sent in self._sent.items() if worker is None or sent.command.worker == worker]
        for batch in lost:
            self._close(self._sent.pop(batch), NEVER, NEVER, t, error, _NO_REPORT)

    def _other(self, event: Event) -> None:
        match event:
            case WorkerUp():
                self._mark(event.t, event.t, "worker-up", event.worker)
            case WorkerDown():
                self._fell(event)
            case EntryReady():
                self._mark(event.t, event.t, "entry-ready", event.worker, detail=event.entry)
                self._prepared(event)
            case EntryFailed():
                self._asked.pop((event.worker, event.entry), None)
                detail = f"{event.entry}: {event.message}"
                self._mark(event.t, event.t, "entry-failed", event.worker, detail=detail)
            case Occupied():
                if event.label not in _MARK:
                    raise RunError(
                        f"no mark is called {event.label!r}", where="driver", fix=f"use one of {', '.join(MARK_KINDS)}"
                    )
                self._busy[event.worker, event.label] = (event.t, _NAN, _NAN)
            case Released():
                self._release(event.t, event.worker, event.label)
            case Stopped():
                self._give_up(event.t, None, "unfinished")
                self._mark(event.t, event.t, "stopped", NEVER)
            case EntryAsked() | Remapped() | EntryDropped():
                self._changed(event)

    def _fell(self, event: WorkerDown) -> None:
        self._give_up(event.t, event.worker, event.error)
        for worker, label in [key for key in self._busy if key[0] == event.worker]:
            self._release(event.t, worker, label)
        self._asked = {key: t for key, t in self._asked.items() if key[0] != event.worker}
        self._mark(event.t, event.t, "worker-down", event.worker, detail=event.error)

    def _prepared(self, event: EntryReady) -> None:
        asked = self._asked.pop((event.worker, event.entry), None)
        if asked is not None:
            self._mark(asked, event.t, "prepare", event.worker, detail=event.entry)

    def _changed(self, event: PlanChange) -> None:
        match event:
            case EntryAsked():
                self._rows.entry(event.entry.id)
                self._asked[event.worker, event.entry.id] = event.t
            case Remapped():
                table = " ".join(entry.id for entry in event.spec.entries)
                detail = f"{table}: {event.why}" if event.why else table
                self._mark(event.t, event.t, event.kind, NEVER, detail=detail)
            case EntryDropped():
                self._mark(event.t, event.t, "entry-dropped", NEVER, detail=event.entry)

    def _release(self, t: Ns, worker: int, label: str) -> None:
        if (worker, label) in self._busy:
            start, compute, stream = self._busy.pop((worker, label))
            self._mark(start, t, label, worker, compute, stream)

    def _mark(
        self, t: Ns, end: Ns, kind: str, worker: int, value: float = _NAN, value2: float = _NAN, detail: str = ""
    ) -> None:
        number = self._rows.detail(detail) if detail else NEVER
        self._rows.of["marks"].append((t, end, _MARK[kind], worker, value, value2, number))
