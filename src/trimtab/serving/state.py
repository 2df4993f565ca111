"""What the machine remembers: one Group per queue, one Slot per worker."""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import NamedTuple

from trimtab.domain.events import Arrived
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import BatchPolicy
from trimtab.domain.route import Route

Shape = tuple[EntryId, Executed]


class Waiting(NamedTuple):
    """A queued request. ``key`` then ``request`` sort it; the rest never decides (request ids are unique)."""

    key: int
    request: int
    arrival: Arrived
    route: Route


class Running(NamedTuple):
    batch: int
    members: tuple[int, ...]
    shape: Shape


class Group:
    """The queue of one entry and one eligibility class: only these may share a batch.

    ``queue`` is in serving order, ``times`` the same requests' enqueue times in order of arrival (what the batch policy
    looks at). ``timers`` are the instants for which a timer is already set. ``hopeless``: no worker can ever serve it.
    """

    __slots__ = ("entry", "hopeless", "policy", "queue", "timers", "times", "workers")

    def __init__(self, entry: EntryId, workers: tuple[int, ...], policy: BatchPolicy) -> None:
        self.entry = entry
        self.workers = workers
        self.policy = policy
        self.queue: deque[Waiting] = deque()
        self.times: deque[Ns] = deque()
        self.timers: set[Ns] = set()
        self.hopeless = False

    def add(self, item: Waiting) -> None:
        """Queue a request; under FIFO always at the end."""
        self.times.append(item.arrival.t)
        if not self.queue or self.queue[-1] < item:
            self.queue.append(item)
        else:
            insort(self.queue, item)

    def take(self, size: int) -> list[Waiting]:
        """Remove the first ``size`` requests in serving order."""
        taken = [self.queue.popleft() for _ in range(size)]
        for item in taken:
            self.times.remove(item.arrival.t)
        return taken


class Slot:
    """One worker's place. ``failed`` outlives its process; everything else starts afresh with each process.

    ``seen``: shapes this process has run, warm-up included; ``last``: its previous one. ``labels``: what else keeps it
    busy. ``beside``: entries that are prepared for it elsewhere, while it serves.
    """

    __slots__ = ("beside", "failed", "holds", "labels", "last", "preparing", "running", "seen", "up")

    def __init__(self) -> None:
        self.failed: set[EntryId] = set()
        self.reset()

    def reset(self) -> None:
        """Forget the process."""
        self.up = False
        self.running: Running | None = None
        self.holds: set[EntryId] = set()
        self.preparing: set[EntryId] = set()
        self.beside: set[EntryId] = set()
        self.labels: set[str] = set()
        self.seen: set[Shape] = set()
        self.last: Shape | None = None

    def start(self, running: Running) -> tuple[bool, bool]:
        """Run a batch. Whether this process never ran this shape, and whether its previous run was of another one."""
        self.running = running
        return running.shape not in self.seen, self.last is not None and self.last != running.shape

    def end(self, ok: bool) -> None:
        """The batch is over; a shape counts as seen once it has run well."""
        if self.running is None:
            return
        self.last = self.running.shape
        if ok:
            self.seen.add(self.running.shape)
        self.running = None

    def ready(self, entry: EntryId, warmed: tuple[Executed, ...]) -> None:
        """The process holds ``entry`` and has run ``warmed`` on it, in this order; not where it serves, if beside."""
        self.seen.update((entry, executed) for executed in warmed)
        if warmed and entry not in self.beside:
            self.last = (entry, warmed[-1])
        self.preparing.discard(entry)
        self.beside.discard(entry)
        self.holds.add(entry)

    def fail(self, entry: EntryId) -> None:
        """No process in this place will hold ``entry`` again."""
        self.preparing.discard(entry)
        self.beside.discard(entry)
        self.holds.discard(entry)
        self.failed.add(entry)

    def retire(self, entry: EntryId) -> None:
        """The process lets ``entry`` go; prepared again, it has run nothing."""
        self.holds.discard(entry)
        self.seen = {shape for shape in self.seen if shape[0] != entry}

    @property
    def free(self) -> bool:
        """Whether the process could start a batch now."""
        return self.up and self.running is None and not self.labels and not self.preparing
