"""What the machine does when a worker comes up, goes down, gets an entry or fails to, or is busy with something else.

A fresh worker prepares every entry of the table that did not fail in its place before, and takes traffic once each of
them is ready or has failed. One that goes down gives its batch up: the members end with the error of the fall. An entry
that no worker of a group can hold any more ends what waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.domain.events import (
    Command,
    EntryFailed,
    EntryReady,
    Occupied,
    Prepare,
    Released,
    Replace,
    WorkerDown,
    WorkerUp,
)
from trimtab.errors import RunError

if TYPE_CHECKING:
    from trimtab.serving.machine import Machine
    from trimtab.serving.state import Group


def came_up(machine: Machine, event: WorkerUp) -> list[Command]:
    """Have a fresh process prepare what its place can hold."""
    slot = machine.slots[event.worker]
    if slot.up:
        raise RunError(
            f"worker {event.worker} came up twice", where="driver", fix="report its fall before its replacement"
        )
    slot.reset()
    slot.up = True
    out: list[Command] = []
    if machine.stopped:
        return out
    for entry, warm in machine.rules.warm.items():
        if entry not in slot.failed:
            slot.preparing.add(entry)
            out.append(Prepare(machine.cause, event.worker, entry, warm))
    machine.settle(event.worker)
    return out


def went_down(machine: Machine, event: WorkerDown) -> list[Command]:
    """End what it ran, and ask for another process in its place."""
    slot = machine.slots[event.worker]
    out: list[Command] = []
    if slot.running is not None:
        out += [machine.finish(request, event.error) for request in slot.running.members]
    slot.reset()
    machine.settle(event.worker)
    if not machine.stopped:
        out.append(Replace(machine.cause, event.worker))
    return out


def ready(machine: Machine, event: EntryReady) -> list[Command]:
    """From now on the worker holds the entry; of a process that is gone, or of an entry given up, it comes too late."""
    slot = machine.slots[event.worker]
    if not slot.up or event.entry in slot.failed:
        machine.late += 1
        return []
    slot.ready(event.entry, event.warmed)
    machine.settle(event.worker)
    return []


def failed(machine: Machine, event: EntryFailed) -> list[Command]:
    """No process in this place will hold the entry; whoever can be served nowhere else ends."""
    machine.slots[event.worker].fail(event.entry)
    out: list[Command] = []
    for key, group in machine.groups.items():
        if group.entry == event.entry and hopeless(machine, group):
            group.hopeless = True
            out += [machine.finish(item.request, "entry-failed") for item in group.take(len(group.queue))]
            machine.pending.pop(key, None)
    machine.settle(event.worker)
    return out


def hopeless(machine: Machine, group: Group) -> bool:
    """Whether no worker of the group can ever hold its entry."""
    return all(group.entry in machine.slots[worker].failed for worker in group.workers)


def occupied(machine: Machine, event: Occupied) -> list[Command]:
    """Something other than traffic keeps the worker busy."""
    machine.slots[event.worker].labels.add(event.label)
    machine.settle(event.worker)
    return []


def released(machine: Machine, event: Released) -> list[Command]:
    """That is over."""
    machine.slots[event.worker].labels.discard(event.label)
    machine.settle(event.worker)
    return []
