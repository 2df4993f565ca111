"""Order statistics, independence and sample sizes: what a tail figure is worth.

Theory
------
*Quantile.* The q-quantile of n samples is the order statistic x_(k), k = ceil(n q) (inverted CDF, Hyndman and Fan
1996, type 1). It never interpolates, so a failed request (+inf) stays +inf: a percentile that falls among the failed
prints as "> deadline (k failed)".

*Interval of a quantile, independent samples only.* x_(r) lies above the true quantile with probability
P(Bin(n, q) <= r - 1), x_(s) below it with at most P(Bin(n, q) >= s). The equal-tailed interval takes the largest r and
the smallest s that keep each below (1 - level) / 2. The r-th order statistic of uniforms is Beta(r, n + 1 - r), hence
the name. Latencies of a queue are NOT independent: there the interval covers far less than it says.

*Autocorrelation time.* tau = 1/2 + sum over k >= 1 of rho(k); n dependent samples are worth n / (2 tau) independent
ones. rho is the biased sample autocorrelation, cut by Geyer's initial positive sequence (1992): pairs
rho(2j) + rho(2j+1) are added while they are positive, made non-increasing. For a percentile, rho is that of the
exceedance indicator 1[x > quantile] in order of arrival. tau is never taken below 1/2.

*Relaxation time.* With rho(k) = a exp(-k / T) the sum over k >= 1 is a T (less a half step) and rho(1) is a
exp(-1/T), so T = 1/2 + (sum over k >= 1 of rho(k)) / rho(1), on the ranks of the latencies (finite where requests
failed, indifferent to heavy tails). The division removes ``a``: shapes add noise without memory to every latency and
would make a busy queue look short. Without a significant rho(1) (2 / sqrt(n)) the answer is 1. The ranks are centred
within 8 equal windows, so that a drift of the whole run (shapes that grow warm) is not taken for memory of the queue;
a queue whose memory exceeds a window ends near n / 80, more than a comparison accepts.

*Samples that a percentile needs.* ceil(ln 0.01 / ln q) effective ones: with fewer, the chance that not one sample lies
above the true quantile exceeds 1 %. p95: 90, p99: 459.

Limits: tau assumes one level for the whole series; a drift makes it large, which errs on the safe side. T above
n / 200 is underestimated (utilisation 0.9, 6,000 requests: 28 where the whole series says 47).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimtab.domain.figure import Interval

Floats = NDArray[np.float64]

DRIFT_WINDOWS = 8
SHORTEST_WINDOW = 32
FIRST_LAGS = 1 << 13
"""Lags that are looked at first: a queue is seldom remembered for longer."""
PIECE = 8
"""Length of a piece in lags, and the growth of lags."""
_SLACK = 1e-9  # n q is rounded up; 100 x 0.07 = 7.000000000000001 must stay 7


def rank(n: int, q: float) -> int:
    """The 1-based rank k = ceil(n q) of the q-quantile among ``n`` sorted samples, within 1..n."""
    return min(max(math.ceil(n * q - _SLACK), 1), n)


def quantile(values: ArrayLike, q: float) -> float:
    """The q-quantile (0 < q < 1) by order statistic; +inf where it falls among the failed, nan without samples."""
    x = np.asarray(values, dtype=np.float64)
    if not x.size:
        return math.nan
    k = rank(x.size, q) - 1
    return float(np.partition(x, k)[k])


def tail_curve(values: ArrayLike, points: int) -> list[tuple[float, float]]:
    """(-log10(1 - p), p-quantile) at ``points`` evenly spaced steps of the first, so that each decade of the tail gets
    the same room; it ends with the largest value. Empty without samples."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = ordered.size
    if not n:
        return []
    tails = np.linspace(0, math.log10(max(n, 2)), points).tolist()
    ranks = [*(rank(n, 1 - 10.0**-tail) for tail in tails[:-1]), n]
    return [(tail, float(ordered[k - 1])) for tail, k in zip(tails, ranks, strict=True)]


def tail_text(values: ArrayLike, q: float, deadline_ms: float | None = None) -> str:
    """A percentile of latencies in seconds, as printed: ``12.3 ms``, or ``> 500 ms (7 failed)`` among the failed."""
    x = np.asarray(values, dtype=np.float64)
    value = quantile(x, q)
    if math.isnan(value):
        return "no samples"
    if math.isinf(value):
        bound = "deadline" if deadline_ms is None else f"{deadline_ms:g} ms"
        return f"> {bound} ({int(np.isinf(x).sum())} failed)"
    return f"{value * 1e3:.3g} ms"


def _binomial_cdf(n: int, q: float) -> Floats:
    """P(Bin(n, q) <= k) for k = 0..n, exact up to rounding: log factorials, then a running sum."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1, dtype=np.float64)))))
    k = np.arange(n + 1)
    log_pmf = log_factorial[n] - log_factorial - log_factorial[::-1] + k * math.log(q) + (n - k) * math.log1p(-q)
    return np.asarray(np.minimum(np.cumsum(np.exp(log_pmf)), 1.0), dtype=np.float64)


def order_ranks(n: int, q: float, level: float = 0.95) -> tuple[int, int] | None:
    """Ranks (r, s), 1-based, of the equal-tailed interval for the q-quantile of ``n`` independent samples.

    None where ``n`` is too small for that level (p95 at 95 % needs 72).
    """
    if n < 1 or not 0 < q < 1:
        return None
    half = (1 - level) / 2
    below = _binomial_cdf(n, q)
    above = _binomial_cdf(n, 1 - q)
    r = int(np.searchsorted(below, half, side="right"))
    s = n + 1 - int(np.searchsorted(above, half, side="right"))
    return (r, s) if r >= 1 and s <= n else None


def beta_interval(values: ArrayLike, q: float, level: float = 0.95) -> Interval | None:
    """Interval of the q-quantile of INDEPENDENT samples (profile times), in the unit of ``values``.

    None where there are too few samples. Never use it for latencies of a queue.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    ranks = order_ranks(x.size, q, level)
    if ranks is None:
        return None
    r, s = ranks
    return Interval(lo=float(x[r - 1]), hi=float(x[s - 1]), level=level, method="beta")


def autocorrelation(values: ArrayLike, windows: int = 1, lags: int | None = None) -> Floats | None:
    """rho(0..n/windows - 1), biased, by FFT; centred within each of ``windows`` equal stretches and pooled over them.

    ``lags`` = how many of them are wanted. None for fewer than 2 samples a window or a series that is constant within
    each.
    """
    x = np.asarray(values, dtype=np.float64)
    width = x.size // windows
    if width < 2:
        return None
    cov = _products(x[: width * windows].reshape(windows, width), width if lags is None else min(lags, width))
    if cov[0] <= 1e-12 * x.size:
        return None
    return np.asarray(cov / cov[0], dtype=np.float64)


def _products(rows: Floats, lags: int) -> Floats:
    """Sum of x(i) x(i + k) for each k < ``lags`` over the centred ``rows``, by FFT of pieces that each look ``lags``
    ahead: one piece where all lags are wanted."""
    width = rows.shape[1]
    size = 1 << ((2 * width if lags == width else PIECE * lags) - 1).bit_length()
    spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    for row in rows:
        centred = row - row.mean()
        for begin in range(0, width, size - lags):
            piece, ahead = centred[begin : begin + size - lags], centred[begin : begin + size]
            own = np.fft.rfft(piece, size)
            spectrum += np.conj(own) * (own if ahead.size == piece.size else np.fft.rfft(ahead, size))
    return np.asarray(np.fft.irfft(spectrum, size)[:lags], dtype=np.float64)


def _correlated(values: ArrayLike, windows: int = 1) -> Floats | None:
    """rho as far as :func:`_tau` reads it: up to a pair that is not positive, or all of it."""
    x, lags = np.asarray(values, dtype=np.float64), FIRST_LAGS
    while lags < x.size // windows:
        rho = autocorrelation(x, windows, lags)
        if rho is None or np.any(_pairs(rho) <= 0):
            return rho
        lags *= PIECE
    return autocorrelation(x, windows)


def _pairs(rho: Floats) -> Floats:
    return np.asarray(rho[: rho.size // 2 * 2].reshape(-1, 2).sum(axis=1), dtype=np.float64)


def _tau(rho: Floats) -> float:
    """1/2 + sum of rho(k >= 1) by the initial positive, monotone sequence of pairs."""
    pairs = _pairs(rho)
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: negative[0]] if negative.size else pairs
    if not kept.size:
        return 0.5
    return max(float(np.minimum.accumulate(kept).sum()) - 0.5, 0.5)


class Effective(msgspec.Struct, frozen=True):
    """How many independent samples a percentile rests on: ``effective`` = n / (2 ``tau``), ``needed`` for it.

    ``effective`` None = not assessable, ``reason`` says why; then it is not enough.
    """

    samples: int
    tau: float | None
    effective: float | None
    needed: int
    reason: str = ""

    @property
    def enough(self) -> bool:
        return self.effective is not None and self.effective >= self.needed


def needed_effective(q: float) -> int:
    """Effective samples that the q-quantile needs: ceil(ln 0.01 / ln q); p95: 90, p99: 459."""
    return math.ceil(math.log(0.01) / math.log(q) - _SLACK)


def effective_samples(values: ArrayLike, q: float) -> Effective:
    """Effective samples behind the q-quantile of ``values``, which must be in order of arrival (+inf = failed)."""
    x = np.asarray(values, dtype=np.float64)
    needed = needed_effective(q)
    if not x.size:
        return Effective(0, None, None, needed, "no samples")
    level = quantile(x, q)
    rho = _correlated(x > level if math.isfinite(level) else np.isinf(x))
    if rho is None:
        return Effective(x.size, None, None, needed, "no sample lies above the percentile, or all do")
    tau = _tau(rho)
    return Effective(x.size, tau, x.size / (2 * tau), needed)


def ranks_of(values: ArrayLike) -> Floats:
    """Ranks 0..n-1 with ties at their mean, as float64; +inf ranks last."""
    x = np.asarray(values, dtype=np.float64)
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts + 1) / 2)[inverse], dtype=np.float64)


def relaxation_requests(latency: ArrayLike) -> float:
    """Relaxation time of the queue in requests (>= 1), from latencies in order of arrival."""
    ranks = ranks_of(latency)
    windows = DRIFT_WINDOWS if ranks.size >= DRIFT_WINDOWS * SHORTEST_WINDOW else 1
    rho = _correlated(ranks, windows)
    if rho is None or rho[1] <= 2 / math.sqrt(ranks.size):
        return 1.0
    return max(0.5 + (_tau(rho) - 0.5) / float(rho[1]), 1.0)


def requests_needed(
    n: int, se_log: float, effect: float = 0.10, power: float = 0.80, alpha: float = 0.05
) -> int | None:
    """Requests an arm that would show a change of ``effect`` (a share) with ``power``.

    ``se_log`` is the standard error of the log ratio seen with ``n`` requests an arm (a paired bootstrap of an A/A
    pair gives it); it shrinks with 1 / sqrt(n): n (se (z_(1 - alpha/2) + z_power) / ln(1 + effect))^2.
    None where ``se_log`` is not finite.
    """
    if n < 1 or not math.isfinite(se_log) or effect <= 0:
        return None
    z = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    return max(math.ceil(n * (se_log * z / math.log1p(effect)) ** 2), 1)


def t_quantile(p: float, degrees: int) -> float:
    """Student's t quantile by the Cornish-Fisher expansion around the normal one (Abramowitz and Stegun 26.7.5).

    Within 0.001 of the exact one for 19 degrees of freedom or more and 0.001 <= p <= 0.999.
    """
    z = NormalDist().inv_cdf(p)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values (1979), in the order given; reject where <= alpha. nan counts as 1: fails closed."""
    clean = [1.0 if math.isnan(p) else p for p in p_values]
    adjusted = [1.0] * len(clean)
    running = 0.0
    for position, index in enumerate(sorted(range(len(clean)), key=clean.__getitem__)):
        running = max(running, min(1.0, (len(clean) - position) * clean[index]))
        adjusted[index] = running
    return tuple(adjusted)


def jain(shares: ArrayLike) -> float | None:
    """Jain's fairness index (1984): (sum x)^2 / (n sum x^2), 1/n = one takes all, 1 = equal. None if all are 0 or
    one is not finite."""
    x = np.asarray(shares, dtype=np.float64)
    square = float((x * x).sum())
    if not x.size or not math.isfinite(square) or square == 0:
        return None
    return float(x.sum()) ** 2 / (x.size * square)


def worst_to_best(values: ArrayLike) -> float | None:
    """Largest over smallest (p95 per stream); +inf where the worst failed, None without two values above 0."""
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2 or not np.all(x > 0) or math.isinf(float(x.min())):
        return None
    return float(x.max() / x.min())
