"""The way back: the trigger's bound, its false alarms, and the sentence that a proposal carries."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.domain.study import Sla
from trimtab.retuning.rollback import Trigger, boundary, trigger

SLA = Sla(metric="p95", bound_ms=60.0)


def replay(late_per_window: list[int]) -> np.ndarray:
    """Windows of 100 requests, the first few of each late."""
    return np.concatenate([np.where(np.arange(100) < late, 0.080, 0.020) for late in late_per_window])


def test_the_bound_is_the_worst_healthy_window_plus_one_request() -> None:
    rule = trigger([replay([2, 0, 5]), replay([1, 1, 3])], SLA, seed=4)
    assert (rule.window, rule.late_ms, rule.bound, rule.seen) == (100, 60.0, pytest.approx(0.06), 6)


def test_failed_requests_are_late() -> None:
    failed = replay([0, 0])
    failed[:7] = np.inf
    assert trigger([failed], SLA, seed=4).bound == pytest.approx(0.08)


def test_false_alarms_are_counted_on_redrawn_healthy_runs() -> None:
    """Late requests at the end of one window and the start of the next: aligned windows hide what others see."""
    hidden = np.full(20_000, 0.02)
    hidden[90:100] = hidden[100:110] = 0.08
    quiet = trigger([np.full(20_000, 0.02)], SLA, seed=4)
    assert quiet.false_alarms == 0.0
    alarms = trigger([hidden], SLA, seed=4).false_alarms
    assert alarms is not None
    assert 0.0 <= alarms < 0.05


def test_too_little_traffic_sets_no_bound() -> None:
    rule = trigger([np.full(99, 0.02)], SLA, seed=4)
    assert (rule.bound, rule.seen, rule.false_alarms) == (None, 0, None)
    assert boundary(rule, "today", "runtime", 50.0) == (
        "No automatic boundary: no replay holds a window of 100 arrivals. "
        "The runtime lead watches it and goes back to plan today by hand."
    )


def test_a_window_that_is_late_as_a_whole_sets_no_bound() -> None:
    text = boundary(trigger([replay([100, 0])], SLA, seed=4), "today", "runtime", 50.0)
    assert text.startswith("No automatic boundary: a healthy window of 100 arrivals was late as a whole.")


def test_the_boundary_names_metric_window_bound_plan_and_owner() -> None:
    rule = Trigger(window=100, late_ms=60.0, bound=0.06, seen=42, false_alarms=0.01)
    assert boundary(rule, "today", "runtime", 50.0, "A. Lead") == (
        "Go back to plan today when more than 6 % of requests are later than 60 ms in two windows of 100 arrivals "
        "running (4 s at 50 requests/s). None of 42 healthy windows passed that share; it would fire falsely in 1 % of "
        "such runs. Owner: runtime lead (A. Lead)."
    )


def test_windows_below_100_arrivals_are_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        trigger([replay([0])], SLA, seed=4, window=50)


def test_how_soon_it_can_fire() -> None:
    rule = Trigger(window=100, late_ms=60.0, bound=0.06, seen=42)
    assert [rule.soonest(rate) for rate in (50.0, 0.0, float("nan"))] == [4_000_000_000, None, None]
    assert " running. None of 42 " in boundary(rule, "today", "runtime", float("nan"))
