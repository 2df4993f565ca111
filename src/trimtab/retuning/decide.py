"""Decide: one pure function from the matrix to ship, hold or roll back.

The rule, in this order; the first line that applies decides.

1. The candidate is running and a guard fails: *rollback*.
2. There is no change to decide on: *hold*; inconclusive where the replays left open whether a move gains, else
   no-benefit.
3. A guard fails: *hold*, guard-failed.
4. The primary cell fails (no benefit above the floor): *hold*, no-benefit.
5. The primary cell or a guard did not pass, or there is no primary cell: *hold*, inconclusive.
6. A backend that computes no network took part: *hold*, inconclusive. Such a verdict proves plumbing only, whatever it
   is, and says so.
7. The move may change outputs (all but those in UNTOUCHED: it pads, batches or computes in another way), and no quality
   cell passed: *hold*, inconclusive. Nobody ships answers that nobody has looked at.
8. Precision (or sparsity) changes, and nobody knows what precision was executed: *hold*, inconclusive (R32).
9. Else *ship*, with the sign-off that the study asks for.

Quality cells are guards. Inconclusive is never a pass; informative cells never decide, but those that failed or stayed
open are named. What was not run is listed: the decision does not hold there. A cell without samples covers nothing.

The way back, ``retuning.triggers``, is part of every proposal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.domain.figure import Interval
from trimtab.domain.study import SignOff, Sla
from trimtab.domain.verdict import (
    ROLE_TITLES,
    ROLES,
    Decision,
    HoldReason,
    MatrixCell,
    Move,
    Role,
    Verdict,
)
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.arms import AS_RECORDED
from trimtab.retuning.validate import NOT_ASKED, NOTHING_REPLAYED

OWN_QUEUE = "trimtab's own queue and workers: no remote server was driven"
UNTOUCHED = (NO_CHANGE, "warm", "order", "placement", "admit", "workers")
"""Kinds of change that leave every request that is served with the program and shapes that it may have had before."""
UNSEEN = (
    "it may change outputs and nothing has judged them; a study with real or rendered payloads (workload.payload) would"
)


@dataclass(frozen=True)
class Case:
    """Everything that a decision rests on.

    ``undecided`` = why the replays left open whether a move gains (empty: they did not) · ``quality`` cells judge
    outputs against the reference · ``changes_precision`` = the candidate computes in another precision or sparsity
    than the baseline, declared or executed · ``executed`` = the share of time that the candidate spends in each
    precision that is known · ``plumbing`` = which backend computes no network (empty: all do) · ``running`` = the
    candidate already serves · ``tail`` = who owns the baseline's tail, as (cause, share of the tail) · ``scope``,
    ``not_covered`` and ``risks`` add words to what the cells say themselves · ``signed`` = the roles that have signed.
    """

    move: Move
    baseline: str
    cells: tuple[MatrixCell, ...]
    sla: Sla
    signoff: SignOff
    undecided: str = ""
    quality: tuple[MatrixCell, ...] = ()
    changes_precision: bool = False
    executed: Mapping[str, float] = field(default_factory=dict)
    plumbing: str = ""
    running: bool = False
    signed: tuple[Role, ...] = ()
    tail: tuple[str, float] | None = None
    scope: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Ruling:
    decision: Decision
    reason: HoldReason
    why: str
    deciding: tuple[MatrixCell, ...] = ()


def decide(case: Case) -> Verdict:
    """The verdict of ``case``."""
    ruling = _rule(case)
    cells = (*case.cells, *case.quality)
    return Verdict(
        decision=ruling.decision,
        reason=ruling.reason,
        sentence=_sentence(case, ruling),
        deciding=tuple(cell.id for cell in ruling.deciding),
        cells=cells,
        scope=(*case.scope, *_covered(case), *_executed(case), *_plumbing(case), OWN_QUEUE),
        not_covered=(*_not_run(case), *case.not_covered),
        risks=_risks(case, ruling),
    )


def _rule(case: Case) -> _Ruling:
    primary = next((cell for cell in case.cells if cell.role == "primary"), None)
    guards = tuple(cell for cell in (*case.cells, *case.quality) if cell.role == "guard")
    stopped = _stopped(case, primary, tuple(cell for cell in guards if cell.status == "fail"))
    if stopped is not None:
        return stopped
    if primary is None:
        return _Ruling("hold", "inconclusive", "there is no primary cell")
    unsure = tuple(cell for cell in (primary, *guards) if cell.status != "pass")
    if unsure:
        verb = "is" if len(unsure) == 1 else "are"
        return _Ruling("hold", "inconclusive", f"{_names(unsure)} {verb} undecided", unsure)
    barred = _barred(case)
    return _Ruling("hold", "inconclusive", barred) if barred else _Ruling("ship", "", "", (primary, *guards))


def _barred(case: Case) -> str:
    """Lines 6 to 8 of the rule: why a move whose cells all pass must not ship; empty = it may."""
    if case.plumbing:
        return case.plumbing
    if case.move.kind not in UNTOUCHED and not any(cell.status == "pass" for cell in case.quality):
        return UNSEEN
    if case.changes_precision and not case.executed:
        return "precision changes and there is no record of the precision that was executed"
    return ""


def _stopped(case: Case, primary: MatrixCell | None, failed: tuple[MatrixCell, ...]) -> _Ruling | None:
    """Lines 1 to 4 of the rule: what was shown to be no good."""
    if case.running and failed:
        return _Ruling("rollback", "guard-failed", f"{_names(failed)} failed on what is running", failed)
    if case.move.kind == NO_CHANGE:
        reason: HoldReason = "inconclusive" if case.undecided else "no-benefit"
        return _Ruling("hold", reason, case.undecided or "no move gained anything")
    if failed:
        return _Ruling("hold", "guard-failed", f"{_names(failed)} got worse than allowed", failed)
    if primary is not None and primary.status == "fail":
        return _Ruling("hold", "no-benefit", "no benefit above the floor", (primary,))
    return None


# --- words ---------------------------------------------------------------------------------------------------


def _sentence(case: Case, ruling: _Ruling) -> str:
    """Decision and move first, then the primary metric, the owner of the tail, and what stays open."""
    plumbing = f"This proves plumbing only: {case.plumbing}." if case.plumbing else ""
    parts = [_opening(case, ruling), plumbing, _effect(case), _tail(case), _open(case)]
    return " ".join(part for part in parts if part)


def _opening(case: Case, ruling: _Ruling) -> str:
    action = case.move.sentence.rstrip(".")
    action = action[:1].lower() + action[1:]
    if ruling.decision == "rollback":
        return f"Roll back to plan {case.baseline}: {ruling.why}."
    if ruling.decision == "hold" and case.move.kind == NO_CHANGE:
        return f"Hold: {ruling.why}."
    if ruling.decision == "hold":
        return f"Hold: {ruling.why}. The move was: {action}."
    pending = signoff_text(case.signoff, case.signed)
    return f"Ship, {pending}: {action}." if pending else f"Ship: {action}."


def signoff_text(signoff: SignOff, signed: Sequence[Role]) -> str:
    """What is still missing before a ship counts: ``once the runtime lead signs``; says where sign-off is reduced."""
    missing = [role for role in signoff.require if role not in signed]
    titles = [f"the {ROLE_TITLES[role]}" for role in missing]
    words = ""
    if titles:
        words = f"once {_and(titles)} {'signs' if len(titles) == 1 else 'sign'}"
    if len(set(signoff.require)) < len(ROLES):
        asked = _and([ROLE_TITLES[role] for role in signoff.require]) or "nobody"
        return " ".join(word for word in (words, f"(reduced sign-off: {asked})") if word)
    return words


def _effect(case: Case) -> str:
    primary = next((cell for cell in case.cells if cell.role == "primary"), None)
    if primary is None or primary.baseline is None or primary.candidate is None:
        return ""
    was, now = (metric.text(figure, primary.metric) for figure in (primary.baseline, primary.candidate))
    change = metric.signed(primary.change) + _range(primary.interval)
    return f"On {primary.slice}, {primary.metric} went from {was} to {now} ({change}); {_against_bound(case, primary)}."


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f", {metric.signed(interval.lo)} to {metric.signed(interval.hi)}"


def _against_bound(case: Case, primary: MatrixCell) -> str:
    bound = metric.text(metric.bound(case.sla), case.sla.metric)
    if primary.metric != case.sla.metric or primary.candidate is None:
        return f"the bound is {case.sla.metric} {bound}"
    verb = "meets" if metric.meets(primary.candidate, case.sla) else "misses"
    return f"that {verb} the bound of {bound}"


def _tail(case: Case) -> str:
    if case.tail is None:
        return ""
    cause, share = case.tail
    return f"The tail of plan {case.baseline} belongs to {cause} ({share * 100:.0f} %)."


def _open(case: Case) -> str:
    told = [cell for cell in case.cells if cell.role == "informative"]
    worse = [cell for cell in told if cell.status == "fail"]
    unsure = [cell for cell in told if cell.status == "inconclusive"]
    parts = []
    if worse:
        parts.append(f"Worse: {_names(worse)}.")
    if unsure:
        parts.append(f"Open: {_names(unsure)}.")
    return " ".join(parts)


def _names(cells: Sequence[MatrixCell]) -> str:
    words = [f"{cell.metric} on {cell.slice}{_under(cell)}" for cell in cells]
    if len(words) > 3:
        return f"{', '.join(words[:2])} and {len(words) - 2} more"
    return _and(words)


def _under(cell: MatrixCell) -> str:
    return "" if cell.condition == AS_RECORDED else f" ({cell.condition})"


def _and(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _conditions(case: Case) -> tuple[str, ...]:
    """Conditions under which requests were served. Answers are judged one by one, outside of any of them."""
    return tuple(dict.fromkeys(cell.condition for cell in case.cells if cell.samples))


def _not_run(case: Case) -> tuple[str, ...]:
    """Conditions that nothing was served under; where they were asked for, with the reason why not."""
    ran = _conditions(case)
    found = {cell.condition: cell.note for cell in case.cells if cell.status == "not-run"}
    usual = ("", NOT_ASKED, NOTHING_REPLAYED)
    return tuple(name if why in usual else f"{name} ({why})" for name, why in found.items() if name not in ran)


def _covered(case: Case) -> tuple[str, ...]:
    """Where samples were taken."""
    slices = list(dict.fromkeys(cell.slice for cell in (*case.cells, *case.quality) if cell.samples))
    conditions = _conditions(case)
    out = []
    if slices:
        out.append(f"slices: {', '.join(slices)}")
    if conditions:
        out.append(f"conditions: {', '.join(conditions)}")
    return tuple(out)


def _plumbing(case: Case) -> tuple[str, ...]:
    return (f"plumbing only: {case.plumbing}",) if case.plumbing else ()


def _executed(case: Case) -> tuple[str, ...]:
    words = [f"{name} {share * 100:.0f} %" for name, share in sorted(case.executed.items())]
    return (f"executed precision: {', '.join(words)}",) if words else ()


def _risks(case: Case, ruling: _Ruling) -> tuple[str, ...]:
    risks = [case.move.risk] if case.move.risk else []
    for cell in case.cells:
        if cell.role == "informative" and cell.status == "fail":
            risks.append(f"{cell.metric} on {cell.slice} ({cell.condition}) is worse: {metric.signed(cell.change)}.")
        if cell.role == "primary" and _misses(case, cell):
            risks.append(f"The bound of {metric.text(metric.bound(case.sla), case.sla.metric)} is still missed.")
    undecided = sum(cell.role == "informative" and cell.status == "inconclusive" for cell in case.cells)
    if undecided:
        risks.append(f"{undecided} informative cell{'s are' if undecided > 1 else ' is'} undecided.")
    if ruling.decision == "ship" and len(set(case.signoff.require)) < len(ROLES):
        risks.append("Sign-off is reduced: not every role answers for this change.")
    return (*risks, *case.risks)


def _misses(case: Case, cell: MatrixCell) -> bool:
    if cell.metric != case.sla.metric or cell.candidate is None:
        return False
    return not metric.meets(cell.candidate, case.sla)
