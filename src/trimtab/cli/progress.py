"""Progress on standard error: a bar with time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

QUIET_SECONDS = 5.0


class Bars:
    """One bar per stage, for a terminal."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Move the stage's bar."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total, note="")
        self._bars.update(self._tasks[stage], completed=done, total=total, note=note)


class Lines:
    """A line when a stage starts or ends, and every few seconds in between, for logs and pipes."""

    def __init__(self) -> None:
        self._stage = ""
        self._when = 0.0

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Print if it is time to."""
        now = time.monotonic()
        if stage == self._stage and now - self._when < QUIET_SECONDS and done != total:
            return
        self._stage, self._when = stage, now
        share = f"{done / total:4.0%} " if total else ""
        print(f"{stage:>10} {share}{note}", file=sys.stderr, flush=True)


@contextmanager
def progress() -> Iterator[Bars | Lines]:
    """The progress port for this terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=False),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=False) as bars:
        yield Bars(bars)
