"""The compile profile of a plan: compile each entry, run a grid of shapes, inspect what was compiled. For all backends.

Theory. A warm service time is the time of a run whose shape this process has run before. Machines drift, so repeats are
interleaved: every round runs every shape of every entry once, in a new order drawn from a fixed seed; a slow spell of
the machine then touches all shapes alike instead of one shape's whole sample. The very first run of each shape is kept
apart (``first_ns``), and after the grid new shapes of traffic run once each (``first_runs``). Times are taken by the
worker exactly as in a replay: batch assembly included, wall and on-core.

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
from trimtab.domain.noun import NEVER, EntryId
from trimtab.domain.plan import Plan
from trimtab.domain.ports import BackendFactory, ModelFile, Payloads, Progress
from trimtab.domain.profile import CompileFailure, CompileProfile, FailureKind, Inspection
from trimtab.runtime import wire
from trimtab.runtime.grid import Grid, GridPoint
from trimtab.runtime.replay import compiles
from trimtab.runtime.solo import PREPARE_S, RUN_S, LostError, Solo, solo
from trimtab.runtime.timed import Timed
from trimtab.runtime.verify import Infinities
from trimtab.runtime.worker import Job

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
    newcomers: Grid | None = None,
    infinities: Infinities = None,
    patience: Patience | None = None,
    progress: Progress | None = None,
) -> tuple[CompileProfile | CompileFailure, ...]:
    """One profile or failure for each entry, in the plan's order. The worker is pinned to ``core``. ``newcomers`` are
    run once each, in order, after the grid; ``infinities`` are those that outputs may hold."""
    job = Job(backend, model, payloads, infinities)
    results: dict[EntryId, CompileProfile | CompileFailure] = {}
    while len(results) < len(plan.compile.entries):
        left = [entry.id for entry in plan.compile.entries if entry.id not in results]
        with solo(job, core, plan.serve.threads) as worker:
            profiler = _Profiler(plan, worker, grid, newcomers or {}, patience or Patience(), progress)
            results |= profiler.run(left, repeats)
    return tuple(results[entry.id] for entry in plan.compile.entries)


class _Profiler:
    def __init__(
        self, plan: Plan, worker: Solo, grid: Grid, newcomers: Grid, patience: Patience, progress: Progress | None
    ) -> None:
        self._plan, self._worker, self._grid, self._newcomers = plan, worker, grid, newcomers
        self._patience, self._progress = patience, progress
        self._rng = np.random.default_rng(0)
        self._timed: dict[EntryId, Timed] = {}
        self._held = NEVER  # resident bytes after the last answer
        self._note = ""
        self._done = 0
        self._total = 0

    def run(self, entries: list[EntryId], repeats: int) -> dict[EntryId, CompileProfile | CompileFailure]:
        """Profiles of ``entries``; if the worker is lost, only the failure of the entry that lost it."""
        failures: dict[EntryId, CompileProfile | CompileFailure] = {}
        self._total = len(entries) + (1 + repeats) * sum(len(self._grid[entry]) for entry in entries)
        self._total += sum(len(self._newcomers.get(entry, ())) for entry in entries)
        self._worker.ask(wire.Load(self._members(entries)), self._patience.prepare_s)
        for phase in (self._compile(entries), self._time(repeats), self._meet()):
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
        points = [point for entry in entries for point in (*self._grid[entry], *self._newcomers.get(entry, ()))]
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
            if entry in self._timed:  # it may have failed meanwhile
                yield partial(self._run_one, entry, at, first)

    def _meet(self) -> Iterator[Callable[[], None]]:
        for entry in list(self._timed):
            for point in self._newcomers.get(entry, ()):
                if entry in self._timed:
                    yield partial(self._meet_one, entry, point)

    def _compile_one(self, entry: EntryId) -> None:
        self._step(f"compile {entry}")
        order = wire.Compile(*compiles(self._plan)[entry], ())
        reply = self._ask(entry, order, self._patience.prepare_s)
        if isinstance(reply, wire.Refused):
            raise _FailedError(msgspec.structs.replace(reply.failure, plan=self._plan.id), lost=False)
        assert isinstance(reply, wire.Compiled)
        self._timed[entry] = Timed(reply, self._grid[entry])
        self._held = reply.memory_after

    def _meet_one(self, entry: EntryId, point: GridPoint) -> None:
        held, ran = self._held, self._ran(entry, point)
        self._timed[entry].met(point.executed, ran, held)

    def _run_one(self, entry: EntryId, at: int, first: bool) -> None:
        held, ran = self._held, self._ran(entry, self._grid[entry][at])
        note = self._timed[entry].first if first else self._timed[entry].warm
        note(at, ran, held)

    def _ran(self, entry: EntryId, point: GridPoint) -> wire.Ran:
        self._step(f"{entry} at {'x'.join(map(str, point.executed))}")
        reply = self._ask(entry, wire.Run(0, entry, point.executed, point.members), self._patience.run_s)
        assert isinstance(reply, wire.Ran)
        if reply.error != "none":
            raise _FailedError(self._failure(entry, reply.error, f"at {point.executed}: {reply.message}"), lost=False)
        self._held = reply.report.resident_bytes
        return reply

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
