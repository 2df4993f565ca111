"""The triggers of a shipped change on new replays of what runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trimtab.domain.figure import Findings
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Running, Trigger
from trimtab.retuning.watched import SERIES, hold, sentence, told

SLA = Sla(metric="p95", bound_ms=60.0, deadline_ms=500.0)
SLICES = {"held-out": np.arange(400), "stream a": np.arange(0, 400, 2), "brief": np.arange(150)}


def trigger(part: str = "held-out", bound: float | None = 0.06) -> Trigger:
    return Trigger(
        cell=f"primary/normal/{part}/p95", slice=part, metric="p95", window=100, late_ms=60.0, bound=bound, windows=60,
        false_alarms=0.0, false_alarms_interval=None, trials=(), back_to="today", owner="runtime", sentence="Go back.",
    )  # fmt: skip


def replay(*late: int) -> Any:
    """Windows of 100 requests, the first few of each late."""
    return np.concatenate([np.where(np.arange(100) < count, 0.080, 0.020) for count in late])


CALM, LATE, LATER = replay(0, 0, 0, 0), replay(9, 9, 0, 0), replay(0, 0, 9, 9)


@pytest.mark.parametrize(
    ("given", "replays", "found", "said"),
    [
        (trigger(), [CALM, LATER, LATE], (3, 2, 200), "fired in 2 of 3 replays, after 200 requests at the soonest."),
        (trigger(), [CALM, CALM], (2, 0, None), "fired in none of 2 replays."),
        (trigger(), [np.where(CALM > 0.06, 0.0, 0.6)], (1, 1, 200), "fired in 1 of 1 replays, after 200 requests at"),
        (trigger("stream a"), [LATE], (1, 0, None), "fired in none of 1 replays."),
        (trigger("stream b"), [LATE], (0, 0, None), "could not be held: there is no slice stream b here."),
        (trigger("brief"), [LATE], (0, 0, None), "could not be held: 150 requests hold no two windows of 100."),
        (trigger(bound=None), [LATE], (0, 0, None), "could not be held: it has no automatic boundary."),
    ],
    ids=["fired", "calm", "beyond-the-deadline", "another-slice", "no-slice", "too-short", "by-hand"],
)
def test_a_trigger_on_new_replays(
    given: Trigger, replays: list[Any], found: tuple[int, int, int | None], said: str
) -> None:
    (one,) = hold([given], replays, SLICES, SLA)
    assert (one.runs, one.fired, one.after) == found
    assert said in sentence(one)
    assert sentence(one).startswith(f"The trigger on p95 of {given.slice} ")


def test_findings_carry_a_sentence_and_a_row_a_trigger() -> None:
    held = hold([trigger(), trigger("brief")], [LATE], SLICES, SLA)
    running = Running(packet="ab", shipped="2030-01-01", plan="refit-8", back_to="today", triggers=held)
    found = told(Findings(stage="validate", headline="."), running)
    table = found.table(SERIES)
    assert table is not None
    assert (table.columns["fired"], table.columns["after"]) == ((1, 0), (200, None))
    assert [one.text for one in found.findings] == [sentence(one) for one in held]
    empty = Findings(stage="validate", headline=".")
    assert told(empty, Running(packet="", shipped="", plan="p", back_to="today")) is empty
