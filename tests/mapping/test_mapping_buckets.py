"""Bucket boundaries: literal answers, and the laws that make the fit trustworthy."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import StudyError
from trimtab.mapping import buckets, formulas

WIDTHS = st.lists(st.integers(1, 60), min_size=1, max_size=14)
STEPS = st.lists(st.floats(0.0, 5.0), min_size=61, max_size=61)
"""Increments of a cost that never falls."""


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def rising(steps: list[float]) -> buckets.Cost:
    table = np.cumsum(steps)
    return lambda hi: float(table[hi])


def brute_force(values: list[int], cost: buckets.Cost, k: int) -> float:
    distinct = sorted(set(values))
    best = float("inf")
    for size in range(1, min(k, len(distinct)) + 1):
        for lower in combinations(distinct[:-1], size - 1):
            ends = (*lower, distinct[-1])
            best = min(best, sum(cost(next(e for e in ends if e >= v)) for v in values))
    return best


def test_two_clusters_get_a_boundary_each() -> None:
    assert buckets.fit(column([10, 10, 11, 100, 101]), float, 2) == (11, 101)


def test_a_flat_cost_needs_one_bucket_only() -> None:
    assert buckets.fit(column([10, 20, 30]), lambda hi: 7.0, 3) == (30,)


def test_measured_steps_beat_even_spacing() -> None:
    """The kernel is as fast at 64 as at 33, and twice as slow beyond: the boundary belongs at 64."""
    cost = {33: 1.0, 48: 1.0, 64: 1.0, 65: 2.0, 96: 2.0}
    row = buckets.sweep(column([33, 48, 64, 65, 96]), lambda hi: cost[hi], 2)[1]
    assert (row.boundaries, row.total_ms) == ((64, 96), 7.0)


def test_boundaries_round_up_and_stop_at_the_limit() -> None:
    assert buckets.fit(column([10, 90, 97]), float, 2, multiple=32, limit=100) == (32, 100)


def test_padding_is_the_share_of_executed_positions() -> None:
    row = buckets.sweep(column([50, 100]), float, 1)[0]
    assert (row.padding, row.mean_ms, row.total_ms) == (0.25, 100.0, 200.0)


def test_formulas_as_they_are_known() -> None:
    assert formulas.powers_of_two(25, 300) == (32, 64, 128, 256, 512)
    assert formulas.powers_of_two(25, 300, limit=400) == (32, 64, 128, 256, 400)
    assert formulas.powers_of_two(64, 64) == (64,)
    assert formulas.linear(0, 100, 4) == (25, 50, 75, 100)
    assert formulas.exponential(1, 1000, 3) == (10, 100, 1000)
    assert buckets.exact(column([3, 5, 5]), float).boundaries == (3, 5)
    assert buckets.dynamic(column([3, 5, 5]), float).total_ms == 13.0


@pytest.mark.parametrize(
    ("high", "step", "share", "most", "ends"),
    [
        (64, 8, 0.0, 64, (8, 16, 24, 32, 40, 48, 56, 64)),  # no padding is forgiven: every step stays
        (64, 8, 0.5, 64, (8, 16, 32, 64)),  # half may be padding: each twice the one before
        (64, 8, 0.5, 16, (8, 16, 32, 48, 64)),  # never more than 16 positions, so far apart large ones come closer
        (100, 128, 0.25, None, (100,)),  # a step beyond the largest size leaves that alone
    ],
)
def test_the_padding_aware_formula(high: int, step: int, share: float, most: int | None, ends: tuple[int, ...]) -> None:
    assert formulas.padding_aware(high, step, share=share, most=most) == ends


@settings(deadline=None, max_examples=80)
@given(st.integers(2, 400), st.sampled_from([4, 8, 16, 32]), st.floats(0.0, 0.5))
def test_the_padding_aware_formula_keeps_its_limits(high: int, step: int, share: float) -> None:
    ends = formulas.padding_aware(high, step, share=share)
    most = -(-high // 4)
    assert ends[-1] == high
    for below, end in pairwise(ends):
        padding = end - below - 1
        assert padding < step or padding <= most
        assert padding < step or padding <= share * (end + step)


def test_the_comparison_names_each_family() -> None:
    rows = buckets.compare(column([25, 192, 640]), float, 2, dynamic_cost=lambda w: w + 1.0)
    assert [(r.family, r.count) for r in rows] == [
        ("fitted", 1), ("fitted", 2), ("linear", 1), ("exponential", 1), ("linear", 2), ("exponential", 2),
        ("powers-of-two", 6), ("padding-aware", 2), ("exact", 3), ("dynamic", 1),
    ]  # fmt: skip
    assert rows[-1].total_ms == 25 + 192 + 640 + 3


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: buckets.fit(np.ones((3, 2), dtype=np.int64), float, 2), "one dynamic dim"),
        (lambda: buckets.fit(column([]), float, 2), "without requests"),
        (lambda: buckets.fit(column([1]), float, 0), "0 buckets"),
        (lambda: buckets.fit(column([9]), float, 1, limit=8), "beyond the limit 8"),
        (lambda: buckets.fit(column([9]), float, 1, multiple=0), "multiples of 0"),
        (lambda: buckets.measure("linear", np.array([9]), np.array([1]), (8,), float), "covers the value 9"),
    ],
)
def test_refusals_say_why(call: object, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        call()  # type: ignore[operator]


@settings(deadline=None, max_examples=80)
@given(WIDTHS, STEPS, st.integers(1, 5))
def test_the_fit_equals_brute_force(values: list[int], steps: list[float], k: int) -> None:
    cost = rising(steps)
    row = buckets.sweep(column(values), cost, k)[-1]
    assert row.count <= k
    assert row.total_ms == pytest.approx(brute_force(values, cost, k))


@settings(deadline=None, max_examples=80)
@given(WIDTHS, STEPS, st.integers(1, 6))
def test_no_formula_of_the_same_count_is_cheaper(values: list[int], steps: list[float], k: int) -> None:
    cost, dims = rising(steps), column(values)
    found, counts = buckets.values(dims)
    fitted = {n + 1: row.total_ms for n, row in enumerate(buckets.sweep(dims, cost, max(k, 7)))}
    low, high = min(values), max(values)
    for ends in (
        formulas.linear(low, high, k),
        formulas.exponential(low, high, k),
        formulas.powers_of_two(low, high, limit=60),
    ):
        rival = buckets.measure("linear", found, counts, ends, cost)
        assert fitted[len(ends)] <= rival.total_ms + 1e-9


@settings(deadline=None, max_examples=80)
@given(WIDTHS, STEPS, st.integers(1, 7))
def test_another_bucket_never_costs_more(values: list[int], steps: list[float], multiple: int) -> None:
    rows = buckets.sweep(column(values), rising([*steps, *steps[:10]]), 8, multiple=multiple)
    totals = [row.total_ms for row in rows]
    assert all(more <= fewer + 1e-9 for fewer, more in pairwise(totals))
    assert all(row.boundaries[-1] >= max(values) for row in rows)


@settings(deadline=None, max_examples=40)
@given(WIDTHS, STEPS)
def test_as_many_buckets_as_values_cost_what_exact_shapes_cost(values: list[int], steps: list[float]) -> None:
    cost, dims = rising(steps), column(values)
    assert buckets.fit(dims, cost, 14)[-1] == max(values)
    assert buckets.sweep(dims, cost, 14)[-1].total_ms == pytest.approx(buckets.exact(dims, cost).total_ms)
