"""What simulated batches take: recorded runs in, literal ns out."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.events import Dispatch
from trimtab.domain.profile import CompileOptions, CompileProfile, FirstRun, Inspection, ServedRun, ShapeTiming
from trimtab.errors import DataError
from trimtab.mapping.cost import CostModel, First
from trimtab.mapping.service import ALIKE, FEWEST, FIRST, NEAR, RESTED, Firsts, ProfileService, unit_draws

LINE = {100: (1000, 1200, 1100), 200: (2000,), 400: (6000, 5000)}
"""Medians 1100, 2000 and 5500."""


def profile(first: int = 0, batches: tuple[int, ...] = (1,)) -> CompileProfile:
    timings = [
        ShapeTiming(executed=(n, at), first_ns=first or walls[0], wall_ns=walls, cpu_ns=walls)
        for n in batches
        for at, walls in LINE.items()
    ]
    return CompileProfile(
        plan="p", entry="d", backend="null", versions={}, options=CompileOptions(), compile_ns=1, memory_bytes=1,
        peak_bytes=1, inspection=Inspection(executed=(1, 1), operators=(), operators_before=0), timings=tuple(timings),
    )  # fmt: skip


def again(width: int, ns: int, idle: int = 0, exchange: tuple[int, int] = (3, 4)) -> ServedRun:
    return ServedRun(
        executed=(1, width), ns=ns, idle_ns=idle, dispatch_ns=exchange[0], completion_ns=exchange[1]
    )  # fmt: skip


def service(seed: int = 1, **changes: object) -> ProfileService:
    known = msgspec.structs.replace(profile(batches=(1, 2)), **changes)
    return ProfileService(CostModel.from_profiles([known]), seed)


def sent(width: int, *members: int, size: int = 1, first: bool = False, idle: int = 0, worker: int = 0) -> Dispatch:
    return Dispatch(0, 7, worker, "d", "dynamic", members or (0,), (size, width), first, False, False, 0, 0, 0, idle)


def walls(one: ProfileService, **how: int) -> set[int]:
    """What requests 0 to 63 may take."""
    return {one.draw(sent(how["width"], i, size=how.get("size", 1), idle=how.get("idle", 0)))[0] for i in range(64)}


# --- with a prelude -----------------------------------------------------------------------------------------------


def test_a_batch_takes_its_fitted_value_and_what_runs_of_the_prelude_took_beyond_theirs() -> None:
    """Runs at 150 (fitted 1550) took 50 to 1200 ns more: so does a run at 200, whose own repeats took 2000."""
    one = service(served=tuple(again(150, 1550 + more) for more in range(50, 1250, 150)))
    assert walls(one, width=200) == set(range(2050, 3250, 150))
    assert walls(one, width=200, size=2) == {2000}  # of two together the prelude has nothing to say


def test_a_worker_that_has_rested_is_another_worker() -> None:
    busy = tuple(again(100, 1200, exchange=(1, 2)) for _ in range(FEWEST))
    rested = tuple(again(100, 1900, idle=RESTED, exchange=(5, 6)) for _ in range(FEWEST))
    one = service(served=(*busy, *rested))
    assert (walls(one, width=100), walls(one, width=100, idle=RESTED)) == ({1200}, {1900})
    assert one.handling(sent(100, idle=RESTED - 1)) == (1, 2)
    assert one.handling(sent(100, idle=RESTED)) == (5, 6)
    few = service(served=(*busy, *rested[1:]))  # too few of them: all count
    assert walls(few, width=100, idle=RESTED) == {1200, 1900}


def test_the_nearest_in_size_speak() -> None:
    near, far = [again(390, 5500)] * NEAR, [again(110, 9000)] * NEAR
    assert walls(service(served=(*far, *near)), width=400) == {5675}  # at 390 the fitted value is 5325


def test_all_that_are_as_near_speak_and_not_the_first_of_them() -> None:
    """Of a padded entry's runs, which all have its own dims, those count too that came when the machine was slower."""
    runs = [again(400, 5500)] * NEAR + [again(400, 5700)] * NEAR
    assert walls(service(served=(*runs, *[again(390, 9000)] * NEAR)), width=400) == {5500, 5700}


def test_too_few_runs_of_a_prelude_are_not_taken_for_service() -> None:
    few = tuple(again(100, 9000) for _ in range(FEWEST - 1))
    assert walls(service(served=few), width=100) == {1000, 1100, 1200}


def test_the_exchange_is_that_of_the_run_that_is_drawn() -> None:
    one = service(served=tuple(again(100, 2000 + k, exchange=(k, 10 * k)) for k in range(FEWEST)))
    for i in range(32):
        k = one.draw(sent(100, i))[0] - 2000
        assert one.handling(sent(100, i)) == (k, 10 * k)


def test_a_first_run_of_a_larger_batch_takes_what_one_request_took_more_than_a_later_one() -> None:
    """Alone and for the first time 3900 above the fitted 1100, later 900 above it: 3000 for being first."""
    one = service(first_runs=(FirstRun(executed=(1, 100), ns=5000),) * FEWEST, served=(again(100, 2000),) * FEWEST)
    taken = {one.draw(sent(200, i, i + 1, size=2, first=True))[0] for i in range(64)}
    assert taken == {2000 + 3000}
    quick = service(first_runs=(FirstRun(executed=(1, 100), ns=1500),) * FEWEST, served=(again(100, 2000),) * FEWEST)
    assert quick.draw(sent(200, 0, 1, size=2, first=True))[0] == 2000  # never less than a later run


def test_the_exchange_of_a_first_run_is_its_own_and_one_of_its_size() -> None:
    around = [FirstRun(executed=(1, 100 + k), ns=5000 + k, dispatch_ns=k, completion_ns=9 * k) for k in range(FEWEST)]
    one = service(first_runs=tuple(around), served=(again(100, 1100),) * FEWEST)
    new = sent(100, 5, first=True)
    assert (one.draw(new)[0], one.handling(new)) == (5000, (0, 0))
    assert one.handling(sent(107, 6, first=True)) != (3, 4)
    assert one.handling(sent(107, 6)) == (3, 4)  # again
    assert one.handling(sent(100, 7, 8, size=2, first=True)) == (0, 0)  # nothing is known around two together
    bare = tuple(FirstRun(executed=run.executed, ns=run.ns) for run in around)
    assert service(first_runs=bare, served=(again(100, 1100),) * FEWEST).handling(new) == (3, 4)


def firsts(*pairs: tuple[int, int]) -> Firsts:
    return Firsts([First((1, width), excess) for width, excess in pairs])


@pytest.mark.parametrize(
    ("width", "age", "excesses"),
    [
        (100, 0, (900,)),  # its own, and as early
        (100, 99, (100,) * FIRST),  # its own came long before: those that came late
        (110, 0, (900, 800, 700, 600, 500, 400, 300, 200)),  # early ones, nearest first
        (400, 60, (300,) * FIRST),  # of those that came late the nearest in size
    ],
)
def test_a_first_run_is_like_those_of_its_size_at_its_time(width: int, age: int, excesses: tuple[int, ...]) -> None:
    early = [(100 + k, 900 - 100 * k) for k in range(8)]
    late = [(95, 100)] * 30 + [(390, 300)] * 30
    assert tuple(run.excess for run in firsts(*early, *late).nearest((1, width), age)) == excesses


def test_a_process_grows_older_with_each_new_shape_and_not_with_calls() -> None:
    """Each of eight shapes was met once, in order; the process of worker 1 is as fresh as that of worker 0 was."""
    widths = [100 * 2**k for k in range(10)]
    met = tuple(FirstRun(executed=(1, width), ns=50_000 * (k + 1)) for k, width in enumerate(widths))
    one = service(first_runs=met)
    runs = [one.draw(sent(width, 3, first=True))[0] for width in (*widths[:3], widths[0])]
    assert runs == [50_000, 100_000, 150_000, 50_000]
    assert one.draw(sent(widths[0], 3, first=True, worker=1))[0] == 50_000


@given(st.lists(st.tuples(st.integers(1, 500), st.integers(-9, 9)), min_size=1, max_size=30), st.integers(0, 99))
@settings(deadline=None)
def test_a_first_run_that_came_as_early_speaks_alone(pairs: list[tuple[int, int]], age: int) -> None:
    for at, (width, excess) in enumerate(pairs):
        found = [run.excess for run in firsts(*pairs).nearest((1, width), at)]
        alike = {e for k, (w, e) in enumerate(pairs) if w == width and abs(np.log((at + 1) / (k + 1))) <= ALIKE}
        assert len(found) == 1
        assert found[0] in alike
        assert excess in alike
    assert len(firsts(*pairs).nearest((1, 501), age)) == min(FIRST, len(pairs))


# --- without one ----------------------------------------------------------------------------------------------------


def test_a_draw_is_one_of_the_measured_ratios() -> None:
    one = ProfileService(CostModel.from_profiles([profile(first=9100)]), seed=1)
    taken = [one.draw(sent(100, i))[0] for i in range(300)]
    assert set(taken) == {1000, 1100, 1200}
    assert min(taken.count(w) for w in (1000, 1100, 1200)) > 70
    assert one.draw(sent(100, 5, first=True))[0] == taken[5] + 8000
    wall, report = one.draw(sent(100, 5))
    assert (report.on_cpu_ns, report.runqueue_ns, report.minor_faults) == (wall, 0, -1)


def test_a_draw_depends_on_the_seed_and_the_oldest_member_alone() -> None:
    grid = tuple(ShapeTiming(executed=(n, 9), first_ns=1, wall_ns=tuple(range(1, 1001)), cpu_ns=(1,)) for n in (1, 2))
    forward = [service(1, timings=grid).draw(sent(9, i))[0] for i in (3, 9000, 12)]
    one = service(1, timings=grid)
    backward = [one.draw(sent(9, i + 5, i, size=2))[0] for i in (12, 9000, 3)]
    assert forward == backward[::-1]
    assert forward != [service(2, timings=grid).draw(sent(9, i))[0] for i in (3, 9000, 12)]


def test_a_time_that_nothing_supports_is_an_error_not_a_guess() -> None:
    one = ProfileService(CostModel.from_profiles([profile()]), seed=1)
    with pytest.raises(DataError, match=r"how long entry 'd' takes at \(2, 100\)"):
        one.draw(sent(100, 0, 1, size=2))


def test_what_surrounds_a_repeat_is_drawn_with_it() -> None:
    """At the nearest measured point; nothing where nobody took it."""
    timing = ShapeTiming(
        executed=(1, 100), first_ns=1, wall_ns=(1000, 2000), cpu_ns=(1, 1), dispatch_ns=(10, 20), completion_ns=(1, 2)
    )
    costs = CostModel.from_profiles([msgspec.structs.replace(profile(), timings=(timing, *profile().timings[1:]))])
    one = ProfileService(costs, seed=1)
    drawn = {(one.draw(sent(100, i))[0], one.handling(sent(100, i))) for i in range(64)}
    assert drawn == {(1000, (10, 1)), (2000, (20, 2))}
    assert one.handling(sent(110, 0)) in {(10, 1), (20, 2)}
    assert (costs.exchanges("d", (1, 400)), costs.exchanges("unknown", (1, 1))) == ((), ())
    assert one.handling(sent(400, 0)) == (0, 0)


def test_a_point_whose_runs_were_taken_in_parts_has_no_exchanges() -> None:
    """Without one exchange a run, none can be paired with it."""
    one = ShapeTiming(executed=(1, 9), first_ns=1, wall_ns=(5,), cpu_ns=(5,), dispatch_ns=(1,), completion_ns=(1,))
    other = ShapeTiming(executed=(1, 9), first_ns=1, wall_ns=(6,), cpu_ns=(6,))
    costs = CostModel.from_profiles([msgspec.structs.replace(profile(), timings=(one, other))])
    assert costs.exchanges("d", (1, 9)) == ()


def test_unit_draws_are_uniform_and_do_not_depend_on_how_many_are_asked_for() -> None:
    few, many = unit_draws(7, 10), unit_draws(7, 20_000)
    assert few.tolist() == many[:10].tolist()
    counts = np.bincount((many * 20).astype(int), minlength=20)
    chi2 = float(((counts - 1000) ** 2 / 1000).sum())  # 19 degrees of freedom: above 43.8 once in a thousand seeds
    assert chi2 < 43.8
    assert abs(np.corrcoef(many[:-1], many[1:])[0, 1]) < 4 / np.sqrt(20_000)
    assert 0 <= many.min() <= many.max() < 1
