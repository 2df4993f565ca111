"""Conditions that a plan must stand beside the traffic as recorded: each is applied for real (R21).

A condition changes the arrivals, the shapes, the plan's start or the machine, for both arms alike. Its runs are replays
like any other, named after it, so that they resume and are never taken for runs as recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from trimtab.domain.plan import Plan
from trimtab.domain.study import Condition, ConditionKind
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.loop import rounds, runs
from trimtab.loop.context import Context
from trimtab.loop.runs import AS_RECORDED, Comparison, Setting
from trimtab.loop.trials.trial import Neighbour
from trimtab.readers.traffic import read_workload
from trimtab.retuning import arms
from trimtab.store.codec import workload_digest

FEWEST_REQUESTS = 200
"""A second trace with fewer requests says nothing about a tail."""
UPPER_HALF = 0.5
"""Drifted shapes are drawn from the requests whose first dim lies above this quantile."""


class Applied(NamedTuple):
    """How a condition is applied: on which slice, to which plans, under which setting. ``refusal``: why it is not."""

    part: Slice
    setting: Setting = AS_RECORDED
    plan: Callable[[Plan], Plan] = lambda plan: plan
    refusal: str = ""


def replays(ctx: Context, plans: list[Plan]) -> Iterator[tuple[str, dict[str, list[Trace]]]]:
    """The plans in turn under every condition of the study that can be applied here: its name, and the runs by plan."""
    applied = {condition.kind: apply(ctx, condition) for condition in ctx.study.conditions}
    can = {kind: how for kind, how in applied.items() if not how.refusal}
    comparisons = [
        Comparison([how.plan(plan) for plan in plans], how.part, rounds.of(ctx, kind), _label(kind), how.setting)
        for kind, how in can.items()
    ]
    yield from zip(can, runs.compared(ctx, comparisons, "validate"), strict=True)


def _label(kind: ConditionKind) -> str:
    return kind.replace(" ", "-").lower()


def refused(ctx: Context) -> dict[str, str]:
    """Conditions of the study that cannot be applied here, with the reason."""
    found = {condition.kind: apply(ctx, condition).refusal for condition in ctx.study.conditions}
    return {kind: why for kind, why in found.items() if why}


def apply(ctx: Context, condition: Condition) -> Applied:
    """How ``condition`` is applied in this study."""
    return _APPLY[condition.kind](ctx, condition)


# --- one function a condition -----------------------------------------------------------------------------------


def _higher_load(ctx: Context, condition: Condition) -> Applied:
    def denser(load: Workload) -> Workload:
        return replace(load, scheduled=np.rint(load.scheduled / condition.factor).astype(np.int64))

    return Applied(ctx.slice(arms.HELD_OUT), Setting(f"arrivals {condition.factor:g} times denser", denser))


def _one_core_less(ctx: Context, condition: Condition) -> Applied:
    part = ctx.slice(arms.HELD_OUT)
    if ctx.study.baseline.serve.workers < 2:
        return Applied(part, refusal="the baseline has one worker, and nothing can be taken from it")

    def fewer(plan: Plan) -> Plan:
        return replace(plan, serve=replace(plan.serve, workers=max(plan.serve.workers - 1, 1)))

    return Applied(part, Setting("one worker and its core less"), fewer)


def _cpu_neighbour(ctx: Context, condition: Condition) -> Applied:
    core = ctx.worker_cores(ctx.study.baseline)[0]
    setting = Setting(f"a process computes on core {core}", neighbour=Neighbour("spin", core, "0"))
    return Applied(ctx.slice(arms.HELD_OUT), setting)


def _memory_neighbour(ctx: Context, condition: Condition) -> Applied:
    core = ctx.driver_core
    name = f"a process streams through memory on core {core} while nobody wants it"
    return Applied(ctx.slice(arms.HELD_OUT), Setting(name, neighbour=Neighbour("stream", core, "idle")))


def _cold_start(ctx: Context, condition: Condition) -> Applied:
    def unwarmed(plan: Plan) -> Plan:
        return replace(plan, serve=replace(plan.serve, warm=()))

    return Applied(ctx.slice(arms.HELD_OUT), Setting("nothing is warmed"), unwarmed)


def _drifted_shapes(ctx: Context, condition: Condition) -> Applied:
    """Arrivals as recorded; every request takes all but its time of one from the larger half, by seed."""

    def larger(load: Workload) -> Workload:
        first = load.dims[:, 0]
        half = np.flatnonzero(first > np.quantile(first, UPPER_HALF, method="inverted_cdf"))
        if not half.size:
            return load
        taken = half[np.random.default_rng(ctx.study.seeds.workload).integers(0, half.size, len(load))]
        columns = ("dims", "stream", "payload", "deadline")
        return replace(load, **{name: getattr(load, name)[taken] for name in columns})

    return Applied(ctx.slice(arms.HELD_OUT), Setting("shapes of the larger half only", larger))


def _later_traffic(ctx: Context, condition: Condition) -> Applied:
    held_out, total = ctx.slice(arms.HELD_OUT), len(ctx.workload)
    count = held_out.stop - held_out.start
    later = Slice(name="later", start=total - count, stop=total)
    if later.start < held_out.stop:
        why = f"the trace ends {total - held_out.stop} requests after the held-out slice, {count} are needed"
        return Applied(later, refusal=why)
    return Applied(later, Setting("the end of the trace"))


def _second_trace(ctx: Context, condition: Condition) -> Applied:
    part, second = ctx.slice(arms.HELD_OUT), second_trace(ctx, condition)
    files = " and ".join(source.name for source in second.provenance.files)
    if len(second) < FEWEST_REQUESTS:
        return Applied(part, refusal=f"{files} holds {len(second)} requests, {FEWEST_REQUESTS} are the least")
    name = f"{len(second)} requests of a second trace, {files}, sha256 {workload_digest(second)[:12]}"
    return Applied(part, Setting(name, lambda _: second))


def second_trace(ctx: Context, condition: Condition) -> Workload:
    """As many requests as the held-out slice has, from the start of the condition's own files; DataError as for the
    study's own traffic."""
    study, held_out = ctx.study, ctx.slice(arms.HELD_OUT)
    if condition.arrivals is None or condition.shapes is None:
        raise ValueError("a second trace needs arrivals and shapes; the study's rules see to it")
    spec = replace(
        study.workload,
        arrivals=condition.arrivals,
        shapes=condition.shapes,
        skip=0,
        limit=held_out.stop - held_out.start,
        slices=(),
    )
    return replace(read_workload(replace(study, workload=spec), ctx.folder), slices=())


_APPLY: dict[ConditionKind, Callable[[Context, Condition], Applied]] = {
    "higher load": _higher_load,
    "one core less": _one_core_less,
    "CPU neighbour": _cpu_neighbour,
    "memory neighbour": _memory_neighbour,
    "cold start": _cold_start,
    "drifted shapes": _drifted_shapes,
    "later traffic": _later_traffic,
    "second trace": _second_trace,
}
