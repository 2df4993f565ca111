"""A verdict in words: the decision first, then what triggers say, the primary metric, the tail, and what stays open."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.figure import Interval
from trimtab.domain.study import SignOff
from trimtab.domain.verdict import ROLE_TITLES, ROLES, MatrixCell, Role
from trimtab.retuning import _metric as metric
from trimtab.retuning import watched
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.arms import AS_RECORDED
from trimtab.retuning.case import Case, Ruling


def sentence(case: Case, ruling: Ruling) -> str:
    """Decision and move first, then the primary metric, the owner of the tail, and what stays open."""
    plumbing = f"This proves plumbing only: {case.plumbing}." if case.plumbing else ""
    parts = [_opening(case, ruling), plumbing, _fired(case), _effect(case), _tail(case), _open(case)]
    return " ".join(part for part in parts if part)


def _opening(case: Case, ruling: Ruling) -> str:
    if ruling.decision == "rollback":
        return f"Roll back to plan {case.baseline}: {ruling.why}."
    if ruling.decision == "hold":
        return f"Hold: {ruling.why}.{_meanwhile(case)}"
    pending = signoff_text(case.signoff, case.signed)
    return f"Ship, {pending}: {_action(case)}." if pending else f"Ship: {_action(case)}."


def _meanwhile(case: Case) -> str:
    """What a hold leaves as it is."""
    if case.running is not None:
        return f" Plan {case.running.plan} keeps running."
    return "" if case.move.kind == NO_CHANGE else f" The move was: {_action(case)}."


def _action(case: Case) -> str:
    if case.running is not None:
        return f"keep plan {case.running.plan}, which runs"
    action = case.move.sentence.rstrip(".")
    return action[:1].lower() + action[1:]


def _fired(case: Case) -> str:
    """The triggers of what runs that fired; that none did, where they could be held."""
    held = [one for one in case.running.triggers if one.runs] if case.running is not None else []
    fired = [watched.sentence(one) for one in held if one.fired]
    return " ".join(fired) or ("No trigger fired." if held else "")


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
    plan = case.baseline if case.running is None else case.running.plan
    return f"The tail of plan {plan} belongs to {cause} ({share * 100:.0f} %)."


def _open(case: Case) -> str:
    told = [cell for cell in case.cells if cell.role == "informative"]
    worse = [cell for cell in told if cell.status == "fail"]
    unsure = [cell for cell in told if cell.status == "inconclusive"]
    parts = []
    if worse:
        parts.append(f"Worse: {names(worse)}.")
    if unsure:
        parts.append(f"Open: {names(unsure)}.")
    return " ".join(parts)


def names(cells: Sequence[MatrixCell]) -> str:
    """Cells as a person names them, the first of many."""
    words = list(dict.fromkeys(f"{cell.metric} on {cell.slice}{_under(cell)}" for cell in cells))
    if len(words) > 3:
        return f"{', '.join(words[:2])} and {len(words) - 2} more"
    return _and(words)


def _under(cell: MatrixCell) -> str:
    return "" if cell.condition == AS_RECORDED else f" ({cell.condition})"


def _and(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
