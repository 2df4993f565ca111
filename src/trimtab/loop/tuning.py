"""Tuning: what retune needs besides the search itself: real costs, confirming replays, the bucket sweep, the cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab.domain.plan import Plan
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Workload
from trimtab.evidence import latency
from trimtab.evidence.score.adaptation import beyond_floor
from trimtab.evidence.stats.quantiles import Floats
from trimtab.loop import compiling, memory, runs
from trimtab.loop.context import TUNE, Context
from trimtab.mapping import buckets
from trimtab.retuning import moves, search, size

MOST_CORES = 4
"""How many cores the sizing looks at, at least."""


def charged(ctx: Context, move: Move) -> Move:
    """The move with its peak memory, and with what compiling it really took, if it compiles something that the baseline
    does not."""
    move = memory.charged(ctx, move)
    if ctx.profile_id(move.plan) == ctx.profile_id(ctx.study.baseline):
        return move
    return moves.charge(move, ctx.compiled(move.plan))


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


def sizing(ctx: Context, tune: Workload, chosen: Plan) -> size.Sizing:
    """How many cores this SLA needs at this traffic, under the chosen plan."""

    def run(candidate: Plan, load: Workload) -> Trace:
        return runs.simulated(ctx, candidate, load, TUNE, "sizing", ctx.study.seeds.simulate)

    most = max(MOST_CORES, chosen.serve.workers)
    found = size.size(chosen, tune, ctx.study.sla, run, most, measured=chosen.serve.workers)
    simulation = ctx.packet.read_findings("score").table("score.simulation")
    assert simulation is not None, "the score stage always sets simulated runs beside replayed ones"
    return replace(found, doubted=beyond_floor(simulation, ctx.study.sla.metric))
