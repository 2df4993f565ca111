"""Tuning: what retune needs besides the search itself: real costs, confirming replays, the bucket sweep, the cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from trimtab.domain.plan import Plan
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Workload
from trimtab.evidence import latency
from trimtab.evidence.figures import MIB
from trimtab.evidence.memory import peak
from trimtab.evidence.score.adaptation import beyond_floor
from trimtab.evidence.stats.floor import aa_floor
from trimtab.evidence.stats.quantiles import Floats
from trimtab.loop import analysing, compiling, memory, quality, runs
from trimtab.loop.context import TUNE, Context
from trimtab.mapping import buckets, priced
from trimtab.retuning import moves, search, size
from trimtab.retuning.search import Simulated

MOST_ENTRIES = 48
"""How far the sweep over the number of entries goes."""
START_EVERY_S = 3600.0
"""What a start is charged to: workers are taken to start once an hour."""
MOST_CORES = 4
"""How many cores the sizing looks at, at least."""


def charged(ctx: Context, move: Move) -> Move:
    """The move with its peak memory, and with what it compiles and holds beyond the baseline."""
    baseline = ctx.study.baseline
    return moves.charge(memory.charged(ctx, move), baseline, ctx.compiled(move.plan), ctx.compiled(baseline))


def replay_floor(ctx: Context) -> float:
    """The share by which the baseline's own replays on the tune slice differ; 0 where they cannot say."""
    values = [latency.metric_value(trace, ctx.study.sla) for trace in analysing.baseline_replays(ctx)]
    return aa_floor([values]).value or 0.0


def shortlisted(ctx: Context, rows: Sequence[Simulated]) -> tuple[list[Simulated], tuple[Move, ...]]:
    """The moves to replay, and ``rows`` with those barred whose answers do not hold: a verdict could only hold them.
    Where nothing else gains, they are replayed all the same, so that the verdict can say what they would win."""
    sla, most, floor = ctx.study.sla, ctx.schedule.confirmed, replay_floor(ctx)
    best, known = search.shortlist(rows, sla, most, floor), list(rows)
    short = best
    while barred := {move.plan.id: why for move in short if (why := quality.failing(ctx, move.plan, "retune"))}:
        known = [replace(row, barred=barred.get(row.move.plan.id, row.barred)) for row in known]
        short = search.shortlist(known, sla, most, floor)
    return (known, short) if short else (list(rows), best)


def confirming_replays(ctx: Context, plans: Sequence[Plan]) -> dict[str, Sequence[Floats] | str]:
    """Latencies of each plan on the tune slice, in turn; or why a plan could not be replayed."""
    runnable = [each for each in plans if not ctx.failed(each)]
    found = runs.in_turn(ctx, runnable, ctx.slice(TUNE), ctx.schedule.confirming, label="confirm", stage="retune")
    replays: dict[str, Sequence[Floats] | str] = {
        name: [latency.latencies(trace, ctx.study.sla) for trace in traces] for name, traces in found.items()
    }
    return {each.id: search.not_compiled(failed) for each in plans if (failed := ctx.failed(each))} | replays


def fits(ctx: Context, tune: Workload) -> tuple[buckets.BucketFit, ...]:
    """The sweep over the number of buckets, beside the formulas of the field; one dynamic dim only."""
    reference, entry = compiling.reference_plan(ctx)
    most = max(ctx.study.space.buckets, default=0)
    if len(ctx.study.dims) != 1 or not most:
        return ()
    cost = compiling.bucket_cost(ctx.costs(reference), entry)
    return buckets.compare(tune.dims, cost, most, dynamic_cost=cost)


def sweep(ctx: Context, tune: Workload) -> tuple[tuple[priced.Priced, ...], priced.EntryPrice] | None:
    """What each number of fitted entries costs when starting and holding them is paid for; None where no padded entry
    was compiled, or with more than one dynamic dim."""
    price = _entry_price(ctx, tune)
    if len(ctx.study.dims) != 1 or price is None:
        return None
    reference, entry = compiling.reference_plan(ctx)
    cost = compiling.bucket_cost(ctx.costs(reference), entry)
    most = min(MOST_ENTRIES, np.unique(tune.dims).size)
    return priced.priced(buckets.sweep(tune.dims, cost, most), price), price


def _entry_price(ctx: Context, tune: Workload) -> priced.EntryPrice | None:
    """The typical padded entry of the candidates that add some, and the traffic that one start serves."""
    starts, held = [], []
    for move in compiling.candidates(ctx).moves:
        if move.kind not in ("refit", "round-up"):
            continue
        padded = {entry.id for entry in move.plan.compile.entries if entry.kind == "bucket"}
        for profile in (each for each in ctx.compiled(move.plan) if each.entry in padded):
            warmed = sum(t.first_ns for t in profile.timings if t.executed in move.plan.serve.warm)
            starts.append((profile.compile_ns + warmed) / 1e6)
            held.append(profile.memory_bytes / MIB)
    if not starts or not tune.span:
        return None
    baseline, most = ctx.study.baseline, memory.limit(ctx)
    held_now = peak(baseline, ctx.compiled(baseline))
    return priced.EntryPrice(
        start_ms=median(starts),
        memory_mib=median(held) * baseline.serve.workers,
        requests=len(tune) / tune.span * START_EVERY_S * 1e9,
        held_mib=0.0 if held_now is None else held_now / MIB,
        limit_mib=None if most is None else most / MIB,
    )


def sizing(ctx: Context, tune: Workload, chosen: Plan) -> size.Sizing:
    """How many cores this SLA needs at this traffic, under the chosen plan."""

    def run(candidate: Plan, load: Workload) -> Trace:
        return runs.simulated(ctx, candidate, load, TUNE, "sizing", ctx.study.seeds.simulate)

    most = max(MOST_CORES, chosen.serve.workers)
    found = size.size(chosen, tune, ctx.study.sla, run, most, measured=chosen.serve.workers)
    simulation = ctx.packet.read_findings("score").table("score.simulation")
    assert simulation is not None, "the score stage always sets simulated runs beside replayed ones"
    return replace(found, doubted=beyond_floor(simulation, ctx.study.sla.metric))
