"""Judging: the chosen move, the held-out replays of both plans, their matrix, and what a verdict says around it."""

from __future__ import annotations

import msgspec

from trimtab import backends
from trimtab.domain.figure import Figure, Findings
from trimtab.domain.plan import Plan
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import MatrixCell, Move, Proposal, Trigger
from trimtab.evidence import latency
from trimtab.evidence.attribute import tail
from trimtab.loop import conditions, memory, rehearsing, rounds, runs
from trimtab.loop.context import Context
from trimtab.retuning import arms, findings, moves, trend, triggers
from trimtab.retuning import memory as charge
from trimtab.retuning import validate as matrix
from trimtab.store.codec import read_json

CHOICE = "choice.json"
COMPUTES = "computes the network"
"""What a backend says of itself where it cannot."""
HELD_OUT = arms.HELD_OUT
UNWATCHED = "No trigger: no cell that decides could be measured in both arms."


Replays = dict[str, list[Trace]]
"""Held-out traces by plan, the baseline's first; empty where nothing changes."""


def held_out(ctx: Context, move: Move) -> Replays:
    """Baseline and candidate on the held-out slice, in turn."""
    if move.kind == moves.NO_CHANGE:
        return {}
    plans = [ctx.study.baseline, move.plan]
    times = rounds.of(ctx, arms.AS_RECORDED)
    return runs.in_turn(ctx, plans, ctx.slice(HELD_OUT), times, label=HELD_OUT, stage="validate")


def measured(ctx: Context, move: Move) -> Replays:
    """The same after every condition was replayed as often as its cells need and the budget allows."""
    rounds.fix(ctx)
    replays = held_out(ctx, move)
    if not replays:
        return replays
    pairs = [_arms(replays), *_conditions(ctx, move)]
    rows = arms.slice_rows(ctx.workload, ctx.slice(HELD_OUT))
    wanted = matrix.replays_wanted(ctx.study.sla, ctx.study.guards, pairs, rows)
    rounds.extend(ctx, wanted, pairs[0].seconds / (2 * ctx.schedule.replays))
    return held_out(ctx, move)


def matrix_of(ctx: Context, move: Move, replays: Replays) -> matrix.Matrix:
    """The matrix of these replays of baseline and ``move``, and of those under the conditions of the study."""
    study = ctx.study
    rows = arms.slice_rows(ctx.workload, ctx.slice(HELD_OUT))
    pairs = [_arms(replays), *_conditions(ctx, move)] if replays else []
    refused = conditions.refused(ctx)
    return matrix.validate(study.sla, study.guards, pairs, rows, study.seeds.bootstrap, refused=refused)


def _conditions(ctx: Context, move: Move) -> list[arms.Arms]:
    plans = [ctx.study.baseline, move.plan]
    return [arms.arms_of(kind, *found.values()) for kind, found in conditions.replays(ctx, plans)]


def _arms(replays: Replays) -> arms.Arms:
    baseline, candidate = replays.values()
    return arms.arms_of(arms.AS_RECORDED, baseline, candidate)


def choice(ctx: Context) -> Proposal:
    """What retune chose, before anything was proven."""
    return read_json(ctx.packet.path(CHOICE), Proposal)


def proposal(ctx: Context, draft: Proposal, cells: matrix.Matrix, replays: Replays) -> Proposal:
    """The draft with what the held-out replays measured, and the triggers by which it must be undone. What runs keeps
    those with which it was shipped."""
    measured: Figure | None = None if cells.primary is None else findings.cell_figure(cells.primary, "validate.json")
    proven = msgspec.structs.replace(draft, measured=measured)
    if ctx.shipped is not None:
        return proven
    made = triggers_of(ctx, draft.move, cells, replays, ctx.study.owners.get(draft.move.owner, ""))
    return msgspec.structs.replace(proven, rollback=made[0].sentence if made else UNWATCHED, triggers=made)


def triggers_of(
    ctx: Context, move: Move, cells: matrix.Matrix, replays: Replays, owner: str = ""
) -> tuple[Trigger, ...]:
    """What must be watched once ``move`` runs, and by whom (``owner``: a name); nothing without replays."""
    if not replays:
        return ()
    study = ctx.study
    offered, _, _ = latency.rates(replays[move.plan.id][0])
    return triggers.triggers(
        cells.cells,
        _arms(replays),
        arms.slice_rows(ctx.workload, ctx.slice(HELD_OUT)),
        study.sla,
        move,
        rehearsal=rehearsing.rehearsal(ctx, move.plan),
        baseline=study.baseline.id,
        rate_hz=offered,
        owner=owner,
        seed=study.seeds.bootstrap,
    )


def with_trend(ctx: Context, found: Findings, replays: Replays) -> Findings:
    """What was decided, with the primary metric's trend in both arms; unchanged without replays to compare."""
    series = trend.trend(_arms(replays), ctx.study.sla) if replays else None
    if series is None:
        return found
    said = (*found.findings, trend.told(series, ctx.study.sla))
    return msgspec.structs.replace(found, findings=said, series=(*found.series, series))


def memory_cells(ctx: Context, replays: Replays) -> tuple[MatrixCell, ...]:
    """Whether the candidate stayed below the memory limit in its held-out replays; nothing without replays."""
    return charge.limit_cell(_arms(replays), memory.limit(ctx)) if replays else ()


def tail_owner(ctx: Context) -> tuple[str, float] | None:
    """What owns the primary metric's tail and its share, as the attribute stage found it."""
    kind = read_json(ctx.packet.path("diagnosis.json"), Diagnosis).classes[0].id
    return owner_of(ctx.packet.read_findings("attribute"), kind, ctx.study.sla)


def owner_of(found: Findings, kind: str, sla: Sla) -> tuple[str, float] | None:
    """The owner of the tail of ``found`` whose leading class is ``kind``; None where the run proves no cause. Failed
    requests own it without any further proof."""
    owner = tail.owner(found, latency.PRIMARY_TAILS[sla.metric])
    if owner is None or kind == "invalid-measurement":
        return None
    return owner if owner[0] == tail.FAILED or kind != "insufficient-evidence" else None


def not_compared(ctx: Context) -> tuple[str, ...]:
    """The risk of a study with random payloads: its verdict speaks of time alone."""
    if ctx.workload.payload_kind != "random":
        return ()
    return ("Outputs were not compared: random payloads judge no quality.",)


def plumbing(ctx: Context, plan: Plan) -> str:
    """Why a verdict between the baseline and ``plan`` proves plumbing only; empty where both compute the network."""
    for name in dict.fromkeys((ctx.study.baseline.compile.backend, plan.compile.backend)):
        unable = [a for a in backends.info(name).abilities if a.name == COMPUTES and not a.ok]
        if unable:
            return f"the {name} backend computes no network"
    return ""


def scope(ctx: Context) -> tuple[str, ...]:
    traffic_of = ctx.workload.provenance
    files = ", ".join(f"{source.name} ({source.used} of {source.rows} rows)" for source in traffic_of.files)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(ctx.versions.items()))
    return (
        f"model {ctx.study.model.revision}, sha256 {ctx.model.sha256[:12]}",
        f"traffic: {files}",
        f"versions: {versions}",
    )
