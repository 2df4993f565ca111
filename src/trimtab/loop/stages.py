"""One function a stage: read what earlier stages left in the packet, call the room that does the work, keep the result.

Nothing is computed here. A stage returns its Findings (the last two have none), and lists on the context every file it
wrote, so that the loop can tell a finished stage from an interrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import msgspec

from trimtab import __version__
from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Proposal
from trimtab.domain.workload import Workload
from trimtab.errors import ModelError
from trimtab.evidence import compile as compiled
from trimtab.evidence import envelope as surroundings
from trimtab.evidence import latency, padding, traffic
from trimtab.evidence.classify import diagnose
from trimtab.loop import adapting, analysing, compiling, conditions, judging, memory, quality, running, runs, tuning
from trimtab.loop import envelope as envelope_words
from trimtab.loop.context import TUNE, Context
from trimtab.loop.freshness import input_files
from trimtab.loop.recorded import INPUTS
from trimtab.loop.schedule import cut
from trimtab.loop.verbs.reporting import REPORT, rewrite_report
from trimtab.readers.traffic import read_workload, require_streams
from trimtab.retuning import beside, confirm, findings, fusion, moves, search, sweep, triggers, watched
from trimtab.retuning import decide as ruling
from trimtab.retuning import memory as charge
from trimtab.retuning.case import Case
from trimtab.runtime import probe
from trimtab.store.codec import write_json
from trimtab.store.packet import build_manifest, outputs_of, set_aside

Stage = Callable[[Context], Findings | None]

DIAGNOSIS = "diagnosis.json"
NOTHING_TO_UNDO = "Nothing changes, so there is nothing to undo."


def workload(ctx: Context) -> Findings:
    """R1: the traffic, and its slices as long as the budget allows."""
    whole = read_workload(ctx.study, ctx.folder)
    require_streams(ctx.study, whole)
    taken = msgspec.structs.replace(whole, slices=cut(whole, ctx.schedule))
    ctx.keep(ctx.packet.write_workload(taken))
    conditions.refused(ctx)  # a second trace that cannot be read stops the study now, not after its replays
    return traffic.describe(taken)


def plan(ctx: Context) -> Findings:
    """R4, R5: the machine, what the study assumes of it, and the baseline plan."""
    envelope = ctx.executor.probe(ctx.study.envelope.cores, ctx.runtimes)
    checks = probe.check(ctx.study.envelope, envelope)
    ctx.keep(ctx.packet.write_envelope(envelope, checks))
    ctx.keep(ctx.packet.write_plan(ctx.study.baseline))
    return envelope_words.findings(envelope, checks, ctx.executor.told())


def compile_(ctx: Context) -> Findings:
    """R6: profiles of the baseline, of the reference, and of every candidate that compiles something else."""
    baseline, (reference, _) = ctx.study.baseline, compiling.reference_plan(ctx)
    ctx.profile_owners.clear()  # whatever an earlier study left here is measured again, or found by its checkpoint
    compiling.profile(ctx, [baseline, reference])
    _require(ctx, baseline, "the baseline")
    compiling.profile(ctx, [move.plan for move in compiling.candidates(ctx).moves])
    if ctx.shipped is not None:
        _require(ctx, ctx.shipped.move.plan, "what runs")
    results = [result for owner in ctx.profile_owners.values() for result in ctx.packet.read_profiles(owner)]
    profiles = [result for result in results if isinstance(result, CompileProfile)]
    failures = [result for result in results if isinstance(result, CompileFailure)]
    found = compiled.findings(profiles, failures, ctx.study.quality)
    found = memory.beside(ctx, found, [ctx.packet.read_plan(owner) for owner in ctx.profile_owners.values()])
    return _with_series(found, *_quality(ctx, [baseline], "compile"))


def _quality(ctx: Context, plans: Sequence[Plan], stage: str) -> tuple[Series | None, ...]:
    """What ``plans`` answer, beside what they take: a row a plan, and a row for each of its parts."""
    return quality.summaries(ctx, plans, stage), quality.by_part(ctx, plans, stage)


def _with_series(found: Findings, *extra: Series | None) -> Findings:
    more = tuple(series for series in extra if series is not None)
    return msgspec.structs.replace(found, series=(*found.series, *more))


def _also(found: Findings, series: Series, *said: Finding) -> Findings:
    """``found`` with a table more, and with what is said of it."""
    return msgspec.structs.replace(_with_series(found, series), findings=(*found.findings, *said))


def _require(ctx: Context, plan: Plan, what: str) -> None:
    failed = ctx.failed(plan)
    if failed:
        first = failed[0]
        raise ModelError(
            f"{what} does not compile: {first.kind}: {first.message}",
            where=f"plan {plan.id}, entry {first.entry}",
            fix="correct its compile half in the study",
        )


def replay(ctx: Context) -> Findings:
    """R5, R7-R9: the baseline on the tune slice, several fresh replays, and what the machine did meanwhile."""
    replays = analysing.baseline_replays(ctx)
    found = padding.told(latency.findings(replays, ctx.study.sla), replays, ctx.study.seeds.bootstrap)
    return surroundings.told(found, replays)


def attribute(ctx: Context) -> Findings:
    """R10-R19: the tail account of the typical replay, and the class that explains it."""
    found = analysing.analysis(ctx)
    ctx.keep(ctx.packet.write_account(found.account.run, found.account.requests))
    write_json(ctx.packet.path(DIAGNOSIS), found.diagnosis)
    ctx.keep(ctx.packet.path(DIAGNOSIS))
    said, classes = diagnose.told(found.diagnosis, DIAGNOSIS)
    return _also(found.tail, classes, *said)


def score(ctx: Context) -> Findings:
    """R24: mapping accuracy, promise accuracy, predicted against measured, simulated against replayed; what adapting at
    run time would win, and wins."""
    ctx.progress.step("score", 0, None, "simulating what adapting would win")
    if ctx.shipped is not None:
        return analysing.analysis(ctx, running.NOT_ADAPTED).score
    return analysing.analysis(ctx, adapting.simulated(ctx), adapting.measured(ctx)).score


def _simulator(ctx: Context, tune: Workload, many: int) -> search.Simulate:
    """What simulates a plan on the first ``share`` of the tune slice, its arrivals moved a little each time."""
    number, seed = count(1), ctx.study.seeds.simulate

    def simulate(plan: Plan, replica: int, share: float) -> Trace:
        if failed := ctx.failed(plan):
            raise ModelError(search.not_compiled(failed), where=f"plan {plan.id}", fix="see its stored profile")
        ctx.progress.step("retune", 0, None, f"simulating {many} moves: run {next(number)}")
        jittered = search.jitter(search.beginning(tune, share), replica, seed)
        return runs.simulated(ctx, plan, jittered, TUNE, f"replica-{replica}", seed + replica)

    return simulate


def retune(ctx: Context) -> Findings:
    """R20, R31, R34: simulate every move, replay the few best, choose the smallest that is not worse."""
    if ctx.shipped is not None:
        return running.retune(ctx, ctx.shipped)
    study, options = ctx.study, compiling.candidates(ctx)
    charged = [tuning.charged(ctx, move) for move in options.moves]
    listed, heavy = charge.admit(charged, memory.limit(ctx))
    refused = (*options.refused, *heavy)
    tune = ctx.workload.take(ctx.slice(TUNE))
    rows, short = tuning.shortlisted(ctx, search.simulate_all(listed, _simulator(ctx, tune, len(listed)), study.sla))
    competing = [listed[0], *short]
    replays = tuning.confirming_replays(ctx, [move.plan for move in competing])
    choice = confirm.choose(competing, lambda move: replays[move.plan.id], study.sla, study.seeds.bootstrap)
    simulated = next(row for row in rows if row.move.plan.id == choice.chosen.plan.id)
    draft = Proposal(
        move=choice.chosen,
        baseline=study.baseline.id,
        expected=search.simulated_figure(simulated, study.sla, "retune.json"),
        measured=None,
        rollback=NOTHING_TO_UNDO if choice.chosen.kind == moves.NO_CHANGE else "set by the held-out replays",
        rejected=(*confirm.rejected(rows, choice, study.sla, "traces"), *refused),
        undecided=choice.undecided,
        bounds=adapting.permitted(ctx, choice.chosen.plan),
    )
    write_json(ctx.packet.path(judging.CHOICE), draft)
    ctx.keep(ctx.packet.path(judging.CHOICE))
    fits, sizing = tuning.fits(ctx, tune), tuning.sizing(ctx, tune, choice.chosen.plan)
    found = findings.retune(study.sla, rows, choice, refused, "traces", fits=fits, sizing=sizing)
    if (counted := tuning.sweep(ctx, tune)) is not None:
        found = _also(found, sweep.series(*counted), sweep.told(*counted))
    compiled_levels = ctx.packet.read_findings("compile").table("compile.fusion")
    levels = fusion.joined(compiled_levels, rows, choice.rows, study.sla)
    if levels is not None:
        found = _also(found, levels, *fusion.told(levels))
    barred = [row.move for row in rows if row.barred]
    judged = _quality(ctx, [move.plan for move in (*competing, *barred)], "retune")
    peaks = {move.plan.id: move.peak_mib for move in charged}
    return _with_series(beside.candidates(found, judged[0], peaks), *judged)


def validate(ctx: Context) -> Findings:
    """R21: baseline and candidate in turn on held-out traffic; what must be watched once the candidate runs, or what
    the triggers say of it where it does."""
    move = judging.choice(ctx).move
    replays = judging.measured(ctx, move)
    cells = judging.matrix_of(ctx, move, replays)
    found = findings.validate(cells, "traces")
    if not replays:
        return found
    if ctx.shipped is None:
        ctx.progress.step("validate", 0, None, f"simulating {move.plan.id} on arrivals that never came")
        found = triggers.told(found, judging.triggers_of(ctx, move, cells, replays), "traces")
    else:
        found = watched.told(found, running.running(ctx, ctx.shipped, replays))
    traces = [trace for arm in replays.values() for trace in arm]
    found = _with_series(found, *latency.curves("validate.quantiles", traces, ctx.study.sla))
    return padding.told(found, traces, ctx.study.seeds.bootstrap)


def decide(ctx: Context) -> Findings:
    """R22, R36: one verdict from the cells, and the proposal with its measured effect and its way back."""
    study, draft = ctx.study, judging.choice(ctx)
    replays, not_compared = judging.held_out(ctx, draft.move), judging.not_compared(ctx)
    cells = judging.matrix_of(ctx, draft.move, replays)
    proposal = judging.proposal(ctx, draft, cells, replays) if replays else draft
    case = Case(
        move=draft.move,
        baseline=study.baseline.id,
        cells=(*cells.cells, *judging.memory_cells(ctx, replays)),
        sla=study.sla,
        signoff=study.signoff,
        undecided=draft.undecided,
        quality=quality.cells(ctx, draft.move.plan, "decide"),
        changes_precision=quality.precision_changes(ctx, draft.move.plan),
        executed=quality.executed_precision(ctx, draft.move.plan),
        plumbing=judging.plumbing(ctx, draft.move.plan),
        tail=judging.tail_owner(ctx),
        scope=judging.scope(ctx),
        not_covered=("the outputs (random payloads)",) if not_compared else (),
        risks=not_compared,
    )
    if ctx.shipped is not None:
        case = running.as_running(ctx, ctx.shipped, case, replays)
    verdict = ruling.decide(case)
    ctx.keep(ctx.packet.write_proposal(proposal))
    ctx.keep(ctx.packet.write_verdict(verdict))
    return judging.with_trend(ctx, findings.decide(verdict, proposal), replays)


def packet(ctx: Context) -> None:
    """R34: every file of evidence and its digest. What belongs to no stage of this run is set aside first."""
    folder = ctx.packet.folder
    cut = {path.relative_to(folder).as_posix() for path in folder.glob("traces/*.cut*/*")}
    set_aside(folder, {"study.toml", "study.json", *outputs_of(folder, STAGES), *cut})
    ctx.keep(write_json(ctx.packet.path(INPUTS), input_files(ctx)))
    build_manifest(ctx.packet.folder, "evidence", __version__)
    ctx.keep(ctx.packet.path("manifest.json"))


def report(ctx: Context) -> None:
    """R23: the page, made from the packet and from nothing else."""
    ctx.progress.step("report", 0, None, "writing the page")
    rewrite_report(ctx.packet.folder)
    ctx.keep(ctx.packet.path(REPORT))


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
