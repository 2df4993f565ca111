"""Paired block bootstrap: when is a difference between two runs on the same arrivals a difference?

Theory
------
Two plans are replayed on the SAME arrivals; request i of one run is the mate of request i of the other. Requests are
drawn in circular blocks of consecutive arrivals (Politis and Romano 1992), the same blocks for both arms, so that what
the traffic does to both cancels and the memory of the queue stays inside a block.

*Block length.* L = max(5 T, n / 25), T = the relaxation time of the slower arm in requests. The bootstrap is computed
only with at least 20 such blocks; else the comparison is inconclusive and says how many requests it would need.

*Interval.* The percentile interval of the ratio candidate / baseline over the resamples. Few blocks make it too
narrow, so the resampled ratios are first pulled away from their median, on the log scale, by t / z x sqrt(k / (k - 1)),
the correction that a mean of k blocks has. (Ratios that may be 0 or negative: on their own scale.)

*Several replays an arm* come as rows: a block is taken from every replay of both arms. That does not show how replays
differ from one another; the floor (:mod:`trimtab.evidence.stats.floor`) does.

Measured false alarms of a nominal 5 % (A/A pairs of 6,000 requests, one worker, Poisson arrivals, service jitter 10 %):
p95 4 % and p99 6 % at utilisation 0.75; 11 % and 17 % at 0.9, where ``caution`` says that the percentile has too few
effective samples. Without the stretch and with L = 5 T they are 9, 11, 17 and 27 %.

Limits: a quantile among failed requests (+inf) has no ratio: such arms are compared on goodput, here inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from trimtab.domain.figure import Interval
from trimtab.evidence.stats import _blocks
from trimtab.evidence.stats.quantiles import Floats, effective_samples, quantile, rank, relaxation_requests, t_quantile

MIN_BLOCKS = 20
USUAL_BLOCKS = 25
RELAXATIONS_PER_BLOCK = 5
METHOD = "paired block bootstrap"
AMONG_FAILED = "falls among failed requests, or is 0 in the baseline: compare goodput"


class Comparison(msgspec.Struct, frozen=True):
    """Candidate against baseline: ``value`` = their ratio, below 1 = smaller.

    ``interval`` None = inconclusive, for ``reason``. ``replicates`` are the resampled ratios, stretched and
    sorted. ``blocks`` x ``length`` is how they were drawn. ``caution`` = too few effective samples behind the
    percentile itself.
    """

    value: float | None
    interval: Interval | None
    samples: int
    length: int
    blocks: int
    replicates: Floats
    reason: str = ""
    caution: str = ""

    @property
    def se_log(self) -> float:
        """Standard error of the log ratio; nan where it is not computed."""
        positive = self.replicates.size > 1 and bool(np.all(self.replicates > 0))
        return float(np.log(self.replicates).std(ddof=1)) if positive else math.nan

    def p_at_least(self, limit: float) -> float:
        """One-sided p-value of "the true ratio is at least ``limit``" (small = it is below); 1 if not computed."""
        if self.interval is None:
            return 1.0
        return (1 + int((self.replicates >= limit).sum())) / (self.replicates.size + 1)

    def p_at_most(self, limit: float) -> float:
        """One-sided p-value of "the true ratio is at most ``limit``" (small = it is above); 1 if not computed."""
        if self.interval is None:
            return 1.0
        return (1 + int((self.replicates <= limit).sum())) / (self.replicates.size + 1)


def block_length(n: int, relaxation: float) -> int:
    """Requests a block: at least 5 relaxation times, and 25 blocks in all where that is longer."""
    return max(math.ceil(RELAXATIONS_PER_BLOCK * relaxation), n // USUAL_BLOCKS, 1)


def paired_quantile(
    baseline: ArrayLike,
    candidate: ArrayLike,
    q: float,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    relaxation: float | None = None,
) -> Comparison:
    """Ratio candidate / baseline of the q-quantile over the same arrivals.

    Both are float64[n] or [replays, n], latencies in order of arrival, +inf = failed. ``relaxation`` in requests
    (None: estimated from the series).
    """

    a, b = _arm(baseline), _arm(candidate)

    def draw(length: int) -> Floats:
        n = a.shape[1]
        starts = rng.integers(0, n, size=(resamples, math.ceil(n / length)))
        return _ratio(*(_blocks.quantiles(arm, starts, length, q) for arm in (a, b)))

    compared = _paired(a, b, _ratio(_order(a.reshape(-1), q), _order(b.reshape(-1), q)), draw, level, relaxation)
    weakest = min((effective_samples(row, q) for row in (*a, *b)), key=lambda worth: worth.effective or 0.0)
    if weakest.enough:
        return compared
    rests = f"rests on {weakest.effective or 0:.0f} effective samples in an arm, {weakest.needed} are needed"
    return msgspec.structs.replace(compared, caution=f"the percentile {rests}")


def paired_mean(
    baseline: ArrayLike,
    candidate: ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    relaxation: float | None = None,
) -> Comparison:
    """Ratio candidate / baseline of a mean over the same arrivals: miss rate or goodput from 0/1 indicators.

    Give ``relaxation`` of the latencies: an indicator forgets faster than the queue does.
    """
    return _means(_arm(baseline), _arm(candidate), _ratio, rng, resamples, level, relaxation)


def paired_difference(
    baseline: ArrayLike,
    candidate: ArrayLike,
    rng: np.random.Generator,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    relaxation: float | None = None,
) -> Comparison:
    """Difference candidate - baseline of a mean over the same arrivals: for shares that may be 0 in the baseline.

    The comparison's ``value``, ``interval`` and ``replicates`` are differences then.
    """
    return _means(_arm(baseline), _arm(candidate), lambda a, b: b - a, rng, resamples, level, relaxation)


def _means(
    a: Floats,
    b: Floats,
    compare: Callable[[Floats, Floats], Floats],
    rng: np.random.Generator,
    resamples: int,
    level: float,
    relaxation: float | None,
) -> Comparison:
    """Means of whole circular blocks, from prefix sums: resamples x blocks look-ups instead of resamples x n."""

    def draw(length: int) -> Floats:
        blocks = math.ceil(a.shape[1] / length)
        starts = rng.integers(0, a.shape[1], size=(resamples, blocks))
        means = (_block_sums(arm.mean(axis=0), length)[starts].sum(axis=1) / (blocks * length) for arm in (a, b))
        return compare(*means)

    return _paired(a, b, compare(_average(a), _average(b)), draw, level, relaxation)


def ratio_of_sums(
    part: ArrayLike, whole: ArrayLike, rng: np.random.Generator, *, resamples: int = 1000, level: float = 0.95
) -> Comparison:
    """sum(part) / sum(whole) over one run's batches in order, blocks of batches: an accuracy with its interval."""
    comparison = paired_mean(whole, part, rng, resamples=resamples, level=level)
    if comparison.interval is None:
        return comparison
    interval = msgspec.structs.replace(comparison.interval, method="block bootstrap")
    return msgspec.structs.replace(comparison, interval=interval)


def _arm(values: ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(values, dtype=np.float64))


def _order(drawn: Floats, q: float) -> Floats:
    """The q-quantile along the last axis; nan without samples."""
    if not drawn.shape[-1]:
        return np.full(1, np.nan)
    k = rank(drawn.shape[-1], q) - 1
    return np.atleast_1d(np.partition(drawn, k, axis=-1)[..., k])


def _average(arm: Floats) -> Floats:
    """The mean of all values, as one element; nan without samples."""
    return np.full(1, arm.mean() if arm.size else np.nan)


def _block_sums(x: Floats, length: int) -> Floats:
    """Sum of the circular block that starts at each position."""
    total = np.concatenate(([0.0], np.cumsum(np.concatenate((x, x[:length])))))
    return np.asarray(total[length : length + x.size] - total[: x.size], dtype=np.float64)


def _paired(
    a: Floats, b: Floats, value: Floats, draw: Callable[[int], Floats], level: float, relaxation: float | None
) -> Comparison:
    """The rules that every comparison obeys, around ``draw(block length)`` -> resampled ratios."""
    n, seen = a.shape[1], float(value[0])
    none = np.empty(0)
    if n != b.shape[1]:
        return Comparison(None, None, n, 0, 0, none, f"not the same arrivals: {n} against {b.shape[1]} requests")
    if n == 0:
        return Comparison(None, None, 0, 0, 0, none, "no samples")
    if not math.isfinite(seen):
        return Comparison(None, None, n, 0, 0, none, f"the figure {AMONG_FAILED}")
    if relaxation is None:
        relaxation = max(relaxation_requests(row) for row in (*a, *b))
    length = block_length(n, relaxation)
    if n // length < MIN_BLOCKS:
        why = f"{n} samples hold {n // length} blocks of {length}; {MIN_BLOCKS * length} would do"
        return Comparison(seen, None, n, length, n // length, none, why)
    ratios = draw(length)
    if not np.all(np.isfinite(ratios)):
        return Comparison(seen, None, n, length, n // length, none, f"in some resamples the figure {AMONG_FAILED}")
    ratios = np.sort(stretched(ratios, level, n // length))
    tail = (1 - level) / 2
    interval = Interval(lo=quantile(ratios, tail), hi=quantile(ratios, 1 - tail), level=level, method=METHOD)
    return Comparison(seen, interval, n, length, n // length, ratios)


def stretched(ratios: Floats, level: float, blocks: int) -> Floats:
    """The resampled ratios, pulled away from their median for having only ``blocks`` blocks."""
    p = (1 + level) / 2
    factor = t_quantile(p, blocks - 1) / NormalDist().inv_cdf(p) * math.sqrt(blocks / (blocks - 1))
    middle = quantile(ratios, 0.5)
    if np.all(ratios > 0):
        return np.asarray(middle * (ratios / middle) ** factor, dtype=np.float64)
    return middle + (ratios - middle) * factor


def _ratio(baseline: Floats, candidate: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = candidate / baseline
    return np.where(np.isfinite(baseline), ratio, np.nan)
