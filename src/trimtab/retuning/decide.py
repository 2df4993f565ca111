"""Decide: one pure function from the matrix to ship, hold or roll back.

The rule, in this order; the first line that applies decides.

1. The candidate runs already, and a guard fails or the primary cell is worse than the floor: *rollback*.
2. There is no change to decide on: *hold*; inconclusive where the replays left open whether a move gains, else
   no-benefit.
3. A guard fails: *hold*, guard-failed.
4. The primary cell fails (no benefit above the floor): *hold*, no-benefit.
5. The primary cell or a guard did not pass, or there is no primary cell: *hold*, inconclusive.
6. A backend that computes no network took part: *hold*, inconclusive. Such a verdict proves plumbing only, whatever it
   is, and says so.
7. The move may change outputs (all but those in UNTOUCHED: it pads, batches or computes in another way), and no quality
   cell passed: *hold*, inconclusive. Nobody ships answers that nobody has looked at.
8. Precision changes, and nobody knows what precision was executed: *hold*, inconclusive (R32). Sparsity cannot be
   claimed: no plan has a word for it, and an option that a runtime does not know is a compile failure.
9. Else *ship*, with the sign-off that the study asks for.

Quality cells are guards. Inconclusive is never a pass; informative cells never decide, but those that failed or stayed
open are named. What was not run is listed: the decision does not hold there. A cell without samples covers nothing.

For what runs, *ship* means keep, and *hold* that it keeps running while the evidence does not decide or shows no gain.
Its triggers (``retuning.watched``) are told and never decide: they know nothing of the plan to go back to.

The way back, ``retuning.triggers``, is part of every proposal.
"""

from __future__ import annotations

from trimtab.domain.verdict import ROLES, HoldReason, MatrixCell, Verdict
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.case import Case, Ruling
from trimtab.retuning.validate import NOT_ASKED, NOTHING_REPLAYED
from trimtab.retuning.wording import names, sentence

OWN_QUEUE = "trimtab's own queue and workers: no remote server was driven"
UNTOUCHED = (NO_CHANGE, "warm", "order", "placement", "admit", "workers")
"""Kinds of change that leave every request that is served with the program and shapes that it may have had before."""
UNSEEN = (
    "it may change outputs and nothing has judged them; a study with real or rendered payloads (workload.payload) would"
)


def decide(case: Case) -> Verdict:
    """The verdict of ``case``."""
    ruling = _rule(case)
    cells = (*case.cells, *case.quality)
    return Verdict(
        decision=ruling.decision,
        reason=ruling.reason,
        sentence=sentence(case, ruling),
        deciding=tuple(cell.id for cell in ruling.deciding),
        cells=cells,
        scope=(*case.scope, *_covered(case), *_executed(case), *_plumbing(case), OWN_QUEUE),
        not_covered=(*_not_run(case), *case.not_covered),
        risks=_risks(case, ruling),
        running=case.running,
    )


def _rule(case: Case) -> Ruling:
    primary = next((cell for cell in case.cells if cell.role == "primary"), None)
    guards = tuple(cell for cell in (*case.cells, *case.quality) if cell.role == "guard")
    stopped = _stopped(case, primary, tuple(cell for cell in guards if cell.status == "fail"))
    if stopped is not None:
        return stopped
    if primary is None:
        return Ruling("hold", "inconclusive", "there is no primary cell")
    unsure = tuple(cell for cell in (primary, *guards) if cell.status != "pass")
    if unsure:
        verb = "is" if len({(cell.metric, cell.slice, cell.condition) for cell in unsure}) == 1 else "are"
        return Ruling("hold", "inconclusive", f"{names(unsure)} {verb} undecided", unsure)
    barred = _barred(case)
    return Ruling("hold", "inconclusive", barred) if barred else Ruling("ship", "", "", (primary, *guards))


def _barred(case: Case) -> str:
    """Lines 6 to 8 of the rule: why a move whose cells all pass must not ship; empty = it may."""
    if case.plumbing:
        return case.plumbing
    if case.move.kind not in UNTOUCHED and not any(cell.status == "pass" for cell in case.quality):
        return UNSEEN
    if case.changes_precision and not case.executed:
        return "precision changes and there is no record of the precision that was executed"
    return ""


def _stopped(case: Case, primary: MatrixCell | None, failed: tuple[MatrixCell, ...]) -> Ruling | None:
    """Lines 1 to 4 of the rule: what was shown to be no good."""
    if case.running is not None and (broken := (*_worse(primary), *failed)):
        return Ruling("rollback", "guard-failed", f"{names(broken)} failed on what is running", broken)
    if case.move.kind == NO_CHANGE:
        reason: HoldReason = "inconclusive" if case.undecided else "no-benefit"
        return Ruling("hold", reason, case.undecided or "no move gained anything")
    if failed:
        return Ruling("hold", "guard-failed", f"{names(failed)} got worse than allowed", failed)
    if primary is not None and primary.status == "fail":
        return Ruling("hold", "no-benefit", "no benefit above the floor", (primary,))
    return None


def _worse(primary: MatrixCell | None) -> tuple[MatrixCell, ...]:
    """The primary cell, if its whole interval is worse than what ran before by more than the floor."""
    if primary is None or primary.status != "fail" or primary.interval is None or primary.floor is None:
        return ()
    if metric.higher_is_better(primary.metric):
        return (primary,) if primary.interval.hi < -primary.floor else ()
    return (primary,) if primary.interval.lo > primary.floor else ()


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


def _risks(case: Case, ruling: Ruling) -> tuple[str, ...]:
    risks = [case.move.risk] if case.move.risk else []
    for cell in case.cells:
        if cell.role == "informative" and cell.status == "fail":
            risks.append(f"{cell.metric} on {cell.slice} ({cell.condition}) is worse: {metric.signed(cell.change)}.")
        if cell.role == "primary" and _misses(case, cell):
            risks.append(f"The bound of {metric.text(metric.bound(case.sla), case.sla.metric)} is still missed.")
    undecided = sum(cell.role == "informative" and cell.status == "inconclusive" for cell in case.cells)
    if undecided:
        risks.append(f"{undecided} informative cell{'s are' if undecided > 1 else ' is'} undecided.")
    if ruling.decision != "rollback" and case.running is not None and any(one.fired for one in case.running.triggers):
        risks.append(f"A trigger fired, but it is not shown that going back to plan {case.baseline} would help.")
    if ruling.decision == "ship" and len(set(case.signoff.require)) < len(ROLES):
        risks.append("Sign-off is reduced: not every role answers for this change.")
    return (*risks, *case.risks)


def _misses(case: Case, cell: MatrixCell) -> bool:
    if cell.metric != case.sla.metric or cell.candidate is None:
        return False
    return not metric.meets(cell.candidate, case.sla)
