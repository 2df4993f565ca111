"""What has been measured of one entry so far: its times, and the memory that it took.

Memory. *Peak* is the most that the process held while the entry was compiled or ran. *Scratch* is the most that one run
took above what was held just before it; what an allocator keeps after its first run of a shape is no scratch of the
second. *Growth* is what the process held after each shape that was new to a dynamic entry: runtimes keep kernels and
plans of every shape they have met, and that is what traffic with many shapes costs.

Limits: all entries of a plan live in one process, so its peak holds what the others keep, and what one grows by holds
what others first ran in between. Payloads are held before anything runs, so they do not grow.
"""

from __future__ import annotations

import numpy as np

from trimtab.domain.events import BatchReport
from trimtab.domain.noun import NEVER, Executed, Ns
from trimtab.domain.profile import FirstRun, MemoryPoint, ServedRun, ShapeTiming
from trimtab.runtime import wire
from trimtab.runtime.grid import GridPoint

GROWTH_POINTS = 33
"""How many points of a growth curve are kept, evenly over the shapes, both ends included."""


class Timed:
    """One entry's runs, as they come. ``held`` of a call = resident bytes just before the run."""

    def __init__(self, compiled: wire.Compiled, points: tuple[GridPoint, ...], dynamic: bool) -> None:
        self.compile_ns: Ns = compiled.ended - compiled.started
        self.memory_bytes = max(0, compiled.memory_after - compiled.memory_before)
        self.peak_bytes = compiled.peak_bytes
        self.scratch_bytes = NEVER
        self.first_runs: list[FirstRun] = []
        self.again: list[ServedRun] = []
        self._dynamic = dynamic
        self._seen: set[Executed] = set()
        self._points = points
        self._first: list[Ns] = [0] * len(points)
        self._wall: list[list[Ns]] = [[] for _ in points]
        self._cpu: list[list[Ns]] = [[] for _ in points]
        self._dispatch: list[list[Ns]] = [[] for _ in points]
        self._completion: list[list[Ns]] = [[] for _ in points]
        self._growth: list[MemoryPoint] = []

    def first(self, at: int, ran: wire.Ran, held: int) -> None:
        """The very first run of a point of the grid."""
        self._first[at] = ran.ended - ran.started
        self._seen.add(self._points[at].executed)
        self._took(ran.report, held)

    def has_run(self, at: int) -> bool:
        """Whether a point of the grid has had its very first run."""
        return self._points[at].executed in self._seen

    def warm(self, at: int, ran: wire.Ran, held: int, sent: Ns, known: Ns) -> None:
        """A run of a point that has run before, ordered at ``sent``, its answer there at ``known``."""
        self._dispatch[at].append(ran.started - sent)
        self._completion[at].append(known - ran.ended)
        self._wall[at].append(ran.ended - ran.started)
        self._cpu[at].append(ran.report.on_cpu_ns)
        self._took(ran.report, held)

    def served(self, executed: Executed, ran: wire.Ran, held: int, sent: Ns, known: Ns, idle: Ns) -> None:
        """A request of the prelude: the very first run of its dims, or a later one."""
        if executed not in self._seen:
            run = FirstRun(
                executed=executed,
                ns=ran.ended - ran.started,
                dispatch_ns=ran.started - sent,
                completion_ns=known - ran.ended,
            )
            self._met(run, ran, held)
            return
        self._took(ran.report, held)
        self.again.append(
            ServedRun(
                executed=executed,
                ns=ran.ended - ran.started,
                idle_ns=idle,
                dispatch_ns=ran.started - sent,
                completion_ns=known - ran.ended,
            )
        )

    def _met(self, run: FirstRun, ran: wire.Ran, held: int) -> None:
        for at, point in enumerate(self._points):
            if point.executed == run.executed:
                self.first(at, ran, held)
        self._took(ran.report, held)
        self._seen.add(run.executed)
        if not self._dynamic:
            return
        if not self._growth:
            self._grown(0, held)
        self.first_runs.append(run)
        self._grown(len(self.first_runs), ran.report.resident_bytes)

    @property
    def timings(self) -> tuple[ShapeTiming, ...]:
        return tuple(
            ShapeTiming(
                executed=point.executed,
                first_ns=self._first[at],
                wall_ns=tuple(self._wall[at]),
                cpu_ns=tuple(self._cpu[at]),
                dispatch_ns=tuple(self._dispatch[at]),
                completion_ns=tuple(self._completion[at]),
            )
            for at, point in enumerate(self._points)
        )

    @property
    def growth(self) -> tuple[MemoryPoint, ...]:
        """At most GROWTH_POINTS of the curve."""
        count = len(self._growth)
        kept = np.unique(np.linspace(0, count - 1, min(count, GROWTH_POINTS)).round().astype(int))
        return tuple(self._growth[at] for at in kept.tolist()) if count else ()

    def _grown(self, shapes: int, resident: int) -> None:
        if resident != NEVER:
            self._growth.append(MemoryPoint(shapes=shapes, resident_bytes=resident))

    def _took(self, report: BatchReport, held: int) -> None:
        self.peak_bytes = max(self.peak_bytes, report.peak_bytes)
        if NEVER not in (report.peak_bytes, held):
            self.scratch_bytes = max(self.scratch_bytes, report.peak_bytes - held, 0)
