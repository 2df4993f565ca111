"""Adaptation gain, headroom and capture: what changing the mapping at run time wins back (R24).

Theory
------
gain = (M_static - M_adapted) / M_static for latency and misses, (M_adapted - M_static) / M_static for goodput: positive
is better, whatever the metric. Both runs have the same arrivals, start state, cores, memory and source, and every
compile and warm-up is charged to the run that made it; runs that differ are refused.

headroom = the gain of the clairvoyant: for each window the best plan of the same candidate set, chosen knowing the
window, ready without a stall, simulated. capture = simulated gain / simulated headroom, only where headroom's interval
lies above the floor; else there is nothing to capture. Measured and simulated never meet in one ratio.

Limits: the interval is a paired block bootstrap of the ratio adapted / static on the same arrivals; it shows what
resampled traffic would do, not what another replay would (the A/A floor does). A clairvoyant that picks the best of
many noisy windows is too good, so headroom is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.study import Metric, Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.figures import Desk
from trimtab.evidence.latency import PERCENTILES, latencies, misses
from trimtab.evidence.stats.bootstrap import Comparison, paired_mean, paired_quantile
from trimtab.evidence.stats.floor import Floor, incomparable
from trimtab.evidence.stats.quantiles import Floats, relaxation_requests


def gain(metric: Metric, static: float, adapted: float) -> float | None:
    """Relative gain, positive = better; None where the static figure is 0 or one of them is not finite."""
    if not (math.isfinite(static) and math.isfinite(adapted)) or static == 0:
        return None
    change = (adapted - static) / static
    return change if metric == "goodput" else 0.0 - change


BESIDE = ("p95", "miss_rate", "goodput")
"""Metrics whose gain stands beside the primary one's."""


def paired_gains(
    name: str, static: Sequence[Trace], adapted: Sequence[Trace], sla: Sla, rng: np.random.Generator, desk: Desk
) -> Figure:
    """Gain in the study's primary metric, stored as ``<stage>.<name>`` and returned; beside it ``<name>.<metric>`` of
    p95, miss rate and goodput. Each arm is one or more runs.

    Runs that differ in workload, envelope, versions, start state, source or slice have no gain: the note says why.
    """
    first = static[0].run
    differs = dict.fromkeys(d for trace in (*static[1:], *adapted) for d in incomparable(first, trace.run))
    if differs:
        return desk.add(name, None, "share", 0, note=f"refused: the runs differ in {', '.join(differs)}")
    a, b = (np.stack([latencies(trace, sla) for trace in arm]) for arm in (static, adapted))
    memory = max(relaxation_requests(row) for row in (*a, *b))
    against = ", ".join(trace.run.id for trace in adapted)

    def compare(metric: str, id_: str) -> Figure:
        note = f"{metric.replace('_', ' ')}, {first.source}, against run {against}; positive is better"
        if metric == "miss_rate":
            ratio = as_gain("p95", paired_mean(misses(a, sla), misses(b, sla), rng, relaxation=memory))
        elif metric == "goodput":
            ratio = as_gain("goodput", paired_mean(~misses(a, sla), ~misses(b, sla), rng, relaxation=memory))
        else:
            ratio = as_gain("p95", paired_quantile(a, b, PERCENTILES[metric], rng, relaxation=memory))
        return desk.compare(id_, ratio, "share", note=note)

    primary = compare(sla.metric, name)
    for metric in BESIDE:
        if metric != sla.metric:
            compare(metric, f"{name}.{metric}")
    return primary


def as_gain(metric: Metric, ratio: Comparison) -> Comparison:
    """A comparison of adapted / static as a gain; replicates stay the ratios that they are."""
    if ratio.value is None:
        return ratio
    sign = 1 if metric == "goodput" else -1
    interval = ratio.interval
    if interval is not None:
        lo, hi = sorted((sign * (interval.lo - 1) + 0.0, sign * (interval.hi - 1) + 0.0))
        interval = msgspec.structs.replace(interval, lo=lo, hi=hi)
    return msgspec.structs.replace(ratio, value=sign * (ratio.value - 1) + 0.0, interval=interval)


def clairvoyant(values: Floats, metric: Metric) -> NDArray[np.int64]:
    """The best plan of each window: ``values`` float64[windows, plans] of the metric; ties go to the first plan.

    +inf and nan never win against a finite value.
    """
    worst = -math.inf if metric == "goodput" else math.inf
    clean = np.where(np.isnan(values), worst, values)
    chosen = clean.argmax(axis=1) if metric == "goodput" else clean.argmin(axis=1)
    return np.asarray(chosen, dtype=np.int64)


class Capture(msgspec.Struct, frozen=True):
    """``value`` = simulated gain / simulated headroom, or None with the reason."""

    value: float | None
    reason: str = ""


def capture(simulated_gain: float | None, headroom: float | None, interval: Interval | None, floor: Floor) -> Capture:
    """How much of the headroom adaptation captures; ``interval`` is headroom's, ``floor`` of the same metric."""
    if simulated_gain is None or headroom is None:
        return Capture(None, "gain or headroom could not be computed")
    if interval is None:
        return Capture(None, "headroom has no interval: nothing to capture is shown")
    if floor.value is None or floor.provisional:
        return Capture(None, f"the floor does not hold yet ({floor.reason}): nothing to capture is shown")
    if interval.lo <= floor.value:
        return Capture(None, "nothing to capture")
    return Capture(simulated_gain / headroom)
