"""The compile profile of a plan: compile each entry, run a grid of shapes, inspect what was compiled. For all backends.

Theory. A warm service time is the time of a run whose shape this process has run before. Machines drift, so repeats are
interleaved: every round runs every shape of every entry once, in a new order drawn from a fixed seed; a slow spell of
the machine then touches all shapes alike instead of one shape's whole sample. These are the promises.

Service is not like that: a worker rests between requests, shapes come in traffic's own order, new ones among them, and
a runtime that keeps kernels of many shapes loses some again. So before the grid, in a process as fresh as a replay's,
the beginning of the traffic is served, each request alone, in order of arrival, with the rests that one worker
would have had between them (long ones cut short). It gives what first runs cost (``first_runs``, one after the other:
a process that has met many shapes pays less for the next), and what known shapes take in service (``served``).

Times are taken by the worker exactly as in a replay: batch assembly included, wall and on-core; what lies before a
start and behind an end is the driver's, as in a replay too, in a prelude with what deciding takes (:mod:`.alone`). The
very first run of a shape of the grid is kept apart (``first_ns``), whether the prelude or the grid made it.

All entries of a plan live in one process, as they would in serving. A process that dies or hangs is the failure of the
entry that was asked for; the others are done again in a fresh one. Inspection comes last, because it may recompile.

Limits: one process, so process-to-process variation is not sampled; the grid's inputs are real requests where they
fit and pad values where none does. A time budget takes repeats away (never below 3), never points, and the
inspection's note says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.domain.events import ErrorKind
from trimtab.domain.noun import NEVER, EntryId, Ns
from trimtab.domain.plan import Plan
from trimtab.domain.ports import BackendFactory, ModelFile, Payloads, Progress
from trimtab.domain.profile import CompileFailure, CompileProfile, FailureKind, Inspection
from trimtab.runtime import wire
from trimtab.runtime.alone import Alone
from trimtab.runtime.grid import Grid, GridPoint
from trimtab.runtime.replay import compiles
from trimtab.runtime.solo import PREPARE_S, RUN_S, LostError, Solo, solo
from trimtab.runtime.timed import Timed
from trimtab.runtime.verify import Infinities
from trimtab.runtime.worker import Job

LONGEST_REST: Ns = 12_000_000
"""So long a worker stays free at most between two requests of the prelude; a longer rest tells nothing more."""
FEWEST = 3
"""Repeats that even the tightest budget keeps."""

KINDS: dict[ErrorKind, FailureKind] = {
    "crash": "crash",
    "hang": "timeout",
    "out-of-memory": "out-of-memory",
    "backend-error": "compiler-error",
    "bad-output": "quality",
}


class Patience(NamedTuple):
    """Seconds: how long one compile and one run may take, and how long all timed runs together should take."""

    prepare_s: float = PREPARE_S
    run_s: float = RUN_S
    budget_s: float | None = None


class _Exchange(NamedTuple):
    """A run, with the driver's own marks around it: when it began to decide on it, and when its answer was there."""

    sent: Ns
    ran: wire.Ran
    known: Ns


class _FailedError(Exception):
    """An entry cannot be profiled. ``lost``: the worker went with it."""

    def __init__(self, failure: CompileFailure, lost: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.lost = lost


def profile_plan(
    plan: Plan,
    model: ModelFile,
    backend: BackendFactory,
    payloads: Payloads,
    grid: Grid,
    repeats: int,
    core: int,
    *,
    prelude: Grid | None = None,
    infinities: Infinities = None,
    patience: Patience | None = None,
    progress: Progress | None = None,
) -> tuple[CompileProfile | CompileFailure, ...]:
    """One profile or failure for each entry, in the plan's order. The worker is pinned to ``core``. ``prelude``:
    requests of traffic, run before the grid as they are due; ``infinities`` are those that outputs may hold."""
    job = Job(backend, model, payloads, infinities)
    results: dict[EntryId, CompileProfile | CompileFailure] = {}
    while len(results) < len(plan.compile.entries):
        left = [entry.id for entry in plan.compile.entries if entry.id not in results]
        with solo(job, core, plan.serve.threads) as worker:
            profiler = _Profiler(plan, worker, core, grid, prelude or {}, patience or Patience(), progress)
            results |= profiler.run(left, repeats)
    return tuple(results[entry.id] for entry in plan.compile.entries)


class _Profiler:
    def __init__(
        self, plan: Plan, worker: Solo, core: int, grid: Grid, prelude: Grid, patience: Patience,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._plan, self._worker, self._core, self._grid, self._prelude = plan, worker, core, grid, prelude
        self._patience, self._progress = patience, progress
        self._rng = np.random.default_rng(0)
        self._timed: dict[EntryId, Timed] = {}
        self._held = NEVER  # resident bytes after the last answer
        self._known: Ns = 0  # when it was there
        self._served_until: Ns = 0  # on the clock of the traffic that is served
        self._note = ""
        self._done = 0
        self._total = 0

    def run(self, entries: list[EntryId], repeats: int) -> dict[EntryId, CompileProfile | CompileFailure]:
        """Profiles of ``entries``; if the worker is lost, only the failure of the entry that lost it."""
        failures: dict[EntryId, CompileProfile | CompileFailure] = {}
        self._total = len(entries) + (1 + repeats) * sum(len(self._grid[entry]) for entry in entries)
        self._total += sum(len(self._prelude.get(entry, ())) for entry in entries)
        self._worker.ask(wire.Load(self._members(entries)), self._patience.prepare_s)
        for phase in (self._compile(entries), self._serve_prelude(), self._time(repeats)):
            for step in phase:
                try:
                    step()
                except _FailedError as error:
                    if error.lost:
                        return {error.failure.entry: error.failure}
                    failures[error.failure.entry] = error.failure
                    self._timed.pop(error.failure.entry, None)
        return failures | {entry: self._profile(entry) for entry in self._timed}

    def _members(self, entries: list[EntryId]) -> tuple[wire.Member, ...]:
        points = [point for entry in entries for point in (*self._grid[entry], *self._prelude.get(entry, ()))]
        members = (member for point in points for member in point.members)
        return tuple(dict.fromkeys(members))

    # --- steps --------------------------------------------------------------------------------------------------

    def _compile(self, entries: list[EntryId]) -> Iterator[Callable[[], None]]:
        for entry in entries:
            yield partial(self._compile_one, entry)

    def _time(self, repeats: int) -> Iterator[Callable[[], None]]:
        began = time.monotonic()
        yield from self._round(first=True)
        rounds = repeats
        done = 0
        while done < rounds:
            yield from self._round(first=False)
            done += 1
            rounds = self._afford(repeats, done, time.monotonic() - began)
        if rounds < repeats:
            self._note = f"timed with {rounds} of {repeats} repeats, to keep the time budget"

    def _afford(self, repeats: int, done: int, spent: float) -> int:
        """How many repeats fit into the budget, going by the average of the rounds so far."""
        if self._patience.budget_s is None:
            return repeats
        fit = int(self._patience.budget_s / (spent / (done + 1))) - 1
        return min(repeats, max(FEWEST, fit))

    def _round(self, first: bool) -> Iterator[Callable[[], None]]:
        pairs = [(entry, at) for entry in self._timed for at in range(len(self._grid[entry]))]
        for index in self._rng.permutation(len(pairs)).tolist():
            entry, at = pairs[index]
            if entry not in self._timed:  # it has failed meanwhile
                continue
            if not (first and self._timed[entry].has_run(at)):
                yield partial(self._run_one, entry, at, first)

    def _serve_prelude(self) -> Iterator[Callable[[], None]]:
        alone = Alone(self._plan, self._timed, self._core)
        asked = [(point.due, entry, point) for entry in self._timed for point in self._prelude.get(entry, ())]
        for _, entry, point in sorted(asked, key=lambda each: each[0]):
            if entry in self._timed:
                yield partial(self._serve_one, alone, entry, point)

    def _compile_one(self, entry: EntryId) -> None:
        self._step(f"compile {entry}")
        order = wire.Compile(*compiles(self._plan)[entry], ())
        reply = self._ask(entry, order, self._patience.prepare_s)
        if isinstance(reply, wire.Refused):
            raise _FailedError(msgspec.structs.replace(reply.failure, plan=self._plan.id), lost=False)
        assert isinstance(reply, wire.Compiled)
        dynamic = compiles(self._plan)[entry][0].kind == "dynamic"
        self._timed[entry] = Timed(reply, self._grid[entry], dynamic)
        self._held = reply.memory_after

    def _serve_one(self, alone: Alone, entry: EntryId, point: GridPoint) -> None:
        """When it is due, if the worker is done with the one before; a long rest is cut short."""
        self._say(entry, point)
        rest = min(max(point.due - self._served_until, 0), LONGEST_REST)
        if rest:
            time.sleep(rest / 1e9)
        held, free_since, sent = self._held, self._known, time.monotonic_ns()
        done = self._exchange(alone.order(sent, point), sent)
        alone.done(done.known, done.ran)
        self._require(done.ran, entry, point)
        self._served_until = max(self._served_until, point.due) + done.known - done.sent
        idle = done.sent - free_since if free_since else NEVER
        self._timed[entry].served(point.executed, done.ran, held, done.sent, done.known, idle)

    def _run_one(self, entry: EntryId, at: int, first: bool) -> None:
        point = self._grid[entry][at]
        self._say(entry, point)
        held, sent = self._held, time.monotonic_ns()
        done = self._exchange(wire.Run(0, entry, point.executed, point.members), sent)
        self._require(done.ran, entry, point)
        if first:
            self._timed[entry].first(at, done.ran, held)
        else:
            self._timed[entry].warm(at, done.ran, held, done.sent, done.known)

    def _exchange(self, order: wire.Run, sent: Ns) -> _Exchange:
        reply = self._ask(order.entry, order, self._patience.run_s)
        self._known = time.monotonic_ns()
        assert isinstance(reply, wire.Ran)
        self._held = reply.report.resident_bytes
        return _Exchange(sent, reply, self._known)

    def _require(self, ran: wire.Ran, entry: EntryId, point: GridPoint) -> None:
        """Raise unless the run gave an answer."""
        if ran.error != "none":
            raise _FailedError(self._failure(entry, ran.error, f"at {point.executed}: {ran.message}"), lost=False)

    def _say(self, entry: EntryId, point: GridPoint) -> None:
        self._step(f"{entry} at {'x'.join(map(str, point.executed))}")

    def _ask(self, entry: EntryId, order: wire.Order, patience: float) -> wire.Reply:
        try:
            return self._worker.ask(order, patience)
        except LostError as error:
            raise _FailedError(self._failure(entry, error.error, error.message), lost=True) from error

    def _failure(self, entry: EntryId, error: ErrorKind, message: str) -> CompileFailure:
        return CompileFailure(plan=self._plan.id, entry=entry, kind=KINDS[error], message=message)

    def _step(self, note: str) -> None:
        if self._progress is not None:
            self._progress.step("compile", self._done, self._total, note)
        self._done += 1

    # --- results ------------------------------------------------------------------------------------------------

    def _profile(self, entry: EntryId) -> CompileProfile:
        timed = self._timed[entry]
        return CompileProfile(
            plan=self._plan.id,
            entry=entry,
            backend=self._plan.compile.backend,
            versions=self._worker.hello.versions,
            options=compiles(self._plan)[entry][1],
            compile_ns=timed.compile_ns,
            memory_bytes=timed.memory_bytes,
            peak_bytes=timed.peak_bytes,
            inspection=self._inspect(entry),
            timings=timed.timings,
            first_runs=tuple(timed.first_runs),
            served=tuple(timed.again),
            scratch_bytes=timed.scratch_bytes,
            growth=timed.growth,
        )

    def _inspect(self, entry: EntryId) -> Inspection:
        """At the middle point of the grid. A failed inspection is a note: the times stand without it."""
        points = self._grid[entry]
        point = points[len(points) // 2]
        try:
            reply = self._worker.ask(wire.Inspect(entry, point.executed, point.members), self._patience.prepare_s)
        except LostError as error:
            return self._not_inspected(point, error.message)
        if isinstance(reply, wire.Inspected):
            notes = filter(None, (reply.inspection.note, self._note))
            return msgspec.structs.replace(reply.inspection, note="; ".join(notes))
        assert isinstance(reply, wire.Refused)
        return self._not_inspected(point, reply.failure.message)

    def _not_inspected(self, point: GridPoint, why: str) -> Inspection:
        note = "; ".join(filter(None, (f"not inspected: {why}", self._note)))
        return Inspection(executed=point.executed, operators=(), operators_before=0, note=note)
