"""Profile -> service times: recorded timings in, literal ns out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileOptions, CompileProfile, FirstRun, Inspection, ServedRun, ShapeTiming
from trimtab.errors import DataError
from trimtab.mapping.cost import Again, CostModel, First

Grid = dict[tuple[int, ...], tuple[int, ...]]


def profile(grid: Grid, entry: str = "d", first: dict[tuple[int, ...], int] | None = None) -> CompileProfile:
    return CompileProfile(
        plan="p",
        entry=entry,
        backend="null",
        versions={},
        options=CompileOptions(),
        compile_ns=1,
        memory_bytes=1,
        peak_bytes=1,
        inspection=Inspection(executed=(1, 1), operators=(), operators_before=0),
        timings=tuple(
            ShapeTiming(executed=at, first_ns=(first or {}).get(at, walls[0]), wall_ns=walls, cpu_ns=walls)
            for at, walls in grid.items()
        ),
    )


def dynamic(lo: tuple[int, ...], hi: tuple[int, ...], batch: tuple[int, int] = (1, 1)) -> Entry:
    return Entry(id="d", kind="dynamic", lo=lo, hi=hi, batch=batch)


LINE: Grid = {(1, 100): (1000, 1200, 1100), (1, 200): (2000,), (1, 400): (6000, 5000)}


@pytest.mark.parametrize(
    ("width", "warm", "estimate", "support"),
    [
        (100, 1100, 1100, "measured"),  # the median of the raw times
        (150, 1550, 1550, "interpolated"),
        (200, 2000, 2000, "measured"),
        (300, 3750, 3750, "interpolated"),
        (400, 5500, 5500, "measured"),
        (500, 7250, 7250, "none"),  # the last line continued, inside what the entry covers
        (501, 0, 7268, "none"),  # outside: no promise, only an estimate
        (60, 740, 740, "none"),
        (49, 0, 641, "none"),
    ],
)
def test_the_line_through_the_medians(width: int, warm: int, estimate: int, support: str) -> None:
    costs = CostModel.from_profiles([profile(LINE)], [dynamic((50,), (500,))])
    at = (1, width)
    assert (costs.warm("d", at), costs.estimate("d", at), costs.support("d", at)) == (warm, estimate, support)


def test_an_entry_that_is_not_known_is_promised_inside_its_measured_points() -> None:
    costs = CostModel.from_profiles([profile(LINE)])
    assert [costs.warm("d", (1, w)) for w in (99, 100, 300, 400, 401)] == [0, 1100, 3750, 5500, 0]


def test_a_line_that_would_reach_zero_promises_nothing() -> None:
    costs = CostModel.from_profiles([profile({(1, 10): (100,), (1, 20): (300,)})], [dynamic((1,), (30,))])
    assert [costs.warm("d", (1, w)) for w in (10, 6, 5, 4)] == [100, 20, 0, 0]


@pytest.mark.parametrize(
    ("at", "warm"),
    [
        ((1, 150), 150),
        ((3, 150), 450),  # the row of 2 says 300, the row of 4 says 600
        ((3, 300), 900),  # 600 and 1200; the row of 4 has its own widths
        ((4, 120), 480),
        ((8, 150), 1200),  # beyond 4 the last two rows continue
        ((9, 150), 0),  # more than the entry was compiled for
    ],
)
def test_a_ragged_grid_is_read_row_by_row(at: tuple[int, ...], warm: int) -> None:
    grid: Grid = {
        (1, 100): (100,), (1, 200): (200,), (1, 300): (300,),
        (2, 100): (200,), (2, 300): (600,),
        (4, 50): (200,), (4, 400): (1600,),
    }  # fmt: skip
    assert CostModel.from_profiles([profile(grid)], [dynamic((50,), (400,), (1, 8))]).warm("d", at) == warm


def test_an_axis_with_one_value_says_nothing_of_others() -> None:
    costs = CostModel.from_profiles([profile(LINE)], [dynamic((50,), (500,), (1, 8))])
    assert (costs.warm("d", (2, 100)), costs.estimate("d", (2, 100)), costs.support("d", (2, 100))) == (0, 0, "none")


def test_a_bucket_runs_only_at_its_own_dims() -> None:
    bucket = Entry(id="d", kind="bucket", lo=(1,), hi=(200,), batch=(1, 4))
    costs = CostModel.from_profiles([profile({(1, 200): (10,), (4, 200): (40,), (1, 100): (5,)})], [bucket])
    assert [costs.warm("d", at) for at in [(1, 200), (2, 200), (1, 100), (5, 200)]] == [10, 20, 0, 0]


def test_the_excess_of_a_first_run_is_that_of_the_nearest_point() -> None:
    costs = CostModel.from_profiles([profile(LINE, first={(1, 100): 9100, (1, 400): 5})], [dynamic((50,), (500,))])
    assert [costs.first_excess("d", (1, w)) for w in (100, 140, 142, 400)] == [8000, 8000, 0, 0]
    assert costs.expected("d", (1, 140), True) == 1460 + 8000
    assert costs.expected("d", (1, 140), False) == 1460
    assert costs.expected("d", (1, 40), True) == 0  # no promise is no promise


def test_new_shapes_that_the_prelude_ran_say_what_a_first_run_is_expected_to_cost() -> None:
    met = tuple(FirstRun(executed=(1, at), ns=ns) for at, ns in ((150, 9950), (300, 3950), (200, 1900), (250, 3475)))
    known = msgspec.structs.replace(profile(LINE, first={(1, 100): 9100}), first_runs=met)
    costs = CostModel.from_profiles([known], [dynamic((50,), (500,))])
    assert costs.first_excesses("d", (1, 150)) == (8400,)  # its own first run
    assert costs.first_excesses("d", (1, 200)) == (0,)  # faster than a warm one: costs nothing more
    assert costs.first_excesses("d", (1, 100)) == (0, 600)  # not among them: like the later half
    assert (costs.warm("d", (1, 100)), costs.expected("d", (1, 100), True)) == (1100, 1400)


def test_a_prelude_is_kept_as_what_runs_took_beyond_their_fitted_value() -> None:
    again = ServedRun(executed=(1, 150), ns=1700, idle_ns=9, dispatch_ns=4, completion_ns=5)
    met = FirstRun(executed=(1, 200), ns=1900)
    known = msgspec.structs.replace(profile(LINE), first_runs=(met,), served=(again,))
    found = CostModel.from_profiles([known]).in_service("d")
    assert found.firsts == (First((1, 200), -100),)
    assert found.again == (Again((1, 150), 150, 9, (4, 5)),)
    assert CostModel.from_profiles([known]).in_service("unknown") == ((), ())


def test_ratios_are_raw_over_fitted() -> None:
    costs = CostModel.from_profiles([profile(LINE)])
    assert costs.ratios("d", (1, 110)).tolist() == [1000 / 1100, 1200 / 1100, 1.0]
    assert costs.ratios("unknown", (1, 110)).tolist() == []
    assert (costs.warm("unknown", (1, 110)), costs.support("unknown", (1, 110))) == (0, "none")


@pytest.mark.parametrize(
    ("profiles", "sentence"),
    [
        ([profile(LINE), profile(LINE)], "two profiles of the entry 'd'"),
        ([profile({(1, 100): (0, 5)})], "no usable warm times at (1, 100)"),
        ([profile({(1, 100): (5,), (1,): (5,)})], "different numbers of dims"),
    ],
)
def test_profiles_that_contradict_themselves_are_refused(profiles: list[CompileProfile], sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        CostModel.from_profiles(profiles)
    assert sentence in str(refused.value)


axis = st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True).map(sorted)


@given(axis, axis, axis, st.data())
@settings(deadline=None, max_examples=60)
def test_on_a_tensor_grid_it_is_multilinear(
    sizes: list[int], ws: list[int], hs: list[int], data: st.DataObject
) -> None:
    """A product of lines is multilinear, so reading between its points gives the product back."""
    grid: Grid = {(n, w, h): (n * (50 + w) * (9 + h),) for n in sizes for w in ws for h in hs}
    costs = CostModel.from_profiles([profile(grid)])
    at = tuple(data.draw(st.integers(min(a), max(a))) for a in (sizes, ws, hs))
    n, w, h = at
    assert abs(costs.warm("d", at) - n * (50 + w) * (9 + h)) <= 1
    assert costs.support("d", at) == ("measured" if at in grid else "interpolated")


@given(st.dictionaries(st.integers(1, 50), st.integers(1, 10**9), min_size=2, max_size=6), st.data())
@settings(deadline=None)
def test_between_two_points_the_value_is_monotone(points: dict[int, int], data: st.DataObject) -> None:
    costs = CostModel.from_profiles([profile({(1, w): (t,) for w, t in points.items()})])
    widths = sorted(points)
    i = data.draw(st.integers(0, len(widths) - 2))
    values = [costs.warm("d", (1, w)) for w in range(widths[i], widths[i + 1] + 1)]
    assert values in (sorted(values), sorted(values, reverse=True))
