"""Watching trials: their progress on the stage's bar, and what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import Controller, Progress
from trimtab.loop.context import Context, Renamed
from trimtab.loop.executor import single
from trimtab.loop.trial import Result, Trial


class Watched:
    """A watch that shows progress and holds the results, in the order in which trials ended."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.results: list[Result] = []

    def began(self, trial: Trial, envelope: Envelope) -> None:
        """Nothing is kept of a trial that only begins."""

    def rows(self, trial: Trial, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Only replays have rows."""

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        self.results.append(result)

    def progress(self, trial: Trial) -> Progress:
        return Renamed(self._progress, trial.stage, trial.note)

    def controller(self, trial: Trial) -> Controller | None:
        return None


def result_of(ctx: Context, trial: Trial) -> Result:
    """What ``trial`` gives, made now by the executor of this run."""
    watch = Watched(ctx.progress)
    single(ctx.executor, ctx.material, trial, watch)
    return watch.results[-1]
