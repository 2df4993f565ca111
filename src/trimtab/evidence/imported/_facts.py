"""The facts of an imported table, for :mod:`.symptoms`: from its calls, its columns, and what was said beside it.

Steps of a quota: wall times of runs are taken modulo 100 ms, the period of a cgroup's quota. They stand in steps if
the resultant length of the angles is at least 0.8 over runs of at least 80 ms, and two different multiples hold at
least 5 runs each: 0 and 1, or two above 0 (one slow length beside a fast one is no step).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.domain.route import ROUTE_KINDS
from trimtab.evidence.classify import failures
from trimtab.evidence.classify.classes import Effect
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.imported._baseline import FIFTH, Side, against, by_volume, premium
from trimtab.evidence.imported._columns import filled
from trimtab.evidence.imported._removals import Removals
from trimtab.evidence.imported.recorded import Calls
from trimtab.evidence.stats.quantiles import Floats, quantile

SLOW, FAST = 0.95, 0.50
PERIOD, NEAR, ALIKE, FEWEST = 100e6, 80e6, 0.8, 5
PADDED = 1.10
MOSTLY = 0.50
QUEUED = 0.20


def gather(
    table: Imported,
    found: Removals,
    before: Calls | None,
    side: Side,
    effect: dict[str, Effect],
    bound: float,
    q: float,
) -> Facts:
    """The facts. ``bound`` = what the percentile ``q`` is held against, ns."""
    given, wait = found.given, found.wait
    tail = _tail(given)
    slow, fast = _first_runs(given, found, before)
    grown, saved = against(given, before, side)
    small, large = by_volume(given, before)
    idle, elsewhere = _idle(found, tail)
    launch = _launch(table, given, found, side)
    padding = _padding(table, given)
    # Work at a size that was never run unpadded is not known to be useful: then neither is what it would leave.
    blind = padding is not None and padding >= PADDED and not found.found.padding_known
    alone = quantile(found.without(*found.causes), q) / bound if math.isfinite(bound) and not blind else None
    executed, executed_in = _executed(side)
    useful = np.where(found.found.known, found.found.useful, np.nan)
    own = quantile(useful[np.isfinite(useful)], q) if np.isfinite(useful).any() else math.nan
    return Facts(
        effects=effect,
        alone=alone if alone is not None and math.isfinite(alone) else None,
        load=None if blind else _load(found, tail),
        threads=_whole(side.get("threads")),
        cores=_whole(side.get("cores")),
        quota=side.get("quota_cores"),
        idle_while_waiting=idle,
        idle_elsewhere=elsewhere if wait.elsewhere.any() or np.any(given.worker != NEVER) else None,
        mean_size=_mean(given.size[given.head]),
        max_size=_max_size(given, side),
        runqueue=_share(given.off_core, given),
        throttled=_throttled(table, given, side),
        stall=_share(given.stall, given),
        steps=_steps(given.run),
        stolen=side.get("stolen"),
        pace=side.get("pace"),
        stream_pace=side.get("stream_pace"),
        first_slow=slow,
        first_fast=fast,
        padding=padding,
        fallback=_fallback(table),
        premium=premium(given, found, before, grown),
        large_excess=large,
        small_excess=small,
        peak=_peak(given, side),
        out_of_memory=_out_of_memory(table),
        failed_by_memory=failures.own(table.trace, q) and failures.mostly(table.trace, "out-of-memory"),
        declared=side.texts.get("declared", ""),
        executed=executed,
        executed_in=executed_in,
        quality=_quality(side),
        peak_growth=grown,
        saved=saved,
        launches=side.get("launches"),
        launch=launch[0],
        launch_small=launch[1],
        launch_large=launch[2],
        own_work=_own_work(found, useful, tail),
        own_alone=own / bound if math.isfinite(own) and math.isfinite(bound) else None,
        ceiling=side.get("ceiling"),
        idle_cpu=side.get("idle_cpu"),
    )


def _tail(given: Calls) -> NDArray[np.bool_]:
    if not given.latency.size:
        return np.zeros(0, dtype=bool)
    return np.asarray(given.latency >= quantile(given.latency, SLOW), dtype=np.bool_)


def _idle(found: Removals, tail: NDArray[np.bool_]) -> tuple[float | None, float | None]:
    wait, hold = found.wait, filled(found.given.hold)
    if not (np.isfinite(found.given.queue).any() or np.isfinite(found.given.hold).any()):
        return None, None
    busy, free = float(wait.busy[tail].sum()), float((wait.idle + hold)[tail].sum())
    if busy + free <= 0:
        return None, None
    return free / (busy + free), float(wait.elsewhere[tail].sum()) / busy if busy else 0.0


def _load(found: Removals, tail: NDArray[np.bool_]) -> float | None:
    """Useful work over the workers' time; only where requests did wait: a closed loop keeps its worker busy, too."""
    given = found.given
    whole, waited = float(given.latency[tail].sum()), float(found.wait.busy[tail].sum())
    span = float(given.arrived[-1] - given.arrived[0]) if given.arrived.size else 0.0
    if not found.wait.workers or span <= 0 or waited < QUEUED * whole:
        return None
    return float(np.nansum(found.found.useful[given.head])) / (span * found.wait.workers)


def _first_runs(given: Calls, found: Removals, before: Calls | None) -> tuple[float | None, float | None]:
    """Share of first, compiling, changed-and-slower runs among the slowest 5 % and the faster half.

    Where most runs changed, the baseline's are set beside them: there must be some that did not.
    """
    changed = given.changed & (found.found.cold > 0)
    first = given.first | given.outside | (filled(given.compile) > 0) | changed
    if not (first.any() or np.isfinite(given.compile).any()):
        return None, None
    slowness, cold = _slowness(given, found, first)
    if before is not None and changed.mean() > MOSTLY:
        others = _slowness(before, found, before.first | before.changed)
        slowness, cold = np.concatenate((slowness, others[0])), np.concatenate((cold, others[1]))
    if slowness.size < 2:
        return None, None
    slow, fast = slowness >= quantile(slowness, SLOW), slowness <= quantile(slowness, FAST)
    return float(cold[slow].mean()), float(cold[fast].mean())


def _slowness(given: Calls, found: Removals, first: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Run time over its warm time (over the median where that is not known) of each batch, and its flag."""
    rows = given.head & np.isfinite(given.run)
    if not rows.any():
        return np.empty(0), np.empty(0, dtype=bool)
    base = found.found.warm(given.volume)
    base = np.where(np.isfinite(base), base, np.median(given.run[rows]))
    return (given.run / np.maximum(base, 1.0))[rows], first[rows]


def _padding(table: Imported, given: Calls) -> float | None:
    if not any(name.startswith("exec.") for name in table.stages.columns):
        return None
    rows = given.head & np.isfinite(given.volume) & np.isfinite(given.true_volume)
    total = float(given.true_volume[rows].sum())
    return float(given.volume[rows].sum()) / total if total else None


def _fallback(table: Imported) -> float | None:
    route = table.trace.requests["route"]
    known = route != NEVER
    return float((route[known] == ROUTE_KINDS.index("fallback")).mean()) if known.any() else None


def _share(part: Floats, given: Calls) -> float | None:
    known = given.head & np.isfinite(part) & np.isfinite(given.run)
    whole = float(given.run[known].sum())
    return float(part[known].sum()) / whole if whole else None


def _throttled(table: Imported, given: Calls, side: Side) -> float | None:
    if "throttled_share" in side.numbers:
        return side.numbers["throttled_share"]
    column = table.stages["throttled"][given.row].astype(np.float64)
    return _share(np.where(column < 0, np.nan, column), given)


def _steps(run: Floats) -> bool | None:
    known = run[np.isfinite(run)]
    late = known[known >= NEAR]
    if late.size < FEWEST:
        return None
    angle = 2 * np.pi * late / PERIOD
    length = math.hypot(float(np.cos(angle).mean()), float(np.sin(angle).mean()))
    multiple, count = np.unique(np.rint(known / PERIOD - _phase(angle)), return_counts=True)
    many = multiple[count >= FEWEST]
    return length >= ALIKE and many.size >= 2 and (1 in many or bool((many > 0).sum() >= 2))


def _phase(angle: Floats) -> float:
    """Where in the period the runs end, as a share of it, in -0.5 to 0.5."""
    return math.atan2(float(np.sin(angle).mean()), float(np.cos(angle).mean())) / (2 * math.pi)


def _peak(given: Calls, side: Side) -> float | None:
    peak, limit = side.get("peak_mb"), side.get("limit_mb")
    return peak / limit if peak is not None and limit else None


def _out_of_memory(table: Imported) -> int | None:
    error = table.trace.requests["error"]
    count = int((error == ERROR_KINDS.index("out-of-memory")).sum())
    return count or None


def _executed(side: Side) -> tuple[float | None, str]:
    """Share of run time in the declared precision; what else ran."""
    declared, executed = side.texts.get("declared", ""), side.texts.get("executed", "")
    other = executed if executed and executed.lower() != declared.lower() else ""
    share = side.get("executed_share")
    if share is None and executed and declared:
        share = 0.0 if other else 1.0
    return share, other


def _quality(side: Side) -> bool | None:
    quality, floor = side.get("quality"), side.get("quality_floor")
    return None if quality is None or floor is None else quality >= floor


def _launch(
    table: Imported, given: Calls, found: Removals, side: Side
) -> tuple[float | None, float | None, float | None]:
    """Launches' share of run time: over all, at the smallest and at the largest fifth of volumes."""
    keep = given.plain & np.isfinite(given.volume)
    keep &= given.run > 0
    if "launches" not in side.numbers or "launch_us" not in side.numbers or not keep.any():
        return None, None, None
    column = table.stages.columns.get("launches")
    many = np.full(given.row.size, side.numbers["launches"]) if column is None else np.nan_to_num(column[given.row])
    part = np.minimum(many * side.numbers["launch_us"] * 1e3, given.run)[keep]
    run, volume = given.run[keep], given.volume[keep]
    small, large = volume <= quantile(volume, FIFTH), volume >= quantile(volume, 1 - FIFTH)
    return tuple(float(part[rows].sum() / run[rows].sum()) for rows in (keep[keep], small, large))  # type: ignore[return-value]


def _own_work(found: Removals, useful: Floats, tail: NDArray[np.bool_]) -> float | None:
    known = tail & np.isfinite(useful)
    whole = float(found.given.latency[known].sum())
    return float(useful[known].sum()) / whole if whole else None


def _max_size(given: Calls, side: Side) -> int | None:
    known = given.size[np.isfinite(given.size)]
    largest = side.get("max_batch") or (float(known.max()) if known.size else None)
    return _whole(largest)


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
