"""Rollback triggers as a table."""

from __future__ import annotations

import math

from trimtab.domain.figure import Interval
from trimtab.domain.verdict import Trial, Trigger
from trimtab.report.watch import grid

FOUND = Trial(name="service x 1.5", runs=300, found=1.0, delay=164.0, between=Interval(lo=115.0, hi=208.0))
RARE = Trial(name="service x 2", runs=300, found=0.6, delay=900.0, between=Interval(lo=300.0, hi=math.inf))
MISSED = Trial(name="the baseline", runs=300, found=0.25, delay=None, between=Interval(lo=700.0, hi=math.inf))


def trigger(bound: float | None, *trials: Trial) -> Trigger:
    watched = bound is not None
    return Trigger(
        cell="primary/normal/held-out/p95", slice="held-out", metric="p95", window=100, late_ms=60.0, bound=bound,
        windows=60, false_alarms=0.02 if watched else None,
        false_alarms_interval=Interval(lo=0.01, hi=0.04) if watched else None, trials=trials, back_to="today",
        owner="runtime", sentence="Go back.",
    )  # fmt: skip


def test_a_row_a_trigger_with_false_alarms_and_delays() -> None:
    made = grid((trigger(0.06, FOUND, RARE, MISSED), trigger(None)))
    assert [column.label for column in made.columns[4:]] == [
        "Found at service x 1.5", "Found at service x 2", "Found at the baseline", "Goes back to",
    ]  # fmt: skip
    first, second = ([(cell.text, cell.sub) for cell in row.cells] for row in made.rows)
    assert [(text.replace("\u00a0", " "), sub.replace("\u00a0", " ")) for text, sub in first] == [
        ("Held-out: later than 60 ms", "p95"),
        ("6 %", ""),
        ("100 arrivals, twice", ""),
        ("2 %", "(1 to 4 %)"),
        ("164 requests", "115 to 208"),
        ("900 requests", "60 % of runs"),
        ("not in time", "25 % of runs"),
        ("plan today", "runtime"),
    ]
    assert [text for text, _ in second[1:7]] == ["by hand", "100 arrivals, twice", "–", "–", "–", "–"]
