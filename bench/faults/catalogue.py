"""The faults: what is injected, which class must be named first, and why that one.

A scene is one configuration that serves one window of traffic. Whatever a scene does not change is healthy: the fitted
plan, its entries warmed, at a load that leaves room. Loads are shares of what one worker can do by the profile.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from msgspec.structs import replace

from faults.inject import Injection, neighbours, nothing, quota
from faults.material import COARSE, DRIVER, FEW, FITTED, LARGEST_BATCH, WORKER, Material
from trimtab.domain.plan import BatchPolicy, Plan
from trimtab.domain.score import ClassId
from trimtab.domain.workload import Workload

ROOM = 0.25
"""The load of a healthy run: bursts of the recorded arrivals still fit."""

Arrange = Callable[[Workload, np.random.Generator], Workload]


def as_recorded(load: Workload, rng: np.random.Generator) -> Workload:
    return load


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What one run serves, how, and under which injection. ``limit`` = at most so many requests (None: as many as the
    load gives in the time asked for); ``longer`` = how many times that length."""

    plan: Plan
    load: float = ROOM
    arrange: Arrange = as_recorded
    injection: Injection = nothing
    cores: tuple[int, ...] = (WORKER,)
    share_driver_core: bool = False
    judge_quality: bool = False
    limit: int | None = None
    longer: float = 1.0


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """``expected`` must be named first; ``why`` says why it is that class and not another. ``also`` are classes that
    the fault truly brings along: named beside it they are no decoys. ``unfelt`` = what to expect instead where the
    pace kernel, run under the injection before the replay, keeps its reference: a cause without effect is no fault.
    """

    id: str
    what: str
    expected: ClassId
    why: str
    scene: Callable[[Material], Scene]
    also: tuple[ClassId, ...] = ()
    unfelt: ClassId | None = None


def folded(load: Workload, rng: np.random.Generator) -> Workload:
    """Arrivals of each 500 ms come within its first 2 %: the same requests at the same mean rate, in bursts."""
    period = 500_000_000
    start = load.scheduled // period * period
    return msgspec.structs.replace(load, scheduled=start + (load.scheduled - start) // 50)


def flooded(load: Workload, rng: np.random.Generator) -> Workload:
    """One client sends nine of ten requests, another the rest."""
    stream = (rng.random(len(load)) < 0.1).astype(np.int32)
    return msgspec.structs.replace(load, stream=stream, streams=("flood", "other"))


def _served(plan: Plan, id: str, **serve: object) -> Plan:  # noqa: A002
    return replace(plan, id=id, serve=replace(plan.serve, **serve))


def _hold(size: int, ms: float) -> BatchPolicy:
    return BatchPolicy(kind="size-hold", max_size=size, hold_ms=ms)


def _held(m: Material) -> Scene:
    plan = m.bucketed("held", FEW, (1, LARGEST_BATCH))
    return Scene(plan=_served(plan, "held", batch=_hold(LARGEST_BATCH, 2 * m.sla.bound_ms)))


def _apart(m: Material) -> Scene:
    plan = m.bucketed("apart", FITTED, batch=(1, 2))
    return Scene(plan=_served(plan, "apart", batch=_hold(2, 1.2 * m.sla.bound_ms)))


def _oversubscribed(m: Material) -> Scene:
    return Scene(plan=_served(m.fitted, "crowded", workers=3), load=0.2, longer=1.5, cores=(WORKER,) * 3)


def _flood(m: Material) -> Scene:
    plan = _served(m.fitted, "by-stream", workers=2, placement="stream-affinity")
    return Scene(plan=plan, load=0.33, longer=1.5, arrange=flooded, cores=(WORKER, DRIVER), share_driver_core=True)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="healthy",
        what="nothing; fitted buckets, all warmed, a load with room",
        expected="healthy",
        why="the bound holds, and neither accuracy is low",
        scene=lambda m: Scene(plan=m.fitted),
    ),
    Fault(
        id="overload",
        what="arrivals at 1.3 times what the worker can do",
        expected="capacity-queueing",
        why="useful work alone exceeds the worker's time",
        scene=lambda m: Scene(plan=m.fitted, load=1.3),
    ),
    Fault(
        id="bursts",
        what="arrivals of each 500 ms folded into its first 10 ms",
        expected="capacity-queueing",
        why="the mean load has room, but useful work queues behind useful work beyond the bound; nothing is wasted",
        scene=lambda m: Scene(plan=m.fitted, load=0.6, arrange=folded),
    ),
    Fault(
        id="cold-shapes",
        what="one dynamic entry, nothing warmed",
        expected="cold-shape",
        why="the first run of each width pays for its kernels",
        scene=lambda m: Scene(plan=m.dynamic("cold"), longer=1.5),
    ),
    Fault(
        id="coarse-buckets",
        what=f"{COARSE} buckets, warmed",
        expected="padding-waste",
        why="small widths run at large dims",
        scene=lambda m: Scene(plan=m.bucketed("coarse", COARSE), load=0.5, longer=1.5),
    ),
    Fault(
        id="batch-too-large",
        what=f"{FEW} buckets compiled for exactly {LARGEST_BATCH} rows, requests come one at a time",
        expected="padding-waste",
        why="rows are padded like dims are: what runs is several times what was asked; nobody was held for it",
        scene=lambda m: Scene(
            plan=_served(
                m.bucketed("rows", FEW, (LARGEST_BATCH, LARGEST_BATCH)), "rows", batch=_hold(LARGEST_BATCH, 0)
            ),
            load=0.5,
            longer=2.5,
        ),
    ),
    Fault(
        id="hold-too-long",
        what="a hold of twice the SLA's bound, batches seldom fill",
        expected="batch-policy",
        why="requests wait for company while the worker is free",
        scene=_held,
    ),
    Fault(
        id="cannot-share",
        what="a hold of 1.2 times the bound, and shapes that go to different entries",
        expected="batch-policy",
        why="mates of the same bucket do not come, so the hold is paid for batches of one",
        scene=_apart,
    ),
    Fault(
        id="fallback",
        what="buckets for the usual widths; the wider ones run on an entry outside of its range",
        expected="mapping-fallback",
        why="those requests left the mapping; that their runs are also first runs is a consequence of it",
        scene=lambda m: Scene(plan=m.narrow("narrow"), load=0.36, longer=1.5),
        also=("cold-shape",),
    ),
    Fault(
        id="silent-precision",
        what="f32 is declared, the runtime's default computes in bfloat16; quality is judged beside it",
        expected="precision-fallback",
        why="what was declared did not run; that is a fact of the profile, whatever the tail and the quality say",
        scene=lambda m: Scene(plan=m.bucketed("silent", FITTED, precision="default"), judge_quality=True),
    ),
    Fault(
        id="busy-neighbour",
        what="a process that computes on the worker's core",
        expected="envelope",
        why="others hold the core that the plan assumes for itself; our threads are not more than our cores",
        scene=lambda m: Scene(plan=m.fitted, load=0.2, longer=1.5, injection=lambda: neighbours("spin", WORKER, "0")),
    ),
    Fault(
        id="quota",
        what="the worker may use 0.4 of a core",
        expected="envelope",
        why="the machine gives less than the plan assumes; kernels are as fast as ever between two stops",
        scene=lambda m: Scene(plan=m.fitted, load=0.2, longer=3.0, injection=lambda: quota(0.4)),
    ),
    Fault(
        id="memory-neighbour",
        what="a process that streams through memory on the other core, only while nobody wants that core",
        expected="envelope",
        why="shared caches and memory are part of what the plan assumes; the plan itself moves no more than before. "
        "Where the pace kernel does not feel the neighbour, there is no fault: `healthy`",
        unfelt="healthy",
        scene=lambda m: Scene(plan=m.fitted, injection=lambda: neighbours("stream", DRIVER, "idle")),
    ),
    Fault(
        id="too-many-threads",
        what="3 workers of one thread each on one core",
        expected="oversubscription",
        why="our own threads wait for each other's core",
        scene=_oversubscribed,
    ),
    Fault(
        id="stream-floods",
        what="two workers, each bound to its streams; one client sends nine of ten requests",
        expected="core-imbalance",
        why="one worker is full while the other, which may not help, stands idle",
        scene=_flood,
    ),
    Fault(
        id="late-generator",
        what="other processes hold the load generator's core",
        expected="invalid-measurement",
        why="the arrivals are not those of the schedule, so no latency of this run may be read",
        scene=lambda m: Scene(plan=m.fitted, injection=lambda: neighbours("spin", DRIVER, "-15", 2)),
    ),
    Fault(
        id="too-few-samples",
        what="60 requests",
        expected="insufficient-evidence",
        why="a 95th percentile needs 90 independent requests",
        scene=lambda m: Scene(plan=m.fitted, limit=60),
    ),
)


def fault(id: str) -> Fault:  # noqa: A002
    """The fault of this id; ValueError with the known ones."""
    found = next((each for each in FAULTS if each.id == id), None)
    if found is None:
        raise ValueError(f"no fault {id!r}; known: {', '.join(each.id for each in FAULTS)}")
    return found
