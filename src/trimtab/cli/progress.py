"""Progress on standard error: a line a stage with its time so far and its time left; plain lines where nobody watches.

Time left in a stage follows from how fast its work went so far, and is said once a part of it is done. Time left in all
is what the budget leaves: an aim of the study, and no promise.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

Clock = Callable[[], float]
"""Seconds; only differences count."""

QUIET_SECONDS = 5.0
LEAST = 0.02
"""The part of a stage that must be done before its time left is said."""
IN_ALL = "in all"


class Gauge:
    """How far one stage is. A part of it that was done in an earlier run counts as done, and not as fast."""

    def __init__(self, now: float) -> None:
        self.began = self._seen = now
        self.ended: float | None = None
        self.share: float | None = None
        self._from: tuple[float, float] = (now, 0.0)

    def see(self, now: float, done: float, total: float | None) -> None:
        """``done`` of ``total`` at the time ``now``; total None = not known."""
        share = min(done / total, 1.0) if total else None
        if share is not None and (self.share is None or share < self.share):
            self._from = (now, share)
        self.share, self._seen = share, now

    def elapsed(self, now: float) -> float:
        """Seconds since it began, until it ended."""
        return (now if self.ended is None else self.ended) - self.began

    def left(self, now: float) -> float | None:
        """Seconds that are left at the pace so far; None where that cannot be said."""
        since, before = self._from
        if self.ended is not None or self.share is None or self.share - before < LEAST:
            return None
        pace = (self._seen - since) / (self.share - before)
        return max(pace * (1 - self.share) - (now - self._seen), 0.0)


class Budget:
    """What the study planned for the whole run: a gauge whose time left may be negative."""

    def __init__(self, now: float, planned: float) -> None:
        self.began, self.planned = now, planned
        self.ended: float | None = None

    def elapsed(self, now: float) -> float:
        """Seconds since the run began, until it ended."""
        return (now if self.ended is None else self.ended) - self.began

    def left(self, now: float) -> float | None:
        """Seconds that are left of the plan; None once the run is over."""
        return self.planned - self.elapsed(now) if self.ended is None else None


def span(seconds: float) -> str:
    """``0:07``, ``4:05``, ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def remaining(seconds: float) -> str:
    """``0:41 left``, or ``0:41 over``."""
    return f"{span(seconds)} left" if seconds >= 0 else f"{span(-seconds)} over"


def printable(note: str) -> str:
    """Names of plans and runs come from a study: they move no cursor."""
    return "".join(sign if sign.isprintable() else " " for sign in note)


class Bars:
    """One line a stage, for a terminal. The last line is the whole run, where a budget is known."""

    def __init__(self, shown: Progress, clock: Clock, budget: Budget | None) -> None:
        self._shown, self._clock, self._budget = shown, clock, budget
        self._tasks: dict[str, tuple[TaskID, Gauge]] = {}
        self._whole: TaskID | None = None

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Move the stage's bar."""
        now = self._clock()
        if stage not in self._tasks:
            self._begin(stage, Gauge(now))
        task, gauge = self._tasks[stage]
        gauge.see(now, done, total)
        gauge.ended = now if done == total == 1 else None
        whole = None if gauge.share is None else 1.0
        self._shown.update(task, completed=gauge.share or 0.0, total=whole, note=printable(note))
        if self._whole is not None and self._budget is not None:
            self._shown.update(self._whole, completed=min(self._budget.elapsed(now), self._budget.planned))

    def _begin(self, stage: str, gauge: Gauge) -> None:
        """A new line, above that of the whole run."""
        if self._whole is not None:
            self._shown.remove_task(self._whole)
        self._tasks[stage] = self._shown.add_task(stage, total=None, note="", gauge=gauge), gauge
        if self._budget is not None:
            planned = self._budget.planned
            note = f"of {span(planned)} planned"
            self._whole = self._shown.add_task(IN_ALL, total=planned, note=note, gauge=self._budget)


class Times(ProgressColumn):
    """Time so far and time left, or how much it is over."""

    max_refresh = 0.5

    def __init__(self, clock: Clock) -> None:
        super().__init__(Column(no_wrap=True))
        self._clock = clock

    def render(self, task: Task) -> Text:
        """The text of one line."""
        gauge, now = task.fields["gauge"], self._clock()
        left = gauge.left(now)
        said = Text(f"{span(gauge.elapsed(now)):>7}")
        return said if left is None else said.append(f"  {remaining(left)}", style="cyan")


class Lines:
    """A line when a stage begins or ends, and every few seconds in between, for logs and pipes."""

    def __init__(self, to: TextIO, clock: Clock, budget: Budget | None) -> None:
        self._to, self._clock, self._budget = to, clock, budget
        self._stages: dict[str, Gauge] = {}
        self._stage = ""
        self._when = 0.0

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Print if it is time to."""
        now = self._clock()
        began = stage in self._stages
        gauge = self._stages.setdefault(stage, Gauge(now))
        gauge.see(now, done, total)
        ended = done == total == 1
        gauge.ended = now if ended else None
        if not ended and stage == self._stage and now - self._when < QUIET_SECONDS:
            return
        self._stage, self._when = stage, now
        if ended:
            self._print(stage, f"{note} in {span(gauge.elapsed(now))}" if began else note, self._in_all(now))
            return
        if not began:
            self._print(stage, note or "begins")
            return
        share = f"{gauge.share:.0%}" if gauge.share is not None else ""
        left = gauge.left(now)
        self._print(stage, share, span(gauge.elapsed(now)), remaining(left) if left is not None else "", note)

    def _in_all(self, now: float) -> str:
        if self._budget is None:
            return ""
        return f"({IN_ALL} {span(self._budget.elapsed(now))} of {span(self._budget.planned)} planned)"

    def _print(self, stage: str, *parts: str) -> None:
        said = "  ".join(printable(part) for part in parts if part)
        print(f"{stage:>10}  {said}", file=self._to, flush=True)


@contextmanager
def progress(budget_s: float | None = None) -> Iterator[Bars | Lines]:
    """The progress port for this terminal; ``budget_s``: the time planned for the whole run."""
    clock = time.monotonic
    budget = None if budget_s is None else Budget(clock(), budget_s)
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield Lines(sys.stderr, clock, budget)
        return
    with live(console, clock) as shown:
        yield Bars(shown, clock, budget)
        if budget is not None:
            budget.ended = clock()


def live(console: Console, clock: Clock) -> Progress:
    """The lines of a terminal: each as wide as the terminal, and no wider."""
    return Progress(
        TextColumn("{task.description:>10}", table_column=Column(no_wrap=True)),
        BarColumn(bar_width=16, table_column=Column(no_wrap=True)),
        Times(clock),
        TextColumn(
            "{task.fields[note]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=console,
        expand=True,
        get_time=clock,
    )
