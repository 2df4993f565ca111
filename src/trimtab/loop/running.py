"""A change that runs already, judged by what the packet that shipped it promised: keep it, hold, or go back.

Both plans are replayed in turn on the study's newer held-out traffic, as a proposal would be, and the same cells
decide. No move is searched: what runs is the candidate, what it replaced the baseline. The triggers of the packet that
shipped it are held against the new replays and stay the way back; the tail that is named is that of what runs.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from msgspec.structs import replace

from trimtab.domain.figure import Finding, Findings
from trimtab.domain.study import Study
from trimtab.domain.verdict import Proposal, Running
from trimtab.errors import PacketError, StudyError, UsageError
from trimtab.evidence import latency
from trimtab.loop import analysing, judging
from trimtab.loop.context import Context
from trimtab.loop.judging import Replays
from trimtab.loop.shipped import Shipped
from trimtab.loop.verbs.comparing import sealed_record
from trimtab.retuning import arms, watched
from trimtab.retuning.case import Case
from trimtab.store.codec import write_json
from trimtab.store.manifest import MANIFESTS
from trimtab.store.packet import file_digest

PROMISED = ("name", "model", "dims", "sla", "quality", "guards", "baseline")
"""Parts of a study on which the promises of a packet rest. All else may differ: traffic first of all."""
NOT_ADAPTED = "what runs is judged as it is"


def load(packet: Path, study: Study, out: Path) -> Shipped:
    """The change that ``packet`` shipped, to be judged on ``study`` in the folder ``out``.

    PacketError if the packet is not as it was sealed or ships nothing, StudyError if it promised something else.
    """
    if out.resolve() == packet.resolve():
        raise UsageError(
            "the packet that shipped the change stays as it is", where=str(out), fix="give another folder with --out"
        )
    if study.workload.target:
        raise UsageError(
            "a server that is driven from outside serves no plan of ours",
            where="--running",
            fix="judge it by `trimtab compare` of two packets",
        )
    record = sealed_record(packet)
    if record.verdict is None or record.proposal is None or record.verdict.decision != "ship":
        said = record.verdict.decision if record.verdict else "none yet"
        raise PacketError(
            f"this packet ships nothing that could run: its verdict is {said}",
            where=str(packet),
            fix="give the packet that shipped what runs now",
        )
    other = [name for name in PROMISED if getattr(study, name) != getattr(record.study, name)]
    if other:
        raise StudyError(
            f"what runs is judged by what was promised; the packet's study has another {' and another '.join(other)}",
            where=f"{packet}/study.toml",
            fix="copy these from there; traffic, conditions, envelope, budget and owners may differ",
        )
    created = record.manifest.created if record.manifest else ""
    return Shipped(file_digest(packet / MANIFESTS["evidence"]), created, record.proposal)


def retune(ctx: Context, shipped: Shipped) -> Findings:
    """Nothing is searched: the choice is what runs, and what is expected of it is what it was shipped for."""
    promise, plan = shipped.proposal.measured or shipped.proposal.expected, shipped.move.plan.id
    expected = replace(
        promise,
        id=f"retune.shipped.{plan}",
        artifact=judging.CHOICE,
        note="; ".join(part for part in ("as the packet that shipped it has it", promise.note) if part),
    )
    draft = Proposal(
        move=shipped.move,
        baseline=ctx.study.baseline.id,
        expected=expected,
        measured=None,
        rollback=shipped.proposal.rollback,
        rejected=(),
        triggers=shipped.proposal.triggers,
    )
    ctx.keep(write_json(ctx.packet.path(judging.CHOICE), draft))
    headline = f"Plan {plan} runs already: it is judged as it is, and no other move is tried."
    told = Finding(text=headline, figures=(expected.id,), owner=shipped.move.owner)
    return Findings(stage="retune", headline=headline, findings=(told,), figures=(expected,))


def running(ctx: Context, shipped: Shipped, replays: Replays) -> Running:
    """What the verdict rests on besides the cells: who shipped it, and what its triggers say to the new replays."""
    plan = shipped.move.plan.id
    rows = arms.slice_rows(ctx.workload, ctx.slice(arms.HELD_OUT))
    latencies = [trace.latency for trace in replays[plan]]
    return Running(
        packet=shipped.manifest,
        shipped=shipped.created,
        plan=plan,
        back_to=ctx.study.baseline.id,
        triggers=watched.hold(shipped.proposal.triggers, latencies, rows, ctx.study.sla),
    )


def as_running(ctx: Context, shipped: Shipped, case: Case, replays: Replays) -> Case:
    """``case`` of a change that runs already."""
    return dataclasses.replace(case, running=running(ctx, shipped, replays), tail=_tail_owner(ctx, shipped, replays))


def _tail_owner(ctx: Context, shipped: Shipped, replays: Replays) -> tuple[str, float] | None:
    """What owns the tail of what runs, in its typical held-out replay, and its share; None where that proves nothing.
    The account of that replay is kept."""
    sla = ctx.study.sla
    traces = sorted(replays[shipped.move.plan.id], key=lambda trace: latency.metric_value(trace, sla))
    found = analysing.stored(ctx, traces[len(traces) // 2].run.id)
    ctx.keep(ctx.packet.write_account(found.account.run, found.account.requests))
    return judging.owner_of(found.tail, found.diagnosis.classes[0].id, sla)
