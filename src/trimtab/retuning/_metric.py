"""One metric over latencies: its value, which way is better, and two arms compared on the same arrivals.

Latencies are float64 seconds in order of arrival, +inf = failed. Values are ms for percentiles, shares for ``goodput``
(done within the bound) and ``miss`` (its complement). All comparisons are ratios candidate / baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.domain.figure import Interval
from trimtab.domain.study import Sla
from trimtab.errors import StudyError
from trimtab.evidence.stats.bootstrap import Comparison, paired_mean, paired_quantile
from trimtab.evidence.stats.floor import Floor, aa_floor
from trimtab.evidence.stats.quantiles import (
    Floats,
    effective_samples,
    needed_effective,
    quantile,
    relaxation_requests,
)

QUANTILES: dict[str, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
SHARES = ("goodput", "miss")
METRICS = (*QUANTILES, *SHARES)


def known(metric: str) -> str:
    """``metric`` itself, if it is one."""
    if metric not in METRICS:
        raise StudyError(f"There is no metric {metric!r}.", where="metric", fix=f"Use one of {', '.join(METRICS)}.")
    return metric


def unit(metric: str) -> str:
    return "share" if metric in SHARES else "ms"


def higher_is_better(metric: str) -> bool:
    return metric == "goodput"


def settle(latency: Floats, sla: Sla) -> Floats:
    """Latencies in which a request later than the deadline counts as failed."""
    if sla.deadline_ms is None:
        return latency
    return np.where(latency > sla.deadline_ms / 1e3, np.inf, latency)


def failures(latency: Floats) -> int:
    return int(np.isinf(latency).sum())


def value(latency: Floats, metric: str, sla: Sla) -> float:
    """The metric of all requests of ``latency`` (one or more replays); nan without requests."""
    if not latency.size:
        return math.nan
    if known(metric) in QUANTILES:
        return quantile(settle(latency, sla), QUANTILES[metric]) * 1e3
    return float(_indicator(latency, metric, sla).mean())


def meets(figure: float, sla: Sla) -> bool:
    """Whether a value of the primary metric satisfies the SLA."""
    return figure >= sla.goodput if sla.metric == "goodput" else figure <= sla.bound_ms


def bound(sla: Sla) -> float:
    """The bound of the primary metric, in its own unit."""
    return sla.goodput if sla.metric == "goodput" else sla.bound_ms


def compare(
    baseline: Sequence[Floats], candidate: Sequence[Floats], metric: str, sla: Sla, seed: int, resamples: int = 1000
) -> Comparison:
    """Ratio candidate / baseline over replays of the same arrivals, by paired block bootstrap from ``seed``."""
    before, after = np.stack(baseline), np.stack(candidate)
    rng = np.random.default_rng(seed)
    if known(metric) in QUANTILES:
        return paired_quantile(settle(before, sla), settle(after, sla), QUANTILES[metric], rng, resamples=resamples)
    relaxation = max((relaxation_requests(row) for row in (*before, *after)), default=1.0)
    return paired_mean(
        _indicator(before, metric, sla), _indicator(after, metric, sla), rng, resamples=resamples, relaxation=relaxation
    )


def change(comparison: Comparison) -> tuple[float | None, Interval | None]:
    """A ratio as a change: (candidate - baseline) / baseline and its interval."""
    if comparison.value is None:
        return None, None
    interval = comparison.interval
    if interval is None:
        return comparison.value - 1, None
    shifted = Interval(lo=interval.lo - 1, hi=interval.hi - 1, level=interval.level, method=interval.method)
    return comparison.value - 1, shifted


def p_not_better(comparison: Comparison, metric: str, ratio: float) -> float:
    """One-sided p-value of "the candidate is no better than ``ratio`` times the baseline" (small = it is better)."""
    return comparison.p_at_most(ratio) if higher_is_better(metric) else comparison.p_at_least(ratio)


def p_not_worse(comparison: Comparison, metric: str, ratio: float) -> float:
    """One-sided p-value of "the candidate is no worse than ``ratio`` times the baseline" (small = it is worse)."""
    return comparison.p_at_least(ratio) if higher_is_better(metric) else comparison.p_at_most(ratio)


def worse_by(metric: str, share: float) -> float:
    """The ratio at which the candidate is worse by ``share`` of the baseline (negative = better by it).

    Times: 10 % worse is 1.1, 10 % better 1 / 1.1, as the A/A floor counts them. Goodput: 0.9 and 1.1.
    """
    if higher_is_better(metric):
        return 1 - share
    return 1 + share if share >= 0 else 1 / (1 - share)


def text(figure: float | None, metric: str) -> str:
    """A value as a person reads it: ``58 ms``, ``99.2 %``; ``beyond the deadline`` among the failed."""
    if figure is None or math.isnan(figure):
        return "unknown"
    if math.isinf(figure):
        return "beyond the deadline"
    if metric in SHARES:
        return f"{figure * 100:.4g} %"
    return f"{figure:.0f} ms" if figure >= 100 else f"{figure:.3g} ms"


def signed(share: float | None) -> str:
    """A change as a person reads it: ``-86 %``, ``+3.1 %``."""
    if share is None or math.isnan(share):
        return "unknown"
    if math.isinf(share):
        return "into failure"
    digits = 0 if abs(share) >= 0.095 else 1
    return f"{share * 100:+.{digits}f} %".replace("-", "−")


def _indicator(latency: Floats, metric: str, sla: Sla) -> Floats:
    good = latency <= sla.bound_ms / 1e3
    return (good if metric == "goodput" else ~good).astype(np.float64)


@dataclass(frozen=True)
class Judged:
    """Two arms compared: on ``metric``, or on goodput where the arms lost different numbers of requests (``note``)."""

    metric: str
    comparison: Comparison
    note: str = ""


def judge(
    baseline: Sequence[Floats], candidate: Sequence[Floats], metric: str, sla: Sla, seed: int, resamples: int = 1000
) -> Judged:
    """Compare two arms of replays, each a latency array over the same arrivals."""
    if not baseline or not candidate:
        return Judged(metric, nothing("an arm has no replay"))
    lengths = {len(replay) for replay in (*baseline, *candidate)}
    if len(lengths) != 1:
        return Judged(metric, nothing(f"not the same arrivals: {sorted(lengths)} requests"))
    lost = [sum(failures(settle(replay, sla)) / len(arm) for replay in arm) for arm in (baseline, candidate)]
    if lost[0] == lost[1] or metric in SHARES:
        return Judged(metric, compare(baseline, candidate, metric, sla, seed, resamples))
    note = f"{lost[0]:g} against {lost[1]:g} failed requests a replay: judged on goodput"
    return Judged("goodput", compare(baseline, candidate, "goodput", sla, seed, resamples), note)


def thin(replays: Sequence[Floats], metric: str, sla: Sla) -> str:
    """Why a percentile of all ``replays`` together rests on too little; empty where it does not, and for a share."""
    q = QUANTILES.get(metric)
    if q is None:
        return ""
    worth = sum(effective_samples(settle(replay, sla), q).effective or 0.0 for replay in replays)
    needed = needed_effective(q)
    return "" if worth >= needed else f"rests on {worth:.0f} effective samples, {needed} are needed"


def nothing(reason: str) -> Comparison:
    """A comparison that could not be made."""
    return Comparison(None, None, 0, 0, 0, np.empty(0), reason)


def floor(arms: Sequence[Sequence[Floats]], metric: str, sla: Sla) -> Floor:
    """The A/A floor of a metric, as a share, from the replays of each arm."""
    found = [[value(replay, metric, sla) for replay in arm] for arm in arms]
    if metric == "miss" and any(one == 0 for arm in found for one in arm):
        return Floor(None, (), min(map(len, found)), "relative", "a replay missed nothing: no relative floor")
    return aa_floor(found)
