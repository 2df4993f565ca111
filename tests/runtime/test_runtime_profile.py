"""Where to profile, profiles from a real worker, and answers: literal plans in, literal shapes out."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from runtime_kit import ANY, BUCKET, CORES, MODEL, Ramp, load, plan_of

from trimtab.backends import factory
from trimtab.domain.events import BatchReport
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.workload import Workload
from trimtab.runtime import wire
from trimtab.runtime.alone import Alone
from trimtab.runtime.grid import batch_sizes, grid, prelude
from trimtab.runtime.profile import LONGEST_REST, Patience, _Profiler, profile_plan
from trimtab.runtime.quality import answers, sample_members

CORE = CORES[-1]
TRAFFIC = load(range(8), [3, 8, 9, 10, 20, 40, 40, 60])


def shapes(
    plan: Plan, workload: Workload, points: int, sizes: tuple[int, ...] = ()
) -> dict[str, list[tuple[int, ...]]]:
    return {entry: [p.executed for p in found] for entry, found in grid(workload, plan, points, sizes).items()}


def test_batch_sizes_double_up_to_the_largest() -> None:
    assert [batch_sizes(n) for n in (1, 2, 4, 6)] == [(1,), (1, 2), (1, 2, 4), (1, 2, 4, 6)]


def test_a_bucket_varies_in_batch_size_only_and_a_dynamic_entry_in_its_own_traffic_too() -> None:
    assert shapes(plan_of(BUCKET, ANY, size=2, hold_ms=1), TRAFFIC, 6) == {
        "bucket": [(1, 8), (2, 8)],
        "any": [(1, 9), (1, 20), (1, 60), (2, 9), (2, 20), (2, 60)],
    }


def test_named_batch_sizes_are_kept_within_what_the_entry_was_compiled_for() -> None:
    assert shapes(plan_of(BUCKET), TRAFFIC, 6, sizes=(1, 4, 16)) == {"bucket": [(1, 8), (4, 8)]}


def test_an_entry_without_traffic_is_profiled_at_its_ends() -> None:
    assert shapes(plan_of(BUCKET, ANY), load([0], [5]), 4)["any"] == [(1, 1), (1, 64)]


def test_points_carry_the_largest_requests_that_fit() -> None:
    found = grid(TRAFFIC, plan_of(BUCKET, ANY, size=2, hold_ms=1), 6)
    assert found["bucket"][1].members == ((1, (8,)), (1, (8,)))
    assert found["any"][4].members == ((4, (20,)), (4, (20,)))


def test_a_prelude_is_the_beginning_of_traffic_each_request_alone_when_it_is_due() -> None:
    found = prelude(TRAFFIC, plan_of(BUCKET, ANY), 4, 2)
    assert {entry: [(p.executed, p.members, p.due // 10**6) for p in points] for entry, points in found.items()} == {
        "bucket": [((1, 8), ((0, (3,)),), 0), ((1, 8), ((1, (8,)),), 1)],  # the second is another's dims, padded
        "any": [((1, 9), ((2, (9,)),), 2), ((1, 10), ((3, (10,)),), 3), ((1, 20), ((4, (20,)),), 4)],
    }


def test_a_prelude_asks_the_machine_what_to_run_and_entries_that_are_not_held_are_left_out() -> None:
    plan = plan_of(BUCKET, ANY, size=2, hold_ms=5)
    requests = prelude(load([0, 1, 2], [3, 20, 8]), plan)
    alone = Alone(plan, ["any", "bucket"], CORE)
    orders = []
    for t, point in enumerate((*requests["bucket"], *requests["any"])):
        orders.append(order := alone.order(10 * t, point))
        alone.done(10 * t + 5, wire.Ran(order.batch, 10 * t + 1, 10 * t + 4, "none", BatchReport(), ""))
    assert [(one.batch, one.entry, one.executed, one.members) for one in orders] == [
        (0, "bucket", (1, 8), ((0, (3,)),)),
        (1, "bucket", (1, 8), ((2, (8,)),)),
        (2, "any", (1, 20), ((1, (20,)),)),
    ]
    assert Alone(plan, ["bucket"], CORE).order(0, requests["bucket"][0]).entry == "bucket"


def profiled(
    plan: Plan, repeats: int = 3, patience: Patience | None = None
) -> dict[str, CompileProfile | CompileFailure]:
    found = grid(TRAFFIC, plan, 4)
    due = prelude(TRAFFIC, plan, 4, 1)
    results = profile_plan(plan, MODEL, factory("null"), Ramp(), found, repeats, CORE, prelude=due, patience=patience)
    return {result.entry: result for result in results}


def test_a_profile_keeps_every_sample_and_the_first_run_apart() -> None:
    profile = profiled(plan_of(ANY, base_us=200, per_unit_us=10, first_us=5000))["any"]
    assert isinstance(profile, CompileProfile)
    assert [t.executed for t in profile.timings] == [(1, 3), (1, 9), (1, 40), (1, 60)]
    for timing in profile.timings:
        lengths = {len(each) for each in (timing.wall_ns, timing.cpu_ns, timing.dispatch_ns, timing.completion_ns)}
        assert lengths == {3}
        assert min(timing.wall_ns) >= 200_000 + 10_000 * timing.executed[1]
        assert min(*timing.dispatch_ns, *timing.completion_ns) > 0
        assert timing.first_ns >= 5_000_000
    assert profile.compile_ns > 0
    assert profile.peak_bytes > 2**20
    assert profile.inspection.operators[0].kind == "Null"
    assert profile.versions["numpy"] == np.__version__


def test_a_prelude_keeps_first_runs_and_what_comes_again_in_order_with_the_rest_before() -> None:
    plan, traffic = plan_of(BUCKET, ANY, base_us=200, first_us=5000), load([0, 1, 2, 3, 5000], [9, 3, 20, 9, 8])
    found = profile_plan(
        plan, MODEL, factory("null"), Ramp(), grid(traffic, plan, 2), 3, CORE, prelude=prelude(traffic, plan)
    )
    bucket, dynamic = (result for result in found if isinstance(result, CompileProfile))
    assert [(run.executed, run.ns >= 5_000_000) for run in dynamic.first_runs] == [((1, 9), True), ((1, 20), True)]
    assert ([run.executed for run in dynamic.served], bucket.first_runs) == ([(1, 9)], ())
    assert min(min(run.dispatch_ns, run.completion_ns) for run in dynamic.first_runs) > 0
    assert [run.executed for run in bucket.served] == [(1, 8)]
    busy, rested = dynamic.served[0], bucket.served[0]
    assert rested.idle_ns >= LONGEST_REST  # due much later than the one before was done
    assert min(busy.ns, busy.dispatch_ns, busy.completion_ns) > 0
    assert bucket.timings[0].first_ns >= 5_000_000  # taken in the prelude


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ({"fail_compile": "no such operator"}, "compiler-error"),
        ({"crash_on_batch": "width=60"}, "crash"),
        pytest.param({"hang_on_batch": "width=60"}, "timeout", marks=pytest.mark.slow),
        pytest.param({"error_on_batch": "width=60"}, "compiler-error", marks=pytest.mark.slow),
        pytest.param({"out_of_memory_on_batch": "width=60"}, "out-of-memory", marks=pytest.mark.slow),
        pytest.param({"bad_output_on_batch": "width=60"}, "quality", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_profiled_is_a_failure_with_its_kind(option: dict[str, str], kind: str) -> None:
    results = profiled(plan_of(BUCKET, ANY, **option), patience=Patience(run_s=0.3))
    failure = results["any"]
    assert isinstance(failure, CompileFailure)
    assert (failure.plan, failure.kind) == ("p", kind)
    spared = results["bucket"]
    assert isinstance(spared, CompileFailure if "fail_compile" in option else CompileProfile)


def test_a_budget_takes_repeats_and_never_points() -> None:
    profile = profiled(plan_of(ANY, base_us=10_000), repeats=50, patience=Patience(budget_s=0.05))["any"]
    assert isinstance(profile, CompileProfile)
    assert [len(t.wall_ns) for t in profile.timings] == [3, 3, 3, 3]
    assert "timed with 3 of 50 repeats, to keep the time budget" in profile.inspection.note


def test_a_round_runs_every_shape_of_every_entry_once_in_a_new_order() -> None:
    plan = plan_of(BUCKET, ANY)
    profiler = _Profiler(plan, None, CORE, grid(TRAFFIC, plan, 4), {}, Patience(), None)
    profiler._timed = dict.fromkeys(("bucket", "any"))
    rounds = [[step.args[:2] for step in profiler._round(first=False)] for _ in range(4)]
    assert all(Counter(r) == Counter(rounds[0]) for r in rounds)
    assert len(rounds[0]) == 5
    assert len({tuple(r) for r in rounds}) > 1


def test_answers_of_a_padded_plan_equal_the_reference_at_true_dims() -> None:
    """The null network sums a row; padding adds zeros, and the crop gives each request its own width back."""
    members = sample_members(TRAFFIC, 8, seed=1)
    given = answers(plan_of(BUCKET, ANY), MODEL, factory("null"), Ramp(), members, CORE)
    truth = answers(plan_of(ANY), MODEL, factory("null"), Ramp(), members, CORE)
    assert [a.route for a in given] == ["padded", "exact"] + ["dynamic"] * 6
    assert [t.executed[1:] for t in truth] == [dims for _, dims in members]
    for one, two in zip(given, truth, strict=True):
        assert one.outputs is not None
        assert two.outputs is not None
        assert np.array_equal(one.outputs["y"], two.outputs["y"])
        assert one.outputs["y"].shape == (1, *one.member[1])


def test_no_answer_says_why() -> None:
    members = ((0, (3,)), (1, (60,)))
    refused = answers(plan_of(BUCKET), MODEL, factory("null"), Ramp(), members, CORE)
    assert [a.message for a in refused] == ["", "no entry takes this shape"]
    lost = answers(plan_of(BUCKET, ANY, crash_on_batch="width=60"), MODEL, factory("null"), Ramp(), members, CORE)
    assert [a.message for a in lost] == ["", "killed by SIGKILL"]
    assert lost[1].outputs is None


def test_samples_spread_over_shapes_and_are_the_same_for_a_seed() -> None:
    picked = sample_members(TRAFFIC, 4, seed=1)
    assert [dims for _, dims in picked] == [(3,), (9,), (40,), (60,)]
    assert picked == sample_members(TRAFFIC, 4, seed=1)
    assert len(sample_members(TRAFFIC, 99, seed=1)) == 8
