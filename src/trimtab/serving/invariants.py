"""Every promise of the serving machine, as a check of its state between two events."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from trimtab.errors import RunError

if TYPE_CHECKING:
    from trimtab.serving.machine import Machine
    from trimtab.serving.state import Group


def check(machine: Machine) -> None:
    """Raise RunError that names the first invariant that does not hold."""
    _requests(machine)
    _workers(machine)
    table = set(machine.rules.router.entries)
    _must(not table & machine.leaving, "no entry of the table is leaving")
    _must(table <= set(machine.rules.warm), "a fresh worker prepares every entry of the table")
    for key, group in machine.groups.items():
        _must((key in machine.pending) == bool(group.queue), f"the group {key} is pending exactly if it has a queue")
        _group(machine, group)


def _must(holds: bool, sentence: str) -> None:
    if not holds:
        raise RunError(f"serving machine broke its rule: {sentence}", where="serving", fix="report this as a bug")


def _requests(machine: Machine) -> None:
    waiting = [item.request for group in machine.groups.values() for item in group.queue]
    running = [request for slot in machine.slots if slot.running for request in slot.running.members]
    places = waiting + running
    _must(len(places) == len(set(places)), "a request is in one place")
    _must(set(places) == machine.open, "every request that has not ended waits or runs")
    batches = [slot.running.batch for slot in machine.slots if slot.running]
    _must(len(batches) == len(set(batches)), "a batch runs on one worker")


def _workers(machine: Machine) -> None:
    free = [number for number, slot in enumerate(machine.slots) if slot.free]
    if not machine.stopped:
        _must(sorted(machine.free) == free, "the list of free workers is the list of free workers")
    for number, slot in enumerate(machine.slots):
        _must(not slot.holds & slot.failed, f"worker {number} holds no entry that failed on it")
        _must(not slot.holds & slot.preparing, f"worker {number} is not preparing what it holds")
        _must(not slot.beside & (slot.holds | slot.preparing), f"worker {number} gets no entry twice")
        if slot.running is None:
            continue
        entry, executed = slot.running.shape
        _must(slot.up, f"worker {number} runs a batch only while it lives")
        _must(entry in slot.holds or entry in slot.failed, f"worker {number} runs an entry that it got ready")
        _must(1 <= len(slot.running.members) <= executed[0], "a batch has no more members than executed rows")
        _must(len(slot.running.members) <= machine.rules.policies[entry].max_size, "no batch exceeds its policy")


def _group(machine: Machine, group: Group) -> None:
    _must(all(a < b for a, b in pairwise(group.queue)), "a queue is in serving order")
    _must(all(a <= b for a, b in pairwise(group.times)), "arrivals are in order of time")
    _must(sorted(item.arrival.t for item in group.queue) == list(group.times), "times are those of the queue")
    _must(all(item.route.entry == group.entry for item in group.queue), "a queue never mixes entries")
    _must(not (group.hopeless and group.queue), "nobody waits for an entry that no worker can hold")
    if not group.queue or machine.stopped:
        return
    able = any(w in machine.free and group.entry in machine.slots[w].holds for w in group.workers)
    if not able:
        return
    ready, _ = machine.rules.batch(group.times, group.policy)
    _must(ready > machine.now, "no ready batch waits while an eligible worker is free")
    _must(ready in group.timers, "a timer is set for a batch that is not ready while a worker is free")
