"""The way back: the rule's bound, its false alarms, and how soon it finds what was injected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trimtab.retuning.rollback import Rule, prove, rule_of, wilson


def replay(late_per_window: list[int]) -> Any:
    """Windows of 100 requests, the first few of each late (80 ms), the others at 20 ms."""
    return np.concatenate([np.where(np.arange(100) < late, 0.080, 0.020) for late in late_per_window])


def test_the_bound_is_the_worst_healthy_window_plus_one_request() -> None:
    rule = rule_of([replay([2, 0, 5]), replay([1, 1, 3])], 60.0)
    assert (rule.window, rule.late_ms, rule.bound, rule.seen) == (100, 60.0, pytest.approx(0.06), 6)


def test_failed_requests_are_late() -> None:
    failed = replay([0, 0])
    failed[:7] = np.inf
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
    short, late = rule_of([np.full(99, 0.02)], 60.0), rule_of([replay([100, 0])], 60.0)
    assert [(rule.bound, rule.watches) for rule in (short, late)] == [(None, False), (1.0, False)]
    assert prove([replay([100, 0])], [], late, seed=4).false_alarms is None
    assert short.soonest(50.0) is None


def test_false_alarms_come_from_replays_that_did_not_set_the_bound() -> None:
    """One replay is late throughout, the others never: no bound of theirs lets it pass."""
    calm, odd = replay([0] * 40), replay([10] * 40)
    healthy = [calm, calm, odd]
    proven = prove(healthy, [], rule_of(healthy, 60.0), seed=4, runs=90)
    assert proven.false_alarms == pytest.approx(1 / 3)
    assert prove([calm, calm], [], rule_of([calm], 60.0), seed=4, runs=90).false_alarms == 0.0
    assert prove([calm], [], rule_of([calm], 60.0), seed=4, runs=90).false_alarms == 0.0


def test_injected_regressions_are_found_the_sooner_the_worse_they_are() -> None:
    """Latencies of 25 to 50 ms against a limit of 60: 1.25 times as long one in ten is late, 2 times four in five."""
    healthy = [np.random.default_rng(k).uniform(0.025, 0.050, 4000) for k in range(3)]
    proven = prove(healthy, [3 * one for one in healthy], rule_of(healthy, 60.0), seed=4, runs=60)
    assert (proven.rule.bound, proven.false_alarms, proven.length) == (pytest.approx(0.01), 0.0, 4000)
    assert [tried.name for tried in proven.tried] == [
        "latencies x 1.25", "latencies x 1.5", "latencies x 2", "the baseline",
    ]  # fmt: skip
    assert [tried.found for tried in proven.tried] == [1.0] * 4
    for tried in proven.tried:
        assert tried.delay is not None
        assert 100 < tried.between.lo <= tried.delay <= tried.between.hi <= 300


def test_a_regression_below_the_limit_is_not_found() -> None:
    healthy = [np.full(1000, 0.020)] * 3
    tried = prove(healthy, [], rule_of(healthy, 60.0), seed=4, runs=30).tried
    assert [(each.found, each.delay, each.between.hi) for each in tried] == [(0.0, None, np.inf)] * 3


def test_windows_below_100_arrivals_are_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        rule_of([replay([0])], 60.0, window=50)


def test_how_soon_it_can_fire() -> None:
    rule = Rule(window=100, late_ms=60.0, bound=0.06, seen=42)
    assert [rule.soonest(rate) for rate in (50.0, 0.0, float("nan"))] == [4_000_000_000, None, None]


@pytest.mark.parametrize(
    ("hits", "runs", "lo", "hi"), [(0, 100, 0.0, 0.037), (5, 100, 0.0215, 0.1118), (100, 100, 0.963, 1.0)]
)
def test_wilson(hits: int, runs: int, lo: float, hi: float) -> None:
    found = wilson(hits, runs)
    assert (found.lo, found.hi) == (pytest.approx(lo, abs=5e-4), pytest.approx(hi, abs=5e-4))
