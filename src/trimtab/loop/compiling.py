"""Compiling: which plans there are to compile, and their profiles, each made once.

The candidates are a function of the baseline's profile and of the tune slice alone, so they can be listed again by any
later stage and come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from trimtab import backends
from trimtab.domain.envelope import Envelope
from trimtab.domain.noun import Dims, EntryId
from trimtab.domain.plan import Plan, ServePolicy
from trimtab.evidence.score.reference import ReferenceSet
from trimtab.loop import answers
from trimtab.loop.context import TUNE, Context, Profiles, profile_digest
from trimtab.loop.runs import simulated
from trimtab.loop.trials.executor import Group
from trimtab.loop.trials.trial import Profile, Profiled, Result, Trial
from trimtab.loop.watching import Watched
from trimtab.mapping.cost import CostModel
from trimtab.retuning import moves
from trimtab.runtime.grid import grid, prelude
from trimtab.store.codec import digest
from trimtab.store.packet import is_done, mark_done

REFERENCE = "reference"


def profile(ctx: Context, plans: Sequence[Plan]) -> None:
    """Make sure that plans and profiles are in the packet; plans that compile alike share the first one's profile."""
    wanted: dict[str, dict[str, str]] = {}
    trials = []
    for plan in plans:
        ctx.keep(ctx.packet.write_plan(plan))
        key = profile_digest(plan)
        if plan.id in wanted or ctx.profile_owners.setdefault(key, plan.id) != plan.id:
            continue
        inputs = {"compile": key, "model": ctx.fed, **_conditions(ctx)}
        if is_done(ctx.packet.folder, _checkpoint(plan.id), inputs):
            ctx.keep(ctx.packet.path("profiles", f"{plan.id}.json"))
            ctx.keep(ctx.machine_file(ctx.packet.profiled_on(plan.id)))
            continue
        wanted[plan.id] = inputs
        trials.append(_trial(ctx, plan))
    ctx.executor.perform(ctx.material, [Group((trial,)) for trial in trials], _Keeper(ctx, wanted))


class _Keeper(Watched):
    """Puts each profile into the packet as soon as it is there."""

    def __init__(self, ctx: Context, inputs: dict[str, dict[str, str]]) -> None:
        super().__init__(ctx.progress, len(inputs))
        self._ctx, self._inputs = ctx, inputs

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        assert isinstance(trial, Profile)
        assert isinstance(result, Profiled)
        ctx, plan = self._ctx, trial.plan.id
        made: Profiles = (*result.profiles, *result.failures)
        files = (ctx.packet.write_profiles(plan, made, digest(envelope)), *ctx.machine_files(envelope))
        mark_done(ctx.packet.folder, _checkpoint(plan), self._inputs[plan], files)
        ctx.keep(files)


def _checkpoint(plan: str) -> str:
    return f"profile-{plan}"


def _trial(ctx: Context, plan: Plan) -> Profile:
    budget, traffic = ctx.study.budget, ctx.workload.take(ctx.slice(TUNE))
    points = grid(traffic, plan, budget.profile_points)
    return Profile(
        stage="compile",
        note=f"profiling {plan.id}",
        plan=plan,
        points=points,
        prelude=prelude(traffic, plan),
        repeats=budget.profile_repeats,
        core=ctx.worker_cores(plan)[0],
        infinities=answers.infinities(ctx, "compile"),
    )


def _conditions(ctx: Context) -> dict[str, str]:
    return {
        "workload": ctx.workload_sha256,
        "envelope": ctx.envelope_sha256,
        "budget": digest(ctx.study.budget),
        "infinities": digest(answers.infinities(ctx, "compile")),
    }


def reference_plan(ctx: Context) -> tuple[Plan, EntryId]:
    """The plan whose ONE entry covers every shape: the baseline where it has that one alone, else a dynamic one. Beside
    others such an entry is profiled only where they leave traffic to it."""
    baseline = ctx.study.baseline
    whole = ctx.any_shape("any-shape", baseline.serve.batch.max_size)
    own = baseline.compile.entries
    if [(entry.kind, entry.lo, entry.hi) for entry in own] == [(whole.kind, whole.lo, whole.hi)]:
        return baseline, own[0].id
    spec = replace(baseline.compile, entries=(whole,), fallback=whole.id)
    return Plan(id=REFERENCE, compile=spec, serve=ServePolicy(threads=baseline.serve.threads)), whole.id


def candidates(ctx: Context) -> moves.Options:
    """Every move that the study allows, "no change" first, worked out once in a run; of what runs already only that."""
    if ctx.options is None:
        ctx.options = _enumerate(ctx) if ctx.shipped is None else moves.Options((ctx.shipped.move,), ())
    return ctx.options


def _enumerate(ctx: Context) -> moves.Options:
    study = ctx.study
    tune = ctx.workload.take(ctx.slice(TUNE))
    rehearsal = simulated(ctx, study.baseline, tune, TUNE, "rehearsal", study.seeds.simulate)
    reference, entry = reference_plan(ctx)
    known = moves.Known(
        dims=tune.dims,
        seen=moves.seen_shapes(rehearsal),
        predictor=ctx.costs(study.baseline),
        profiles=ctx.compiled(study.baseline),
        cost=bucket_cost(ctx.costs(reference), entry) if len(study.dims) == 1 else None,
        box_cost=box_cost(ctx.costs(reference), entry),
        deadlines=np.unique(tune.deadline).size > 1,
        unable=_unable(study.baseline.compile.backend),
    )
    return moves.enumerate_moves(study, known)


def _unable(backend: str) -> dict[str, str]:
    """What moves may ask of a backend and it cannot do here -> why."""
    abilities = {ability.name: ability for ability in backends.info(backend).abilities}
    missing = {name: f"it knows no {name}" for name in moves.ABILITIES if name not in abilities}
    return missing | {name: ability.why for name, ability in abilities.items() if not ability.ok}


def bucket_cost(costs: CostModel, entry: EntryId) -> Callable[[int], float]:
    """ms of one request in a bucket that ends at a value, by the reference entry's measured times there."""

    def milliseconds(end: int) -> float:
        return costs.estimate(entry, (1, end)) / 1e6

    return milliseconds


def box_cost(costs: CostModel, entry: EntryId) -> Callable[[Dims], float]:
    """:func:`bucket_cost` for any number of dims."""

    def milliseconds(box: Dims) -> float:
        return costs.estimate(entry, (1, *box)) / 1e6

    return milliseconds


def reference_set(ctx: Context, plans: tuple[Plan, ...]) -> ReferenceSet:
    """All profiled entries of ``plans`` together; what every batch could have run on."""
    found: ReferenceSet | None = None
    for owner in dict.fromkeys(ctx.profile_id(plan) for plan in plans):
        plan = next(p for p in plans if p.id == owner)
        one = ReferenceSet.from_profiles(plan.compile.entries, ctx.compiled(plan), plan.serve.batch.max_size)
        found = one if found is None else found | one
    assert found is not None
    return found
