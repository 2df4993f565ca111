"""A controller that knows beforehand which plan serves which requests: what the clairvoyant is simulated with.

After the last request of a window it asks for what the next window's plan has and workers lack, warmed at every size;
when all of it is ready, the table changes, and what the plan does not name is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.domain.events import (
    Arrived,
    Command,
    EntryAsked,
    EntryDropped,
    EntryReady,
    Event,
    PlanChange,
    Remapped,
    Retire,
)
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.ports import Predictor
from trimtab.mapping.route import Router
from trimtab.serving.rules import Rules


class Scripted:
    """``plans[w]`` serves the requests ``starts[w] <= id < starts[w + 1]``, the first one from the start; the plans
    differ in entries and warm lists. No worker falls."""

    def __init__(
        self, plans: Sequence[Plan], starts: Sequence[int], warm: Mapping[EntryId, tuple[Executed, ...]]
    ) -> None:
        self._plans, self._starts, self._warm = plans, starts, warm
        self._number = 0
        self._holds: dict[int, set[EntryId]] = {}
        self._awaited: set[tuple[int, EntryId]] = set()

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        """The changes that are due after this event."""
        for command in commands:
            if isinstance(command, Retire):
                self._holds[command.worker].discard(command.entry)
        if isinstance(event, EntryReady):
            return self._ready(event)
        if isinstance(event, Arrived) and event.request + 1 in self._starts[self._number + 1 :]:
            return self._shift(event.t)
        return []

    def _ready(self, event: EntryReady) -> list[PlanChange]:
        self._holds.setdefault(event.worker, set()).add(event.entry)
        key = event.worker, event.entry
        if key not in self._awaited:
            return []
        self._awaited.discard(key)
        return [] if self._awaited else self._swap(event.t)

    def _shift(self, t: Ns) -> list[PlanChange]:
        before = self._plans[self._number].compile
        self._number += 1
        spec = self._plans[self._number].compile
        if spec == before:
            return []
        lacks = [(worker, e) for worker, held in sorted(self._holds.items()) for e in spec.entries if e.id not in held]
        self._awaited = {(worker, entry.id) for worker, entry in lacks}
        return [EntryAsked(t, worker, entry, self._warm[entry.id]) for worker, entry in lacks] or self._swap(t)

    def _swap(self, t: Ns) -> list[PlanChange]:
        before, spec = (self._plans[number].compile for number in (self._number - 1, self._number))
        gone = [entry.id for entry in before.entries if entry not in spec.entries]
        return [Remapped(t, spec), *(EntryDropped(t, entry) for entry in gone)]


def union(plans: Sequence[Plan]) -> tuple[Entry, ...]:
    """The entries of all plans, each once."""
    return tuple(dict.fromkeys(entry for plan in plans for entry in plan.compile.entries))


def warm_lists(plans: Sequence[Plan], predictor: Predictor) -> dict[EntryId, tuple[Executed, ...]]:
    """By entry: the executed dims that a worker runs once on it, in the order in which the plans name them."""
    lists: dict[EntryId, dict[Executed, None]] = {}
    for plan in {plan.compile.entries: plan for plan in plans}.values():
        for entry, shapes in Rules(plan, Router(plan.compile), predictor).warm.items():
            lists.setdefault(entry, {}).update(dict.fromkeys(shapes))
    return {entry: tuple(shapes) for entry, shapes in lists.items()}
