"""Exact apportioning, and fast replays against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.evidence.attribute.replays import connected, interrupted, many, one, overlapping, ranked, two
from trimtab.evidence.attribute.split import Members, apportion, muldiv

BIG = st.integers(0, 2**59)


def ns(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(st.lists(st.tuples(BIG, BIG, BIG), min_size=1, max_size=8))
@settings(deadline=None)
def test_muldiv_is_exact_beyond_64_bits(triples: list[tuple[int, int, int]]) -> None:
    rows = [(min(a, 2**57), min(b, d), max(d, 1)) for a, b, d in triples]
    a, b, d = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    assert muldiv(a, b, d).tolist() == [x * y // z for x, y, z in rows]


def test_muldiv_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(OverflowError, match="below 2\\^61"):
        muldiv(ns(1), ns(1), ns(2**62))
    assert muldiv(ns(), ns(), ns()).tolist() == []


@given(st.integers(0, 2**50), st.lists(st.integers(0, 2**40), min_size=1, max_size=6))
@settings(deadline=None)
def test_pieces_sum_exactly_and_each_is_within_one_ns(total: int, weights: list[int]) -> None:
    pieces = [int(piece[0]) for piece in apportion(ns(total), [ns(w) for w in weights])]
    whole = sum(weights)
    assert sum(pieces) == (total if whole else 0)
    assert all(abs(piece * whole - total * w) <= whole for piece, w in zip(pieces, weights, strict=True))


def test_members_share_a_batch_to_the_last_ns() -> None:
    members = Members(ns(1, -1, 0, 1, 1), 3)
    assert members.count.tolist() == [1, 3, 0]
    assert members.shares(ns(7, 11, 5)).tolist() == [3, 0, 7, 4, 4]
    assert members.reduce(np.maximum, ns(4, 9, 1, 6, 2), -1).tolist() == [1, 6, -1]


QUEUE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30)


def columns(queue: list[tuple[int, int, int]], unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    gaps, work, kind = (np.array(column, dtype=np.int64) for column in zip(*queue, strict=True))
    return np.cumsum(gaps) * unit, work * unit, kind


@given(QUEUE, st.sampled_from((1, 2**40)))
@settings(deadline=None)
def test_prefix_sums_two_variables_and_the_heap_agree(queue: list[tuple[int, int, int]], unit: int) -> None:
    ready, work, kind = columns(queue, unit)
    assert one(ready, work).tolist() == many(ready, work, 1).tolist()
    assert two(ready, work).tolist() == many(ready, work, 2).tolist()
    everybody = ((0, 1, 2),) * 3
    assert overlapping(ready, work, kind, everybody).tolist() == many(ready, work, 3).tolist()


@given(
    QUEUE, st.sampled_from((((0,), (1,), (2,)), ((0, 1), (1, 2), (0, 1, 2)), ((0, 1, 2),) * 3, ((0,), (0, 1), (1,))))
)
@settings(deadline=None)
def test_by_event_in_order_of_arrival_equals_the_list_schedule(
    queue: list[tuple[int, int, int]], sets: tuple[tuple[int, ...], ...]
) -> None:
    ready, work, kind = columns(queue, 1)
    work = work + 1  # with zero work, several finish at once and the tie is anybody's
    rank = np.arange(len(queue))
    assert ranked(ready, work, kind, sets, rank).tolist() == overlapping(ready, work, kind, sets).tolist()


BLOCKS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 2)), max_size=4)


@given(QUEUE, BLOCKS)
@settings(deadline=None)
def test_outages_by_list_and_by_event_agree(
    queue: list[tuple[int, int, int]], outages: list[tuple[int, int, int]]
) -> None:
    ready, work, kind = columns(queue, 1000)
    begin = int(ready[0]) + 1
    blocks = sorted((begin + t * 1000 + number, length * 1000, w) for number, (t, length, w) in enumerate(outages))
    everybody, rank = ((0, 1, 2),) * 3, np.arange(len(queue))
    by_list = interrupted(ready, work + 1000, kind, everybody, blocks)
    assert by_list.tolist() == ranked(ready, work + 1000, kind, everybody, rank, blocks).tolist()


def test_an_outage_blocks_its_worker_and_no_other() -> None:
    ready, work, kind = ns(0, 10, 12, 30), ns(4, 4, 4, 4), ns(0, 0, 0, 0)
    assert interrupted(ready, work, kind, ((0,),), [(8, 10, 0)]).tolist() == [0, 8, 10, 0]
    assert interrupted(ready, work, kind, ((0, 1),), [(8, 10, 0)]).tolist() == [0, 0, 2, 0]
    assert interrupted(ready, work, kind, ((0, 1),), []).tolist() == [0, 0, 0, 0]


def test_shortest_first_by_rank() -> None:
    waits = ranked(ns(0, 1, 2), ns(10, 8, 3), ns(0, 0, 0), ((0,),), ns(0, 2, 1))
    assert waits.tolist() == [0, 12, 8]


def test_classes_that_share_no_worker_are_apart() -> None:
    groups = connected(((0, 1), (2,), (1, 3), (4,)))
    assert sorted(sorted(group) for group in groups) == [[0, 2], [1], [3]]
