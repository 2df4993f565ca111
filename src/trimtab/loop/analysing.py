"""Analysing: the baseline's replays on the tune slice, and everything that is known around the typical one."""

from __future__ import annotations

from trimtab.domain.trace import Trace
from trimtab.evidence import latency, precision
from trimtab.evidence.analysis import Analysis, Circumstances, analyse
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.batches import Yardstick
from trimtab.loop import compiling, quality, runs
from trimtab.loop.context import TUNE, Context


def analysis(ctx: Context, adaptation: Adaptation | str | None = None) -> Analysis:
    """The analysis of the typical replay: the one whose primary metric is the median."""
    baseline, seeds, replayed = ctx.study.baseline, ctx.study.seeds, baseline_replays(ctx)
    typical = sorted(replayed, key=lambda trace: latency.metric_value(trace, ctx.study.sla))[len(replayed) // 2]
    tune = ctx.workload.take(ctx.slice(TUNE))
    rehearsals = [
        runs.simulated(ctx, baseline, tune, TUNE, f"simulated-{baseline.id}-{number}", seeds.simulate + number)
        for number in range(ctx.schedule.replays)
    ]
    return analyse(typical, _circumstances(ctx), simulated=rehearsals, replayed=replayed, adaptation=adaptation)


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
        executed=precision.executed_share(ctx.compiled(baseline), declared),
        quality=quality.holds(ctx, baseline, "attribute"),
    )


def baseline_replays(ctx: Context) -> list[Trace]:
    """The baseline on the tune slice, every fresh replay."""
    baseline = ctx.study.baseline
    return runs.in_turn(ctx, [baseline], ctx.slice(TUNE), ctx.schedule.replays, label=TUNE, stage="replay")[baseline.id]
