"""The way back: the rule's bound, its false alarms, and how soon it finds what was injected."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import decisions
import triggers as bench

from parts import workload_of
from trimtab.domain.workload import Slice, Workload
from trimtab.retuning.rollback import Redrawn, Rule, prove, redraw, rule_of, stretch, wilson

RNG = np.random.default_rng


def replay(late_per_window: list[int]) -> Any:
    """Windows of 100 requests, the first few of each late (80 ms), the others at 20 ms."""
    return np.concatenate([np.where(np.arange(100) < late, 0.080, 0.020) for late in late_per_window])


def load(scheduled: list[int]) -> Workload:
    return workload_of(scheduled, np.arange(len(scheduled)), slices=(Slice(name="tune", start=0, stop=1),))


def test_the_bound_is_what_two_windows_running_reached_plus_one_request() -> None:
    rule = rule_of([replay([2, 9, 5, 0]), replay([1, 3, 1])], 60.0)
    assert (rule.window, rule.late_ms, rule.bound, rule.seen) == (100, 60.0, pytest.approx(0.06), 7)


def test_failed_requests_are_late() -> None:
    failed = replay([0, 0])
    failed[93:107] = np.inf
    assert rule_of([failed], 60.0).bound == pytest.approx(0.08)


@pytest.mark.parametrize(
    ("windows", "after"),
    [([9, 0, 9, 0], None), ([0, 7, 7, 0], 300), ([0, 6, 6, 0], None), ([9, 9, 9], 200), ([0], None), ([], None)],
    ids=["never-running", "two-running", "at-the-bound", "at-once", "one-window", "nothing"],
)
def test_it_fires_at_the_end_of_the_second_window_above_the_bound(windows: list[int], after: int | None) -> None:
    latency = replay(windows) if windows else np.empty(0)
    assert Rule(window=100, late_ms=60.0, bound=0.06, seen=42).fires_at(latency) == after


def test_what_cannot_be_bounded_is_not_watched() -> None:
    short, late = rule_of([np.full(199, 0.02)], 60.0), rule_of([replay([100, 100])], 60.0)
    assert [(rule.bound, rule.watches) for rule in (short, late)] == [(None, False), (1.0, False)]
    assert prove(late, [replay([100, 100])], {}, seed=4).false_alarms is None
    assert short.soonest(50.0) is None


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 99), min_size=2, max_size=6), min_size=1, max_size=6))
def test_no_run_that_set_the_bound_passes_it(runs: list[list[int]]) -> None:
    healthy = [replay(run) for run in runs]
    rule = rule_of(healthy, 60.0)
    assert [rule.fires_at(one) for one in healthy] == [None] * len(healthy)


def test_false_alarms_are_counted_on_runs_that_did_not_set_the_bound() -> None:
    calm, odd = replay([0, 0, 0]), replay([0, 5, 5])
    proven = prove(rule_of([calm, calm], 60.0), [calm, calm, odd], {}, seed=4)
    assert (proven.false_alarms, proven.runs, proven.length) == (pytest.approx(1 / 3), 3, 300)
    assert proven.interval == wilson(1, 3)


def test_injected_regressions_are_found_the_sooner_the_worse_they_are() -> None:
    """Latencies of 25 to 50 ms against a limit of 60: 1.25 times as long one in ten is late, 2 times four in five."""
    healthy = [RNG(k).uniform(0.025, 0.050, 4000) for k in range(6)]
    faulty = {f"service x {factor:g}": [one * factor for one in healthy] for factor in (1.25, 2.0)}
    proven = prove(rule_of(healthy[:3], 60.0), healthy[3:], faulty, seed=4)
    assert (proven.rule.bound, proven.false_alarms) == (pytest.approx(0.01), 0.0)
    assert [(tried.name, tried.runs, tried.found) for tried in proven.tried] == [
        ("service x 1.25", 6, 1.0), ("service x 2", 6, 1.0),
    ]  # fmt: skip
    for tried in proven.tried:
        assert tried.delay is not None
        assert 100 < tried.between.lo <= tried.delay <= tried.between.hi <= 300


def test_a_regression_below_the_limit_is_not_found() -> None:
    healthy = [np.full(1000, 0.020)] * 3
    (tried,) = prove(rule_of(healthy, 60.0), healthy, {"service x 2": healthy}, seed=4).tried
    assert (tried.found, tried.delay, tried.between.hi) == (0.0, None, np.inf)


def test_windows_below_100_arrivals_are_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        rule_of([replay([0])], 60.0, window=50)


def test_how_soon_it_can_fire() -> None:
    rule = Rule(window=100, late_ms=60.0, bound=0.06, seen=42)
    assert [rule.soonest(rate) for rate in (50.0, 0.0, float("nan"))] == [4_000_000_000, None, None]


def test_arrivals_are_redrawn_in_blocks_each_request_behind_its_own_gap() -> None:
    """Gaps 4 (the mean, for the first), 1, 2, 3, 10; twice in one block around the end, from 1 on and then from 2."""
    seed = next(k for k in range(500) if RNG(k).integers(0, 5, size=2).tolist() == [1, 2])
    rows, drawn = redraw(load([0, 1, 3, 6, 16]), 5, RNG(seed))
    assert rows.tolist() == [3, 4, 0, 1, 2]
    assert drawn.scheduled.tolist() == [0, 10, 14, 15, 17]
    assert drawn.dims[:, 0].tolist() == drawn.payload.tolist() == [3, 4, 0, 1, 2]
    assert drawn.slices == ()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 9))
def test_redrawn_arrivals_are_as_many_and_in_order(gaps: list[int], block: int, seed: int) -> None:
    given_ = load(np.cumsum(gaps).tolist())
    given_ = replace(given_, scheduled=given_.scheduled - given_.scheduled[0])
    rows, drawn = redraw(given_, block, RNG(seed))
    assert len(drawn) == len(given_) == rows.size
    assert drawn.scheduled[0] == 0
    assert (np.diff(drawn.scheduled) >= 0).all()
    assert (drawn.dims[:, 0] == given_.dims[rows, 0]).all()


def test_a_slice_of_a_redrawn_run_holds_the_requests_that_stand_for_its_own() -> None:
    run = Redrawn(np.array([3, 4, 0, 1, 3]), np.array([0.3, 0.4, 0.0, 0.1, 0.5]))
    assert run.of(np.array([0, 3])).tolist() == [0.3, 0.0, 0.5]
    assert run.of(np.array([7])).tolist() == []


@pytest.mark.parametrize(
    ("replays", "simulated", "longer"),
    [([0.9, 1.5], 1.0, 1.5), ([0.5, 0.8], 1.0, 1.0), ([np.inf], 1.0, 1.0), ([1.0], np.inf, 1.0), ([1.0], 0.0, 1.0)],
    ids=["slowest", "never-shorter", "failed-replay", "failed-simulation", "nothing-takes-time"],
)
def test_simulated_latencies_are_stretched_to_the_slowest_replay(
    replays: list[float], simulated: float, longer: float
) -> None:
    assert stretch([np.full(50, one) for one in replays], np.full(50, simulated), 0.95) == longer


@pytest.mark.parametrize(
    ("hits", "runs", "lo", "hi"), [(0, 100, 0.0, 0.037), (5, 100, 0.0215, 0.1118), (100, 100, 0.963, 1.0)]
)
def test_wilson(hits: int, runs: int, lo: float, hi: float) -> None:
    found = wilson(hits, runs)
    assert (found.lo, found.hi) == (pytest.approx(lo, abs=5e-4), pytest.approx(hi, abs=5e-4))


def test_the_bench_serves_its_queue_as_the_machine_does() -> None:
    workload, base = decisions.traffic(0.75, 500, RNG(1))
    by_machine = decisions.replay(workload, base, 1.0, RNG(2)).latency
    by_sum = bench.queue(workload.scheduled, base, 1.0, RNG(2))
    assert by_sum == pytest.approx(by_machine, abs=1e-6)


def test_on_other_arrivals_a_trigger_fires_about_as_seldom_as_it_prints() -> None:
    """40 triggers at utilisation 0.75, each watching 5 fresh runs: the printed interval of one reaches to 3.7 %."""
    tally = bench.Tally()
    for seed in range(40):
        bench.study(0.75, 2000, seed, tally)
    assert np.mean(tally.other) <= 0.037
    assert np.isfinite(tally.slower[2.0]).mean() > 0.95
