"""Which first-principles class explains the tail, and what proves it; else "insufficient evidence" (R19).

Order of decision
-----------------
0. Failures are told before any class. Where the run misses its bound and nothing of the tail is proven, they stand
   before a defect, too: a percentile that falls among failed requests has no cause among the latencies of the others.
1. Validity gates. A late generator or a run cut short: ``invalid-measurement``. Too few requests, or none that ended
   well: ``insufficient-evidence``.
2. A defect that no latency shows (a precision that was declared and not executed, quality below its floor) is named
   whatever the tail does, behind the tail's own class.
3. SLA met and neither accuracy low: ``healthy``.
4. p50 and p99 moved by the same factor against the baseline (within 15 %, and both by more than the floor):
   ``whole-shift``; not a problem of the tail.
5. Causes, ranked by the change of the primary metric when that cause alone is removed, over the change when all are.
   A cause is named only if its interval lies above 0, its required evidence is there, and nothing contradicts it.
6. A rival whose interval reaches into the leader's is named with it.
Nothing named: ``insufficient-evidence``, with what is missing and the next measurement, or ``healthy`` where the SLA
holds and nothing contradicts that.

Shares need not sum to 1: waits are supermodular in their causes.
Limits: removal is modelled (the account), so two causes that feed on each other may both be large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from trimtab.domain.score import CLASS_OWNERS, ClassId, Diagnosis, Named
from trimtab.evidence.classify.gates import Gate
from trimtab.evidence.figures import percent

SAME_FACTOR = 0.15
INVALID_GATES = ("load-generator", "complete")
WHY_FAILED = "why requests failed: the marks and messages of the run, or of the system that was recorded"


class Effect(msgspec.Struct, frozen=True):
    """Removing one cause alone: ``share`` of what removing all would change, with its interval (None: not known)."""

    share: float
    lo: float | None = None
    hi: float | None = None

    @property
    def proven(self) -> bool:
        """Whether the interval lies above 0."""
        return self.lo is not None and self.lo > 0

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, where both are known."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)


class Suspect(msgspec.Struct, frozen=True):
    """One class with what speaks for it. ``evidence`` = required evidence found, ``missing`` = required but not there
    (what to measure), ``against`` = what contradicts it. ``effect`` None = no share of the tail was computed.
    ``certain`` = arithmetic, not statistics, proves the effect (more work than the workers have time): it needs no
    interval.
    """

    id: ClassId
    effect: Effect | None
    evidence: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    certain: bool = False

    @property
    def named(self) -> bool:
        proven = self.certain or (self.effect is not None and self.effect.proven)
        return proven and bool(self.evidence) and not self.missing and not self.against


class Shift(msgspec.Struct, frozen=True):
    """p50 and p99 over those of the baseline, and the A/A floor of a latency (a share). ``tail`` names the percentile
    that stands for p99 where there are too few requests for it, ``of`` what they are percentiles of."""

    p50: float
    p99: float
    floor: float
    tail: str = "p99"
    of: str = ""


class Case(msgspec.Struct, frozen=True):
    """All that a diagnosis decides from. ``met`` / ``fits`` None = unknown (no SLA; no reference to score against).

    ``defects`` are suspects that are named on their evidence alone, whatever their share of the tail. ``standard`` is
    what ``met`` says of. ``failures`` tells which requests failed (empty: none); ``lost`` = the primary percentile
    falls among these.
    """

    gates: tuple[Gate, ...]
    met: bool | None
    fits: bool | None
    suspects: tuple[Suspect, ...]
    shift: Shift | None = None
    defects: tuple[Suspect, ...] = ()
    standard: str = "the SLA"
    failures: str = ""
    lost: bool = False


def classify(case: Case) -> Diagnosis:
    """The diagnosis of one run, by the order of decision above."""
    return msgspec.structs.replace(_decided(case), failures=case.failures)


def _decided(case: Case) -> Diagnosis:
    refused = [gate for gate in case.gates if gate.decides and not gate.passed]
    if refused:
        return _refused(refused)
    defects = tuple(_named(suspect, case.suspects) for suspect in case.defects if _defect(suspect))
    if case.met and case.fits:  # nothing to explain: a tail that holds has no cause to name beside a defect
        fit = _alone("healthy", (f"{case.standard} is met and neither accuracy is low",))
        return _diagnosis(defects, ()) if defects else fit
    if case.shift is not None and whole_shift(case.shift):
        moved = (
            f"{case.shift.of} p50 moved by x{case.shift.p50:.2f} and {case.shift.tail} by x{case.shift.p99:.2f}".strip()
        )
        text = f"{moved}: the whole distribution moved"
        return _with(_alone("whole-shift", (text,)), defects)
    return _causes(case, defects)


def _causes(case: Case, defects: tuple[Named, ...]) -> Diagnosis:
    """Steps 5 and 6: what is proven, else healthy or insufficient evidence."""
    leaders = _leaders(case.suspects)
    missing = _missing((*case.suspects, *case.defects), case.gates)
    if case.failures and case.met is not True and not leaders:
        return _with(_alone("insufficient-evidence", _unexplained(case)), defects, (WHY_FAILED, *missing))
    if leaders or defects:
        return _diagnosis(tuple(_named(suspect, case.suspects) for suspect in leaders) + defects, missing)
    if case.met and case.fits is not False:
        return _with(_alone("healthy", (f"{case.standard} is met and no cause of the tail is proven",)), (), missing)
    return _with(_alone("insufficient-evidence", _near(case.suspects)), (), missing or ("an account of the tail",))


def whole_shift(shift: Shift) -> bool:
    """Both percentiles moved, by more than the floor, in the same direction and by the same factor."""
    moves = [math.log(shift.p50), math.log(shift.p99)]
    floor = math.log1p(max(shift.floor, 0.0))
    if min(abs(move) for move in moves) <= floor or moves[0] * moves[1] < 0:
        return False
    return abs(moves[1] - moves[0]) <= math.log1p(max(SAME_FACTOR, shift.floor))


def _refused(refused: Sequence[Gate]) -> Diagnosis:
    invalid = [gate for gate in refused if gate.name in INVALID_GATES]
    kind: ClassId = "invalid-measurement" if invalid else "insufficient-evidence"
    shown = invalid or refused
    one = _alone(kind, tuple(gate.text for gate in shown))
    return _with(one, (), tuple(f"a run that passes the gate {gate.name!r}" for gate in shown), shown[0].fix)


def _defect(suspect: Suspect) -> bool:
    return bool(suspect.evidence) and not suspect.missing and not suspect.against


def _leaders(suspects: Sequence[Suspect]) -> list[Suspect]:
    """The named suspect with the largest share, then every rival whose interval reaches into its own."""
    named = sorted((s for s in suspects if s.named), key=lambda s: -_share(s))
    if not named:
        return []
    reach = named[0].effect.lo if named[0].effect is not None and named[0].effect.lo is not None else _share(named[0])
    return [named[0], *(s for s in named[1:] if s.effect is not None and (s.effect.hi or s.effect.share) >= reach)]


def _share(suspect: Suspect) -> float:
    return suspect.effect.share if suspect.effect is not None else 0.0


def _named(suspect: Suspect, all_suspects: Sequence[Suspect]) -> Named:
    effect = suspect.effect
    return Named(
        id=suspect.id,
        share=effect.share if effect is not None else None,
        interval=effect.interval if effect is not None else None,
        owner=CLASS_OWNERS[suspect.id],
        evidence=suspect.evidence,
        ruled_out=tuple(
            f"{other.id}: {why}" for other in all_suspects for why in other.against if other is not suspect
        ),
    )


def _near(suspects: Sequence[Suspect]) -> tuple[str, ...]:
    """What came closest, and why it is not named."""
    lines = []
    for suspect in sorted(suspects, key=lambda s: -_share(s)):
        if suspect.effect is None or suspect.effect.share <= 0:
            continue
        why = "; ".join((*suspect.against, *(f"lacks {what}" for what in suspect.missing)))
        if not suspect.effect.proven:
            why = why or "its interval reaches 0, or there is none"
        lines.append(f"{suspect.id} ({percent(suspect.effect.share)}): {why or 'no evidence beside the share'}")
    return tuple(lines[:3])


def _unexplained(case: Case) -> tuple[str, ...]:
    """What stands in the place of a class where requests failed and nothing else is proven."""
    lost = ("the percentile falls among failed requests: the latencies of the others do not explain it",)
    return lost if case.lost else ("no cause of the tail is proven, and requests failed", *_near(case.suspects))


def _missing(suspects: Sequence[Suspect], gates: Sequence[Gate]) -> tuple[str, ...]:
    """Evidence that would decide more, of the largest suspects first; then gates that only weaken."""
    found: list[str] = []
    for suspect in sorted(suspects, key=lambda s: -_share(s)):
        if suspect.effect is not None and suspect.effect.share <= 0:
            continue
        found += suspect.missing
        open_ = suspect.evidence and not suspect.against and not suspect.named
        if open_ and suspect.effect is not None and suspect.effect.lo is None:
            found.append(f"an interval for {suspect.id}: replay more requests")
    found += [gate.fix for gate in gates if not gate.passed and not gate.decides]
    return tuple(dict.fromkeys(found))


def _alone(kind: ClassId, evidence: tuple[str, ...]) -> Diagnosis:
    one = Named(id=kind, share=None, interval=None, owner=CLASS_OWNERS[kind], evidence=evidence)
    return Diagnosis(classes=(one,))


def _with(first: Diagnosis, more: tuple[Named, ...], missing: tuple[str, ...] = (), nxt: str = "") -> Diagnosis:
    return _diagnosis(first.classes + more, missing, nxt)


def _diagnosis(classes: tuple[Named, ...], missing: tuple[str, ...], nxt: str = "") -> Diagnosis:
    return Diagnosis(classes=classes, missing=missing, next_measurement=nxt or (missing[0] if missing else ""))
