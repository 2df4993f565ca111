"""Progress on a terminal and in a log, under a clock that only moves when it is told to."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from trimtab.cli import progress
from trimtab.cli.progress import Bars, Budget, Gauge, Lines, live, span

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    """Seconds since some moment."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def logged(
    clock: Clock, *steps: tuple[float, str, float, float | None, str], planned: float | None = None
) -> list[str]:
    """What a log holds after these steps: (seconds from the begin, stage, done, total, note)."""
    out = io.StringIO()
    begin = clock.now
    lines = Lines(out, clock, None if planned is None else Budget(begin, planned))
    for after, stage, done, total, note in steps:
        clock.now = begin + after
        lines.step(stage, done, total, note)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0:00"), (59.6, "1:00"), (245, "4:05"), (3723, "1:02:03")])
def test_a_span_is_said_as_a_clock_says_it(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_time_left_follows_from_the_pace_and_counts_down_between_steps() -> None:
    gauge = Gauge(0.0)
    gauge.see(2.0, 0.0, 3.0)
    assert gauge.left(2.0) is None
    gauge.see(12.0, 1.0, 3.0)
    assert gauge.left(12.0) == pytest.approx(20.0)
    assert gauge.left(17.0) == pytest.approx(15.0)
    assert gauge.left(40.0) == 0.0


def test_what_an_earlier_run_had_done_is_not_taken_for_speed() -> None:
    gauge = Gauge(0.0)
    gauge.see(1.0, 2.0, 3.0)
    gauge.see(6.0, 2.5, 3.0)
    assert gauge.left(6.0) == pytest.approx(5.0)


def test_a_new_piece_of_unknown_number_is_timed_by_itself() -> None:
    gauge = Gauge(0.0)
    gauge.see(0.0, 0.0, 10.0)
    gauge.see(10.0, 10.0, 10.0)
    gauge.see(11.0, 1.0, 10.0)
    assert gauge.left(11.0) is None
    gauge.see(12.0, 2.0, 10.0)
    assert gauge.left(12.0) == pytest.approx(8.0)


def test_a_log_gets_a_line_at_both_ends_of_a_stage_and_every_few_seconds_between() -> None:
    said = logged(
        Clock(),
        (0, "plan", 0, None, ""),
        (1, "plan", 1, 1, "done"),
        (1, "replay", 0, None, ""),
        (2, "replay", 0.0, 3.0, "today-1"),
        (7, "replay", 0.5, 3.0, "today-1 210 requests done"),
        (8, "replay", 0.6, 3.0, "today-1 250 requests done"),
        (12, "replay", 1.0, 3.0, "today-2"),
        (32, "replay", 1, 1, "done"),
        (32, "score", 1, 1, "done before"),
        planned=60.0,
    )
    assert said == [
        "      plan  begins",
        "      plan  done in 0:01  (in all 0:01 of 1:00 planned)",
        "    replay  begins",
        "    replay  17%  0:06  0:25 left  today-1 210 requests done",
        "    replay  33%  0:11  0:20 left  today-2",
        "    replay  done in 0:31  (in all 0:32 of 1:00 planned)",
        "     score  done before  (in all 0:32 of 1:00 planned)",
    ]


def screen(width: int, planned: float | None) -> str:
    """The last picture of a terminal after a finished stage and half of another."""
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, color_system=None, legacy_windows=False)
    shown = live(console, clock)
    shown.live.auto_refresh = False
    bars = Bars(shown, clock, None if planned is None else Budget(clock.now, planned))
    for after, stage, done, total, note in (
        (0, "plan", 0, None, ""),
        (2, "plan", 1, 1, "done"),
        (2, "replay", 0.0, 3.0, "today-1"),
        (32, "replay", 1.5, 3.0, "today-2 with a name that no terminal is wide enough for"),
    ):
        clock.now = 100.0 + after
        bars.step(stage, done, total, note)
    console.print(shown.get_renderable())
    return CONTROL.sub("", out.getvalue())


def test_a_terminal_shows_a_line_a_stage_and_the_whole_run_below() -> None:
    plan, replay, whole = screen(100, planned=300.0).splitlines()
    assert re.fullmatch(r" +plan ━+ +0:02 +done *", plan)
    assert re.fullmatch(r" +replay [━╸╺]+ +0:30  0:30 left today-2 with a name .*… *", replay)
    assert re.fullmatch(r" +in all [━╸╺]+ +0:32  4:28 left of 5:00 planned *", whole)


def test_a_budget_that_is_used_up_says_by_how_much() -> None:
    assert "0:32  0:12 over of 0:20 planned" in screen(100, planned=20.0)


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = screen(width, planned=None).splitlines()
    assert len(lines) == 2
    assert all(len(line) <= width for line in lines)


def test_a_pipe_gets_plain_lines_on_standard_error_and_nothing_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.progress(60.0) as meter:
        meter.step("plan", 0, None, "")
        meter.step("plan", 1, 1, "done")
    found = capsys.readouterr()
    assert found.out == ""
    assert "\x1b" not in found.err
    assert found.err.splitlines()[0] == "      plan  begins"


def test_the_name_of_a_plan_moves_no_cursor() -> None:
    assert logged(Clock(), (0, "replay", 0, None, "\x1b[2Jevil\r\n")) == ["    replay   [2Jevil  "]


def test_a_run_that_is_over_has_nothing_left() -> None:
    budget = Budget(0.0, 60.0)
    assert (budget.elapsed(20.0), budget.left(20.0)) == (20.0, 40.0)
    budget.ended = 25.0
    assert (budget.elapsed(90.0), budget.left(90.0)) == (25.0, None)
