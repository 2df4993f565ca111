"""Small parts for the serving tests: plans, workloads and service times in one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from parts import run_info, workload_of
from trimtab.domain.events import BatchReport, Command, Dispatch, EntryReady, Event, Prepare, WorkerUp
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.serving.machine import Machine
from trimtab.serving.simulate import Handling, Startup, simulate

NO_PROMISE = CostModel({})

SMALL = Entry(id="small", kind="bucket", lo=(1,), hi=(100,), batch=(1, 4))
LARGE = Entry(id="large", kind="bucket", lo=(1,), hi=(200,), batch=(1, 8))
ANY = Entry(id="any", kind="dynamic", lo=(1,), hi=(400,), batch=(1, 8))


def plan_of(
    *entries: Entry,
    size: int = 1,
    hold_ns: int | None = None,
    workers: int = 1,
    placement: str = "shared",
    order: str = "fifo",
    warm: tuple[tuple[int, ...], ...] = (),
    fallback: str | None = None,
) -> Plan:
    batch = BatchPolicy() if hold_ns is None else BatchPolicy(kind="size-hold", max_size=size, hold_ms=hold_ns / 1e6)
    return Plan(
        id="p",
        compile=CompileSpec(backend="null", entries=entries or (ANY,), fallback=fallback),
        serve=ServePolicy(batch=batch, workers=workers, placement=placement, order=order, warm=warm),
    )


class Checked(Machine):
    """A machine that states its invariants after every event."""

    def handle(self, event: Event) -> list[Command]:
        commands = super().handle(event)
        self.check()
        return commands


def machine_of(plan: Plan, ready: bool = True) -> Checked:
    """A machine whose workers are up at 0 with every entry ready; events 0.. are already spent on that."""
    machine = Checked(plan, Router(plan.compile), NO_PROMISE, tuple(range(plan.serve.workers)))
    if ready:
        for worker in range(plan.serve.workers):
            for command in machine.handle(WorkerUp(0, worker)):
                assert isinstance(command, Prepare)
                machine.handle(EntryReady(0, worker, command.entry, command.warm))
    return machine


def load(times: Sequence[int], widths: Sequence[int] = (), streams: Sequence[int] = ()) -> Workload:
    numbers = np.array(list(streams) or [0] * len(times), dtype=np.int32)
    return workload_of(times, list(widths) or 50, stream=numbers, streams=tuple(f"s{i}" for i in range(8)))


class Takes:
    """A Service whose wall time is a function of the batch."""

    def __init__(self, wall: Callable[[Dispatch], int]) -> None:
        self.wall = wall

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        wall = self.wall(batch)
        return wall, BatchReport(wall, 0)


def run(
    workload: Workload,
    plan: Plan,
    wall: Callable[[Dispatch], int],
    startup: Startup | None = None,
    injected: Sequence[Event] = (),
    predictor: CostModel = NO_PROMISE,
    handling: Handling | None = None,
) -> Trace:
    """Simulate with the invariants checked after each event."""
    router = Router(plan.compile)
    cores = tuple(range(plan.serve.workers))
    return simulate(
        workload,
        plan,
        router,
        predictor,
        Takes(wall),
        run_info(workers=plan.serve.workers),
        startup=startup,
        injected=injected,
        machine=Checked(plan, router, predictor, cores),
        handling=handling,
    )
