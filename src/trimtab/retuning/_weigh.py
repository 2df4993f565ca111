"""One comparison before it becomes a cell: two arms, one slice, one metric, its floor and what its tail rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import Sla
from trimtab.domain.verdict import CellRole, CellStatus, MatrixCell
from trimtab.evidence.stats.floor import Floor
from trimtab.evidence.stats.quantiles import Floats, effective_samples, requests_needed
from trimtab.retuning import _metric as metric
from trimtab.retuning.arms import Arms

_HOPELESS = 100  # times the requests at hand: beyond that, no number is worth printing


@dataclass(frozen=True)
class Weighed:
    """One cell before its role gives it a status. ``judged`` on a metric that may be goodput instead of ``asked``."""

    condition: str
    slice: str
    asked: str
    judged: metric.Judged
    floor: Floor
    baseline: float | None
    candidate: float | None
    effective: float
    needed: int
    problem: str

    def cell(self, role: CellRole, status: CellStatus, note: str, margin: float | None = None) -> MatrixCell:
        """The cell that this becomes in a role."""
        comparison = self.judged.comparison
        change, interval = metric.change(comparison)
        words = [self.judged.note, note, self.more(margin) if status == "inconclusive" else ""]
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

    def more(self, margin: float | None) -> str:
        """How many requests a replay would decide an undecided cell; empty where requests are not what is missing."""
        comparison = self.judged.comparison
        if comparison.interval is None or self.floor.provisional or not comparison.value or comparison.value < 0:
            return ""
        if self.effective < self.needed:
            wanted: float | None = comparison.samples * self.needed / self.effective if self.effective else None
        else:
            target = self.limit if margin is None else metric.worse_by(self.judged.metric, margin)
            apart = abs(math.log(comparison.value / target)) if target > 0 else 0.0
            wanted = requests_needed(comparison.samples, comparison.se_log, math.expm1(apart)) if apart else None
        if wanted is None or wanted > _HOPELESS * comparison.samples:
            return "no affordable number of requests decides it"
        if wanted <= comparison.samples:
            return ""
        return f"about {wanted:.0f} requests a replay would decide (now {comparison.samples})"


@dataclass(frozen=True)
class Bench:
    """What all cells share: the SLA, the slices (positions within the replayed arrivals), the seed of the bootstrap."""

    sla: Sla
    slices: Mapping[str, NDArray[np.int64]]
    seed: int

    def weigh(self, arms: Arms, part: str, name: str, resamples: int) -> Weighed:
        """Compare both arms on one slice by one metric."""
        problem, rows = self._problem(arms, part), self.slices.get(part)
        if problem or rows is None:
            empty = Floor(None, (), 0, "relative", problem)
            judged = metric.Judged(name, metric.nothing(problem))
            return Weighed(arms.condition, part, name, judged, empty, None, None, 0.0, 0, problem)
        before, after = [x[rows] for x in arms.baseline], [x[rows] for x in arms.candidate]
        judged = metric.judge(before, after, name, self.sla, self.seed, resamples)
        effective, needed = self._effective(after, judged.metric)
        return Weighed(
            condition=arms.condition,
            slice=part,
            asked=name,
            judged=judged,
            floor=metric.floor((before, after), judged.metric, self.sla),
            baseline=self._value(before, judged.metric),
            candidate=self._value(after, judged.metric),
            effective=effective,
            needed=needed,
            problem="",
        )

    def _problem(self, arms: Arms, part: str) -> str:
        """Why there is nothing to compare; empty = there is."""
        rows = self.slices.get(part)
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

    def _effective(self, arm: Sequence[Floats], name: str) -> tuple[float, int]:
        q = metric.QUANTILES.get(name)
        if q is None:
            return math.inf, 0
        seen = [effective_samples(metric.settle(replay, self.sla), q) for replay in arm]
        return sum(one.effective or 0.0 for one in seen), seen[0].needed if seen else 0
