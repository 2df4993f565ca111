"""What adapting at run time would win, simulated and, where the study asks for it, replayed: what may be refitted, and
what the study's profiles know of it."""

from __future__ import annotations

from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.plan import Bounds, Entry, Plan
from trimtab.domain.profile import CompileProfile
from trimtab.domain.trace import Trace
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.measured import Measured
from trimtab.loop import compiling, memory, runs
from trimtab.loop.context import TUNE, Context
from trimtab.mapping.cost import CostModel
from trimtab.retuning import arms
from trimtab.retuning.adaptation import Terms, adapt, online
from trimtab.runtime.beside import unable

MOST_REQUESTS = 9600
"""48 windows of 200: the time that this takes is bounded, and a longer trend says no more."""

STEPS = 64
"""Ends are multiples of this part of the range: refits to like traffic then share entries, and compile little."""
UNLIMITED = 2**63 - 1


def simulated(ctx: Context) -> Adaptation | str:
    """Static, adapted and clairvoyant runs, simulated; or why this study has none.

    On the traffic before the held-out slice: more of it than there was time to replay, because a trend needs windows.
    """
    terms, study = _terms(ctx), ctx.study
    if isinstance(terms, str):
        return terms
    tune, held_out = ctx.slice(TUNE), ctx.slice(arms.HELD_OUT)
    stop = max(tune.stop, min(held_out.start, tune.start + MOST_REQUESTS))
    traffic = ctx.workload.take(replace(tune, stop=stop))
    run = runs.info(ctx, study.baseline, TUNE, "adaptation", "simulated", study.seeds.simulate)
    return adapt(traffic, terms, study.sla, run)


def measured(ctx: Context) -> Measured | str | None:
    """The baseline on the tune slice as it is and under the online controller, replayed in turn; None where the study
    does not ask for it, or why it cannot be."""
    study, base = ctx.study, ctx.study.baseline
    if not study.adapt.replay:
        return None
    terms = _terms(ctx)
    if isinstance(terms, str):
        return terms
    why = unable(backends.info(base.compile.backend)) or ctx.executor.bars_controllers()
    if why:
        return why
    plan = replace(base, id=f"{base.id}-adapted", note=f"refitted while it serves, within {_told(terms.bounds)}")
    ctx.keep(ctx.packet.write_plan(plan))
    found: dict[str, list[Trace]] = {base.id: [], plan.id: []}
    for number in range(1, ctx.schedule.replays + 1):
        for each in (base, plan) if number % 2 else (plan, base):
            controller = online(terms, study.sla, study.seeds.simulate)[0] if each is plan else None
            name = f"adapting-{each.id}-{number}"
            found[each.id].append(runs.replayed(ctx, each, ctx.slice(TUNE), name, stage="score", controller=controller))
    return Measured(static=tuple(found[base.id]), adapted=tuple(found[plan.id]))


def _terms(ctx: Context) -> Terms | str:
    """What may be refitted and what is known of times; or why nothing may."""
    study, base = ctx.study, ctx.study.baseline
    if len(study.dims) != 1:
        return "buckets are refitted to one dynamic dim only"
    bounds = _bounds(ctx, base)
    if bounds.entries < 1:
        return "the study allows no buckets (space.buckets, space.max_entries), so nothing can be refitted"
    measured_entries, padded = _measured(ctx)
    reference, entry = compiling.reference_plan(ctx)
    costs = ctx.costs(reference)
    return Terms(
        baseline=base,
        bounds=bounds,
        cost=compiling.bucket_cost(costs, entry),
        costs=ctx.costs(base),
        measured=measured_entries,
        reference=costs,
        reference_entry=entry,
        profiles=padded or _profiles(ctx, base),
    )


def _told(bounds: Bounds) -> str:
    """Bounds in words, every number of them: runs within other bounds are other runs."""
    ends = f"{bounds.low[0]} to {bounds.high[0]} in steps of {bounds.step}"
    held = f"{bounds.entries} padded entries and {bounds.spare} more meanwhile, {ends}"
    return f"{held}, {bounds.compile_s:g} s of compiling an hour, {bounds.memory_bytes} bytes"


def permitted(ctx: Context, plan: Plan) -> Bounds | None:
    """How far a proposal of ``plan`` lets a controller refit it; None where the study does not try one."""
    if not ctx.study.adapt.replay or len(ctx.study.dims) != 1:
        return None
    bounds = _bounds(ctx, plan)
    return bounds if bounds.entries >= 1 else None


def _bounds(ctx: Context, plan: Plan) -> Bounds:
    """What the study lets a controller touch: its dims, its buckets, the memory that ``plan`` leaves."""
    study = ctx.study
    kept = max(sum(entry.kind == "dynamic" for entry in plan.compile.entries), 1)
    room = study.space.max_entries - kept
    entries = min(max(study.space.buckets, default=0), room - 1)
    dims = study.dims.values()
    taken = sum(profile.memory_bytes for profile in _profiles(ctx, plan)) * plan.serve.workers
    limit = memory.limit(ctx)
    return Bounds(
        entries=entries,
        spare=min(room - entries, study.adapt.spare or max(1, entries // 3)),
        low=tuple(dim.lo for dim in dims),
        high=tuple(dim.hi for dim in dims),
        compile_s=study.adapt.compile_s,
        memory_bytes=UNLIMITED if limit is None else max(0, limit - taken),
        step=max(1, max(dim.hi for dim in dims) // STEPS),
    )


def _measured(ctx: Context) -> tuple[dict[Entry, CostModel], list[CompileProfile]]:
    """Static and padded entries of candidates that compile as the baseline does but for their entries: who knows each
    entry's times, and the profiles of all of them."""
    base, found, profiles = ctx.study.baseline, dict[Entry, CostModel](), list[CompileProfile]()
    for plan in (move.plan for move in compiling.candidates(ctx).moves):
        same = replace(plan.compile, entries=base.compile.entries, fallback=base.compile.fallback)
        if same != base.compile or plan.serve.threads != base.serve.threads:
            continue
        known = {profile.entry: profile for profile in _profiles(ctx, plan)}
        padded = [e for e in plan.compile.entries if e.kind != "dynamic" and e.id in known and known[e.id].timings]
        costs = ctx.costs(plan)
        found |= {entry: costs for entry in padded if entry not in found}
        profiles += [known[entry.id] for entry in padded]
    return found, profiles


def _profiles(ctx: Context, plan: Plan) -> list[CompileProfile]:
    return list(ctx.compiled(plan))
