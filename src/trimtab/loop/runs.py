"""Runs: one plan over one slice, replayed for real or simulated, and kept in the packet.

A replay that finished is never repeated: its checkpoint holds the digests of what it depended on. One that was cut
off (Ctrl-C, kill, a full disk) leaves its rows in the telemetry log; they become an incomplete trace of their own
before the run starts again, so that nothing measured is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import msgspec

from trimtab import backends
from trimtab.domain.plan import Plan
from trimtab.domain.trace import RunInfo, Source, Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.loop import answers
from trimtab.loop.context import Context, Renamed
from trimtab.mapping.cost import ProfileService
from trimtab.mapping.route import Router
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.serving.record import Recorder
from trimtab.serving.simulate import simulate
from trimtab.store.codec import digest, workload_digest
from trimtab.store.packet import is_done, mark_done
from trimtab.store.telemetry import TelemetrySink, recover

FRESH = "fresh workers, the plan's warm list run, empty queue"
COMPILES = "compile events"
"""The ability that a backend declares where its runtime may compile while it serves."""
HANG_S, COMPILING_S = 10.0, 300.0
"""How long one batch may take before it is a hang: where a runtime only computes, and where it may compile as well."""


class Interrupted(KeyboardInterrupt):
    """A replay was stopped by Ctrl-C; its trace so far is in the packet."""


def _unchanged(load: Workload) -> Workload:
    return load


class Setting(NamedTuple):
    """What a run is made under: ``load`` changes the traffic of its slice, ``around`` the machine while it runs.

    ``name`` says all that it does, with every number: two settings of one name are the same.
    """

    name: str = ""
    load: Callable[[Workload], Workload] = _unchanged
    around: Callable[[], AbstractContextManager[object]] = nullcontext


AS_RECORDED = Setting()


def replayed(
    ctx: Context, plan: Plan, part: Slice, run_id: str, *, stage: str, setting: Setting = AS_RECORDED
) -> Trace:
    """The measured run ``run_id`` of ``plan`` on ``part``: from the packet if it is there, else replayed now."""
    inputs = _inputs(ctx, plan, part, stage, setting)
    checkpoint = f"run-{run_id}"
    if is_done(ctx.packet.folder, checkpoint, inputs):
        ctx.keep(sorted(ctx.packet.trace_folder(run_id).iterdir()))
        return ctx.packet.read_trace(run_id)
    workload = setting.load(ctx.workload.take(part))
    run = _under(info(ctx, plan, part.name, run_id, "measured", 0), workload, setting)
    _salvage(ctx, plan, workload, run)
    with TelemetrySink(ctx.packet.telemetry_path(run_id)) as log, setting.around():
        trace = replay(
            ReplayRequest(
                workload=workload,
                plan=plan,
                model=ctx.model,
                backend=backends.factory(plan.compile.backend),
                payloads=ctx.payloads,
                router=Router(plan.compile),
                predictor=ctx.costs(plan),
                cores=ctx.worker_cores(plan),
                driver_core=ctx.driver_core,
                run=run,
                hang_s=hang_s(plan.compile.backend),
                infinities=answers.infinities(ctx, stage),
                sink=lambda table, rows: log.extend([(table, *row) for row in rows]),
            ),
            Renamed(ctx.progress, stage, run_id),
        )
    if not trace.run.complete:
        ctx.packet.write_trace(_renamed(trace, _cut_id(ctx, run_id)))
        ctx.packet.telemetry_path(run_id).unlink(missing_ok=True)
        raise Interrupted
    files = ctx.packet.write_trace(trace)
    mark_done(ctx.packet.folder, checkpoint, inputs, files)
    ctx.packet.telemetry_path(run_id).unlink(missing_ok=True)
    ctx.keep(files)
    return trace


def hang_s(backend: str) -> float:
    """Seconds after which a batch of ``backend`` hangs."""
    compiles = any(ability.name == COMPILES and ability.ok for ability in backends.info(backend).abilities)
    return COMPILING_S if compiles else HANG_S


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
    """Every plan ``times`` times on the same arrivals, in turn, each round in the other direction (A B B A). Runs are
    named ``<label>-<plan>-<number>``."""
    found: dict[str, list[Trace]] = {plan.id: [] for plan in plans}
    for number in range(1, times + 1):
        order = plans if number % 2 else tuple(reversed(plans))
        for plan in order:
            run_id = f"{label}-{plan.id}-{number}"
            found[plan.id].append(replayed(ctx, plan, part, run_id, stage=stage, setting=setting))
    return found


def simulated(ctx: Context, plan: Plan, workload: Workload, part: str, run_id: str, seed: int) -> Trace:
    """``plan`` under the virtual clock, service times drawn from its profile with ``seed``."""
    costs = ctx.costs(plan)
    run = info(ctx, plan, part, run_id, "simulated", seed)
    return simulate(workload, plan, Router(plan.compile), costs, ProfileService(costs, seed), run)


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


def _inputs(ctx: Context, plan: Plan, part: Slice, stage: str, setting: Setting) -> dict[str, str]:
    return {
        "plan": digest(plan),
        "slice": digest(part),
        "setting": setting.name,
        "workload": ctx.workload_sha256,
        "envelope": ctx.envelope_sha256,
        "model": ctx.fed,
        "profile": digest(ctx.profiles(plan)),
        "infinities": digest(answers.infinities(ctx, stage)),
    }


# --- telemetry that outlives the process ---------------------------------------------------------------------------


def _salvage(ctx: Context, plan: Plan, workload: Workload, run: RunInfo) -> None:
    """Turn the log of a run that was killed into an incomplete trace: the same recorder makes it, from rows instead of
    events."""
    path = ctx.packet.telemetry_path(run.id)
    if not path.is_file():
        return
    router = Router(plan.compile)
    cut = msgspec.structs.replace(run, id=_cut_id(ctx, run.id))
    recorder = Recorder(cut, workload, tuple(router.entries), ctx.worker_cores(plan))
    rows = recover(path).rows
    for table, *row in rows:
        recorder.restore(table, tuple(row))
    if rows:
        ctx.packet.write_trace(recorder.trace(complete=False))
    path.unlink()


def _renamed(trace: Trace, run_id: str) -> Trace:
    return msgspec.structs.replace(trace, run=msgspec.structs.replace(trace.run, id=run_id))


def _cut_id(ctx: Context, run_id: str) -> str:
    number = 1
    while ctx.packet.trace_folder(f"{run_id}.cut{number}").exists():
        number += 1
    return f"{run_id}.cut{number}"
