"""The sentence that reads a score: which action follows, and whose it is."""

from __future__ import annotations

import pytest

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.score import LOSS_CAUSES, Score
from trimtab.evidence.score.interpret import interpret


def figure(value: float | None, width: float = 0.02, note: str = "") -> Figure:
    interval = None if value is None else Interval(lo=value - width, hi=value + width)
    return Figure(
        id="f", value=value, unit="share", samples=9, scope="this run", artifact="a", interval=interval, note=note
    )


def scored(mapping: float | None, promise: float | None, cause: str = "cold") -> Score:
    lost = {name: figure(0.3 if name == cause else 0.01) for name in LOSS_CAUSES}
    return Score(
        run="r", plan="p", mapping=figure(mapping, note="no samples" if mapping is None else ""), loss=lost,
        promise=figure(promise), promise_warm=figure(promise), bias=figure(0.0), bias_warm=figure(0.0),
        coverage=figure(1.0), fit=figure(1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mapping", "promise", "cause", "action", "owner"),
    [
        (0.97, 0.96, "cold", "keep the plan", "observability"),
        (0.60, 0.96, "cold", "refit the entries to the shapes seen, and warm these at start", "runtime"),
        (0.60, 0.96, "padding", "refit the buckets to the shapes seen", "runtime"),
        (0.95, 0.50, "cold", "profile the plan again", "compiler"),
        (0.60, 0.50, "cold", "check the measurement and the envelope first", "observability"),
        (0.89, 0.96, "cold", "keep the plan", "observability"),  # its interval reaches 0.9
        (None, None, "cold", "measure again", "observability"),
    ],
)
def test_which_action_follows_and_whose_it_is(
    mapping: float | None, promise: float | None, cause: str, action: str, owner: str
) -> None:
    reading = interpret(scored(mapping, promise, cause), None, None, 0.0)
    assert (reading.action, reading.owner) == (action, owner)
    assert reading.sentence.endswith(".")


def test_time_without_a_promise_is_profiled_first() -> None:
    reading = interpret(scored(0.6, 0.5), None, None, 0.4)
    assert "40.0 % of the run time was never promised anything" in reading.sentence
    assert reading.owner == "compiler"


def test_the_sentence_names_trend_and_gain() -> None:
    text = interpret(scored(0.7, 0.95), figure(0.2), (0.9, 0.5), 0.0).sentence
    assert "falling from 90.0 % to 50.0 % over the run" in text
    assert "run-time adaptation wins back 20 % [18 %, 22 %]" in text
    assert "no adaptation gain is shown" in interpret(scored(0.7, 0.95), figure(0.01), None, 0.0).sentence
    assert "run-time adaptation loses" in interpret(scored(0.7, 0.95), figure(-0.2), None, 0.0).sentence
