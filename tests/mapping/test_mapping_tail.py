"""Boundaries for a percentile: literal queues, and what holds for every traffic."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.mapping import buckets, tail

MS = 1_000_000


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def every(ms: int, count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int64) * ms * MS


@pytest.mark.parametrize(
    ("workers", "latencies"),
    [
        (1, [4.0, 7.0, 5.0, 1.0]),  # the second waits 3 ms for the first, the third 4 ms for both
        (2, [4.0, 4.0, 3.0, 1.0]),  # the third waits 2 ms for the first
    ],
)
def test_a_queue_by_hand(workers: int, latencies: list[float]) -> None:
    arrivals = np.array([0, 1, 4 - workers + 1, 20], dtype=np.int64) * MS
    sizes = np.array([4, 4, 1, 1])
    if workers == 2:
        arrivals = np.array([0, 1, 2, 20], dtype=np.int64) * MS
    found = [tail.latency_ms(sizes[: n + 1], arrivals[: n + 1], (1, 4), float, 1.0, workers) for n in range(sizes.size)]
    assert found == np.maximum.accumulate(latencies).tolist()


def test_a_boundary_goes_where_everybody_waits() -> None:
    """Nine small requests follow each large one. The cheapest second boundary saves the small ones 1 ms each; the one
    that shortens the large run spares all of them a longer wait."""
    sizes = [90, 1, 1, 1, 2, 2, 2, 2, 2, 2] * 30 + [100]
    arrivals = every(12, len(sizes))
    cheapest = buckets.fit(column(sizes), float, 3)
    best = tail.fit(column(sizes), arrivals, float, 3)[-1]
    assert (cheapest, best.boundaries, best.family) == ((2, 90, 100), (2, 90, 100), "tail")
    two, spared = buckets.fit(column(sizes), float, 2), tail.fit(column(sizes), arrivals, float, 2)[-1]
    assert (two, spared.boundaries) == ((2, 100), (2, 100))


TRAFFIC = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=2, max_size=40)


@given(TRAFFIC, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.5, 0.95]))
@settings(deadline=None, max_examples=60)
def test_it_lies_between_the_cheapest_boundaries_and_the_best_of_all(
    traffic: list[tuple[int, int]], k: int, workers: int, quantile: float
) -> None:
    sizes, gaps = (np.array(each, dtype=np.int64) for each in zip(*traffic, strict=True))
    arrivals = np.cumsum(gaps) * MS

    def judged(ends: tuple[int, ...]) -> float:
        return tail.latency_ms(sizes, arrivals, ends, float, quantile, workers)

    row = tail.fit(sizes, arrivals, float, k, quantile=quantile, workers=workers)[-1]
    distinct = np.unique(sizes).tolist()
    all_sets = [
        (*lower, distinct[-1]) for n in range(min(k, len(distinct))) for lower in combinations(distinct[:-1], n)
    ]
    assert min(map(judged, all_sets)) <= judged(row.boundaries) <= judged(buckets.fit(sizes, float, k))
    assert len(row.boundaries) <= k
    assert row.total_ms == pytest.approx(sum(min(e for e in row.boundaries if e >= s) for s in sizes.tolist()))


@given(TRAFFIC)
@settings(deadline=None, max_examples=60)
def test_both_queues_agree_for_one_worker(traffic: list[tuple[int, int]]) -> None:
    run, gaps = (np.array(each, dtype=np.float64) for each in zip(*traffic, strict=True))
    arrivals = np.cumsum(gaps)
    assert tail._one(arrivals, run, 1) == pytest.approx(tail._several(arrivals, run, 1))
