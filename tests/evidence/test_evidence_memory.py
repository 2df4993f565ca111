"""Memory of profiles: peaks, limits and growth, from literal curves."""

from __future__ import annotations

from collections.abc import Sequence

from evidence_cases import SLA, Line, Ran, dynamic, profile, trace
from msgspec.structs import replace

from trimtab.domain.plan import CompileSpec, Plan, ServePolicy
from trimtab.domain.profile import CompileProfile, MemoryPoint
from trimtab.evidence import memory
from trimtab.evidence.analysis import Circumstances, analyse
from trimtab.evidence.classify import facts
from trimtab.evidence.score.batches import Yardstick
from trimtab.evidence.score.reference import ReferenceSet

MIB = 2**20
PLAN = Plan(id="base", compile=CompileSpec(backend="null", entries=(dynamic(),)))


def points(*pairs: tuple[int, float]) -> tuple[MemoryPoint, ...]:
    return tuple(MemoryPoint(shapes=shapes, resident_bytes=round(mib * MIB)) for shapes, mib in pairs)


def held(
    peak: float, growth: Sequence[tuple[int, float]] = (), scratch: float = -1, entry: str = "dyn"
) -> CompileProfile:
    made = profile({(1, 9): [1.0]}, entry=entry)
    bytes_ = -1 if scratch < 0 else round(scratch * MIB)
    return replace(made, peak_bytes=round(peak * MIB), growth=points(*growth), scratch_bytes=bytes_)


def test_the_peak_of_a_plan_is_its_largest_entrys_times_its_workers() -> None:
    two = replace(PLAN, serve=ServePolicy(workers=2))
    assert memory.peak(two, [held(100), held(130)]) == 260 * MIB
    assert memory.peak(PLAN, [held(0)]) is None


def test_growth_is_for_a_hundred_more_shapes_and_its_second_half_says_whether_it_goes_on() -> None:
    curve = points((20, 300), (120, 350), (220, 360))
    assert memory.growth(curve) == 30.0
    assert memory.growth(memory.second_half(curve)) == 10.0
    assert memory.growth(curve[:1]) is None
    assert memory.second_half(()) == ()


def test_one_row_a_plan() -> None:
    found = memory.by_plan({"base": (PLAN, [held(100), held(120, [(10, 90), (60, 110)], 7.5)])}, 200 * MIB)
    assert found is not None
    assert {name: column[0] for name, column in found.columns.items()} == {
        "plan": "base", "entries": 2, "workers": 1, "memory": 6.0, "peak": 120.0, "scratch": 7.5, "workspace": None,
        "growth": 40.0, "growth_late": None, "shapes": 60, "limit": 200.0, "share": 0.6,
    }  # fmt: skip
    assert memory.by_plan({"base": (PLAN, [])}, None) is None


def test_the_workspace_of_a_plan_is_that_of_the_entry_that_holds_most_in_a_run() -> None:
    narrow, wide = (
        replace(held(100), inspection=replace(held(100).inspection, workspace_bytes=mib * MIB)) for mib in (4, 18)
    )
    found = memory.by_plan({"base": (PLAN, [narrow, wide, held(100)])}, None)
    assert found is not None
    assert found.columns["workspace"] == (18.0,)


def test_what_is_not_readable_is_not_known() -> None:
    found = memory.by_plan({"base": (PLAN, [held(0)])}, None)
    assert found is not None
    assert [found.columns[name][0] for name in ("peak", "scratch", "growth", "limit", "share")] == [None] * 5


def test_curves_hold_every_point() -> None:
    found = memory.curves([held(100, [(10, 90), (60, 110)])])
    assert found is not None
    assert found.columns["shapes"] == (10, 60)
    assert found.columns["resident"] == (90.0, 110.0)
    assert memory.curves([held(100)]) is None


def test_growth_of_more_than_a_tenth_and_a_peak_above_the_limit_are_said() -> None:
    grown = held(300, [(20, 200), (220, 260), (420, 280)])
    said = [finding.text for finding in memory.told({"base": (PLAN, [grown])}, 256 * MIB)]
    assert said == [
        "base holds 300 MiB at most, above the limit of 256 MiB.",
        "base.dyn: memory grows with the shapes it meets, from 200 MiB after 20 to 280 MiB after 420, "
        "10 MiB for 100 in the second half.",
    ]
    flat = held(100, [(20, 200), (420, 219)])
    assert list(memory.told({"base": (PLAN, [flat])}, None)) == []


def test_a_peak_above_its_limit_says_by_how_much() -> None:
    assert memory.above(150 * MIB, 100 * MIB) == "its peak memory of 150 MiB is 50.0 % above the limit of 100 MiB"
    assert memory.above(100 * MIB, 100 * MIB) == memory.above(None, 1) == memory.above(1, None) == ""


def test_the_peaks_of_all_workers_together_are_held_against_what_they_may_take() -> None:
    both = trace([Ran((9,), wall=1, peak=600 * MIB), Ran((9,), wall=1, arrived=5, core=1, peak=300 * MIB)])
    assert facts._peak(both, None, 1000 * MIB) == 0.9
    assert facts._peak(both, None, None) is None
    unread = trace([Ran((9,), wall=1, peak=600 * MIB), Ran((9,), wall=1, arrived=5, core=1)])
    assert facts._peak(unread, None, 1000 * MIB) is None


def test_a_percentile_that_falls_among_requests_lost_to_memory_names_the_limit() -> None:
    lost = ["out-of-memory" if at % 10 == 9 else "none" for at in range(400)]
    run = trace([Ran((9,), wall=1, arrived=10 * at, error=error, peak=90 * MIB) for at, error in enumerate(lost)])
    best = ReferenceSet.from_profiles([dynamic()], [profile({(1, 9): [1.0]})], 1)
    known = Circumstances(
        plan=PLAN, yardstick=Yardstick(Line(), Line(), "dyn", best), sla=SLA, seed=1, memory=100 * MIB
    )
    found = analyse(run, known).diagnosis
    assert (found.classes[0].id, found.classes[0].evidence) == ("memory-limit", ("40 batches ended out of memory",))
