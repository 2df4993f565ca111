"""The virtual-clock driver: the serving machine, with service times from a Service instead of real workers.

Events wait in a heap under the key (time, kind, sequence). At one instant whatever frees or changes a worker comes
before an arrival, and an arrival before a timer, so that a request that arrives at the very moment a batch is due still
rides along; the sequence number decides the rest. Nothing else orders events, so the same inputs give the same bytes.

The default start state is warm: every worker up, every entry ready, the plan's warm lists run, at the time of the first
scheduled request. A controller's changes happen at the instant of the event that led to them; what it asks for is
prepared on one spare core, one entry after the other. What it takes to send a batch and to report its end keeps the
worker busy, and is what ``handling`` says. Limits: neither workers nor the spare core slow each other down, and one
driver handles any number of workers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

import msgspec

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryFailed,
    EntryReady,
    Event,
    Occupied,
    PlanChange,
    Prepare,
    PrepareBeside,
    Released,
    Replace,
    SetTimer,
    Stopped,
    TimerFired,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import EntryId, Ns
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Controller, Predictor, Service
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.errors import StudyError
from trimtab.mapping.route import Router
from trimtab.serving.machine import Machine
from trimtab.serving.record import Recorder

_KINDS = (
    BatchDone,
    Released,
    WorkerDown,
    WorkerUp,
    EntryReady,
    EntryFailed,
    Occupied,
    Arrived,
    TimerFired,
    Stopped,
)
_RANK: dict[type, int] = {kind: rank for rank, kind in enumerate(_KINDS)}
_ARRIVED = _RANK[Arrived]

Handling = Callable[[Dispatch], tuple[Ns, Ns]]
"""Of one batch: ns from its dispatch to its start, and from its end until the driver knows."""

_Item = tuple[Ns, int, int, Event]


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """How workers start. ``warm``: all is ready before the first request. ``process_ns``: from Replace to WorkerUp;
    ``prepare_ns``: by entry, from Prepare or PrepareBeside to EntryReady, the warm list included (one entry after the
    other)."""

    warm: bool = True
    process_ns: Ns | None = None
    prepare_ns: Mapping[EntryId, Ns] = {}


def simulate(
    workload: Workload,
    plan: Plan,
    router: Router,
    predictor: Predictor,
    service: Service,
    run: RunInfo,
    *,
    startup: Startup | None = None,
    injected: Sequence[Event] = (),
    machine: Machine | None = None,
    controller: Controller | None = None,
    handling: Handling | None = None,
) -> Trace:
    """One run of ``workload`` under ``plan``. ``run.cores`` names the core of each worker.

    ``injected`` events (a crash, an entry that fails, a pace run) happen as given. ``machine`` replaces the plan's own
    for one that watches itself. ``controller`` may change the plan while it serves. Without ``handling`` a batch starts
    when it is sent, and its end is known at once.
    """
    machine = machine or Machine(plan, router, predictor, run.cores)
    recorder = Recorder(run, workload, tuple(router.entries), run.cores)
    _Driver(
        workload, machine, recorder, service, startup or Startup(), injected, controller, handling or _at_once
    ).run()
    return recorder.trace()


class _Driver:
    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        recorder: Recorder,
        service: Service,
        startup: Startup,
        injected: Sequence[Event],
        controller: Controller | None,
        handling: Handling,
    ) -> None:
        self.machine = machine
        self.recorder = recorder
        self.service = service
        self.startup = startup
        self.controller = controller
        self.handling = handling
        self.spare_until: Ns = 0
        self.sequence = count()
        self.heap: list[_Item] = [(e.t, _RANK[type(e)], next(self.sequence), e) for e in injected]
        heapify(self.heap)
        self.compiling: dict[int, Ns] = {}
        scheduled = workload.scheduled.tolist()
        self.start: Ns = scheduled[0] if scheduled else 0
        dims = [tuple(row) for row in workload.dims.tolist()]
        due = workload.due.tolist()
        self.arrivals = list(zip(scheduled, range(len(scheduled)), workload.stream.tolist(), dims, due, strict=True))

    def run(self) -> None:
        """Start the workers, serve everything, stop."""
        self._start()
        heap, handle, note, follow = self.heap, self.machine.handle, self.recorder.note, self._follow
        observe = self.controller.observe if self.controller is not None else None
        arrivals = iter(self.arrivals)
        coming = next(arrivals, None)
        t = self.start
        while coming is not None or (heap and self.machine.unfinished):
            event: Event
            if coming is None or (heap and (heap[0][0], heap[0][1]) < (coming[0], _ARRIVED)):
                t, _, _, event = heappop(heap)
            else:
                t, request, stream, dims, due = coming
                event = Arrived(t, request, stream, dims, t, due)
                coming = next(arrivals, None)
            commands = handle(event)
            note(event, commands)
            if commands:
                follow(t, commands)
            if observe is not None:
                self._change(observe(event, commands))
        self._step(Stopped(t))

    def _start(self) -> None:
        for worker in range(len(self.machine.slots)):
            prepares = self._step(WorkerUp(self.start, worker))
            if not self.startup.warm:
                self._follow(self.start, prepares)
                continue
            for command in prepares:
                if isinstance(command, Prepare):
                    self._step(EntryReady(self.start, worker, command.entry, command.warm))

    def _step(self, event: Event) -> list[Command]:
        commands = self.machine.handle(event)
        self.recorder.note(event, commands)
        if self.controller is not None:
            self._change(self.controller.observe(event, commands))
        return commands

    def _change(self, changes: list[PlanChange]) -> None:
        for change in changes:
            self._follow(change.t, self._step(change))

    def _follow(self, t: Ns, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Dispatch):
                wall, report = self.service.draw(command)
                before, after = self.handling(command)
                start = t + before
                end = start + wall
                self._push(BatchDone(end + after, command.worker, command.batch, start, end, "none", report))
            elif isinstance(command, SetTimer):
                self._push(TimerFired(command.at, command.token))
            elif isinstance(command, Prepare):
                self._prepare(t, command)
            elif isinstance(command, PrepareBeside):
                self._prepare_beside(t, command)
            elif isinstance(command, Replace):
                self._replace(t, command)

    def _push(self, event: Event) -> None:
        heappush(self.heap, (event.t, _RANK[type(event)], next(self.sequence), event))

    def _prepare(self, t: Ns, command: Prepare) -> None:
        begin = max(t, self.compiling.get(command.worker, t))
        ready = self.compiling[command.worker] = begin + self._takes(command.entry)
        self._push(EntryReady(ready, command.worker, command.entry, command.warm))

    def _prepare_beside(self, t: Ns, command: PrepareBeside) -> None:
        ready = self.spare_until = max(t, self.spare_until) + self._takes(command.entry.id)
        self._push(EntryReady(ready, command.worker, command.entry.id, command.warm))

    def _takes(self, entry: EntryId) -> Ns:
        took = self.startup.prepare_ns.get(entry)
        if took is None:
            raise _unknown(f"how long a worker takes to prepare entry {entry!r}", "prepare_ns")
        return took

    def _replace(self, t: Ns, command: Replace) -> None:
        if self.startup.process_ns is None:
            raise _unknown("how long a new worker process takes to start", "process_ns")
        self.compiling.pop(command.worker, None)
        self.heap[:] = [item for item in self.heap if not _dies_with(command.worker, item[3])]
        heapify(self.heap)
        self._push(WorkerUp(t + self.startup.process_ns, command.worker))


def _at_once(batch: Dispatch) -> tuple[Ns, Ns]:
    return 0, 0


def _dies_with(worker: int, event: Event) -> bool:
    """Whether a process that went down would have said this later."""
    return isinstance(event, BatchDone | EntryReady | WorkerUp) and event.worker == worker


def _unknown(what: str, key: str) -> StudyError:
    return StudyError(f"the simulation does not know {what}", where=f"startup.{key}", fix=f"give {key} to simulate()")
