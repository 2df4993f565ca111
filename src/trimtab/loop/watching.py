"""Watching trials: their progress on the stage's bar, and what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import Controller, Progress
from trimtab.loop.context import Context
from trimtab.loop.trials.executor import single
from trimtab.loop.trials.trial import Result, Trial

ALMOST = 0.99
"""A trial that says it is through is not there yet: its result has still to be fetched and kept."""


class Watched:
    """A watch that shows progress and holds the results, in the order in which trials ended. ``expected``: how many
    trials there are, each taken for as long as any other."""

    def __init__(self, progress: Progress, expected: int = 1) -> None:
        self._progress, self._expected = progress, expected
        self._shares: dict[str, float] = {}
        self.results: list[Result] = []

    def began(self, trial: Trial, envelope: Envelope) -> None:
        """Nothing is kept of a trial that only begins."""

    def rows(self, trial: Trial, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Only replays have rows."""

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        self.results.append(result)

    def progress(self, trial: Trial) -> Progress:
        return _Part(self, trial)

    def moved(self, trial: Trial, share: float | None, note: str) -> None:
        """A trial has come as far as ``share`` of it (None: not known): the stage has come as far as all of them."""
        if share is not None:
            self._shares[trial.note] = min(share, ALMOST)
        whole = max(self._expected, len(self._shares))
        self._progress.step(trial.stage, sum(self._shares.values()), whole, f"{trial.note} {note}".strip())

    def controller(self, trial: Trial) -> Controller | None:
        return None


class _Part:
    """Progress of one trial, told to the watch of all."""

    def __init__(self, watch: Watched, trial: Trial) -> None:
        self._watch, self._trial = watch, trial

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Pass it on."""
        self._watch.moved(self._trial, done / total if total else None, note)


def result_of(ctx: Context, trial: Trial) -> Result:
    """What ``trial`` gives, made now by the executor of this run."""
    watch = Watched(ctx.progress)
    single(ctx.executor, ctx.material, trial, watch)
    return watch.results[-1]
