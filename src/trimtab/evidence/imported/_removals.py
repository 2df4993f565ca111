"""What the tail of an imported table would be without each cause, and how sure that is.

Theory. gone_k = own part of cause k + what its removal gives back to those behind (:mod:`._crowd`). The effect of k on
the q-quantile of all scheduled requests is Q(L) - Q(L - gone_k) over Q(L) - Q(L - all of them - capacity - unusual
remainder), as for replayed runs. The remainder, time of no stage, is never a cause; what exceeds its median counts in
the denominator, so that a cause cannot look large only because most of the tail is unexplained.

Interval: paired block bootstrap. First runs crowd at the start of a run, where blocks either hold all of them or none;
their number is given by the shapes and not by chance, so for ``cold`` calls with and without it are drawn apart (at
least 5 of them).

A cause whose removal changes the percentile by less than 5 % counts as none: the stages of another system are not exact
to that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import Imported
from trimtab.evidence.classify.classes import Effect
from trimtab.evidence.imported._columns import at, empty, filled, recorded, same, total
from trimtab.evidence.imported._crowd import Waits, backlog, waits
from trimtab.evidence.imported._expected import Expected, expected
from trimtab.evidence.imported.recorded import Calls
from trimtab.evidence.stats import strata
from trimtab.evidence.stats.bootstrap import paired_quantile
from trimtab.evidence.stats.quantiles import Floats, quantile, relaxation_requests

LEAST = 0.05
NEAR_LIMIT = 0.95
DRAWN = 40_000_000
FEWEST_EVENTS = 5
REMOVABLE_STAGES = ("cold", "padding", "off_core", "stall", "hold", "imbalance", "memory", "slip")
"""Causes that the table itself records: without them, is the run as fast as its baseline?"""


class Removals(msgspec.Struct, frozen=True):
    """``gone[cause]`` = float64[calls], ns that each call would be shorter by. ``observed`` = float64[scheduled], ns,
    +inf = failed; ``rows`` = the calls' places in it."""

    observed: Floats
    rows: NDArray[np.int64]
    given: Calls
    found: Expected
    wait: Waits
    gone: dict[str, Floats]
    odd: Floats

    def without(self, *causes: str, odd: bool = False) -> Floats:
        """Latencies of all scheduled requests if ``causes`` were gone, ns."""
        nothing = same(0.0, self.rows.size)
        taken = total(nothing, *(self.gone[cause] for cause in causes if cause in self.gone))
        taken = total(taken, self.odd) if odd else taken
        if self.rows.size == self.observed.size:
            return self.observed - np.minimum(taken, self.observed)
        out = self.observed.copy()
        out[self.rows] -= np.minimum(taken, out[self.rows])
        return out

    @property
    def causes(self) -> tuple[str, ...]:
        """All but capacity."""
        return tuple(cause for cause in self.gone if cause != "capacity")


def removals(table: Imported, given: Calls, baseline: Calls | None, known: dict[str, float]) -> Removals:
    """The parts of every call that each cause would take away."""
    found, nothing = expected(given, baseline), same(0.0, given.run.size)
    run, over = filled(given.run), np.maximum(found.interference, 0.0)
    near = _near_limit(given, known)
    memory = np.where(near, over, 0.0) if near.any() else nothing
    work = {
        "cold": found.cold, "interference": over if empty(memory) else over - memory, "premium": found.premium,
        "padding": found.padding, "off_core": filled(given.off_core), "stall": filled(given.stall), "memory": memory,
        "launch": _launch(table, given, known, found, run),
    }  # fmt: skip
    wait = waits(given, int(known.get("workers", 0)))
    behind = backlog(given, wait, np.maximum(run - total(nothing, *work.values()), 0.0), work)
    # Each part is taken out of where it was, so that a large column is held once.
    gone = {name: total(work.pop(name), behind.relief.pop(name)) for name in tuple(work)}
    gone["hold"] = total(filled(given.hold), wait.idle, behind.relief.pop("hold", nothing))
    gone["imbalance"] = behind.relief.pop("imbalance", nothing)
    gone["slip"] = filled(given.slip)
    gone["capacity"] = behind.capacity
    odd = np.maximum(given.remainder - (np.median(given.remainder) if run.size else 0.0), 0.0)
    if given.derived and given.overlap and not recorded(given.queue):
        # What looks like run time holds unrecorded waits: only differences between first and later runs may be read.
        gone = {name: part if name in ("cold", "slip") else nothing for name, part in gone.items()}
        odd = odd + over
    seconds = table.trace.latency
    observed = np.where(np.isfinite(seconds), seconds * 1e9, np.inf)
    return Removals(observed, given.row, given, found, wait, gone, total(odd, behind.excess))


def _near_limit(given: Calls, known: dict[str, float]) -> NDArray[np.bool_]:
    limit = known.get("limit_mb", math.inf)
    return np.asarray(filled(given.peak) >= NEAR_LIMIT * limit, dtype=np.bool_)


def _launch(table: Imported, given: Calls, known: dict[str, float], found: Expected, run: Floats) -> Floats:
    """Launches times their cost, at most the useful time that they are part of."""
    if "launches" not in known or "launch_us" not in known:
        return same(0.0, given.row.size)
    column = table.stages.columns.get("launches")
    many = same(known["launches"], given.row.size) if column is None else at(column, given.row)
    useful = np.where(found.known, found.useful, run)
    return np.asarray(np.minimum(filled(many) * known["launch_us"] * 1e3, useful), dtype=np.float64)


def effects(found: Removals, q: float, rng: np.random.Generator) -> dict[str, Effect]:
    """The effect of each cause on the q-quantile; empty where it falls among failed requests."""
    bound = quantile(found.observed, q)
    least = quantile(found.without(*found.causes, "capacity", odd=True), q)
    if not math.isfinite(bound) or bound <= least:
        return {}
    whole = bound - least
    relaxation = cache(lambda: relaxation_requests(found.observed))
    out = {}
    for cause, gone in found.gone.items():
        gain = bound - quantile(found.without(cause), q) if gone.any() else 0.0
        if gain < LEAST * bound:
            out[cause] = Effect(0.0, 0.0, 0.0)
            continue
        between = _interval(found, cause, q, rng, relaxation)
        ends = (None, None) if between is None else (bound * (1 - between[1]) / whole, bound * (1 - between[0]) / whole)
        out[cause] = Effect(gain / whole, *ends)
    return out


def _interval(
    found: Removals, cause: str, q: float, rng: np.random.Generator, relaxation: Callable[[], float]
) -> tuple[float, float] | None:
    """Interval of Q(without) / Q(observed)."""
    without, n = found.without(cause), found.observed.size
    resamples = int(np.clip(DRAWN // max(n, 1), 100, 400))
    if cause == "cold":
        return _apart(found.observed, without, q, rng, resamples)
    ratio = paired_quantile(found.observed, without, q, rng, resamples=resamples, relaxation=relaxation())
    return None if ratio.interval is None else (ratio.interval.lo, ratio.interval.hi)


def _apart(
    observed: Floats, without: Floats, q: float, rng: np.random.Generator, resamples: int
) -> tuple[float, float] | None:
    """The interval with calls that the cause touches and those that it does not drawn apart."""
    touched = without < observed
    if int(touched.sum()) < FEWEST_EVENTS:
        return None
    before, after = strata.quantiles((observed, without), (touched, ~touched), q, rng, resamples).T
    known = np.isfinite(before) & (before > 0)
    lo, hi = np.quantile(np.where(known, after / np.where(known, before, 1.0), 1.0), [0.025, 0.975])
    return float(lo), float(hi)
