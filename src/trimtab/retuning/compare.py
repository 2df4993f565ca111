"""Compare: did what runs today get worse from one packet to the next? The judgement of a daily gate.

The baseline's replays on held-out traffic (or, where nothing was proposed, on the tune slice) of the OLD packet are
held against those of the NEW one. On the same arrivals and the same machine the comparison is paired; where the
traffic, the host or its settings are not the same it is unpaired, which is wider; where the figures could not mean
the same (:mod:`trimtab.retuning.comparable`, another SLA, another rate) there is none.

*Rows.* The study's primary metric, then its guards. A guard forgives its margin; the primary metric forgives the margin
of a guard on the same metric if there is one, else the floor: how far replays of one plan differ within either packet,
but 10 % at least (two occasions differ by more than replays of one), and nothing where it is above 25 %.

*pass*: the whole interval of the worsening lies below the margin; *fail*: above both margin and floor; else
*inconclusive*. The rows share alpha by Holm (1979), separately for passing and for failing. A margin below the floor, a
provisional floor and a percentile on too few effective samples cannot pass. One failed row fails the gate; all must
pass.

Simulated (one queue at utilisation 0.75, 2,000 requests, 3 replays a packet, occasions whose service times differ by
2 %): the same again passes in 34 of 60, is undecided in 22 and fails in 4; service times 8 % longer fail in 56 of 60.

Limits. It judges what runs today, not what either packet proposes. Two packets a day apart differ in whatever else
happened to the host: the floor within a packet does not know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trimtab.domain.comparison import Gate, GateRow, Passage
from trimtab.domain.envelope import Envelope
from trimtab.domain.figure import Interval
from trimtab.domain.plan import Plan
from trimtab.domain.study import Guard, Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.stats.floor import Floor
from trimtab.evidence.stats.quantiles import Floats, holm
from trimtab.evidence.stats.unpaired import unpaired
from trimtab.retuning import _metric as metric
from trimtab.retuning.arms import AS_RECORDED, HELD_OUT
from trimtab.retuning.comparable import differs, forbids, machine_differs, plan_forbids, versions_differ

ALPHA = 0.025
RATE_TOLERANCE = 0.1
LEAST_FORGIVEN = 0.10
MOST_FLOOR = 0.25
"""Replays that differ by more than this say too little to let anything pass on their word alone."""
_OWN = "trimtab's own queue"


@dataclass(frozen=True)
class Side:
    """One packet at the gate: its study, the machine, what runs today, and its replays on one slice. ``target``: the
    server that was driven; empty: trimtab's own queue."""

    name: str
    sla: Sla
    guards: tuple[Guard, ...]
    dim_names: tuple[str, ...]
    envelope: Envelope
    plan: Plan
    traces: tuple[Trace, ...]
    decision: str
    target: str = ""

    @property
    def arm(self) -> list[Floats]:
        """Latencies of each replay, s."""
        return [trace.latency for trace in self.traces]

    @property
    def slice(self) -> str:
        return self.traces[0].run.slice if self.traces else ""


@dataclass(frozen=True)
class _Weighed:
    """One row before it has a status."""

    role: str
    asked: str
    judged: metric.Judged
    floor: Floor
    margin: float | None
    worth: str

    @property
    def forgiven(self) -> float:
        """The worsening that still passes, as a share."""
        return self.margin if self.margin is not None else max(self.floor.value or 0.0, LEAST_FORGIVEN)


def compare(old: Side, new: Side, seed: int) -> Gate:
    """The gate between two packets."""
    stop = _forbidden(old, new)
    also = (*differs(old.envelope, new.envelope), *machine_differs(old.traces, new.traces), *_changed(old, new))
    if stop:
        return Gate(
            old=old.name,
            new=new.name,
            outcome="inconclusive",
            sentence="The two packets are not comparable.",
            forbids=stop,
            differs=also,
        )
    paired = not differs(old.envelope, new.envelope) and _same_arrivals(old, new)
    asked, skipped = _asked(new)
    weighed = [_weigh(old, new, role, name, margin, paired, seed) for role, name, margin in asked]
    rows = _rows(old, new, weighed)
    return Gate(
        old=old.name,
        new=new.name,
        outcome=_overall(rows),
        sentence=_sentence(rows),
        how=_how(old, new, paired),
        rows=rows,
        differs=also,
        notes=skipped,
    )


def _forbidden(old: Side, new: Side) -> tuple[str, ...]:
    reasons = [*forbids(old.envelope, new.envelope)]
    if bool(old.target) != bool(new.target):
        reasons.append(f"driven against {old.target or _OWN} then, against {new.target or _OWN} now")
    if old.sla != new.sla:
        reasons.append("the SLA is not the same")
    if old.dim_names != new.dim_names:
        reasons.append("the dynamic dims are not the same")
    empty = [side.name for side in (old, new) if not side.traces]
    if empty:
        return (*reasons, f"no complete replay of what runs today in {' and '.join(empty)}")
    if old.slice != new.slice:
        reasons.append(f"slice: {old.slice} then, {new.slice} now")
    rates = [_rate(side) for side in (old, new)]
    if abs(rates[1] / rates[0] - 1) > RATE_TOLERANCE:
        reasons.append(f"offered rate: {rates[0]:.3g} requests/s then, {rates[1]:.3g} now")
    return tuple(reasons)


def _changed(old: Side, new: Side) -> tuple[str, ...]:
    """What a gate is there to judge: new versions, a plan that was changed."""
    versions = versions_differ(*(side.traces[0].run.versions if side.traces else {} for side in (old, new)))
    plan = plan_forbids(old.plan, new.plan)
    other = () if old.plan == new.plan or plan else (f"plan {new.plan.id} is not the one of the old packet",)
    server = () if old.target == new.target else (f"server: {old.target or _OWN} then, {new.target or _OWN} now",)
    return (*versions, *plan, *other, *server)


def _same_arrivals(old: Side, new: Side) -> bool:
    digests = {trace.run.workload_sha256 for trace in (*old.traces, *new.traces)}
    lengths = {len(trace.requests) for trace in (*old.traces, *new.traces)}
    return len(digests) == 1 and len(lengths) == 1


def _rate(side: Side) -> float:
    """Requests/s as scheduled."""
    scheduled = side.traces[0].requests["scheduled"]
    span = float(scheduled[-1] - scheduled[0]) / 1e9 if len(scheduled) > 1 else 0.0
    return (len(scheduled) - 1) / span if span else 1.0


def _asked(new: Side) -> tuple[list[tuple[str, str, float | None]], tuple[str, ...]]:
    """(role, metric, margin) of each row, and the guards that a gate cannot ask."""
    here = [guard for guard in new.guards if (guard.slice, guard.condition) == (HELD_OUT, AS_RECORDED)]
    margins = {guard.metric: guard.margin for guard in here}
    asked: list[tuple[str, str, float | None]] = [("primary", new.sla.metric, margins.get(new.sla.metric))]
    asked += [("guard", guard.metric, guard.margin) for guard in here if guard.metric != new.sla.metric]
    skipped = tuple(f"guard {g.metric} {_where(g)} is not part of a gate" for g in new.guards if g not in here)
    return asked, skipped


def _where(guard: Guard) -> str:
    return f"on slice {guard.slice}" if guard.condition == AS_RECORDED else f"under {guard.condition}"


def _weigh(old: Side, new: Side, role: str, name: str, margin: float | None, paired: bool, seed: int) -> _Weighed:
    judged = _judged(old, new, name, paired, seed)
    floor = metric.floor((old.arm, new.arm), judged.metric, new.sla)
    return _Weighed(role, name, judged, floor, margin, metric.thin(new.arm, judged.metric, new.sla))


def _judged(old: Side, new: Side, name: str, paired: bool, seed: int) -> metric.Judged:
    if paired:
        return metric.judge(old.arm, new.arm, name, new.sla, seed)
    lost = [float(np.mean(np.isinf(metric.settle(np.concatenate(side.arm), side.sla)))) for side in (old, new)]
    note = ""
    if lost[0] != lost[1] and name not in metric.SHARES:
        note = f"{lost[0]:.2%} against {lost[1]:.2%} of requests failed: judged on goodput"
        name = "goodput"

    def figure(latency: Floats) -> float:
        return metric.value(latency, name, new.sla)

    return metric.Judged(name, unpaired(old.arm, new.arm, figure, np.random.default_rng(seed)), note)


def _rows(old: Side, new: Side, weighed: Sequence[_Weighed]) -> tuple[GateRow, ...]:
    passing = holm([_p_pass(one) for one in weighed])
    failing = holm([_p_fail(one) for one in weighed])
    return tuple(
        _row(old, new, one, p <= ALPHA, f <= ALPHA) for one, p, f in zip(weighed, passing, failing, strict=True)
    )


def _p_pass(one: _Weighed) -> float:
    """p-value of "it got worse by the margin or more"."""
    return metric.p_not_better(
        one.judged.comparison, one.judged.metric, metric.worse_by(one.judged.metric, one.forgiven)
    )


def _p_fail(one: _Weighed) -> float:
    """p-value of "it got worse by no more than margin and floor"."""
    forgiven = max(one.forgiven, one.floor.value or 0.0)
    return metric.p_not_worse(one.judged.comparison, one.judged.metric, metric.worse_by(one.judged.metric, forgiven))


def _row(old: Side, new: Side, one: _Weighed, below: bool, above: bool) -> GateRow:
    status, note = _status(one, below, above)
    change, interval = metric.change(one.judged.comparison)
    values = [metric.value(np.concatenate(side.arm), one.judged.metric, side.sla) for side in (old, new)]
    return GateRow(
        metric=one.judged.metric,
        slice=new.slice,
        role="primary" if one.role == "primary" else "guard",
        old=values[0],
        new=values[1],
        change=change,
        interval=interval,
        floor=one.floor.value,
        margin=one.forgiven,
        status=status,
        note="; ".join(part for part in (one.judged.note, note) if part),
    )


def _status(one: _Weighed, below: bool, above: bool) -> tuple[Passage, str]:
    interval = one.judged.comparison.interval
    if interval is None:
        return "inconclusive", one.judged.comparison.reason
    if above:
        return "fail", "worse by more than is forgiven"
    barrier = _barrier(one, interval)
    if barrier:
        return "inconclusive", barrier
    return ("pass", "") if below else ("inconclusive", "the interval touches the margin")


def _barrier(one: _Weighed, interval: Interval) -> str:
    """Why a row may not pass, whatever its interval says."""
    floor = one.floor.value
    if floor is None or one.floor.provisional:
        return one.floor.reason
    if one.margin is None and floor > MOST_FLOOR:
        return f"replays of one plan differ by {floor * 100:.3g} %: nothing may pass on that"
    if one.margin is not None and one.margin < floor and not _clearly_better(one, interval, floor):
        return f"the margin of {one.margin * 100:.3g} % lies below the floor of {floor * 100:.3g} %"
    return one.worth


def _clearly_better(one: _Weighed, interval: Interval, floor: float) -> bool:
    limit = metric.worse_by(one.judged.metric, -floor)
    return interval.lo > limit if metric.higher_is_better(one.judged.metric) else interval.hi < limit


def _overall(rows: Sequence[GateRow]) -> Passage:
    statuses = {row.status for row in rows}
    if "fail" in statuses:
        return "fail"
    return "pass" if statuses == {"pass"} else "inconclusive"


def _sentence(rows: Sequence[GateRow]) -> str:
    outcome = _overall(rows)
    if outcome == "pass":
        return "What runs today got no worse than is forgiven."
    named = ", ".join(row.metric for row in rows if row.status == outcome)
    return f"Worse than is forgiven: {named}." if outcome == "fail" else f"Not decided: {named}."


def _how(old: Side, new: Side, paired: bool) -> str:
    counts = f"{len(old.traces)} and {len(new.traces)} replays of {new.slice}"
    verdicts = f"verdict then: {old.decision or 'none'}, now: {new.decision or 'none'}"
    if new.target:
        verdicts = f"driven against {new.target}"
    if paired:
        return f"Paired on the same {len(new.traces[0].requests)} arrivals, {counts}; {verdicts}."
    return f"Unpaired (other arrivals or settings, wider intervals), {counts}; {verdicts}."
