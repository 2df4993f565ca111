"""Judging: the chosen move, the held-out replays of both plans, their matrix, and what a verdict says around it."""

from __future__ import annotations

import msgspec

from trimtab.domain.figure import Figure
from trimtab.domain.score import Diagnosis
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move, Proposal
from trimtab.loop import runs
from trimtab.loop.context import Context
from trimtab.retuning import arms, findings, moves, rollback
from trimtab.retuning import validate as matrix
from trimtab.store.codec import read_json

CHOICE = "choice.json"
HELD_OUT = arms.HELD_OUT


Replays = dict[str, list[Trace]]
"""Held-out traces by plan, the baseline's first; empty where nothing changes."""


def held_out(ctx: Context, move: Move) -> Replays:
    """Baseline and candidate on the held-out slice, in turn."""
    if move.kind == moves.NO_CHANGE:
        return {}
    plans = [ctx.study.baseline, move.plan]
    return runs.in_turn(ctx, plans, HELD_OUT, ctx.schedule.replays, label=HELD_OUT, stage="validate")


def matrix_of(ctx: Context, replays: Replays) -> matrix.Matrix:
    """The validation matrix of these replays."""
    study = ctx.study
    rows = arms.slice_rows(ctx.workload, ctx.slice(HELD_OUT))
    pairs = [_arms(replays)] if replays else []
    return matrix.validate(study.sla, study.guards, pairs, rows, study.seeds.bootstrap)


def _arms(replays: Replays) -> arms.Arms:
    baseline, candidate = replays.values()
    return arms.arms_of(arms.AS_RECORDED, baseline, candidate)


def choice(ctx: Context) -> Proposal:
    """What retune chose, before anything was proven."""
    return read_json(ctx.packet.path(CHOICE), Proposal)


def proposal(ctx: Context, draft: Proposal, cells: matrix.Matrix, replays: Replays) -> Proposal:
    """The draft with what the held-out replays measured, and the boundary where it must be undone."""
    study, owner = ctx.study, draft.move.owner
    rule = rollback.trigger(_arms(replays).candidate, study.sla, study.seeds.bootstrap)
    measured: Figure | None = None if cells.primary is None else findings.cell_figure(cells.primary, "validate.json")
    return msgspec.structs.replace(
        draft,
        measured=measured,
        rollback=rollback.boundary(rule, study.baseline.id, owner, study.owners.get(owner, "")),
    )


def tail_owner(ctx: Context) -> tuple[str, float] | None:
    """The largest label of the p95 set and its share, as the attribute stage found it; None where the run proves no
    cause."""
    waterfall = ctx.packet.read_findings("attribute").table("tail.p95.waterfall")
    classes = read_json(ctx.packet.path("diagnosis.json"), Diagnosis).classes
    if waterfall is None or classes[0].id in ("invalid-measurement", "insufficient-evidence"):
        return None
    rows = zip(waterfall.columns["cause"], waterfall.columns["share"], strict=True)
    label, share = max(rows, key=lambda row: float(row[1] or 0.0))
    return str(label), float(share or 0.0)


def not_compared(ctx: Context) -> tuple[str, ...]:
    """The risk of a study with random payloads: its verdict speaks of time alone."""
    if ctx.workload.payload_kind != "random":
        return ()
    return ("Outputs were not compared: random payloads judge no quality, so padding may change answers unseen.",)


def scope(ctx: Context) -> tuple[str, ...]:
    traffic_of = ctx.workload.provenance
    files = ", ".join(f"{source.name} ({source.used} of {source.rows} rows)" for source in traffic_of.files)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(ctx.versions.items()))
    return (
        f"model {ctx.study.model.revision}, sha256 {ctx.model.sha256[:12]}",
        f"traffic: {files}",
        f"versions: {versions}",
    )
