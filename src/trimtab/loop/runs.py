"""Runs: one plan over one slice, replayed for real or simulated, and kept in the packet.

A replay that finished is never repeated: its checkpoint holds the digests of what it depended on.

Runs that are compared are made by one machine. Where a comparison is continued, the machine that made its first runs
makes the others; if it is not there any more, all of them are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from trimtab import backends
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Controller
from trimtab.domain.trace import RunInfo, Source, Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.loop import answers
from trimtab.loop.context import Context
from trimtab.loop.keeping import Keeper
from trimtab.loop.trials.executor import Group
from trimtab.loop.trials.trial import Neighbour, Replay
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.serving.simulate import simulate
from trimtab.store.codec import digest, workload_digest
from trimtab.store.packet import is_done

FRESH = "fresh workers, the plan's warm list run, empty queue"
COMPILES = "compile events"
"""The ability that a backend declares where its runtime may compile while it serves."""
HANG_S, COMPILING_S = 10.0, 300.0
"""How long one batch may take before it is a hang: where a runtime only computes, and where it may compile as well."""


def _unchanged(load: Workload) -> Workload:
    return load


class Setting(NamedTuple):
    """What a run is made under: ``load`` changes the traffic of its slice, a ``neighbour`` the machine while it runs.

    ``name`` says all that it does, with every number: two settings of one name are the same.
    """

    name: str = ""
    load: Callable[[Workload], Workload] = _unchanged
    neighbour: Neighbour | None = None


AS_RECORDED = Setting()


class Wanted(NamedTuple):
    """The run ``id``: ``plan`` on ``part`` under ``setting``; a ``controller`` may change the plan while it serves."""

    id: str
    plan: Plan
    part: Slice
    setting: Setting = AS_RECORDED
    controller: Controller | None = None


class Comparison(NamedTuple):
    """Every plan ``times`` times on the same arrivals, in turn, each round in the other direction (A B B A). Runs are
    named ``<label>-<plan>-<number>``."""

    plans: Sequence[Plan]
    part: Slice
    times: int
    label: str
    setting: Setting = AS_RECORDED

    def wanted(self) -> list[Wanted]:
        """Its runs, in the order in which they are made."""
        found = []
        for number in range(1, self.times + 1):
            order = self.plans if number % 2 else tuple(reversed(self.plans))
            found += [Wanted(f"{self.label}-{plan.id}-{number}", plan, self.part, self.setting) for plan in order]
        return found


def replayed(
    ctx: Context,
    plan: Plan,
    part: Slice,
    run_id: str,
    *,
    stage: str,
    setting: Setting = AS_RECORDED,
    controller: Controller | None = None,
) -> Trace:
    """The measured run ``run_id`` of ``plan`` on ``part``: from the packet if it is there, else replayed now."""
    return _traces(ctx, [[Wanted(run_id, plan, part, setting, controller)]], stage)[run_id]


def in_turn(
    ctx: Context,
    plans: Sequence[Plan],
    part: Slice,
    times: int,
    *,
    label: str,
    stage: str,
    setting: Setting = AS_RECORDED,
) -> dict[str, list[Trace]]:
    """The runs of one comparison, by plan."""
    return compared(ctx, [Comparison(plans, part, times, label, setting)], stage)[0]


def compared(ctx: Context, comparisons: Sequence[Comparison], stage: str) -> list[dict[str, list[Trace]]]:
    """The runs of several comparisons, which have nothing to do with each other."""
    wanted = [comparison.wanted() for comparison in comparisons]
    traces = _traces(ctx, wanted, stage)
    found: list[dict[str, list[Trace]]] = []
    for comparison, runs in zip(comparisons, wanted, strict=True):
        by_plan: dict[str, list[Trace]] = {plan.id: [] for plan in comparison.plans}
        for one in runs:
            by_plan[one.plan.id].append(traces[one.id])
        found.append(by_plan)
    return found


def hang_s(backend: str) -> float:
    """Seconds after which a batch of ``backend`` hangs."""
    compiles = any(ability.name == COMPILES and ability.ok for ability in backends.info(backend).abilities)
    return COMPILING_S if compiles else HANG_S


def simulated(ctx: Context, plan: Plan, workload: Workload, part: str, run_id: str, seed: int) -> Trace:
    """``plan`` under the virtual clock, service times drawn from its profile with ``seed``."""
    costs = ctx.costs(plan)
    run = info(ctx, plan, part, run_id, "simulated", seed)
    service = ProfileService(costs, seed)
    return simulate(workload, plan, Router(plan.compile), costs, service, run, handling=service.handling)


def info(ctx: Context, plan: Plan, part: str, run_id: str, source: Source, seed: int) -> RunInfo:
    """What a run of ``plan`` on slice ``part`` is, before it is made."""
    cores = ctx.worker_cores(plan) if source == "measured" else tuple(range(plan.serve.workers))
    return RunInfo(
        id=run_id,
        plan=plan.id,
        slice=part,
        source=source,
        workload_sha256=ctx.workload_sha256,
        envelope_sha256=ctx.envelope_sha256,
        start_state=FRESH if source == "measured" else "all entries ready and warmed, empty queue",
        seed=seed,
        workers=plan.serve.workers,
        cores=cores,
        driver_core=ctx.driver_core,
        versions=ctx.versions,
    )


def _under(run: RunInfo, workload: Workload, setting: Setting) -> RunInfo:
    """A run under a setting starts elsewhere and serves other traffic: nobody may take it for one as recorded."""
    if setting == AS_RECORDED:
        return run
    state = f"{run.start_state}; {setting.name}"
    return msgspec.structs.replace(run, workload_sha256=workload_digest(workload), start_state=state)


# --- replays, those of one comparison on one machine -------------------------------------------------------------


def _traces(ctx: Context, comparisons: Sequence[Sequence[Wanted]], stage: str) -> dict[str, Trace]:
    """Every run of ``comparisons`` by its id; what is not in the packet is made now."""
    wanted = {one.id: one for runs in comparisons for one in runs}
    groups = [group for runs in comparisons if (group := _lacking(ctx, runs, stage)).trials]
    count = sum(len(group.trials) for group in groups)
    controllers = {one.id: one.controller for one in wanted.values()}
    keeper = Keeper(ctx, lambda run, envelope: _inputs(ctx, wanted[run], stage, envelope), controllers, count)
    try:
        ctx.executor.perform(ctx.material, groups, keeper)
    finally:
        keeper.close()
    return {id: keeper.traces.get(id) or _stored(ctx, id) for id in wanted}  # noqa: A001 - the word of the noun


def _lacking(ctx: Context, runs: Sequence[Wanted], stage: str) -> Group:
    """Those of a comparison that are not finished, bound to the machine that made the others."""
    envelope = next(filter(None, (_made_on(ctx, one.id) for one in runs)), "")
    missing = [one for one in runs if not envelope or not _is_done(ctx, one, stage, envelope)]
    bound = envelope if len(missing) < len(runs) else ""
    return Group(tuple(_trial(ctx, one, stage) for one in missing), bound)


def _made_on(ctx: Context, run_id: str) -> str:
    """The digest of the envelope that made a stored run, if its machine is one of ours; else empty."""
    run = ctx.packet.read_run(run_id)
    if run is None:
        return ""
    made_on = run.envelope_sha256
    return made_on if made_on == ctx.envelope_sha256 or ctx.executor.lends(made_on) else ""


def _is_done(ctx: Context, one: Wanted, stage: str, envelope: str) -> bool:
    return is_done(ctx.packet.folder, f"run-{one.id}", _inputs(ctx, one, stage, envelope))


def _inputs(ctx: Context, one: Wanted, stage: str, envelope: str) -> dict[str, str]:
    return {
        "plan": digest(one.plan),
        "slice": digest(one.part),
        "setting": one.setting.name,
        "workload": ctx.workload_sha256,
        "envelope": envelope,
        "model": ctx.fed,
        "profile": digest(ctx.profiles(one.plan)),
        "infinities": digest(answers.infinities(ctx, stage)),
    }


def _trial(ctx: Context, one: Wanted, stage: str) -> Replay:
    workload = one.setting.load(ctx.workload.take(one.part))
    return Replay(
        stage=stage,
        note=one.id,
        plan=one.plan,
        run=_under(info(ctx, one.plan, one.part.name, one.id, "measured", 0), workload, one.setting),
        workload=workload,
        profiles=ctx.compiled(one.plan),
        hang_s=hang_s(one.plan.compile.backend),
        infinities=answers.infinities(ctx, stage),
        neighbour=one.setting.neighbour,
    )


def _stored(ctx: Context, run_id: str) -> Trace:
    trace = ctx.packet.read_trace(run_id)
    ctx.keep(sorted(ctx.packet.trace_folder(run_id).iterdir()))
    ctx.keep(ctx.machine_file(trace.run.envelope_sha256))
    return trace
