"""A serving machine whose plan shifts from window to window: refitted at a boundary, compiled where it serves.

Windows are counted in requests: with the first request of window w the plan of window w routes every arrival. What
waited before keeps its entry. Entries that a worker does not hold yet are asked for with Prepare once its batch is
over, and the worker takes nothing until all of them are ready: that is the stall. Entries that left the plan are
retired when nobody waits for them any more, and are compiled again if they come back.

Limits: all workers stop at the same boundary, each compiles for itself, and none of them falls.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from trimtab.domain.events import Arrived, BatchDone, Command, Prepare, Retire
from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.route import Route
from trimtab.errors import StudyError
from trimtab.mapping.route import Router
from trimtab.serving.machine import Machine
from trimtab.serving.rules import Rules


class ShiftingRouter(Router):
    """The routers of several plans over all of their entries; ``number`` says whose turn it is."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        super().__init__(_union(plans))
        known: dict[tuple[Entry, ...], Router] = {}
        self._routers = [known.setdefault(plan.compile.entries, Router(plan.compile)) for plan in plans]
        self.number = 0

    def route(self, dims: Dims) -> Route:
        """How the plan whose turn it is runs ``dims``."""
        return self._routers[self.number].route(dims)


class ShiftingMachine(Machine):
    """``plans[w]`` serves the requests ``starts[w] <= id < starts[w + 1]``; the plans differ in entries and warm lists.

    What a worker must hold before it takes traffic is the first plan's.
    """

    def __init__(self, plans: Sequence[Plan], starts: Sequence[int], predictor: Predictor, cores: tuple[int, ...]):
        self._router = ShiftingRouter(plans)
        super().__init__(union(plans), self._router, predictor, cores)
        self._plans, self._starts = plans, starts
        self._lists = warm_lists(plans, predictor)
        self.rules.warm = {entry.id: self._lists[entry.id] for entry in plans[0].compile.entries}
        self._wanted: dict[int, tuple[EntryId, ...]] = {}
        self._leaving: set[EntryId] = set()

    @property
    def router(self) -> ShiftingRouter:
        return self._router

    def _arrived(self, event: Arrived) -> list[Command]:
        number = self._router.number
        while number + 1 < len(self._starts) and event.request >= self._starts[number + 1]:
            number += 1
        shifts = self._shift(number) if number != self._router.number else []
        return shifts + super()._arrived(event)

    def _batch_done(self, event: BatchDone) -> list[Command]:
        out = super()._batch_done(event) + self._prepare(event.worker)
        return out + self._retire() if self._leaving else out

    def _shift(self, number: int) -> list[Command]:
        self._router.number = number
        needed = [entry.id for entry in self._plans[number].compile.entries]
        out: list[Command] = []
        for worker, slot in enumerate(self.slots):
            missing = tuple(entry for entry in needed if entry not in slot.holds and entry not in slot.preparing)
            self._wanted[worker] = (*self._wanted.get(worker, ()), *missing)
            slot.preparing.update(missing)
            self._settle(worker)
            out += self._prepare(worker)
        self._leaving = {entry for slot in self.slots for entry in slot.holds} - set(needed)
        return out + self._retire()

    def _prepare(self, worker: int) -> list[Command]:
        """Ask for what a worker lacks, as soon as it runs no batch."""
        if self.slots[worker].running is not None:
            return []
        wanted = self._wanted.pop(worker, ())
        return [Prepare(self._sequence, worker, entry, self._lists[entry]) for entry in wanted]

    def _retire(self) -> list[Command]:
        """Drop the entries that are leaving, nobody waits for and nobody runs."""
        waited = {group.entry for group in self.groups.values() if group.queue}
        waited |= {slot.running.shape[0] for slot in self.slots if slot.running}
        out: list[Command] = []
        for entry in sorted(self._leaving - waited):
            self._leaving.discard(entry)
            for worker, slot in enumerate(self.slots):
                slot.holds.discard(entry)
                slot.seen = {shape for shape in slot.seen if shape[0] != entry}
                out.append(Retire(self._sequence, worker, entry))
        return out


def union(plans: Sequence[Plan]) -> Plan:
    """The first plan with the entries of all of them."""
    return replace(plans[0], compile=_union(plans))


def warm_lists(plans: Sequence[Plan], predictor: Predictor) -> dict[EntryId, tuple[Executed, ...]]:
    """By entry: the executed dims that a worker runs once on it, in the order in which the plans name them."""
    lists: dict[EntryId, dict[Executed, None]] = {}
    for plan in {plan.compile.entries: plan for plan in plans}.values():
        for entry, shapes in Rules(plan, Router(plan.compile), predictor).warm.items():
            lists.setdefault(entry, {}).update(dict.fromkeys(shapes))
    return {entry: tuple(shapes) for entry, shapes in lists.items()}


def _union(plans: Sequence[Plan]) -> CompileSpec:
    entries: dict[EntryId, Entry] = {}
    for plan in plans:
        for entry in plan.compile.entries:
            if entries.setdefault(entry.id, entry) != entry:
                raise StudyError(
                    f"two entries are called {entry.id!r}",
                    where="baseline.compile.entries",
                    fix="rename the baseline's",
                )
    return replace(plans[0].compile, entries=tuple(entries.values()))
