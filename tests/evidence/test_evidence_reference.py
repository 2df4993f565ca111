"""The reference set: the cheapest way in which known entries serve the members of a batch."""

from __future__ import annotations

import math

from evidence_cases import Line, bucket, dynamic, profile
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.evidence.score.reference import ReferenceSet, cheapest, halves

LINE = Line(fixed=1.0, slope=0.01)  # a width of 100 takes 2 ms alone


def test_the_reference_set_takes_the_cheapest_way() -> None:
    both = ReferenceSet((bucket(200), dynamic("dyn", batch=(1, 1))), Line(b200=0.4), 8)
    assert both.best([(100,)]) == 1_200_000  # bucket: 0.4 x (1 + 2) ms; dynamic: 2 ms
    assert both.best([(300,)]) == 4_000_000  # outside the bucket
    assert both.best([(100,), (150,)]) == 2_000_000  # one batch in the bucket: 0.4 x (1 + 4) ms
    assert both.best([(100,), (100,), (300,)]) == 6_000_000  # that, and one alone
    assert both.best([(2000,)]) == 0  # nobody


def test_n_max_bounds_a_batch_of_the_reference_set() -> None:
    free, bound = (ReferenceSet((dynamic(),), LINE, n) for n in (8, 1))
    assert free.best([(100,), (100,)]) == 3_000_000
    assert bound.best([(100,), (100,)]) == 4_000_000


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 6))
@settings(deadline=None)
def test_the_partition_is_the_best_of_all_contiguous_ones(sizes: list[int], n_max: int) -> None:
    members = tuple((size,) for size in sorted(sizes))

    def cost(group: tuple[tuple[int, ...], ...]) -> tuple[int, int]:
        ns = 0 if (len(group), group[-1][0]) == (2, 5) else 3 + len(group) * group[-1][0]
        return ns, ns

    def slow(rest: tuple[tuple[int, ...], ...]) -> float:
        if not rest:
            return 0
        ways = [
            cost(rest[:k])[0] + slow(rest[k:]) for k in range(1, min(n_max, len(rest)) + 1) if cost(rest[:k])[0] > 0
        ]
        return min(ways, default=math.inf)

    assert (cheapest(members, cost, n_max) or math.inf) == slow(members)


def test_the_winner_is_chosen_on_one_half_and_timed_on_the_other() -> None:
    # entry a looks best in the even repeats (1 ms) and takes 9 ms in the odd ones
    lucky = profile({(1, 100): [1, 9] * 6}, entry="a")
    steady = profile({(1, 100): [2, 2] * 6}, entry="b", plan="other")
    found = ReferenceSet.from_profiles([dynamic("a")], [lucky], 1) | ReferenceSet.from_profiles(
        [dynamic("b")], [steady], 1
    )
    assert found.best([(100,)]) == 9_000_000


def test_halves_keep_everything_where_there_is_too_little() -> None:
    even, odd = halves([profile({(1, 10): [1, 2, 3, 4, 5], (1, 20): [1, 2, 3]})])
    assert [t.wall_ns for t in even[0].timings] == [
        (1_000_000, 3_000_000, 5_000_000),
        (1_000_000, 2_000_000, 3_000_000),
    ]
    assert [t.wall_ns for t in odd[0].timings] == [(2_000_000, 4_000_000), (1_000_000, 2_000_000, 3_000_000)]
