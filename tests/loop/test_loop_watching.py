"""Trials of one stage move one bar, each by its part."""

from __future__ import annotations

from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.loop.trials.trial import Answers
from trimtab.loop.watching import Watched

PLAN = Plan(id="today", compile=CompileSpec(backend="null", entries=(Entry(id="e", kind="dynamic", lo=(1,), hi=(9,)),)))


class Heard:
    """What the stage's bar was told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float | None, str]] = []

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        self.steps.append((stage, round(done, 2), total, note))


def trial(note: str) -> Answers:
    return Answers(stage="replay", note=note, plan=PLAN, members=(), core=0)


def test_each_trial_moves_the_bar_by_its_part() -> None:
    bar = Heard()
    watch = Watched(bar, 3)
    watch.progress(trial("today-1")).step("replay", 5.0, 20.0, "210 requests done")
    watch.progress(trial("today-1")).step("replay", 20.0, 20.0)
    watch.progress(trial("today-2")).step("replay", 0.0, None)
    watch.progress(trial("today-2")).step("replay", 10.0, 20.0)
    assert bar.steps == [
        ("replay", 0.25, 3, "today-1 210 requests done"),
        ("replay", 0.99, 3, "today-1"),
        ("replay", 0.99, 3, "today-2"),
        ("replay", 1.49, 3, "today-2"),
    ]


def test_a_single_trial_never_says_that_its_stage_is_through() -> None:
    bar = Heard()
    Watched(bar).progress(trial("today-1")).step("replay", 20.0, 20.0)
    assert bar.steps == [("replay", 0.99, 1, "today-1")]
