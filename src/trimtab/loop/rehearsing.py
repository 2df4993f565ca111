"""Rehearsing: what a shipped plan will look like in service, simulated on arrivals that never came.

The held-out slice is redrawn (``retuning.rollback.redraw``) and served by the same machine under a virtual clock, with
service times from the plan's profile: healthy, with slower service, and by the plan that it replaces.
"""

from __future__ import annotations

import numpy as np

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import Ns
from trimtab.domain.plan import Plan
from trimtab.domain.workload import Workload
from trimtab.errors import DataError
from trimtab.evidence.stats.bootstrap import block_length
from trimtab.evidence.stats.quantiles import Floats, relaxation_requests
from trimtab.loop import runs
from trimtab.loop.context import Context
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.retuning.arms import HELD_OUT
from trimtab.retuning.rollback import FAULTY, RUNS, SLOWER, Redrawn, Rehearsal, redraw
from trimtab.serving.simulate import simulate


def rehearsal(ctx: Context, plan: Plan) -> Rehearsal | str:
    """Simulated runs of ``plan``, made once in a run of the loop; or why its profile cannot give them."""
    if plan.id not in ctx.rehearsed:
        try:
            ctx.rehearsed[plan.id] = _rehearse(ctx, plan)
        except DataError as error:
            ctx.rehearsed[plan.id] = f"it cannot be simulated, {error.what}"
    return ctx.rehearsed[plan.id]


def _rehearse(ctx: Context, plan: Plan) -> Rehearsal:
    load = ctx.workload.take(ctx.slice(HELD_OUT))
    recorded = Redrawn(np.arange(len(load)), _latency(ctx, plan, load, 0))
    block = block_length(len(load), relaxation_requests(recorded.latency))
    numbers = iter(range(1, 2 * RUNS + (len(SLOWER) + 1) * FAULTY + 1))

    def some(count: int, served: Plan, longer: float = 1.0) -> tuple[Redrawn, ...]:
        return tuple(_redrawn(ctx, served, load, block, next(numbers), longer) for _ in range(count))

    healthy = some(2 * RUNS, plan)
    faulty = {f"service x {factor:g}": some(FAULTY, plan, factor) for factor in SLOWER}
    return Rehearsal(recorded, healthy, faulty | {"the baseline": some(FAULTY, ctx.study.baseline)})


def _redrawn(ctx: Context, plan: Plan, load: Workload, block: int, number: int, longer: float) -> Redrawn:
    rows, arrivals = redraw(load, block, np.random.default_rng((ctx.study.seeds.simulate, number)))
    return Redrawn(rows, _latency(ctx, plan, arrivals, number, longer))


def _latency(ctx: Context, plan: Plan, load: Workload, number: int, longer: float = 1.0) -> Floats:
    """Seconds; every service time is ``longer`` times the profile's."""
    costs, seed = ctx.costs(plan), ctx.study.seeds.simulate + number
    run = runs.info(ctx, plan, HELD_OUT, f"rehearsal-{number}", "simulated", seed)
    service = ProfileService(costs, seed)
    slower = _Longer(service, longer)
    return simulate(load, plan, Router(plan.compile), costs, slower, run, handling=service.handling).latency


class _Longer:
    """A service in which every batch takes ``factor`` times as long."""

    def __init__(self, service: ProfileService, factor: float) -> None:
        self._service, self._factor = service, factor

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """Wall time of ``batch``, ns; all of it on the core."""
        wall = round(self._service.draw(batch)[0] * self._factor)
        return wall, BatchReport(wall, 0)
