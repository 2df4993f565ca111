"""Analysing: the baseline's replays on the tune slice, or any stored run, with everything that is known around it."""

from __future__ import annotations

from trimtab.domain.plan import Plan
from trimtab.domain.trace import Trace
from trimtab.errors import PacketError
from trimtab.evidence import latency, precision
from trimtab.evidence.analysis import Analysis, Circumstances, analyse
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.batches import Yardstick
from trimtab.evidence.score.measured import Measured
from trimtab.loop import compiling, memory, quality, runs
from trimtab.loop.context import TUNE, Context


def analysis(
    ctx: Context, adaptation: Adaptation | str | None = None, measured: Measured | str | None = None
) -> Analysis:
    """The analysis of the typical replay: the one whose primary metric is the median.

    ``adaptation``: what adapting would win; ``measured``: what it won.
    """
    baseline, seeds, replayed = ctx.study.baseline, ctx.study.seeds, baseline_replays(ctx)
    typical = sorted(replayed, key=lambda trace: latency.metric_value(trace, ctx.study.sla))[len(replayed) // 2]
    tune = ctx.workload.take(ctx.slice(TUNE))
    rehearsals = [
        runs.simulated(ctx, baseline, tune, TUNE, f"simulated-{baseline.id}-{number}", seeds.simulate + number)
        for number in range(ctx.schedule.replays)
    ]
    plans = (baseline, compiling.reference_plan(ctx)[0], *(move.plan for move in compiling.candidates(ctx).moves))
    known = _circumstances(ctx, typical, baseline, plans, quality.holds(ctx, baseline, "attribute"))
    return analyse(typical, known, simulated=rehearsals, replayed=replayed, adaptation=adaptation, measured=measured)


def stored(ctx: Context, run: str) -> Analysis:
    """The analysis of any measured run of a packet, from what is stored: nothing is compiled, replayed or answered.

    What a simulation would say beside it, and whether answers hold, is left out: both need the network's runtime.
    """
    trace = ctx.packet.read_trace(run)
    plans = tuple(plan for plan in ctx.packet.read_plans() if ctx.compiled(plan))
    plan = next((plan for plan in plans if plan.id == trace.run.plan), None)
    if plan is None:
        raise PacketError(
            f"plan {trace.run.plan!r} of this run has no profile",
            where=str(ctx.packet.folder),
            fix="analyse a run whose plan compiled",
        )
    return analyse(trace, _circumstances(ctx, trace, plan, plans, None))


def _circumstances(
    ctx: Context, trace: Trace, plan: Plan, plans: tuple[Plan, ...], holds: bool | None
) -> Circumstances:
    """``plans``: all whose entries could have served; ``holds``: whether the plan's answers hold (None: not known)."""
    reference, entry = compiling.reference_plan(ctx)
    best = compiling.reference_set(ctx, plans)
    _, checks = ctx.packet.read_envelope()
    declared = ctx.study.quality.precision
    return Circumstances(
        plan=plan,
        yardstick=Yardstick(ctx.costs(plan), ctx.costs(reference), entry, best),
        sla=ctx.study.sla,
        seed=ctx.study.seeds.bootstrap,
        envelope=ctx.envelope_of(trace.run.envelope_sha256),
        memory=memory.limit(ctx),
        checks=checks,
        declared=declared,
        executed=precision.executed_share(ctx.compiled(plan), declared),
        quality=holds,
    )


def baseline_replays(ctx: Context) -> list[Trace]:
    """The baseline on the tune slice, every fresh replay."""
    baseline = ctx.study.baseline
    return runs.in_turn(ctx, [baseline], ctx.slice(TUNE), ctx.schedule.replays, label=TUNE, stage="replay")[baseline.id]
