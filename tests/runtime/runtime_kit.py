"""Small parts for the runtime tests: a network that only takes time, short workloads, workers without processes."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest
from msgspec.structs import replace

from parts import run_info, workload_of
from trimtab.backends import factory, null
from trimtab.domain.events import (
    BatchReport,
    Command,
    EntryAsked,
    EntryDropped,
    EntryReady,
    ErrorKind,
    Event,
    PlanChange,
    Remapped,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.ports import Arrays, ModelFile
from trimtab.domain.study import Crop, InputSpec, ModelSpec, OutputSpec
from trimtab.domain.trace import RunInfo
from trimtab.domain.workload import Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.runtime import wire
from trimtab.runtime.link import Gone
from trimtab.runtime.replay import ReplayRequest
from trimtab.runtime.worker import Job, Worker

SPEC = ModelSpec(
    path="null",
    revision="none",
    inputs=(InputSpec(name="x", shape=("batch", "width")),),
    outputs=(OutputSpec(name="y", crop=(Crop(axis=1, dim="width"),)),),
)
MODEL = ModelFile(path="null", sha256="", spec=SPEC, dim_names=("width",))
ANY = Entry(id="any", kind="dynamic", lo=(1,), hi=(64,), batch=(1, 4))
BUCKET = Entry(id="bucket", kind="bucket", lo=(1,), hi=(8,), batch=(1, 4))
NO_PROMISE = CostModel.from_profiles(())
CORES = tuple(sorted(os.sched_getaffinity(0)))


class Ramp:
    """Payload ``k`` is a row of ``k + 1``."""

    def request(self, payload: int, dims: tuple[int, ...]) -> Arrays:
        return {"x": np.full((1, *dims), payload + 1, dtype=np.float32)}


JOB = Job(factory("null"), MODEL, Ramp())


def plan_of(
    *entries: Entry, workers: int = 1, size: int = 1, hold_ms: float | None = None, warm=(), **options: object
) -> Plan:
    batch = BatchPolicy() if hold_ms is None else BatchPolicy(kind="size-hold", max_size=size, hold_ms=hold_ms)
    return Plan(
        id="p",
        compile=CompileSpec(backend="null", entries=entries or (ANY,), options={k: str(v) for k, v in options.items()}),
        serve=ServePolicy(batch=batch, workers=workers, warm=warm),
    )


def load(times_ms: Sequence[float], widths: Sequence[int] = ()) -> Workload:
    return workload_of(np.round(np.array(times_ms, dtype=np.float64) * 1e6), list(widths) or 5)


def info(workers: int, cores: tuple[int, ...] | None = None) -> RunInfo:
    pinned = tuple(range(workers)) if cores is None else cores
    return run_info(source="measured", workers=workers, cores=pinned, driver_core=CORES[0])


def request_of(workload: Workload, plan: Plan, **changes: object) -> ReplayRequest:
    """A replay on the last core, driven from the first."""
    cores = (CORES[-1],) * plan.serve.workers
    base = {
        "workload": workload,
        "plan": plan,
        "model": MODEL,
        "backend": factory("null"),
        "payloads": Ramp(),
        "router": Router(plan.compile),
        "predictor": NO_PROMISE,
        "cores": cores,
        "driver_core": CORES[0],
        "run": info(plan.serve.workers, cores),
        "share_driver_core": len(CORES) == 1,
    }
    return ReplayRequest(**(base | changes))


class Refitting:
    """At one event asks every worker for an entry, swaps it in once all hold it, and at a later event drops it. A fresh
    worker is asked again."""

    def __init__(
        self,
        plan: Plan,
        entry: Entry,
        ask: Callable[[Event], bool],
        drop: Callable[[Event], bool] = lambda event: False,
    ) -> None:
        self.spec, self.entry, self.ask, self.drop = plan.compile, entry, ask, drop
        self.lacking = set(range(plan.serve.workers))
        self.asked = self.swapped = False

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        if isinstance(event, WorkerUp) and self.asked:
            return [EntryAsked(event.t, event.worker, self.entry)]
        if isinstance(event, WorkerDown):
            self.lacking.add(event.worker)
        if isinstance(event, EntryReady) and event.entry == self.entry.id:
            return self._ready(event)
        if not self.asked and self.ask(event):
            self.asked = True
            return [EntryAsked(event.t, worker, self.entry) for worker in sorted(self.lacking)]
        if self.swapped and self.drop(event):
            self.asked = self.swapped = False
            return [Remapped(event.t, self.spec, "roll-back", "told to"), EntryDropped(event.t, self.entry.id)]
        return []

    def _ready(self, event: EntryReady) -> list[PlanChange]:
        self.lacking.discard(event.worker)
        if self.lacking or self.swapped:
            return []
        self.swapped = True
        return [Remapped(event.t, replace(self.spec, entries=(self.entry, *self.spec.entries)))]


class NoCounters:
    """Counters of a worker that has no process of its own."""

    unread: dict[str, str] = {}

    def begin(self) -> None:
        return None

    def end(self, before: None, assembly_ns: int) -> BatchReport:
        return BatchReport()

    def peak_bytes(self) -> int:
        return 0

    def resident_bytes(self) -> int:
        return 0


class FakeCrew:
    """Workers in this process under one clock that only moves when the driver waits.

    What ends a batch and what was compiled beside it at the same instant come in this order, as in the simulation.
    """

    def __init__(self, job: Job = JOB) -> None:
        self.t = 0
        self.job = job
        self.workers: dict[int, Worker] = {}
        self.local: dict[int, int] = {}
        self.running = 0
        self.replies: list[tuple[int, bool, int, int, wire.Reply | Gone]] = []
        self.sequence = count()
        self.stopped = False

    def now(self) -> int:
        return self.t

    def start(self, worker: int) -> None:
        self.local[worker] = self.t
        self.workers[worker] = Worker(self.job.backend(), self.job, NoCounters(), lambda: self.local[worker])
        self._push(worker, wire.Hello(worker, (worker,), {}, {}))

    def send(self, worker: int, order: wire.Order) -> None:
        self.local[worker] = max(self.local[worker], self.t)
        self.running = worker
        if isinstance(order, wire.CompileBeside):
            self._compile_beside(worker, order)
            return
        paced = isinstance(order, wire.RunPace)
        reply = self._pace(worker, order.runs) if paced else self.workers[worker].handle(order)
        if reply is not None:
            self._push(worker, reply)

    def wait(self, until: int) -> list[tuple[int, wire.Reply | Gone]]:
        if not self.replies or self.replies[0][0] > until:
            self.t = max(self.t, until)
            return []
        self.t = max(self.t, self.replies[0][0])
        got = []
        while self.replies and self.replies[0][0] <= self.t:
            *_, worker, reply = heapq.heappop(self.replies)
            got.append((worker, reply))
        return got

    def kill(self, worker: int, error: ErrorKind) -> Gone:
        self._silence(worker)
        return Gone(error, "killed")

    def fall(self, worker: int) -> None:
        """Its process is killed now, by somebody else."""
        self._silence(worker)
        self.local[worker] = self.t
        self._push(worker, Gone("crash", "killed by SIGKILL"))

    def stop(self) -> None:
        self.stopped = True

    def pause(self, ns: int) -> None:
        self.local[self.running] += ns

    def _pace(self, worker: int, runs: int) -> wire.Paced:
        """Each pass is faster than the one before: it takes some until the arrays are back in the caches."""
        began = self.local[worker]
        self.local[worker] += 200_000
        extra = [10_000 * left for left in reversed(range(runs))]
        compute, stream = ([base + more for more in extra] for base in (120_000, 80_000))
        return wire.Paced(began, self.local[worker], tuple(compute), tuple(stream))

    def _compile_beside(self, worker: int, order: wire.CompileBeside) -> None:
        """The worker's own clock stands still while the entry is compiled on another core."""
        now, self.local[worker] = self.local[worker], self.t
        self._push(worker, wire.Beside(self.workers[worker].compile_beside(order.order)))
        self.local[worker] = now

    def _silence(self, worker: int) -> None:
        self.replies = [reply for reply in self.replies if reply[3] != worker]
        heapq.heapify(self.replies)

    def _push(self, worker: int, reply: wire.Reply | Gone) -> None:
        beside = isinstance(reply, wire.Beside)
        heapq.heappush(self.replies, (self.local[worker], beside, next(self.sequence), worker, reply))


@contextmanager
def fake_crew() -> Iterator[FakeCrew]:
    """A FakeCrew whose null entries take their time on its clock."""
    crew = FakeCrew()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(null.PAUSES, "sleep", crew.pause)
        yield crew
