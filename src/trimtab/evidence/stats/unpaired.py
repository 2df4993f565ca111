"""Unpaired block bootstrap: two runs on DIFFERENT arrivals, or on machines that are not quite the same.

Theory
------
As :mod:`trimtab.evidence.stats.bootstrap`, but each arm draws its own circular blocks: what the traffic does to one
arm is no longer cancelled by the other, so the interval is wider, by how much the traffic itself moves the figure.
Each replay of an arm is drawn with its own blocks, for replays of one arm may differ in length.

Limits. It knows the traffic only through the arrivals that were replayed: a difference between two days that neither
trace shows is not in the interval. The machine's own moods are held against the A/A floor, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trimtab.domain.figure import Interval
from trimtab.evidence.stats.bootstrap import AMONG_FAILED, MIN_BLOCKS, Comparison, block_length, stretched
from trimtab.evidence.stats.quantiles import Floats, quantile, relaxation_requests

METHOD = "unpaired block bootstrap"


def unpaired(
    baseline: Sequence[Floats],
    candidate: Sequence[Floats],
    statistic: Callable[[Floats], float],
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
) -> Comparison:
    """Ratio candidate / baseline of ``statistic`` (latencies in s, in order of arrival, +inf = failed -> a number),
    each arm one array a replay."""
    n, none = min((replay.size for replay in (*baseline, *candidate)), default=0), np.empty(0)
    if not n:
        return Comparison(None, None, 0, 0, 0, none, "an arm has no samples")
    before, after = (statistic(np.concatenate(arm)) for arm in (baseline, candidate))
    if not (math.isfinite(before) and math.isfinite(after)) or before == 0:
        return Comparison(None, None, n, 0, 0, none, f"the figure {AMONG_FAILED}")
    arms = [[(replay, block_length(replay.size, relaxation_requests(replay))) for replay in arm]
            for arm in (baseline, candidate)]  # fmt: skip
    blocks = min(replay.size // length for arm in arms for replay, length in arm)
    longest = max(length for arm in arms for _, length in arm)
    if blocks < MIN_BLOCKS:
        why = f"{n} samples hold {blocks} blocks of {longest}; {MIN_BLOCKS * longest} would do"
        return Comparison(after / before, None, n, longest, blocks, none, why)
    drawn = [np.array([statistic(_drawn(arm, rng)) for _ in range(resamples)]) for arm in arms]
    if not np.all(np.isfinite(drawn)) or not np.all(drawn[0]):
        return Comparison(
            after / before, None, n, longest, blocks, none, f"in some resamples the figure {AMONG_FAILED}"
        )
    ratios = np.sort(stretched(drawn[1] / drawn[0], level, blocks))
    tail = (1 - level) / 2
    interval = Interval(lo=quantile(ratios, tail), hi=quantile(ratios, 1 - tail), level=level, method=METHOD)
    return Comparison(after / before, interval, n, longest, blocks, ratios)


def _drawn(arm: Sequence[tuple[Floats, int]], rng: np.random.Generator) -> Floats:
    """One resample of an arm: circular blocks of each replay."""
    parts = []
    for replay, length in arm:
        starts = rng.integers(0, replay.size, size=math.ceil(replay.size / length))
        rows = (starts[:, None] + np.arange(length)).reshape(-1)[: replay.size] % replay.size
        parts.append(replay[rows])
    return np.concatenate(parts)
