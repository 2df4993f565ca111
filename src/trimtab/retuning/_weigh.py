"""One comparison before it becomes a cell: two arms, one slice, one metric, its floor and what its tail rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import Sla
from trimtab.domain.verdict import CellRole, CellStatus, MatrixCell
from trimtab.evidence.stats.bootstrap import Comparison
from trimtab.evidence.stats.floor import MIN_REPLAYS, Floor
from trimtab.evidence.stats.quantiles import Floats, effective_samples, needed_effective, requests_needed
from trimtab.retuning import _metric as metric
from trimtab.retuning.arms import AS_RECORDED, HELD_OUT, Arms

_HOPELESS = 100  # times the requests at hand: beyond that, no number is worth printing
_POWER = 0.95  # of the interval; the floor must come out below the margin, too, and both together in 80 % at least
_FLOOR_SPREAD = 1.75  # nine of ten floors lie below so many times the typical one (bench/decisions.py)


@dataclass(frozen=True)
class Weighed:
    """One cell before its role gives it a status. ``judged`` on a metric that may be goodput instead of ``asked``.

    ``before`` and ``after`` = the figure of each replay of either arm.

    ``effective`` samples behind the candidate's percentile, over all its replays, and ``weakest`` behind that of the
    thinnest replay of either arm; ``needed`` for either. ``seconds`` = traffic that all replays served.
    """

    condition: str
    slice: str
    asked: str
    judged: metric.Judged
    floor: Floor
    baseline: float | None
    candidate: float | None
    effective: float
    weakest: float
    needed: int
    problem: str
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    seconds: float = 0.0

    def cell(
        self, role: CellRole, status: CellStatus, note: str, margin: float | None = None, sharing: int = 1
    ) -> MatrixCell:
        """The cell that this becomes in a role; ``sharing`` guards share alpha with it."""
        comparison = self.judged.comparison
        change, interval = metric.change(comparison)
        words = [self.judged.note, note, self.more(margin, sharing) if status == "inconclusive" else ""]
        return MatrixCell(
            id=f"{role}/{self.condition}/{self.slice}/{self.asked}".replace(" ", "-"),
            slice=self.slice,
            condition=self.condition,
            metric=self.judged.metric,
            role=role,
            status=status,
            baseline=self.baseline,
            candidate=self.candidate,
            change=change,
            interval=interval,
            floor=self.floor.value,
            margin=margin,
            samples=comparison.samples,
            note="; ".join(word for word in words if word),
        )

    @property
    def limit(self) -> float:
        """The ratio that is better than the baseline by exactly the floor."""
        return metric.worse_by(self.judged.metric, -(self.floor.value or 0.0))

    @property
    def unsure(self) -> float:
        """How far beyond its ends the interval may reach, as a share: the floor where a replay's percentile rests on
        too few effective samples (then the interval is too narrow), else 0."""
        return (self.floor.value or 0.0) if self.weakest < self.needed else 0.0

    def surely_better_than(self, share: float) -> float:
        """The ratio that the interval must stay better than, to be sure of "not worse by ``share``"."""
        return metric.worse_by(self.judged.metric, share) * metric.worse_by(self.judged.metric, -self.unsure)

    def surely_worse_than(self, share: float) -> float:
        """The ratio that the interval must stay worse than, to be sure of "worse by ``share``"."""
        return metric.worse_by(self.judged.metric, share) * metric.worse_by(self.judged.metric, self.unsure)

    def better(self, ratio: float) -> bool:
        """The whole interval is better than ``ratio``."""
        interval = self.judged.comparison.interval
        if interval is None:
            return False
        return interval.lo > ratio if metric.higher_is_better(self.judged.metric) else interval.hi < ratio

    def worse(self, ratio: float) -> bool:
        """The whole interval is worse than ``ratio``."""
        interval = self.judged.comparison.interval
        if interval is None:
            return False
        return interval.hi < ratio if metric.higher_is_better(self.judged.metric) else interval.lo > ratio

    def worse_in_every_replay(self, share: float) -> bool:
        """For arms that no blocks can be drawn from, because a queue that only grows remembers all: each replay of the
        candidate is worse than each of the baseline, by more than ``share`` and, on top, than replays of one plan
        differ. (That three all lie beyond three others has a chance of 1 in 20; so far beyond, a much smaller one.)"""
        drawn = self.problem or self.judged.comparison.interval is not None
        if drawn or min(len(self.before), len(self.after)) < MIN_REPLAYS:
            return False
        ends = [(min(arm), max(arm)) for arm in (self.before, self.after)]
        (best, worst), (least, most) = ends
        if not all(0 < end < math.inf for pair in ends for end in pair):
            return False
        if metric.higher_is_better(self.judged.metric):
            return most + max(hi - lo for lo, hi in ends) < best * (1 - share)
        return least > worst * (1 + share) * max(hi / lo for lo, hi in ends)

    def barrier(self) -> str:
        """Why this cell may not pass, whatever its interval says."""
        if self.problem or self.judged.comparison.interval is None:
            return self.problem or self.judged.comparison.reason
        if self.floor.provisional:
            return self.floor.reason
        if self.effective < self.needed:
            return (
                f"{self.asked} of the candidate rests on {self.effective:.0f} effective samples, {self.needed} needed"
            )
        return ""

    def more(self, margin: float | None, sharing: int = 1) -> str:
        """How many requests a replay would decide an undecided cell, and how long they take; empty where requests are
        not what is missing."""
        comparison = self.judged.comparison
        if comparison.interval is None or self.floor.provisional or not comparison.value or comparison.value < 0:
            return ""
        wanted = self._wanted(comparison, margin, sharing)
        if wanted is None or wanted > _HOPELESS * comparison.samples:
            return "no affordable number of requests decides it"
        if wanted <= comparison.samples:
            return ""
        minutes = self.seconds * (wanted / comparison.samples - 1) / 60
        longer = f", {minutes:.2g} min of replays more" if minutes else ""
        return f"about {wanted:.0f} requests a replay would decide (now {comparison.samples}){longer}"

    def _wanted(self, comparison: Comparison, margin: float | None, sharing: int) -> float | None:
        """The requests that a percentile needs; then the most of those that tell the ratio seen from the one that
        decides, that thicken a thin tail, and that bring the floor (it shrinks as 1 / sqrt n) down to the margin."""
        if self.effective < self.needed:
            return comparison.samples * self.needed / self.effective if self.effective else None
        target = self.limit if margin is None else metric.worse_by(self.judged.metric, margin)
        apart = abs(math.log(comparison.value / target)) if target > 0 and comparison.value else 0.0
        n, alpha = comparison.samples, 0.05 / sharing
        told = requests_needed(n, comparison.se_log, math.expm1(apart), _POWER, alpha) if apart else None
        thin = n * self.needed / self.weakest if self.unsure and self.weakest else 0.0
        coarse = n * (_FLOOR_SPREAD * (self.floor.value or 0.0) / margin) ** 2 if margin else 0.0
        return None if told is None else max(told, thin, coarse)


@dataclass(frozen=True)
class Bench:
    """What all cells share: the SLA, the slices (positions within the replayed arrivals), the seed of the bootstrap."""

    sla: Sla
    slices: Mapping[str, NDArray[np.int64]]
    seed: int

    def weigh(self, arms: Arms, part: str, name: str, resamples: int) -> Weighed:
        """Compare both arms on one slice by one metric."""
        problem, rows = self._problem(arms, part), self._rows(arms, part)
        if problem or rows is None:
            empty = Floor(None, (), 0, "relative", problem)
            judged = metric.Judged(name, metric.nothing(problem))
            return Weighed(arms.condition, part, name, judged, empty, None, None, 0.0, 0.0, 0, problem)
        before, after = [x[rows] for x in arms.baseline], [x[rows] for x in arms.candidate]
        judged = metric.judge(before, after, name, self.sla, self.seed, resamples)
        worth = self._worth(after, judged.metric)
        weakest = min((*worth, *self._worth(before, judged.metric)))
        return Weighed(
            condition=arms.condition,
            slice=part,
            asked=name,
            judged=judged,
            floor=metric.floor((before, after), judged.metric, self.sla),
            baseline=self._value(before, judged.metric),
            candidate=self._value(after, judged.metric),
            effective=sum(worth),
            weakest=weakest,
            needed=self._needed(judged.metric),
            problem="",
            before=tuple(metric.value(one, judged.metric, self.sla) for one in before),
            after=tuple(metric.value(one, judged.metric, self.sla) for one in after),
            seconds=arms.seconds,
        )

    def replays_wanted(self, arms: Arms, part: str, name: str) -> int:
        """Replays an arm that the floor and the candidate's percentile need; how the arms differ is not looked at."""
        rows, replays = self._rows(arms, part), min(len(arms.baseline), len(arms.candidate))
        if rows is None or self._problem(arms, part):
            return replays
        effective, needed = sum(self._worth([x[rows] for x in arms.candidate], name)), self._needed(name)
        thick = math.ceil(len(arms.candidate) * needed / effective) if effective else replays
        return max(replays, MIN_REPLAYS, thick)

    def _rows(self, arms: Arms, part: str) -> NDArray[np.int64] | None:
        """Slices are positions within the arrivals as recorded; another condition may have others, all held out."""
        if arms.condition == AS_RECORDED or not arms.baseline:
            return self.slices.get(part)
        return np.arange(len(arms.baseline[0])) if part == HELD_OUT else None

    def _problem(self, arms: Arms, part: str) -> str:
        """Why there is nothing to compare; empty = there is."""
        rows = self._rows(arms, part)
        lengths = {len(replay) for replay in (*arms.baseline, *arms.candidate)}
        tests = {
            arms.refusal: bool(arms.refusal),
            "an arm has no replay": not arms.baseline or not arms.candidate,
            f"not the same arrivals: {sorted(lengths)} requests": len(lengths) > 1,
            f"there is no slice {part}": rows is None,
            f"slice {part} holds no requests": rows is not None and not rows.size,
            f"slice {part} reaches beyond the replayed arrivals": rows is not None
            and bool(rows.size)
            and int(rows.max()) >= max(lengths, default=0),
        }
        return next((why for why, holds in tests.items() if holds), "")

    def _value(self, arm: Sequence[Floats], name: str) -> float | None:
        return metric.value(np.concatenate(arm), name, self.sla) if arm else None

    def _worth(self, arm: Sequence[Floats], name: str) -> list[float]:
        """Effective samples behind each replay's percentile; a share needs none."""
        q = metric.QUANTILES.get(name)
        if q is None:
            return [math.inf] * len(arm)
        return [effective_samples(metric.settle(replay, self.sla), q).effective or 0.0 for replay in arm]

    def _needed(self, name: str) -> int:
        q = metric.QUANTILES.get(name)
        return 0 if q is None else needed_effective(q)
