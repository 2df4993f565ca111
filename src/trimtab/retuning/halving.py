"""Which of many candidates deserve a long look: successive halving, by ask and tell.

Method. Every round tries what is left on a longer part of the tune slice, keeps the better half and drops the rest:
``n`` candidates cost ``n / 8`` runs of the whole slice in the first round (one eighth of it each), and no more in any
later one, because the part doubles as the number halves. At the end few are left, and those get the whole slice with
all replicas (``search``). Successive halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed
bandits" (ICML 2013); Jamieson, Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization"
(AISTATS 2016).

``ask`` gives the trials of the round, in any order and by as many hands as there are; ``tell`` takes each outcome, a
value of the primary metric or why there is none. "No change" takes part in every round: all others are compared with
it on the same part, the same replica. The best of each kind of move stays whatever its place: kinds differ in what a
short part shows of them. A candidate that fails is out, with its reason. Nothing is drawn here: the seed is that of
the simulated runs, which a trial's replica number keys.

Limits. A short part over-represents the start: warm lists and entries look better on it than over an hour, and a queue
that grows for minutes does not show. Where all candidates can be simulated in full, that is done instead: below
``search.FULL`` of them. Moves change one kind of thing each, so a study's space has tens of them, rarely hundreds, and
halving reaches a thousand; a search that models the space (TPE) is not needed at that size, and there is none here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trimtab.domain.study import Sla
from trimtab.domain.verdict import Move
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE

FIRST_SHARE = 1 / 8
"""Share of the tune slice in the first round."""


class Trial(NamedTuple):
    """One run that is asked for: a move, on the first ``share`` of the tune slice, as replica ``replica``."""

    move: Move
    share: float
    replica: int


@dataclass(frozen=True)
class Dropped:
    """A candidate that did not reach the end: its value and the baseline's on the ``share`` it was last tried on, or
    why it ``failed``."""

    move: Move
    share: float
    value: float
    baseline: float
    failed: str = ""

    @property
    def reason(self) -> str:
        """Why it was not looked at longer."""
        return self.failed or f"among the worse half on the first {self.share:.3g} of the tune slice"


class Halving:
    """Ask and tell until at most ``keep`` candidates (beside "no change") are left, or the whole slice was tried.

    The first move must be "no change". ``left`` are those still in it, ``dropped`` the others, in order of dropping.
    """

    def __init__(self, moves: Sequence[Move], sla: Sla, *, keep: int, first: float = FIRST_SHARE) -> None:
        if not moves or moves[0].kind != NO_CHANGE:
            raise ValueError("the first move must be the baseline")
        if keep < 1 or not 0 < first <= 1:
            raise ValueError(f"cannot keep {keep} candidates, starting with a share of {first}")
        self._baseline = moves[0]
        self._sla = sla
        self._keep = keep
        self._share = first
        self._round = 0
        self._told: dict[str, float | str] = {}
        self.left: tuple[Move, ...] = tuple(moves[1:])
        self.dropped: list[Dropped] = []

    @property
    def done(self) -> bool:
        """Whether nothing more is asked."""
        return len(self.left) <= self._keep or self._share > 1

    def ask(self) -> tuple[Trial, ...]:
        """The trials of this round that were not told yet; none when it is over."""
        if self.done:
            return ()
        tried = (self._baseline, *self.left)
        return tuple(Trial(move, self._share, self._round) for move in tried if move.plan.id not in self._told)

    def tell(self, trial: Trial, outcome: float | str) -> None:
        """The primary metric of a trial, or why it has none. The last outcome of a round ends it."""
        if trial not in self.ask():
            raise ValueError(f"plan {trial.move.plan.id} was not asked for")
        self._told[trial.move.plan.id] = outcome
        if not self.ask():
            self._end_round()

    def _end_round(self) -> None:
        told, self._told = self._told, {}
        before = told[self._baseline.plan.id]
        if isinstance(before, str):
            failed = f"the baseline could not be simulated: {before}"
            self._drop(self.left, dict.fromkeys((move.plan.id for move in self.left), failed), np.nan)
            return
        ranked = sorted(self.left, key=lambda move: (*self._badness(told[move.plan.id]), move.size))
        fine = [move for move in ranked if not isinstance(told[move.plan.id], str)]
        staying = {move.plan.id for move in fine[: max(self._keep, -(-len(fine) // 2))]}
        for kind in {move.kind for move in fine}:
            staying.add(next(move.plan.id for move in fine if move.kind == kind))
        self._drop([move for move in ranked if move.plan.id not in staying], told, before)
        self._share = 1.0 if self._share < 1 < 2 * self._share else 2 * self._share
        self._round += 1

    def _badness(self, outcome: float | str) -> tuple[bool, float]:
        if isinstance(outcome, str):
            return True, 0.0
        return False, -outcome if metric.higher_is_better(self._sla.metric) else outcome

    def _drop(self, moves: Sequence[Move], told: dict[str, float | str], before: float) -> None:
        gone = {move.plan.id for move in moves}
        for move in moves:
            outcome = told[move.plan.id]
            failed = outcome if isinstance(outcome, str) else ""
            value = outcome if isinstance(outcome, float) else np.nan
            self.dropped.append(Dropped(move, self._share, value, before, failed))
        self.left = tuple(move for move in self.left if move.plan.id not in gone)


def run(halving: Halving, evaluate: Callable[[Trial], float | str]) -> Halving:
    """Answer every trial with ``evaluate``, in turn, until nothing more is asked."""
    while trials := halving.ask():
        for trial in trials:
            halving.tell(trial, evaluate(trial))
    return halving
