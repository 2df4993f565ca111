"""Trials: what is measured on a machine, as data, and the one function that makes any of them.

A trial says everything that its result depends on, so it can be made here or on another machine and comes out of the
same kind. Nothing in it is a path: the network and the payloads come with whoever makes it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias

import msgspec

from trimtab import backends
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Controller, ModelFile, Payloads, Progress
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.runtime.grid import Grid
from trimtab.runtime.neighbour import neighbours
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.quality import Answered, answers
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.runtime.verify import Infinities
from trimtab.runtime.wire import Member
from trimtab.serving.rows import Sink

# --- what is asked ---------------------------------------------------------------------------------------------------


class _Trial(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """``stage`` and ``note`` say in the progress what this is."""

    stage: str
    note: str


class Profile(_Trial, frozen=True, kw_only=True):
    """The compile profile of ``plan``, made on ``core``."""

    plan: Plan
    points: Grid
    prelude: Grid
    repeats: int
    core: int
    infinities: Infinities = None


class Answers(_Trial, frozen=True, kw_only=True):
    """What ``plan`` answers to ``members``, in batches of up to ``size``."""

    plan: Plan
    members: tuple[Member, ...]
    core: int
    infinities: Infinities = None
    size: int = 1


class Neighbour(msgspec.Struct, frozen=True):
    """Who disturbs a replay: a process of ``kind`` (spin, stream) on ``core``; ``nice`` as in runtime/neighbour."""

    kind: str
    core: int
    nice: str


class Replay(_Trial, frozen=True, kw_only=True):
    """``plan`` serves ``workload`` on the cores that ``run`` names; ``profiles`` are what its promises come from."""

    plan: Plan
    run: RunInfo
    workload: Workload
    profiles: tuple[CompileProfile, ...]
    hang_s: float
    infinities: Infinities = None
    neighbour: Neighbour | None = None


Trial: TypeAlias = Profile | Answers | Replay

# --- what comes back -------------------------------------------------------------------------------------------------


class _Result(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    pass


class Profiled(_Result, frozen=True, kw_only=True):
    """Of the plan's entries: those that compiled, and why the others did not."""

    profiles: tuple[CompileProfile, ...]
    failures: tuple[CompileFailure, ...]


class Answering(_Result, frozen=True, kw_only=True):
    """In the order of the trial's members."""

    answers: tuple[Answered, ...]


class Replayed(_Result, frozen=True, kw_only=True):
    trace: Trace


Result: TypeAlias = Profiled | Answering | Replayed


class Live(NamedTuple):
    """Who follows a trial while it is made, and who may change its plan; the defaults: nobody."""

    progress: Progress | None = None
    sink: Sink | None = None
    controller: Controller | None = None


def perform(trial: Trial, model: ModelFile, payloads: Payloads, live: Live) -> Result:
    """Make ``trial`` on this machine. Raises what the runtime room raises."""
    match trial:
        case Profile():
            return _profiled(trial, model, payloads, live)
        case Answers():
            factory = backends.factory(trial.plan.compile.backend)
            given = answers(
                trial.plan, model, factory, payloads, trial.members, trial.core, live.progress, trial.infinities,
                trial.size,
            )  # fmt: skip
            return Answering(answers=given)
        case Replay():
            return _replayed(trial, model, payloads, live)


def _profiled(trial: Profile, model: ModelFile, payloads: Payloads, live: Live) -> Profiled:
    results = profile_plan(
        trial.plan,
        model,
        backends.factory(trial.plan.compile.backend),
        payloads,
        trial.points,
        trial.repeats,
        trial.core,
        prelude=trial.prelude,
        infinities=trial.infinities,
        progress=live.progress,
    )
    return Profiled(
        profiles=tuple(result for result in results if isinstance(result, CompileProfile)),
        failures=tuple(result for result in results if isinstance(result, CompileFailure)),
    )


def _replayed(trial: Replay, model: ModelFile, payloads: Payloads, live: Live) -> Replayed:
    plan = trial.plan
    request = ReplayRequest(
        workload=trial.workload,
        plan=plan,
        model=model,
        backend=backends.factory(plan.compile.backend),
        payloads=payloads,
        router=Router(plan.compile),
        predictor=CostModel.from_profiles(trial.profiles, plan.compile.entries),
        cores=trial.run.cores,
        driver_core=trial.run.driver_core,
        run=trial.run,
        hang_s=trial.hang_s,
        infinities=trial.infinities,
        sink=live.sink,
        controller=live.controller,
    )
    with _around(trial.neighbour):
        return Replayed(trace=replay(request, live.progress))


def _around(neighbour: Neighbour | None) -> AbstractContextManager[object]:
    return nullcontext() if neighbour is None else neighbours(neighbour.kind, neighbour.core, neighbour.nice)
