"""The serving machine of a prelude: one worker, one request at a time.

Why. From an event to the order that follows from it the driver decides, in caches that the worker's run has left cold:
some 50 us that keep the worker waiting, and that a replay counts to dispatch. So in a prelude the machine decides, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import msgspec

from trimtab.domain.events import Arrived, BatchDone, Dispatch, EntryFailed, EntryReady, WorkerUp
from trimtab.domain.noun import EntryId, Ns
from trimtab.domain.plan import Plan, ServePolicy
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.runtime import wire
from trimtab.runtime.grid import GridPoint
from trimtab.serving.machine import Machine

NO_PROMISE = CostModel.from_profiles(())


class Alone:
    """``entries``: those of the plan that the worker holds. Times are ns of one clock, as everywhere in the machine."""

    def __init__(self, plan: Plan, entries: Iterable[EntryId], core: int) -> None:
        single = msgspec.structs.replace(plan, serve=ServePolicy(threads=plan.serve.threads))
        self._machine = Machine(single, Router(plan.compile), NO_PROMISE, (core,))
        self._requests = count()
        self._machine.handle(WorkerUp(0, 0))
        held = set(entries)
        for entry in plan.compile.entries:
            known = EntryReady(0, 0, entry.id, ()) if entry.id in held else EntryFailed(0, 0, entry.id, "not held")
            self._machine.handle(known)

    def order(self, t: Ns, point: GridPoint) -> wire.Run:
        """A request arrives at ``t``: what to run."""
        (_, dims), *_ = point.members
        (sent,) = self._machine.handle(Arrived(t, next(self._requests), 0, dims, t))
        assert isinstance(sent, Dispatch)
        return wire.Run(sent.batch, sent.entry, sent.executed, point.members)

    def done(self, t: Ns, ran: wire.Ran) -> None:
        """Its answer was there at ``t``."""
        self._machine.handle(BatchDone(t, 0, ran.batch, ran.started, ran.ended, ran.error, ran.report))
