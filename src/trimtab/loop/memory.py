"""Memory: the limit of this envelope, and what each plan takes of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.domain import envelope
from trimtab.domain.figure import Findings
from trimtab.domain.plan import Plan
from trimtab.domain.verdict import Move
from trimtab.evidence import memory as evidence
from trimtab.evidence.figures import MIB
from trimtab.loop.context import Context


def limit(ctx: Context) -> int | None:
    """The memory that all workers may take, bytes; None where nothing of it is known."""
    probed, _ = ctx.packet.read_envelope()
    return envelope.memory_limit(ctx.study.envelope, probed)


def charged(ctx: Context, move: Move) -> Move:
    """The move with the peak memory of its plan."""
    most = evidence.peak(move.plan, ctx.compiled(move.plan))
    return msgspec.structs.replace(move, peak_mib=None if most is None else most / MIB)


def beside(ctx: Context, found: Findings, plans: Sequence[Plan]) -> Findings:
    """The compile stage's findings with the memory of ``plans``, each of which has a profile of its own."""
    known = {plan.id: (plan, ctx.compiled(plan)) for plan in plans}
    most = limit(ctx)
    tables = (evidence.by_plan(known, most), evidence.curves([one for _, each in known.values() for one in each]))
    return msgspec.structs.replace(
        found,
        findings=(*found.findings, *evidence.told(known, most)),
        series=(*found.series, *(series for series in tables if series is not None)),
    )
