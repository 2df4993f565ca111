"""Boundaries for a percentile of latency instead of the mean run time: is that another fit, and a better one?

The cheapest boundaries (mapping/buckets) minimise the sum of run times, and may still leave a longer p95: they save on
the many small requests and pad the few large ones, behind which everybody waits.

For one worker and Poisson arrivals of rate r the mean wait is r E[S^2] / (2 (1 - r E[S])) (Pollaczek, Khinchine): what
boundaries do to the queue, they do through the first two moments of the run time S. Both are sums over requests, so for
any w >= 0

    E[S] + w E[S^2]   =   mean over requests of  cost(end) + w cost(end)^2

is minimised exactly by the same dynamic programme, with another price. As w rises from 0 the solutions walk along the
lower hull of what can be had in (E[S], E[S^2]), from the cheapest boundaries to those that are finest among the
expensive sizes. Which of them has the least percentile is not left to a formula: recorded arrivals are burstier than
Poisson's. Each is run through the queue itself on the recorded arrivals, first come, first served, one request at a
time (Lindley's recursion): the least percentile wins, of equals the cheapest. The cheapest boundaries compete too (w =
0), so on the traffic of the fit the percentile is never worse than theirs.

Boundaries inside the hull are not looked at. A percentile of one recording wanders: with few requests the winner may
owe its place to luck.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.mapping.buckets import Cost, sweep

WEIGHTS = (0.0, *(2.0**power for power in range(-6, 7)))
"""w, in units of 1 / (the mean ms of the cheapest boundaries)."""
Ends = tuple[int, ...]


def fit(
    sizes: NDArray[np.int64], arrivals: NDArray[np.int64], cost: Cost, most: int, *, limit: int, quantile: float = 0.95
) -> tuple[Ends, ...]:
    """For each number of buckets ``1 .. most`` the boundaries with the least ``quantile`` of latency.

    ``sizes`` and ``arrivals`` (ns, not falling) are of the same requests; ``cost`` is in ms.
    """
    unit = sweep(sizes, cost, most, limit=limit)[-1].mean_ms
    best: list[tuple[float, float, Ends]] = []
    for weight in WEIGHTS:
        for at, row in enumerate(sweep(sizes, priced(cost, weight / unit), most, limit=limit)):
            run = run_ms(sizes, row.boundaries, cost)
            found = (float(np.quantile(latency_ms(arrivals, run), quantile, method="inverted_cdf")), float(run.sum()))
            if at == len(best):
                best.append((*found, row.boundaries))
            elif found < best[at][:2]:
                best[at] = (*found, row.boundaries)
    return tuple(ends for *_, ends in best)


def priced(cost: Cost, weight: float) -> Cost:
    """ms + ``weight`` ms^2."""

    def price(end: int) -> float:
        ms = cost(end)
        return ms + weight * ms * ms

    return price


def run_ms(sizes: NDArray[np.int64], ends: Sequence[int], cost: Cost) -> NDArray[np.float64]:
    """What each request runs for when it is padded up to the next of ``ends``."""
    return np.array([cost(end) for end in ends])[np.searchsorted(ends, sizes)]


def latency_ms(arrivals: NDArray[np.int64], run: NDArray[np.float64]) -> NDArray[np.float64]:
    """One worker: request i ends at the largest over j <= i of (arrival j + all run time from j to i)."""
    due, done = arrivals / 1e6, np.cumsum(run)
    ends: NDArray[np.float64] = np.maximum.accumulate(due - done + run) + done
    return ends - due
