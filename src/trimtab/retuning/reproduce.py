"""Reproduce: does a packet's measurement come out again?

The same plans are replayed on the same arrivals from the same seeds. For each plan the primary metric now is compared
with then by its ratio, with a paired block bootstrap (same arrivals). For the effect of the change the ratio is that of
the two plans' ratios; its interval comes from their resamples, drawn against each other at random, as if they were
independent.

*agree*: the whole interval lies within what is forgiven: the floor (how far replays of one plan differed *then*), and
10 % at least. *differ*: the whole interval lies beyond what is forgiven, and beyond what two occasions on one machine
make of it (below). All else is *inconclusive*: an interval that reaches out of what is forgiven, or lies between both,
no interval, a provisional floor, a percentile that rests on too few effective samples. One figure that differs makes
the whole differ; all must agree for it to agree.

*Two occasions.* Replays that follow each other say little of another day: service times differ by a few per cent, and
the queue multiplies that. Waiting in one queue goes as S rho / (1 - rho), rho = S x rate; so a share e of service time
becomes e (2 - rho) / (1 - rho) of it (rho = 0.75: 5 e, 0.9: 11 e). With 2 % an occasion, independent, 95 % of two
occasions lie within 1.96 sqrt(2) x 2 % x (2 - rho) / (1 - rho). For the effect the difference of both plans' factors
counts.

Limits. To agree is not to be equal: a floor of 20 % forgives 20 %. The 2 % are assumed; what is known of the machine on
both occasions stands beside the rows (:func:`trimtab.retuning.comparable.machine_differs`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.domain.comparison import Agreement, Repeated
from trimtab.domain.figure import Interval
from trimtab.domain.study import Sla
from trimtab.evidence.stats.floor import Floor
from trimtab.evidence.stats.quantiles import Floats, quantile
from trimtab.retuning import _metric as metric

LEAST_FORGIVEN = 0.10
OCCASION = 0.02
"""By how much service times differ from one occasion to the next: a standard deviation, as a share."""
_TWO = 1.96 * math.sqrt(2) * OCCASION
_TAIL = 0.025
Arms = Mapping[str, Sequence[Floats]]
"""Plan -> latencies of each replay, s; the baseline first, then the proposal if there is one."""


@dataclass(frozen=True)
class _Row:
    """A plan, then against now: on which metric, by how much two occasions may move it."""

    judged: metric.Judged
    moves: float
    thin: str

    @property
    def drawn(self) -> Floats:
        return self.judged.comparison.replicates


def repeat(then: Arms, now: Arms, sla: Sla, seed: int, busy: Mapping[str, float]) -> tuple[Repeated, ...]:
    """One row a plan, and one for the effect of the change. ``busy`` = which share of the time each plan's workers
    were busy then."""
    floor = metric.floor(list(then.values()), sla.metric, sla)
    found = {name: _row(then[name], now[name], sla, seed, busy[name]) for name in then}
    rows = [_plan(name, row, then[name], now[name], floor, sla) for name, row in found.items()]
    if len(found) == 2:
        rows.append(_effect(found, then, now, floor, sla, seed))
    return tuple(rows)


def overall(rows: Sequence[Repeated]) -> Agreement:
    """What all rows say together."""
    outcomes = {row.outcome for row in rows}
    if "differ" in outcomes:
        return "differ"
    return "agree" if outcomes == {"agree"} else "inconclusive"


def sentence(rows: Sequence[Repeated]) -> str:
    """The outcome in words, the figures that decide it first."""
    outcome = overall(rows)
    if outcome == "agree":
        return f"All {len(rows)} primary figures agree with the packet."
    named = [row.figure for row in rows if row.outcome == outcome]
    verb = "differ" if outcome == "differ" else "do not decide"
    return f"{len(named)} of {len(rows)} primary figures {verb}: {', '.join(named)}."


def occasions(busy: float) -> float:
    """By how much two occasions alone may move a percentile of a queue whose workers are busy for this share of the
    time; +inf where they always are."""
    return _TWO * (2 - busy) / (1 - busy) if busy < 1 else math.inf


def _row(then: Sequence[Floats], now: Sequence[Floats], sla: Sla, seed: int, busy: float) -> _Row:
    judged = metric.judge(then, now, sla.metric, sla, seed)
    moves = occasions(busy) if judged.metric in metric.QUANTILES else 0.0
    return _Row(judged, moves, metric.thin(now, judged.metric, sla))


def _plan(name: str, row: _Row, then: Sequence[Floats], now: Sequence[Floats], floor: Floor, sla: Sla) -> Repeated:
    judged, comparison = row.judged, row.judged.comparison
    apart = _apart(floor, row.moves)
    outcome, note = _outcome(comparison.interval, comparison.reason, floor, apart, row.thin)
    return Repeated(
        figure=f"{judged.metric} of plan {name}",
        unit=metric.unit(judged.metric),
        then=_value(then, judged.metric, sla),
        now=_value(now, judged.metric, sla),
        ratio=comparison.value,
        interval=comparison.interval,
        floor=floor.value,
        apart=apart,
        outcome=outcome,
        note="; ".join(part for part in (judged.note, note) if part),
    )


def _effect(found: Mapping[str, _Row], then: Arms, now: Arms, floor: Floor, sla: Sla, seed: int) -> Repeated:
    (old, before), (new, after) = found.items()
    name, apart = before.judged.metric, _apart(floor, abs(before.moves - after.moves))
    same = name == after.judged.metric
    interval = _between(before.drawn, after.drawn, seed) if same else None
    reason = before.judged.comparison.reason or after.judged.comparison.reason
    if not same:
        reason = f"plan {old} is judged on {name}, plan {new} on {after.judged.metric}"
    outcome, note = _outcome(interval, reason, floor, apart, before.thin or after.thin)
    changes = [_change(arms[old], arms[new], name, sla) if same else None for arms in (then, now)]
    return Repeated(
        figure=f"change of {name}, {old} to {new}",
        unit="share",
        then=changes[0],
        now=changes[1],
        ratio=_over(after.judged.comparison.value, before.judged.comparison.value) if same else None,
        interval=interval,
        floor=floor.value,
        apart=apart,
        outcome=outcome,
        note=note,
    )


def _between(before: Floats, after: Floats, seed: int) -> Interval | None:
    """The interval of after / before from the resamples of both, independent of each other."""
    if not before.size or before.size != after.size or before.min() <= 0:
        return None
    ratios = np.random.default_rng(seed).permutation(after) / before
    lo, hi = quantile(ratios, _TAIL), quantile(ratios, 1 - _TAIL)
    return Interval(lo=lo, hi=hi, method="resamples of both plans")


def _apart(floor: Floor, moves: float) -> float:
    return max(floor.value or 0.0, LEAST_FORGIVEN, moves)


def _outcome(interval: Interval | None, reason: str, floor: Floor, apart: float, thin: str) -> tuple[Agreement, str]:
    if interval is None:
        return "inconclusive", reason or "no interval"
    if floor.value is None or floor.provisional:
        return "inconclusive", floor.reason
    if _beyond(interval, apart):
        return "differ", ""
    forgiven = max(floor.value, LEAST_FORGIVEN)
    within = 1 / (1 + forgiven) <= interval.lo and interval.hi <= 1 + forgiven
    if within and not thin:
        return "agree", ""
    return "inconclusive", thin or _undecided(interval, forgiven)


def _undecided(interval: Interval, forgiven: float) -> str:
    if _beyond(interval, forgiven):
        return "beyond what is forgiven, but not beyond what two occasions may make of it"
    return "the interval reaches beyond what is forgiven"


def _beyond(interval: Interval, share: float) -> bool:
    return interval.lo > 1 + share or interval.hi < 1 / (1 + share)


def _change(before: Sequence[Floats], after: Sequence[Floats], name: str, sla: Sla) -> float | None:
    ratio = _over(_value(after, name, sla), _value(before, name, sla))
    return None if ratio is None else ratio - 1


def _over(above: float | None, below: float | None) -> float | None:
    """above / below; None where one is unknown, or falls among the failed, or below is 0."""
    if above is None or not below or not math.isfinite(above) or not math.isfinite(below):
        return None
    return above / below


def _value(arm: Sequence[Floats], name: str, sla: Sla) -> float | None:
    return metric.value(np.concatenate(arm), name, sla) if arm else None
