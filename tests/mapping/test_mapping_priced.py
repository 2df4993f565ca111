"""How many entries are enough, once starting and holding them is paid for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.mapping import buckets
from trimtab.mapping.priced import EntryPrice, cheapest, priced

WIDTHS = np.array([10] * 40 + [20] * 30 + [30] * 20 + [40] * 10, dtype=np.int64)
"""100 requests: run exactly they take 2000 ms, all padded to 40 they take 4000."""


def sweep(start_ms: float, **more: float) -> list[tuple[int, float, bool]]:
    rows = priced(buckets.sweep(WIDTHS, float, 4), EntryPrice(start_ms=start_ms, requests=100, memory_mib=10, **more))
    return [(row.fit.count, round(row.total_ms, 6), row.fits) for row in rows]


def test_the_least_total_lies_between_one_entry_and_as_many_as_there_are_shapes() -> None:
    """Boundaries (20, 40): 70 x 20 + 30 x 40 = 2600; (10, 20, 40): 400 + 600 + 1200 = 2200. 300 ms an entry more is
    worth the second and the third, and not the fourth (200 ms)."""
    assert sweep(300) == [(1, 43.0, True), (2, 32.0, True), (3, 31.0, True), (4, 32.0, True)]


@pytest.mark.parametrize(("start_ms", "count"), [(0, 4), (199, 4), (201, 3), (399, 3), (401, 2), (1399, 2), (1401, 1)])
def test_the_dearer_a_start_the_fewer_entries(start_ms: float, count: int) -> None:
    rows = priced(buckets.sweep(WIDTHS, float, 4), EntryPrice(start_ms=start_ms, requests=100, memory_mib=0))
    best = cheapest(rows)
    assert best is not None
    assert best.fit.count == count


def test_memory_is_a_limit() -> None:
    rows = priced(
        buckets.sweep(WIDTHS, float, 4),
        EntryPrice(start_ms=0, requests=100, memory_mib=10, held_mib=100, limit_mib=125),
    )
    assert [(row.memory_mib, row.fits) for row in rows] == [(110, True), (120, True), (130, False), (140, False)]
    best = cheapest(rows)
    assert best is not None
    assert best.fit.count == 2


def test_where_nothing_fits_nothing_is_cheapest() -> None:
    price = EntryPrice(start_ms=0, requests=100, memory_mib=10, limit_mib=5)
    assert cheapest(priced(buckets.sweep(WIDTHS, float, 4), price)) is None


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 3000), st.floats(1, 1e6))
def test_no_number_of_entries_is_cheaper_than_the_cheapest(start_ms: float, requests: float) -> None:
    rows = priced(buckets.sweep(WIDTHS, float, 4), EntryPrice(start_ms=start_ms, requests=requests, memory_mib=0))
    best = cheapest(rows)
    assert best is not None
    assert all(best.total_ms <= row.total_ms for row in rows)
