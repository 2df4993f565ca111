"""The serving machine: queue -> batch -> place, as ONE pure state machine that every driver runs.

``handle(event) -> commands``: times arrive on events, nothing is read from a clock, nothing is drawn. What it promises
(``check`` states it in full):

- a request that arrived ends exactly once, by one Finish;
- requests wait in groups, one per entry and eligibility class; only members of one group share a batch; within a
  group and under FIFO nobody overtakes;
- a batch forms when it is sent: among the groups whose batch policy is ready and that have a free eligible worker, the
  one whose head has the smallest order key goes first, to the worker that has been free the longest;
- where a worker is free and a group is not ready, a timer is set for the moment when it will be;
- a worker takes traffic once every entry it was asked to prepare is ready or has failed, and only for entries it holds;
- a batch is one worker's; a worker that goes down gives its batch up (members end with the error of the fall), and
  whatever that process may still say of it is counted as late and ignored;
- a plan changes between two events, whole; what waits is routed anew.

Here are the requests: they arrive, wait, are sent and end. What becomes of workers is in :mod:`.workers`, what a
controller changes in :mod:`.changes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryAsked,
    EntryDropped,
    EntryFailed,
    EntryReady,
    ErrorKind,
    Event,
    Finish,
    Occupied,
    Released,
    Remapped,
    SetTimer,
    Stopped,
    TimerFired,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.route import ROUTE_KINDS, Route
from trimtab.errors import RunError, StudyError
from trimtab.mapping.route import Router
from trimtab.serving import changes, workers
from trimtab.serving.invariants import check
from trimtab.serving.rules import Rules
from trimtab.serving.state import Group, Running, Slot, Waiting

GroupKey = tuple[tuple[int, ...], EntryId]


class Machine:
    """One plan's queue, batcher and placement. ``cores``: the core of each worker, as many as the plan has workers."""

    def __init__(self, plan: Plan, router: Router, predictor: Predictor, cores: tuple[int, ...]) -> None:
        if len(cores) != plan.serve.workers:
            raise StudyError(
                f"plan {plan.id!r} has {plan.serve.workers} workers for {len(cores)} cores",
                where="serve.workers",
                fix="name one core for each worker",
            )
        self.rules = Rules(plan, router, predictor)
        self.slots = [Slot() for _ in cores]
        self.groups: dict[GroupKey, Group] = {}
        self.pending: dict[GroupKey, Group] = {}
        self.free: dict[int, Ns] = {}  # since when
        self.open: set[int] = set()
        self.leaving: set[EntryId] = set()
        self.asked: dict[EntryId, tuple[Executed, ...]] = {}
        self.late = 0
        self.now: Ns = 0
        self.stopped = False
        self.cause = -1  # the number of the event in hand
        self._batches = count()
        self._tokens = count()
        self._timers: dict[int, tuple[Group, Ns]] = {}
        self._handlers: dict[type, Callable[[Any], list[Command]]] = {
            Arrived: self._arrived,
            TimerFired: self._timer_fired,
            BatchDone: self._batch_done,
            Stopped: self._stopped,
            WorkerUp: partial(workers.came_up, self),
            WorkerDown: partial(workers.went_down, self),
            EntryReady: partial(workers.ready, self),
            EntryFailed: partial(workers.failed, self),
            Occupied: partial(workers.occupied, self),
            Released: partial(workers.released, self),
            EntryAsked: partial(changes.asked, self),
            Remapped: partial(changes.remapped, self),
            EntryDropped: partial(changes.dropped, self),
        }

    @property
    def unfinished(self) -> int:
        """Requests that arrived and have not ended."""
        return len(self.open)

    @property
    def handled(self) -> int:
        """Events taken so far."""
        return self.cause + 1

    def handle(self, event: Event) -> list[Command]:
        """Take one event; what to do about it, in order. Each command's ``cause`` is the event's number, from 0."""
        self.cause += 1
        self.now = event.t
        out = self._handlers[type(event)](event)
        if self.free and self.pending:
            self._schedule(event.t, out)
        if self.leaving and not self.pending:
            out += changes.retire(self)
        return out

    def check(self) -> None:
        """Raise RunError if any invariant does not hold."""
        check(self)

    def finish(self, request: int, error: ErrorKind) -> Finish:
        """End a request that has not ended."""
        self.open.remove(request)
        return Finish(self.cause, request, error)

    def settle(self, worker: int) -> None:
        """A worker changed: note whether it is free, and keep the order in which they became so."""
        if self.slots[worker].free:
            self.free.setdefault(worker, self.now)
        else:
            self.free.pop(worker, None)

    # --- requests -----------------------------------------------------------------------------------------------

    def _arrived(self, event: Arrived) -> list[Command]:
        request = event.request
        if request in self.open:
            raise RunError(f"request {request} arrived twice", where="driver", fix="send each request once")
        self.open.add(request)
        route = self.rules.router.route(event.dims)
        if self.stopped:
            return [self.finish(request, "unfinished")]
        if route.entry is None or len(self.open) > self.rules.admit:
            return [self.finish(request, "rejected")]
        return self._enqueue(event, route, route.entry)

    def _enqueue(self, event: Arrived, route: Route, entry: EntryId) -> list[Command]:
        key = (self.rules.eligible(event.stream, entry), entry)
        group = self.groups.get(key) or self._new_group(key)
        if group.hopeless:
            return [self.finish(event.request, "entry-failed")]
        group.add(Waiting(self.rules.order(event, route, self.rules.predictor), event.request, event, route))
        self.pending[key] = group
        return []

    def requeue(self) -> list[Command]:
        """Send what waits to where it would go if it arrived now; what the table does not cover stays where it is."""
        waiting = [(key, item) for key, group in self.pending.items() for item in group.take(len(group.queue))]
        self.pending.clear()
        out: list[Command] = []
        for key, item in sorted(waiting, key=lambda each: each[1].request):
            route = self.rules.router.route(item.arrival.dims)
            if route.entry is None:
                self.pending[key] = self.groups[key]
                self.groups[key].add(item)
            else:
                out += self._enqueue(item.arrival, route, route.entry)
        return out

    def _new_group(self, key: GroupKey) -> Group:
        eligible, entry = key
        group = self.groups[key] = Group(entry, eligible, self.rules.policies[entry])
        group.hopeless = workers.hopeless(self, group)
        return group

    def _timer_fired(self, event: TimerFired) -> list[Command]:
        timer = self._timers.pop(event.token, None)
        if timer is not None:
            group, at = timer
            group.timers.discard(at)
        return []

    def _stopped(self, event: Stopped) -> list[Command]:
        self.stopped = True
        out: list[Command] = [self.finish(request, "unfinished") for request in sorted(self.open)]
        self.pending.clear()
        for group in self.groups.values():
            group.take(len(group.queue))
        for slot in self.slots:
            slot.running = None
        return out

    def _batch_done(self, event: BatchDone) -> list[Command]:
        slot = self.slots[event.worker]
        running = slot.running
        if running is None or running.batch != event.batch:
            self.late += 1
            return []
        slot.end(event.error == "none")
        self.settle(event.worker)
        return [self.finish(request, event.error) for request in running.members]

    # --- dispatch -----------------------------------------------------------------------------------------------

    def _schedule(self, t: Ns, out: list[Command]) -> None:
        while self.free and self.pending:
            best: tuple[Waiting, GroupKey, Group, int, Ns, int] | None = None
            for key, group in self.pending.items():
                worker = self._free_worker(group)
                if worker is None:
                    continue
                ready, size = self.rules.batch(group.times, group.policy)
                if ready > t:
                    self._wake(group, ready, out)
                elif best is None or group.queue[0] < best[0]:
                    best = (group.queue[0], key, group, worker, ready, size)
            if best is None:
                return
            _, key, group, worker, ready, size = best
            out.append(self._dispatch(group, worker, ready, size))
            if not group.queue:
                del self.pending[key]

    def _free_worker(self, group: Group) -> int | None:
        for worker in self.free:
            if worker in group.workers and group.entry in self.slots[worker].holds:
                return worker
        return None

    def _wake(self, group: Group, at: Ns, out: list[Command]) -> None:
        if at in group.timers:
            return
        group.timers.add(at)
        token = next(self._tokens)
        self._timers[token] = (group, at)
        out.append(SetTimer(self.cause, at, token))

    def _dispatch(self, group: Group, worker: int, ready: Ns, size: int) -> Dispatch:
        rules, slot = self.rules, self.slots[worker]
        taken = group.take(size)
        route = taken[0].route
        executed, kind = route.executed, route.kind
        members = tuple([item.request for item in taken])
        if size > 1:
            executed = rules.executed(group.entry, [item.arrival.dims for item in taken])
            kind = max([item.route.kind for item in taken], key=ROUTE_KINDS.index)
        batch = next(self._batches)
        first_seen, changed = slot.start(Running(batch, members, (group.entry, executed)))
        idle = self.now - self.free.pop(worker)
        return Dispatch(
            self.cause,
            batch,
            worker,
            group.entry,
            kind,
            members,
            executed,
            first_seen,
            changed,
            kind == "fallback",
            rules.predictor.warm(group.entry, executed),
            rules.predictor.expected(group.entry, executed, first_seen),
            ready,
            idle,
        )
