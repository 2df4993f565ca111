"""Boundaries for a percentile: a queue by hand, and what holds for every traffic."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import tail

from trimtab.mapping import buckets

MS = 1_000_000
TRAFFIC = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=2, max_size=40)


def test_a_queue_by_hand() -> None:
    """Runs of 4, 4, 1 and 1 ms, due at 0, 1, 4 and 20: the third waits 4 ms for both before it."""
    run = tail.run_ms(np.array([3, 4, 1, 1]), (1, 4), float)
    assert run.tolist() == [4, 4, 1, 1]
    assert tail.latency_ms(np.array([0, 1, 4, 20]) * MS, run).tolist() == [4, 7, 5, 1]


@given(TRAFFIC)
@settings(deadline=None)
def test_it_is_the_queue_that_a_loop_serves(traffic: list[tuple[int, int]]) -> None:
    run, gaps = (np.array(each, dtype=np.float64) for each in zip(*traffic, strict=True))
    free, took = 0.0, []
    for due, ms in zip(np.cumsum(gaps).tolist(), run.tolist(), strict=True):
        free = max(free, due) + ms
        took.append(free - due)
    assert tail.latency_ms(np.cumsum(gaps).astype(np.int64) * MS, run) == pytest.approx(took)


@given(TRAFFIC, st.integers(1, 4), st.sampled_from([0.5, 0.95]))
@settings(deadline=None, max_examples=60)
def test_it_lies_between_the_cheapest_boundaries_and_the_best_of_all(
    traffic: list[tuple[int, int]], k: int, quantile: float
) -> None:
    sizes, gaps = (np.array(each, dtype=np.int64) for each in zip(*traffic, strict=True))
    arrivals, distinct = np.cumsum(gaps) * MS, np.unique(sizes).tolist()

    def judged(ends: tuple[int, ...]) -> float:
        latency = tail.latency_ms(arrivals, tail.run_ms(sizes, ends, float))
        return float(np.quantile(latency, quantile, method="inverted_cdf"))

    found = tail.fit(sizes, arrivals, float, k, limit=distinct[-1], quantile=quantile)[-1]
    every = [(*low, distinct[-1]) for n in range(min(k, len(distinct))) for low in combinations(distinct[:-1], n)]
    assert len(found) <= k
    assert min(map(judged, every)) - 1e-9 <= judged(found) <= judged(buckets.fit(sizes, float, k)) + 1e-9


def test_the_price_weighs_the_square() -> None:
    assert [tail.priced(float, 0.5)(ms) for ms in (0, 2, 10)] == [0, 4, 60]
