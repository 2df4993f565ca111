"""A plan that changes while it serves: what the machine does when a controller asks, remaps or drops.

An entry comes in three steps, each of them one event: it is prepared for every worker elsewhere (nobody stops serving),
then a new table names it, then the entries that no table needs are dropped. Between two events there is one table, for
what waits as for what arrives; what waits and is not covered any more keeps its entry until it has run. A fresh worker
prepares what is in the table and what was not retired yet: no request waits for what nobody will hold, and the way back
stays open whatever falls.

A change that cannot be true (a worker asked twice, a table with an entry that nobody holds, a drop of what the table
names) is an error of the controller, and stops the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.domain.events import Command, EntryAsked, EntryDropped, PrepareBeside, Remapped, Retire
from trimtab.errors import RunError

if TYPE_CHECKING:
    from trimtab.serving.machine import Machine


def asked(machine: Machine, event: EntryAsked) -> list[Command]:
    """Have an entry prepared beside a worker."""
    slot, entry = machine.slots[event.worker], event.entry.id
    if not slot.up:
        raise _wrong(f"worker {event.worker} is down and was asked for entry {entry!r}", "wait until it is up")
    if entry in slot.holds | slot.preparing | slot.beside | slot.failed:
        raise _wrong(f"worker {event.worker} was asked twice for entry {entry!r}", "ask for what it lacks")
    slot.beside.add(entry)
    machine.leaving.discard(entry)
    machine.asked[entry] = event.warm
    return [PrepareBeside(machine.cause, event.worker, event.entry, event.warm)]


def remapped(machine: Machine, event: Remapped) -> list[Command]:
    """Route by another table from now on, what waits too: a table is changed because the old one serves it badly."""
    for entry in event.spec.entries:
        for worker, slot in enumerate(machine.slots):
            if slot.up and entry.id not in slot.holds | slot.preparing | slot.failed:
                raise _wrong(f"worker {worker} lacks entry {entry.id!r} of the new table", "have it prepared first")
    machine.rules = machine.rules.remapped(event.spec, machine.asked)
    machine.leaving -= set(machine.rules.router.entries)
    return machine.requeue()


def dropped(machine: Machine, event: EntryDropped) -> list[Command]:
    """Let an entry go as soon as nobody needs it."""
    if event.entry in machine.rules.router.entries:
        raise _wrong(f"entry {event.entry!r} was dropped while the table names it", "remap first")
    machine.leaving.add(event.entry)
    return []


def retire(machine: Machine) -> list[Command]:
    """Of the entries that are leaving: the first that nobody runs or prepares. One at a time, and only while nobody
    waits: a worker that lets an entry go frees its memory, and serves nobody meanwhile."""
    needed = {entry for slot in machine.slots for entry in slot.preparing | slot.beside}
    needed |= {slot.running.shape[0] for slot in machine.slots if slot.running is not None}
    entry = min(machine.leaving - needed, default=None)
    if entry is None:
        return []
    machine.leaving.discard(entry)
    machine.rules.warm.pop(entry, None)
    out: list[Command] = []
    for worker, slot in enumerate(machine.slots):
        if entry in slot.holds:
            slot.retire(entry)
            out.append(Retire(machine.cause, worker, entry))
    return out


def _wrong(what: str, fix: str) -> RunError:
    return RunError(what, where="controller", fix=fix)
