"""Fit bucket boundaries to a percentile of latency instead of the mean run time.

Question. The cheapest boundaries (:mod:`trimtab.mapping.buckets`) minimise the sum of run times, and may still leave a
longer p95: they save on the many small requests and pad the few large ones, behind which everybody waits.

Theory. For one worker and Poisson arrivals of rate r the mean wait is r E[S^2] / (2 (1 - r E[S])) (Pollaczek,
Khinchine): what a set of boundaries does to the queue, it does through the first two moments of the run time S. Both
are sums over requests, so for any w >= 0

    E[S] + w E[S^2]   =   mean over requests of  cost(end) + w cost(end)^2

is minimised exactly by the same dynamic programme, with another price. As w rises from 0 the solutions walk along the
lower hull of what can be had in (E[S], E[S^2]): from the cheapest boundaries to those that are finest among the
expensive sizes. Which of them has the least percentile is not left to a formula: recorded arrivals are burstier than
Poisson's. Each is run through the queue itself on the recorded arrivals, first come, first served, one request at a
time (Lindley's recursion; for several workers Kiefer's and Wolfowitz's): the least percentile wins, of equals the
cheapest.

The cheapest boundaries are among those that compete (w = 0), so on the traffic of the fit the percentile is never worse
than theirs.

Limits. Boundaries inside the hull are not looked at. No batching, no first runs, no other order; the machine's
simulation judges these. A percentile of one recording wanders: with few requests the winner may owe its place to luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.mapping.buckets import BucketFit, Cost, measure, sweep, values

WEIGHTS = (0.0, *(2.0**power for power in range(-6, 7)))
"""w, in units of 1 / (the mean ms of the cheapest boundaries)."""


def fit(
    dims: NDArray[np.int64],
    arrivals: NDArray[np.int64],
    cost: Cost,
    most: int,
    *,
    quantile: float = 0.95,
    workers: int = 1,
    limit: int | None = None,
) -> tuple[BucketFit, ...]:
    """For each number of buckets ``1 .. most`` the boundaries with the least ``quantile`` of latency.

    ``dims`` and ``arrivals`` (ns, not falling) are of the same requests; ``cost`` is in ms, ``limit`` as in
    :func:`~trimtab.mapping.buckets.sweep`.
    """
    found, counts = values(dims)
    flat = dims.reshape(-1)
    unit = sweep(dims, cost, most, limit=limit)[-1].mean_ms
    best: list[tuple[float, float, BucketFit]] = []
    for weight in WEIGHTS:
        for at, row in enumerate(sweep(dims, _priced(cost, weight / unit), most, limit=limit)):
            fitted = replace(measure("fitted", found, counts, row.boundaries, cost), family="tail")
            tail = latency_ms(flat, arrivals, fitted.boundaries, cost, quantile, workers)
            if at == len(best):
                best.append((tail, fitted.total_ms, fitted))
            elif (tail, fitted.total_ms) < best[at][:2]:
                best[at] = (tail, fitted.total_ms, fitted)
    return tuple(row for _, _, row in best)


def latency_ms(
    sizes: NDArray[np.int64],
    arrivals: NDArray[np.int64],
    boundaries: Sequence[int],
    cost: Cost,
    quantile: float,
    workers: int = 1,
) -> float:
    """The ``quantile`` of latency, ms, if requests of ``sizes`` are padded up to ``boundaries`` and served in turn."""
    prices = np.array([cost(end) for end in boundaries])
    run = prices[np.searchsorted(boundaries, sizes)]
    took = (_one if workers == 1 else _several)(arrivals / 1e6, run, workers)
    return float(np.quantile(took, quantile, method="inverted_cdf"))


def _priced(cost: Cost, weight: float) -> Cost:
    def price(end: int) -> float:
        ms = cost(end)
        return ms + weight * ms * ms

    return price


def _one(arrivals: NDArray[np.float64], run: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    """One worker: request i ends at max over j <= i of (arrival j + all run time from j to i)."""
    done = np.cumsum(run)
    ends: NDArray[np.float64] = np.maximum.accumulate(arrivals - done + run) + done
    return ends - arrivals


def _several(arrivals: NDArray[np.float64], run: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    free = [0.0] * workers
    took = []
    for arrival, ms in zip(arrivals.tolist(), run.tolist(), strict=True):
        end = max(arrival, free[0]) + ms
        heapreplace(free, end)
        took.append(end - arrival)
    return np.array(took)
