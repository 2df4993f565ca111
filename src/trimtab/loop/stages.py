"""One function a stage: read what earlier stages left in the packet, call the room that does the work, keep the result.

Nothing is computed here. A stage returns its Findings (the last two have none), and lists on the context every file it
wrote, so that the loop can tell a finished stage from an interrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from trimtab import __version__
from trimtab.domain.figure import Figure, Findings, Series
from trimtab.domain.packet import Record
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move, Proposal
from trimtab.domain.workload import Workload
from trimtab.errors import ModelError
from trimtab.evidence import compile as compiled
from trimtab.evidence import diagnose, latency, traffic
from trimtab.evidence.adaptation import Adaptation
from trimtab.evidence.analysis import Analysis, Circumstances, analyse
from trimtab.evidence.batches import Yardstick
from trimtab.evidence.stats import Floats
from trimtab.loop import adapting, compiling, quality, runs
from trimtab.loop import envelope as envelope_words
from trimtab.loop.context import Context
from trimtab.loop.schedule import cut
from trimtab.mapping import buckets
from trimtab.readers.traffic import read_workload
from trimtab.report import html
from trimtab.report.page import Page
from trimtab.report.view import view
from trimtab.retuning import arms, confirm, findings, fusion, moves, rollback, search, size
from trimtab.retuning import decide as ruling
from trimtab.retuning import validate as matrix
from trimtab.runtime import probe
from trimtab.store.codec import read_json, write_json
from trimtab.store.packet import build_manifest, load_record, outputs_of, set_aside, write_bytes

Stage = Callable[[Context], Findings | None]

TUNE, HELD_OUT = "tune", arms.HELD_OUT
CHOICE = "choice.json"
DIAGNOSIS = "diagnosis.json"
REPORT = "report.html"
NOTHING_TO_UNDO = "Nothing changes, so there is nothing to undo."
MOST_CORES = 4
"""How many cores the sizing looks at, at least."""


def workload(ctx: Context) -> Findings:
    """R1: the traffic, and its slices as long as the budget allows."""
    whole = read_workload(ctx.study, ctx.folder)
    taken = msgspec.structs.replace(whole, slices=cut(whole, ctx.schedule))
    ctx.keep(ctx.packet.write_workload(taken))
    return traffic.describe(taken)


def plan(ctx: Context) -> Findings:
    """R4, R5: the machine, what the study assumes of it, and the baseline plan."""
    cores = ctx.study.envelope.cores
    envelope = probe.probe(cores, versions=ctx.versions)
    checks = probe.check(ctx.study.envelope, envelope)
    ctx.keep(ctx.packet.write_envelope(envelope, checks))
    ctx.keep(ctx.packet.write_plan(ctx.study.baseline))
    return envelope_words.findings(envelope, checks)


def compile_(ctx: Context) -> Findings:
    """R6: profiles of the baseline, of the reference, and of every candidate that compiles something else."""
    baseline, (reference, _) = ctx.study.baseline, compiling.reference_plan(ctx)
    ctx.profile_owners.clear()  # whatever an earlier study left here is measured again, or found by its checkpoint
    for each in (baseline, reference):
        compiling.profile(ctx, each)
    _require(ctx, baseline)
    for move in compiling.candidates(ctx).moves:
        compiling.profile(ctx, move.plan)
    results = [result for owner in ctx.profile_owners.values() for result in ctx.packet.read_profiles(owner)]
    profiles = [result for result in results if isinstance(result, CompileProfile)]
    failures = [result for result in results if isinstance(result, CompileFailure)]
    found = compiled.findings(profiles, failures, ctx.study.quality)
    return _with_series(found, quality.summaries(ctx, [baseline], "compile"))


def _with_series(found: Findings, *extra: Series | None) -> Findings:
    more = tuple(series for series in extra if series is not None)
    return msgspec.structs.replace(found, series=(*found.series, *more))


def _require(ctx: Context, baseline: Plan) -> None:
    failed = [result for result in ctx.profiles(baseline) if isinstance(result, CompileFailure)]
    if failed:
        first = failed[0]
        raise ModelError(
            f"the baseline does not compile: {first.kind}: {first.message}",
            where=f"plan {baseline.id}, entry {first.entry}",
            fix="correct the baseline's compile half in the study",
        )


def replay(ctx: Context) -> Findings:
    """R7-R9: the baseline on the tune slice, several fresh replays."""
    baseline = ctx.study.baseline
    found = runs.in_turn(ctx, [baseline], TUNE, ctx.schedule.replays, label=TUNE, stage="replay")
    return latency.findings(found[baseline.id], ctx.study.sla)


def attribute(ctx: Context) -> Findings:
    """R10-R19: the tail account of the typical replay, and the class that explains it."""
    trace = _typical(ctx)
    found = _analysis(ctx, trace)
    ctx.keep(ctx.packet.write_account(trace.run.id, found.account.requests))
    write_json(ctx.packet.path(DIAGNOSIS), found.diagnosis)
    ctx.keep(ctx.packet.path(DIAGNOSIS))
    said, classes = diagnose.told(found.diagnosis, DIAGNOSIS)
    with_classes = _with_series(found.tail, classes)
    return msgspec.structs.replace(with_classes, findings=(*with_classes.findings, *said))


def score(ctx: Context) -> Findings:
    """R24: mapping accuracy, promise accuracy, predicted against measured, simulated against replayed; what adapting at
    run time would win."""
    ctx.progress.step("score", 0, None, "simulating what adapting would win")
    return _analysis(ctx, _typical(ctx), adapting.simulated(ctx)).score


def _analysis(ctx: Context, trace: Trace, adaptation: Adaptation | str | None = None) -> Analysis:
    baseline, seeds = ctx.study.baseline, ctx.study.seeds
    tune = ctx.workload.take(ctx.slice(TUNE))
    rehearsals = [
        runs.simulated(ctx, baseline, tune, TUNE, f"simulated-{baseline.id}-{number}", seeds.simulate + number)
        for number in range(ctx.schedule.replays)
    ]
    known, replayed = _circumstances(ctx), _baseline_replays(ctx)
    return analyse(trace, known, simulated=rehearsals, replayed=replayed, adaptation=adaptation)


def _circumstances(ctx: Context) -> Circumstances:
    baseline = ctx.study.baseline
    reference, entry = compiling.reference_plan(ctx)
    plans = (baseline, reference, *(move.plan for move in compiling.candidates(ctx).moves))
    best = compiling.reference_set(ctx, plans)
    envelope, checks = ctx.packet.read_envelope()
    declared = ctx.study.quality.precision
    return Circumstances(
        plan=baseline,
        yardstick=Yardstick(ctx.costs(baseline), ctx.costs(reference), entry, best),
        sla=ctx.study.sla,
        seed=ctx.study.seeds.bootstrap,
        envelope=envelope,
        checks=checks,
        declared=declared,
        executed=quality.executed_precision(ctx, baseline).get(declared, 0.0),
        quality=quality.holds(ctx, baseline, "attribute"),
    )


def _typical(ctx: Context) -> Trace:
    """The baseline's replay whose primary metric is the median one."""
    traces = _baseline_replays(ctx)
    return sorted(traces, key=lambda trace: latency.metric_value(trace, ctx.study.sla))[len(traces) // 2]


def _baseline_replays(ctx: Context) -> list[Trace]:
    baseline = ctx.study.baseline
    return runs.in_turn(ctx, [baseline], TUNE, ctx.schedule.replays, label=TUNE, stage="replay")[baseline.id]


def retune(ctx: Context) -> Findings:
    """R20, R31, R34: simulate every move, replay the few best, choose the smallest that is not worse."""
    study, options = ctx.study, compiling.candidates(ctx)
    listed = [_charged(ctx, move) for move in options.moves]
    tune = ctx.workload.take(ctx.slice(TUNE))

    def simulate(plan: Plan, replica: int) -> Trace:
        seed = study.seeds.simulate
        jittered = search.jitter(tune, replica, seed)
        return runs.simulated(ctx, plan, jittered, TUNE, f"replica-{replica}", seed + replica)

    ctx.progress.step("retune", 0, None, f"simulating {len(listed)} moves")
    rows = search.simulate_all(listed, simulate, study.sla)
    competing = [listed[0], *search.shortlist(rows, study.sla, ctx.schedule.confirmed)]
    replays = _confirming_replays(ctx, [move.plan for move in competing])
    choice = confirm.choose(competing, lambda move: replays[move.plan.id], study.sla, study.seeds.bootstrap)
    simulated = next(row for row in rows if row.move.plan.id == choice.chosen.plan.id)
    draft = Proposal(
        move=choice.chosen,
        baseline=study.baseline.id,
        expected=search.simulated_figure(simulated, study.sla, "retune.json"),
        measured=None,
        rollback=NOTHING_TO_UNDO if choice.chosen.kind == moves.NO_CHANGE else "set by the held-out replays",
        rejected=(*confirm.rejected(rows, choice, study.sla, "traces"), *options.refused),
    )
    write_json(ctx.packet.path(CHOICE), draft)
    ctx.keep(ctx.packet.path(CHOICE))
    fits, sizing = _fits(ctx, tune), _sizing(ctx, tune, choice.chosen.plan)
    found = findings.retune(study.sla, rows, choice, options.refused, "traces", fits=fits, sizing=sizing)
    levels = fusion.joined(ctx.packet.read_findings("compile").table("compile.fusion"), rows, study.sla)
    if levels is not None:
        found = msgspec.structs.replace(found, findings=(*found.findings, fusion.told(levels, study.sla)))
        found = _with_series(found, levels)
    return _with_series(found, quality.summaries(ctx, [move.plan for move in competing], "retune"))


def _charged(ctx: Context, move: Move) -> Move:
    """The move with what compiling it really took, if it compiles something that the baseline does not."""
    if ctx.profile_id(move.plan) == ctx.profile_id(ctx.study.baseline):
        return move
    known = [p for p in ctx.profiles(move.plan) if isinstance(p, CompileProfile)]
    return moves.charge(move, known)


def _confirming_replays(ctx: Context, plans: Sequence[Plan]) -> dict[str, Sequence[Floats] | str]:
    """Latencies of each plan on the tune slice, in turn; or why a plan could not be replayed."""
    runnable = [each for each in plans if not _failures(ctx, each)]
    found = runs.in_turn(ctx, runnable, TUNE, ctx.schedule.confirming, label="confirm", stage="retune")
    replays: dict[str, Sequence[Floats] | str] = {
        name: [latency.latencies(trace, ctx.study.sla) for trace in traces] for name, traces in found.items()
    }
    return {each.id: "an entry does not compile" for each in plans} | replays


def _failures(ctx: Context, each: Plan) -> bool:
    return any(isinstance(result, CompileFailure) for result in ctx.profiles(each))


def _fits(ctx: Context, tune: Workload) -> tuple[buckets.BucketFit, ...]:
    """The sweep over the number of buckets, beside the formulas of the field; one dynamic dim only."""
    reference, entry = compiling.reference_plan(ctx)
    most = max(ctx.study.space.buckets, default=0)
    if len(ctx.study.dims) != 1 or not most:
        return ()
    cost = compiling.bucket_cost(ctx.costs(reference), entry)
    return buckets.compare(tune.dims, cost, most, dynamic_cost=cost)


def _sizing(ctx: Context, tune: Workload, chosen: Plan) -> size.Sizing:
    """How many cores this SLA needs at this traffic, under the chosen plan."""

    def run(candidate: Plan, load: Workload) -> Trace:
        return runs.simulated(ctx, candidate, load, TUNE, "sizing", ctx.study.seeds.simulate)

    most = max(MOST_CORES, chosen.serve.workers)
    return size.size(chosen, tune, ctx.study.sla, run, most, measured=chosen.serve.workers)


def validate(ctx: Context) -> Findings:
    """R21: baseline and candidate in turn on held-out traffic."""
    found = findings.validate(_matrix(ctx), "traces")
    chosen = _choice(ctx).move
    if chosen.kind == moves.NO_CHANGE:
        return found
    traces = [trace for arm in _held_out(ctx, chosen.plan).values() for trace in arm]
    return _with_series(found, *latency.curves("validate.quantiles", traces, ctx.study.sla))


def _matrix(ctx: Context) -> matrix.Matrix:
    study, chosen = ctx.study, _choice(ctx).move
    rows = arms.slice_rows(ctx.workload, ctx.slice(HELD_OUT))
    pairs = [] if chosen.kind == moves.NO_CHANGE else [_arms(ctx, chosen.plan)]
    return matrix.validate(study.sla, study.guards, pairs, rows, study.seeds.bootstrap)


def _arms(ctx: Context, chosen: Plan) -> arms.Arms:
    found = _held_out(ctx, chosen)
    return arms.arms_of(arms.AS_RECORDED, found[ctx.study.baseline.id], found[chosen.id])


def _held_out(ctx: Context, chosen: Plan) -> dict[str, list[Trace]]:
    """Both plans on the held-out slice, in turn."""
    plans = [ctx.study.baseline, chosen]
    return runs.in_turn(ctx, plans, HELD_OUT, ctx.schedule.replays, label=HELD_OUT, stage="validate")


def _choice(ctx: Context) -> Proposal:
    return read_json(ctx.packet.path(CHOICE), Proposal)


def decide(ctx: Context) -> Findings:
    """R22, R36: one verdict from the cells, and the proposal with its measured effect and its way back."""
    study, draft = ctx.study, _choice(ctx)
    cells = _matrix(ctx)
    proposal = draft if draft.move.kind == moves.NO_CHANGE else _proposal(ctx, draft, cells)
    case = ruling.Case(
        move=draft.move,
        baseline=study.baseline.id,
        cells=cells.cells,
        sla=study.sla,
        signoff=study.signoff,
        quality=quality.cells(ctx, draft.move.plan, "decide"),
        changes_precision=quality.precision_changes(ctx, draft.move.plan),
        executed=quality.executed_precision(ctx, draft.move.plan),
        tail=_tail_owner(ctx),
        scope=_scope(ctx),
    )
    verdict = ruling.decide(case)
    ctx.keep(ctx.packet.write_proposal(proposal))
    ctx.keep(ctx.packet.write_verdict(verdict))
    return findings.decide(verdict, proposal)


def _proposal(ctx: Context, draft: Proposal, cells: matrix.Matrix) -> Proposal:
    """The draft with what the held-out replays measured, and the boundary where it must be undone."""
    study, owner = ctx.study, draft.move.owner
    healthy = _arms(ctx, draft.move.plan).candidate
    rule = rollback.trigger(healthy, study.sla, study.seeds.bootstrap)
    measured: Figure | None = None if cells.primary is None else findings.cell_figure(cells.primary, "validate.json")
    return msgspec.structs.replace(
        draft,
        measured=measured,
        rollback=rollback.boundary(rule, study.baseline.id, owner, study.owners.get(owner, "")),
    )


def _tail_owner(ctx: Context) -> tuple[str, float] | None:
    """The largest label of the p95 set and its share, as the attribute stage found it."""
    waterfall = ctx.packet.read_findings("attribute").table("tail.p95.waterfall")
    if waterfall is None:
        return None
    rows = zip(waterfall.columns["cause"], waterfall.columns["share"], strict=True)
    label, share = max(rows, key=lambda row: float(row[1] or 0.0))
    return str(label), float(share or 0.0)


def _scope(ctx: Context) -> tuple[str, ...]:
    traffic_of = ctx.workload.provenance
    files = ", ".join(f"{source.name} ({source.used} of {source.rows} rows)" for source in traffic_of.files)
    versions = ", ".join(f"{name} {version}" for name, version in sorted(ctx.versions.items()))
    return (
        f"model {ctx.study.model.revision}, sha256 {ctx.model.sha256[:12]}",
        f"traffic: {files}",
        f"versions: {versions}",
    )


def packet(ctx: Context) -> None:
    """R34: every file of evidence and its digest. What belongs to no stage of this run is set aside first."""
    folder = ctx.packet.folder
    cut = {path.relative_to(folder).as_posix() for path in folder.glob("traces/*.cut*/*")}
    set_aside(folder, {"study.toml", "study.json", *outputs_of(folder, STAGES), *cut})
    build_manifest(ctx.packet.folder, "evidence", __version__)
    ctx.keep(ctx.packet.path("manifest.json"))


def report(ctx: Context) -> None:
    """R23: the page, made from the packet and from nothing else."""
    ctx.progress.step("report", 0, None, "writing the page")
    rewrite_report(ctx.packet.folder)
    ctx.keep(ctx.packet.path(REPORT))


def rewrite_report(folder: Path) -> tuple[Record, Page]:
    """Make the page of a packet anew, and the manifest of views."""
    record = load_record(folder)
    page = view(record)
    write_bytes(folder / REPORT, html.render(page).encode())
    build_manifest(folder, "views", __version__)
    return record, page


STAGES: dict[str, Stage] = {
    "workload": workload,
    "plan": plan,
    "compile": compile_,
    "replay": replay,
    "attribute": attribute,
    "score": score,
    "retune": retune,
    "validate": validate,
    "decide": decide,
    "packet": packet,
    "report": report,
}
