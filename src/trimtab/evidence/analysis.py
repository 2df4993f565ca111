"""The whole analysis of one run: account, tail figures, score and diagnosis, from its trace and the profiles.

Every stage and every bench that diagnoses a run goes through here, so that a fault is judged by the same rules in the
product, in the fault bench, and in the tests on recorded traces.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from trimtab.domain.account import Account
from trimtab.domain.envelope import Envelope, EnvelopeCheck
from trimtab.domain.figure import Findings
from trimtab.domain.plan import Plan
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute import account as accounts
from trimtab.evidence.attribute import tail
from trimtab.evidence.attribute.counterfactual import Counterfactuals, counterfactuals
from trimtab.evidence.classify import diagnose, facts, failures
from trimtab.evidence.classify.classes import Shift
from trimtab.evidence.latency import PERCENTILES, PRIMARY_TAILS
from trimtab.evidence.policy import policy
from trimtab.evidence.score import accuracy
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.batches import Yardstick, measure
from trimtab.evidence.score.measured import Measured


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What is known around a run besides its trace. None = not known.

    ``declared`` precision and the share of time ``executed`` in it; ``quality`` = whether it holds its floor; ``shift``
    against a baseline run; ``memory`` = bytes that all workers may take.
    """

    plan: Plan
    yardstick: Yardstick
    sla: Sla
    seed: int
    envelope: Envelope | None = None
    checks: Sequence[EnvelopeCheck] | None = None
    declared: str = ""
    executed: float | None = None
    quality: bool | None = None
    shift: Shift | None = None
    memory: int | None = None


class Analysis(msgspec.Struct, frozen=True):
    """What :func:`analyse` found."""

    account: Account
    tail: Findings
    score: Findings
    diagnosis: Diagnosis


def analyse(
    trace: Trace,
    known: Circumstances,
    *,
    simulated: Sequence[Trace] = (),
    replayed: Sequence[Trace] = (),
    adaptation: Adaptation | str | None = None,
    measured: Measured | str | None = None,
) -> Analysis:
    """Account, tail, score and diagnosis of ``trace``. ``simulated`` and ``replayed`` runs of the same plan on the same
    arrivals are set beside each other in the score; ``adaptation`` says what adapting would win, ``measured`` what it
    won."""
    stick = known.yardstick
    account = accounts.account(trace, stick.promise, stick.reference, stick.reference_entry, known.plan)
    again = counterfactuals(trace, account, known.plan, stick.promise, stick.reference, known.seed)
    tails = _with_policy(tail.findings(account, trace, known.seed, again), account, trace, known)
    scored = accuracy.findings(
        trace,
        stick,
        known.sla,
        np.random.default_rng(known.seed),
        simulated=simulated,
        replayed=replayed,
        adaptation=adaptation,
        measured=measured,
    )
    return Analysis(account, tails, scored, _diagnosis(trace, known, account, tails, scored, again))


def _with_policy(tails: Findings, account: Account, trace: Trace, known: Circumstances) -> Findings:
    rng = np.random.default_rng(known.seed)
    desk, said, tables = policy(account, trace, known.plan, known.yardstick.promise, rng)
    return msgspec.structs.replace(
        tails,
        findings=(*tails.findings, *said),
        figures=(*tails.figures, *desk.figures),
        series=(*tails.series, *tables),
    )


def _diagnosis(
    trace: Trace,
    known: Circumstances,
    account: Account,
    tails: Findings,
    scored: Findings,
    again: Counterfactuals,
) -> Diagnosis:
    name = PRIMARY_TAILS[known.sla.metric]
    gains = "resimulated" if again.decides(name) else "gain"
    gathered = facts.gather(
        trace,
        measure(trace, known.yardstick),
        account,
        facts.effects(account, tails, name, np.random.default_rng(known.seed), gains=gains),
        known.plan,
        known.envelope,
        known.checks,
        alone=facts.left_alone(account, name, known.sla.bound_ms),
        memory=known.memory,
    )
    gathered = msgspec.structs.replace(
        gathered,
        declared=known.declared,
        executed=known.executed,
        quality=known.quality,
        failed_by_memory=failures.own(trace, PERCENTILES[name]) and failures.mostly(trace, "out-of-memory"),
    )
    figures = {figure.id: figure for figure in scored.figures}
    return diagnose.diagnose(trace, known.sla, gathered, figures, known.shift)
