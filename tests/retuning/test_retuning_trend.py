"""The trend of the primary metric: windows of equal numbers of requests, both arms, ranges over replays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trimtab.domain.study import Sla
from trimtab.retuning.arms import Arms
from trimtab.retuning.trend import told, trend

P95 = Sla(metric="p95", bound_ms=60.0)
EARLY = np.repeat([0.010, 0.020], 200)
LATE = np.repeat([0.030, 0.005], 200)
ARMS = Arms("normal", (EARLY, 2 * EARLY), (LATE, LATE))


def test_two_windows_of_two_replays() -> None:
    found = trend(ARMS, P95)
    assert found is not None
    assert found.columns == {
        "first": (0, 200),
        "last": (199, 399),
        "baseline": (20.0, 40.0),
        "baseline_lo": (10.0, 20.0),
        "baseline_hi": (20.0, 40.0),
        "candidate": (30.0, 5.0),
        "candidate_lo": (30.0, 5.0),
        "candidate_hi": (30.0, 5.0),
    }
    assert told(found, P95).text == "p95 was better in 1 of 2 windows of 200 requests."


def test_more_goodput_is_better_and_p99_is_shown_as_p95() -> None:
    goodput = Sla(metric="goodput", bound_ms=15.0)
    found = trend(ARMS, goodput)
    assert found is not None
    assert (found.columns["baseline"], found.columns["candidate"]) == ((0.5, 0.0), (0.0, 1.0))
    assert told(found, goodput).text == "goodput was better in 1 of 2 windows of 200 requests."
    p99 = trend(ARMS, Sla(metric="p99", bound_ms=15.0))
    assert p99 is not None
    assert p99.note.startswith("p95 by window")


def test_a_window_among_the_failed_has_no_value_and_is_not_better() -> None:
    lost = np.full(400, np.inf)
    found = trend(Arms("normal", (EARLY,), (lost,)), P95)
    assert found is not None
    assert found.columns["candidate"] == (None, None)
    assert told(found, P95).text == "p95 was better in 0 of 2 windows of 200 requests."


@pytest.mark.parametrize(
    "given",
    [replace(ARMS, refusal="they differ"), Arms("normal", (), ()), Arms("normal", (EARLY,), (LATE[:9],))],
    ids=["refused", "nothing", "other-arrivals"],
)
def test_what_must_not_be_compared_has_no_trend(given: Arms) -> None:
    assert trend(given, P95) is None
