"""Entries of two dims: literal fits, and the exact answer against brute force."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import StudyError
from trimtab.mapping import boxes


@pytest.fixture(autouse=True, scope="module")
def _solver() -> None:
    if os.environ.get("CI") != "true":
        pytest.importorskip("scipy", reason="scipy is not installed: pip install 'trimtab[search]'")


def area(box: tuple[int, ...]) -> float:
    """1 ms and a hundredth of the area."""
    return 1.0 + box[0] * box[1] / 100


def shapes(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_wide_and_tall_requests_get_a_box_each() -> None:
    found = boxes.fit(shapes((10, 100), (12, 90), (100, 10), (95, 12)), area, 2)
    assert found.boxes == ((12, 100), (100, 12))
    assert found.total_ms == pytest.approx(4 * area((12, 100)))


def test_one_box_covers_everything() -> None:
    found = boxes.fit(shapes((10, 100), (100, 10)), area, 1)
    assert found.boxes == ((100, 100),)
    assert found.padding == pytest.approx(0.9)


def test_an_entry_that_does_not_pay_for_itself_is_left_out() -> None:
    rows = shapes((10, 10), (20, 20))
    assert len(boxes.fit(rows, area, 2).boxes) == 2
    assert len(boxes.fit(rows, area, 2, price_ms=area((20, 20)) - area((10, 10)) + 0.1).boxes) == 1


def test_refusals_say_why() -> None:
    with pytest.raises(StudyError, match="without requests"):
        boxes.fit(np.zeros((0, 2), dtype=np.int64), area, 1)
    with pytest.raises(StudyError, match="Cannot fit 0"):
        boxes.fit(shapes((1, 1)), area, 0)
    with pytest.raises(StudyError, match="beyond the limit 9"):
        boxes.fit(shapes((10, 1)), area, 1, limit=(9, 9))
    with pytest.raises(StudyError, match="No box covers the shape"):
        boxes.measure(shapes((10, 1)), [(9, 9)], area)


POINTS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=8)


@given(POINTS, st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_the_fit_equals_brute_force(rows: list[tuple[int, int]], k: int) -> None:
    dims = shapes(*rows)
    corners = list(itertools.product(np.unique(dims[:, 0]).tolist(), np.unique(dims[:, 1]).tolist()))
    best = min(
        boxes.measure(dims, list(group), area).total_ms
        for size in range(1, k + 1)
        for group in itertools.combinations(corners, size)
        if all(any(a <= x and b <= y for x, y in group) for a, b in rows)
    )
    assert boxes.fit(dims, area, k).total_ms == pytest.approx(best)


@given(POINTS, st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_another_box_never_costs_more(rows: list[tuple[int, int]], k: int) -> None:
    dims = shapes(*rows)
    assert boxes.fit(dims, area, k + 1).total_ms <= boxes.fit(dims, area, k).total_ms + 1e-9
