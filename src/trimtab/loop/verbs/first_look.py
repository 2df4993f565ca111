"""A first look at a network under its traffic: how long a request takes, and at which rate a study can judge it.

A few shapes of the traffic, the smallest and the largest among them, run a few times each in a worker process. That is
enough to tell 2 ms from 200 ms, which decides whether a replay is a queue that never empties or one that never fills.
It is no profile: a run makes its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab import backends
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Progress
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import Study
from trimtab.domain.workload import Workload
from trimtab.loop.schedule import Schedule, plan_time, profiling_s, starting_s
from trimtab.mapping.cost import CostModel
from trimtab.readers.payload import payloads_of
from trimtab.runtime.grid import grid
from trimtab.runtime.profile import profile_plan
from trimtab.store.draft import BUDGET_MIN
from trimtab.store.study import resolve_model

POINTS, REPEATS = 5, 3
SHAPES = 5_000
"""The most shapes whose time is estimated; more are thinned out evenly."""
BUSY = 0.5
"""How busy one worker is at the most: near saturation every figure needs many times as many requests."""
WANTED, ENOUGH = 800, 250
"""Requests of a replay: how many are aimed at, and the fewest that tell something of a tail, with some to spare."""
SHORTEST_MIN, LONGEST_MIN = 5, 60
"""A budget for a first try, which must hold the fewest, and the longest that is drafted."""


class Look(NamedTuple):
    """Warm ms of one request alone: the mean over the traffic, and the 95th percentile."""

    mean_ms: float
    slow_ms: float

    def __str__(self) -> str:
        return f"{self.mean_ms:.2g} ms on average and {self.slow_ms:.2g} ms at the 95th percentile of sizes"

    @property
    def bound_ms(self) -> float:
        """A bound of the size that people choose: at least five times a slow request, 1, 2 or 5 times a power of 10."""
        least = 5 * self.slow_ms
        power = 10.0 ** floor(log10(least))
        return round(power * next(step for step in (1, 2, 5, 10) if step * power >= least), 6)


class Pace(NamedTuple):
    """The rate to replay at (None: as recorded), what it was taken from, and the budget, min."""

    rate: float | None
    why: str
    minutes: int


def look(study: Study, folder: Path, workload: Workload, progress: Progress) -> Look | str:
    """Run the baseline of ``study`` on a few shapes; a text says why it does not run."""
    plan, model = study.baseline, resolve_model(study, folder)
    results = profile_plan(
        plan,
        model,
        backends.factory(plan.compile.backend),
        payloads_of(study, folder),
        grid(workload, plan, POINTS),
        REPEATS,
        study.envelope.worker_cores[0],
        progress=progress,
    )
    failed = next((result for result in results if isinstance(result, CompileFailure)), None)
    if failed is not None:
        return f"{failed.kind}: {failed.message}"
    profiles = [result for result in results if isinstance(result, CompileProfile)]
    return _over(workload, profiles, plan.compile.entries)


def _over(workload: Workload, profiles: Sequence[CompileProfile], entries: Sequence[Entry]) -> Look:
    """The times of the traffic's own shapes, each counted as often as it is there."""
    costs, entry = CostModel.from_profiles(profiles, entries), entries[0].id
    shapes, counts = np.unique(workload.dims, axis=0, return_counts=True)
    kept = np.unique(np.linspace(0, len(shapes) - 1, SHAPES).astype(np.int64))
    took = np.array([costs.estimate(entry, (1, *shape)) for shape in shapes[kept].tolist()]) / 1e6
    order, weights = np.argsort(took), counts[kept]
    reached = np.cumsum(weights[order]) / weights.sum()
    return Look(float(np.average(took, weights=weights)), float(took[order][np.searchsorted(reached, 0.95)]))


def paced(study: Study, arrivals: NDArray[np.int64], seen: Look) -> Pace:
    """As recorded, where one worker keeps up with that and a run of ten minutes holds enough requests; else the nearest
    rate at which it does. ``arrivals``: the trace's own, ns, in order and not all at one time. A replay takes the begin
    of a slice, which may be quieter than the rest: the rate is one at which the begin holds enough."""
    span = arrivals[-1] - arrivals[0]
    recorded = (len(arrivals) - 1) / (span / 1e9)
    cut = int(np.searchsorted(arrivals, arrivals[0] + study.workload.tune_share * span))
    tune, held_out = (part - part[0] for part in (arrivals[:cut], arrivals[cut:]))
    taken = profiling_s(study, _entry_s), starting_s(study, _entry_s)

    def schedule(minutes: int) -> Schedule:
        return plan_time(60.0 * minutes, study.budget.replays, taken[0], None, starting=taken[1])

    speed = 1.0
    for minutes, requests in ((BUDGET_MIN, WANTED), (SHORTEST_MIN, ENOUGH)):
        lengths = schedule(minutes)
        speed = max(speed, _speed(tune, lengths.tune_s, requests), _speed(held_out, lengths.held_out_s, requests))
    rate = min(recorded * speed, BUSY / seen.mean_ms * 1e3)
    speed, enough = rate / recorded, min(ENOUGH, len(tune))
    tried = range(BUDGET_MIN, LONGEST_MIN, 5)
    minutes = next((n for n in tried if _held(tune, schedule(n).tune_s, speed) >= enough), LONGEST_MIN)
    if 0.9 < speed < 1.1:
        return Pace(None, "", minutes)
    if speed > 1:
        why = f"the trace has {recorded:.3g}, which are few for a run of {minutes} minutes"
    else:
        why = f"the trace has {recorded:.3g}, this keeps one worker half busy"
    return Pace(float(f"{rate:.2g}"), why, minutes)


def _speed(arrivals: NDArray[np.int64], seconds: float, requests: int) -> float:
    """How much faster than recorded a slice must be for its first ``seconds`` to hold ``requests``, or all of it."""
    return float(arrivals[min(requests, len(arrivals) - 1)]) / 1e9 / seconds


def _held(arrivals: NDArray[np.int64], seconds: float, speed: float) -> int:
    """Requests within the first ``seconds``, at ``speed`` times the recorded rate."""
    return int(np.searchsorted(arrivals, seconds * 1e9 * speed, side="right"))


@cache
def _entry_s(name: str) -> float:
    return backends.info(name).entry_s
