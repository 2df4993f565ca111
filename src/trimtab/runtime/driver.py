"""The wall-clock driver's loop: the serving machine, with real workers and real time.

Open loop: arrival i is due at its scheduled time and enters the queue then, however late the system is. One turn of the
loop takes every reply that is there, then at most one arrival or one timer; so, at one instant, what frees a worker
comes before an arrival and an arrival before a timer, which is the order of the virtual-clock driver. Under a clock
that only moves when the loop waits, both drivers therefore make the same trace.

A controller's changes go through the machine at the time of the event that led to them, before the next event, once the
commands of that event are on their way. What it asks for is compiled beside the workers (:mod:`.spare`).

Start: workers are started together, and admitted one after the other (up, then each of its entries ready, the plan's
warm list run). All of that happens before the run's clock starts and is stamped with its first instant, the declared
start state. What happens to workers later bears its true time.

Wide gaps, while nothing runs, are used for the pace kernel and for envelope samples (those are taken anyway once they
are overdue); neither may reach into the next arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, NamedTuple

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryFailed,
    EntryReady,
    Event,
    Finish,
    Occupied,
    Prepare,
    PrepareBeside,
    Released,
    Replace,
    Retire,
    SetTimer,
    Stopped,
    TimerFired,
)
from trimtab.domain.noun import Ns
from trimtab.domain.ports import Controller, Progress
from trimtab.domain.profile import CompileOptions
from trimtab.domain.workload import Workload
from trimtab.runtime import wire
from trimtab.runtime.link import Crew, Gone
from trimtab.runtime.pace import COST_NS, REPEATS, Allowance
from trimtab.runtime.roster import Roster
from trimtab.runtime.sample import PERIOD, Sample
from trimtab.serving.machine import Machine
from trimtab.serving.record import Recorder

LEAD: Ns = 20_000_000
"""From the start state to the first arrival, ns."""
QUIET: Ns = 3_000_000
"""The gap to the next due thing that is wide enough for a sample, ns."""
QUIET_PACE: Ns = 2 * COST_NS
"""The same for pace, ns."""
FOREVER: Ns = 2**62


class Terms(NamedTuple):
    """What a run allows. ``hang_ns``: the longest that one batch may take; ``prepare_ns``: the same for starting a
    process and for each compile. ``pace``: whether to run the pace kernel in gaps. ``spare_core``: where entries are
    compiled beside the workers."""

    hang_ns: Ns
    prepare_ns: Ns
    pace: bool
    spare_core: int


class Outside(NamedTuple):
    """What else the loop touches besides its crew; the defaults touch nothing."""

    sampler: Callable[[], Iterable[Sample]] | None = None
    progress: Progress | None = None
    interrupted: Callable[[], bool] = lambda: False


class Driver:
    """One run: ``start``, then ``serve``. ``options``: what every entry is compiled with. ``controller`` may change the
    plan while it serves."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        recorder: Recorder,
        crew: Crew,
        options: CompileOptions,
        terms: Terms,
        outside: Outside | None = None,
        controller: Controller | None = None,
    ) -> None:
        self.machine, self.recorder, self.crew = machine, recorder, crew
        self.options, self.terms, self.outside = options, terms, outside or Outside()
        self.controller = controller
        self.scheduled: list[Ns] = workload.scheduled.tolist()
        self.stream: list[int] = workload.stream.tolist()
        self.due: list[Ns] = workload.due.tolist()
        self.dims: list[tuple[int, ...]] = [tuple(row) for row in workload.dims.tolist()]
        self.member: list[wire.Member] = list(zip(workload.payload.tolist(), self.dims, strict=True))
        self.roster = Roster(crew, len(machine.slots), self.member, terms.prepare_ns, self._apply, self._t)
        self.timers: list[tuple[Ns, int]] = []
        self.first: Ns = self.scheduled[0] if self.scheduled else 0
        self.origin: Ns | None = None
        self.next = 0
        self.ended = 0
        self.allowance = Allowance()
        self.pace_turn = 0
        self.sample_at: Ns = FOREVER
        self._replies: dict[type, Callable[[int, Any], None]] = {
            wire.Ran: self._ran,
            wire.Compiled: self._prepared,
            wire.Refused: self._prepared,
            wire.Beside: self._beside,
            wire.Paced: self._paced,
            wire.Hello: self.roster.hello,
            wire.Loaded: self.roster.loaded,
            wire.Broken: self.roster.broken,
            Gone: self.roster.gone,
        }

    # --- the run ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring the workers into the declared start state. Raises RunError where one cannot get there."""
        roster = self.roster
        for worker in range(len(roster.stations)):
            roster.start(worker)
        for worker, station in enumerate(roster.stations):
            while not roster.settled(worker) and not self.outside.interrupted():
                roster.require(worker)
                if station.greeted and not station.up:
                    roster.admit(worker)
                self._turn(self.crew.now() + self.terms.prepare_ns)

    def serve(self) -> str:
        """Serve the workload. Returns why the run ended early; an empty string: it is complete."""
        self.origin = self.crew.now() + LEAD - self.first
        self.sample_at = self.origin + self.first
        self.roster.admit_waiting()
        why = self._early_end()
        while not why and not self._finished():
            self._use_gap()
            self._turn(self._due())
            self._one_due()
            why = self._early_end()
        self._apply(Stopped(self._t()))
        return why

    def _turn(self, until: Ns) -> None:
        for worker, reply in self.crew.wait(until):
            self._replies[type(reply)](worker, reply)
        self.roster.bury_overdue()

    def _one_due(self) -> None:
        """At most one arrival, else one timer."""
        t = self._t()
        if self.next < len(self.scheduled) and self.scheduled[self.next] <= t:
            request = self.next
            self.next += 1
            stream, dims, scheduled = self.stream[request], self.dims[request], self.scheduled[request]
            self._apply(Arrived(t, request, stream, dims, scheduled, self.due[request]))
        elif self.timers and self.timers[0][0] <= t:
            self._apply(TimerFired(t, heappop(self.timers)[1]))

    def _finished(self) -> bool:
        return self.next >= len(self.scheduled) and not self.machine.unfinished and not self.roster.pacing

    def _early_end(self) -> str:
        if self.outside.interrupted():
            return "stopped by Ctrl-C"
        if self.next >= len(self.scheduled) and not self.timers and self.roster.quiet and self.machine.unfinished:
            return "the requests that are left wait for a worker that is gone"
        last = self.roster.deserted
        return f"no worker is left: {last}" if last else ""

    def _t(self) -> Ns:
        """The run's clock; it stands still until the start state is reached."""
        return self.first if self.origin is None else self.crew.now() - self.origin

    def _due(self) -> Ns:
        """When the next thing is due on the crew's clock: arrival, timer, sample, or an answer that fails to come."""
        sample = self.sample_at if self.sample_at > self.crew.now() else self.sample_at + PERIOD
        return min(self._due_work(), sample, *self.roster.deadlines)

    def _due_work(self) -> Ns:
        origin, due = self.origin or 0, FOREVER
        if self.next < len(self.scheduled):
            due = origin + self.scheduled[self.next]
        if self.timers:
            due = min(due, origin + self.timers[0][0])
        return due

    # --- machine ------------------------------------------------------------------------------------------------

    def _apply(self, event: Event) -> None:
        commands = self.machine.handle(event)
        for command in commands:
            self._follow(command)
        self.recorder.note(event, commands)
        if self.controller is not None:
            for change in self.controller.observe(event, commands):
                self._apply(change)

    def _follow(self, command: Command) -> None:
        match command:
            case Dispatch():
                members = tuple([self.member[request] for request in command.members])
                run = wire.Run(command.batch, command.entry, command.executed, members)
                self.roster.send(command.worker, run, self.terms.hang_ns)
            case Finish():
                self.ended += 1
            case SetTimer():
                heappush(self.timers, (command.at, command.token))
            case Prepare():
                compile_ = wire.Compile(self.machine.rules.entries[command.entry], self.options, command.warm)
                self.roster.send(command.worker, compile_, self.terms.prepare_ns)
            case PrepareBeside():
                compile_ = wire.Compile(command.entry, self.options, command.warm)
                beside = wire.CompileBeside(compile_, (self.terms.spare_core,))
                self.roster.spare.ask(command.worker, beside)
            case Retire():
                self.crew.send(command.worker, wire.Forget(command.entry))
            case Replace():
                self.roster.start(command.worker)

    def _ran(self, worker: int, reply: wire.Ran) -> None:
        t, origin = self._t(), self.origin or 0
        self.roster.answered(worker).deaths = 0
        if reply.error != "none":
            self.roster.remark(f"{reply.error}: {reply.message}")
        started, ended = reply.started - origin, reply.ended - origin
        self._apply(BatchDone(t, worker, reply.batch, started, ended, reply.error, reply.report))

    def _prepared(self, worker: int, reply: wire.Compiled | wire.Refused) -> None:
        self.roster.answered(worker)
        self._entry(worker, reply)

    def _beside(self, worker: int, reply: wire.Beside) -> None:
        self.roster.spare.answered()
        self._entry(worker, reply.reply)

    def _entry(self, worker: int, reply: wire.Compiled | wire.Refused) -> None:
        """Tell the machine what became of an entry."""
        if isinstance(reply, wire.Compiled):
            self._apply(EntryReady(self._t(), worker, reply.entry, reply.warmed))
            return
        failure = reply.failure
        self.roster.remark(f"entry {failure.entry} failed ({failure.kind}): {failure.message}")
        self._apply(EntryFailed(self._t(), worker, failure.entry, failure.message))

    def _paced(self, worker: int, reply: wire.Paced) -> None:
        station = self.roster.answered(worker)
        if not station.up:  # the run that only made the kernel warm
            station.greeted = True
            if self.origin is not None:
                self.roster.admit(worker)
            return
        station.pacing = False
        self.allowance.spent(reply.started, reply.ended)
        self.recorder.pace(worker, min(reply.compute_ns), min(reply.stream_ns))
        self._apply(Released(self._t(), worker, "pace"))

    # --- gaps ---------------------------------------------------------------------------------------------------

    def _use_gap(self) -> None:
        now = self.crew.now()
        gap = self._due_work() - now if self._idle() else 0
        if now >= self.sample_at and (gap >= QUIET or now >= self.sample_at + PERIOD):
            self._sample(now)
        elif gap >= QUIET_PACE and self.terms.pace and self.allowance.open(now):
            self._run_pace()

    def _idle(self) -> bool:
        return self.next < len(self.scheduled) and not self.machine.unfinished and self.roster.quiet

    def _run_pace(self) -> None:
        """One run, on each worker in turn."""
        up = self.roster.up
        if not up:
            return
        worker = up[self.pace_turn % len(up)]
        self.pace_turn += 1
        self.roster.stations[worker].pacing = True
        self._apply(Occupied(self._t(), worker, "pace"))
        self.roster.send(worker, wire.RunPace(REPEATS), self.terms.hang_ns)

    def _sample(self, now: Ns) -> None:
        self.sample_at = now + PERIOD
        t = self._t()
        for sample in self.outside.sampler() if self.outside.sampler else ():
            self.recorder.sample(t, *sample)
        if self.outside.progress is not None and self.scheduled:
            span = (self.scheduled[-1] - self.first) / 1e9
            self.outside.progress.step("replay", min((t - self.first) / 1e9, span), span, f"{self.ended} requests done")
