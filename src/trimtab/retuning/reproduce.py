"""Reproduce: does a packet's measurement come out again?

The same plans are replayed on the same arrivals from the same seeds. For each plan the primary metric now is compared
with then by its ratio, with a paired block bootstrap (same arrivals), and held against the floor: how far replays of
one plan differed *then*. For the effect of the change the ratio is that of the two ratios; its interval joins the
ends that lie farthest apart, which is wider than it need be.

*agree*: the figures differ by no more than is forgiven: the floor, and 10 % at least, for two occasions differ by more
than replays of one do. *differ*: the whole interval lies beyond that. Else, without an interval, or against a
provisional floor: *inconclusive*. One figure that differs makes the whole differ; all must
agree for it to agree.

Simulated (as in :mod:`trimtab.retuning.compare`): of 80 repetitions in which nothing changed 38 agree, 31 are
undecided, and 11 differ.

Limits. To agree is not to be equal: a floor of 20 % forgives 20 %. Two occasions may differ in what no replay of one
shows (another neighbour on the host); then a plan differs, and the effect of the change may still agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trimtab.domain.comparison import Agreement, Repeated
from trimtab.domain.figure import Interval
from trimtab.domain.study import Sla
from trimtab.evidence.stats.floor import Floor
from trimtab.evidence.stats.quantiles import Floats
from trimtab.retuning import _metric as metric

LEAST_FORGIVEN = 0.10
"""A share. In simulated queues at utilisation 0.75, an occasion whose service times differ by 2 % moves p95 by 10 %."""
Arms = Mapping[str, Sequence[Floats]]
"""Plan -> latencies of each replay, s; the baseline first, then the proposal if there is one."""


def repeat(then: Arms, now: Arms, sla: Sla, seed: int) -> tuple[Repeated, ...]:
    """One row a plan, and one for the effect of the change."""
    floor = metric.floor(list(then.values()), sla.metric, sla)
    rows = [_plan(name, then[name], now[name], floor, sla, seed) for name in then]
    if len(then) == 2:
        rows.append(_effect(then, now, floor, sla, seed))
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


def _plan(name: str, then: Sequence[Floats], now: Sequence[Floats], floor: Floor, sla: Sla, seed: int) -> Repeated:
    judged = metric.judge(then, now, sla.metric, sla, seed)
    comparison = judged.comparison
    outcome, note = _outcome(comparison.value, comparison.interval, floor, comparison.reason)
    return Repeated(
        figure=f"{judged.metric} of plan {name}",
        unit=metric.unit(judged.metric),
        then=_value(then, judged.metric, sla),
        now=_value(now, judged.metric, sla),
        ratio=comparison.value,
        interval=comparison.interval,
        floor=floor.value,
        outcome=outcome,
        note="; ".join(part for part in (judged.note, note, comparison.caution) if part),
    )


def _effect(then: Arms, now: Arms, floor: Floor, sla: Sla, seed: int) -> Repeated:
    before, after = (_judged(list(arms.values()), sla, seed) for arms in (then, now))
    a, b = before.comparison, after.comparison
    same = before.metric == after.metric
    ratio = b.value / a.value if same and a.value and b.value is not None else None
    interval = _between(a.interval, b.interval) if ratio is not None else None
    reason = a.reason or b.reason if same else f"judged on {before.metric} then and on {after.metric} now"
    outcome, note = _outcome(ratio, interval, floor, reason or "no ratio")
    return Repeated(
        figure=f"change of {before.metric}, {' to '.join(then)}",
        unit="share",
        then=None if a.value is None else a.value - 1,
        now=None if b.value is None or not same else b.value - 1,
        ratio=ratio,
        interval=interval,
        floor=floor.value,
        outcome=outcome,
        note=note,
    )


def _between(then: Interval | None, now: Interval | None) -> Interval | None:
    """The interval of now / then from the farthest ends of both."""
    if then is None or now is None or then.lo <= 0 or now.lo <= 0:
        return None
    return Interval(lo=now.lo / then.hi, hi=now.hi / then.lo, method="ends of both intervals")


def _outcome(ratio: float | None, interval: Interval | None, floor: Floor, reason: str) -> tuple[Agreement, str]:
    if ratio is None or interval is None:
        return "inconclusive", reason
    if floor.value is None or floor.provisional:
        return "inconclusive", floor.reason
    widest = 1 + max(floor.value, LEAST_FORGIVEN)
    if interval.lo > widest or interval.hi < 1 / widest:
        return "differ", ""
    if 1 / widest <= ratio <= widest:
        return "agree", ""
    return "inconclusive", "beyond what is forgiven, but the interval reaches into it"


def _judged(arms: Sequence[Sequence[Floats]], sla: Sla, seed: int) -> metric.Judged:
    return metric.judge(arms[0], arms[1], sla.metric, sla, seed)


def _value(arm: Sequence[Floats], name: str, sla: Sla) -> float | None:
    return metric.value(np.concatenate(arm), name, sla) if arm else None
