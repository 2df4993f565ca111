"""What a controller knows of the run: the shapes that come, what batches took against their promise, who missed.

All of it from events and commands, over sliding windows of the last ``WINDOW`` requests or batches.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryFailed,
    EntryReady,
    Event,
    Finish,
    Prepare,
    Retire,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import Dims, EntryId, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry, EntryKind
from trimtab.domain.ports import Predictor
from trimtab.domain.study import Sla
from trimtab.mapping.route import Router
from trimtab.retuning._proof import MISS_WINDOW

WINDOW = 200
FEWEST_BATCHES = 10
"""With fewer batches of a kind, its promises are taken as they are."""


class Ran:
    """One batch that is over: the largest dims of its members, how many they were, and what it took, ns."""

    __slots__ = ("dims", "size", "took")

    def __init__(self, dims: Dims, size: int, took: Ns) -> None:
        self.dims, self.size, self.took = dims, size, took


class Prices:
    """What a batch costs under a table: its warm promise, times what batches of such an entry lately took against
    theirs. For a dynamic entry that factor holds the first runs that the traffic makes it pay."""

    def __init__(self, predictor: Predictor, factors: dict[EntryKind, float]) -> None:
        self._predictor, self._factors = predictor, factors

    def batch(self, router: Router, dims: Dims, size: int) -> float:
        """ns; 0 = unknown: nothing runs it, or nobody promised a time."""
        route = router.route(dims)
        if route.entry is None:
            return 0.0
        executed: Executed = router.batch(route, [dims] * size)
        kind = router.entries[route.entry].kind
        return self._predictor.warm(route.entry, executed) * self._factors.get(kind, 1.0)

    def traffic(self, spec: CompileSpec, shapes: Counter[Dims]) -> float:
        """ns of all ``shapes``, one request a batch."""
        router = Router(spec)
        return sum(self.batch(router, dims, 1) * times for dims, times in shapes.items())


class Workers:
    """Who is up, what each holds, and what it prepares before it serves."""

    def __init__(self) -> None:
        self.holds: dict[int, set[EntryId]] = {}
        self._preparing: set[tuple[int, EntryId]] = set()

    def feed(self, event: Event, commands: Sequence[Command]) -> None:
        """Take one event and what the machine made of it."""
        if isinstance(event, WorkerUp):
            self.holds[event.worker] = set()
        elif isinstance(event, WorkerDown):
            self.holds.pop(event.worker, None)
            self._preparing = {key for key in self._preparing if key[0] != event.worker}
        elif isinstance(event, EntryReady | EntryFailed):
            self._preparing.discard((event.worker, event.entry))
            held = self.holds.get(event.worker, set())
            (held.add if isinstance(event, EntryReady) else held.discard)(event.entry)
        for command in commands:
            if isinstance(command, Prepare):
                self._preparing.add((command.worker, command.entry))
            elif isinstance(command, Retire):
                self.holds[command.worker].discard(command.entry)

    @property
    def settled(self) -> bool:
        """Whether anybody is up, and nobody still prepares what it needs to serve."""
        return bool(self.holds) and not self._preparing

    def holding(self, entry: EntryId) -> bool:
        """Whether any worker holds ``entry``."""
        return any(entry in held for held in self.holds.values())

    def without(self, entry: EntryId) -> list[int]:
        """The workers that do not hold ``entry``."""
        return sorted(worker for worker, held in self.holds.items() if entry not in held)


class Live:
    """The watch. ``feed`` every event with its commands; a batch that is over comes back as what it took."""

    def __init__(self, predictor: Predictor, sla: Sla) -> None:
        self._predictor = predictor
        self._late = round(min(sla.bound_ms, sla.deadline_ms or sla.bound_ms) * 1e6)
        self._sent: dict[int, Dispatch] = {}
        self._open: dict[int, Arrived] = {}
        self._kinds: dict[str, EntryKind] = {}
        self._took: dict[EntryKind, deque[tuple[Ns, Ns]]] = {}
        self._misses: deque[bool] = deque(maxlen=WINDOW)
        self.shapes: deque[Dims] = deque(maxlen=WINDOW)
        self._ended = 0

    @property
    def full(self) -> bool:
        """Whether the window of shapes is filled."""
        return len(self.shapes) == WINDOW

    def know(self, entry: Entry) -> None:
        """``entry`` may run batches from now on."""
        self._kinds[entry.id] = entry.kind

    def feed(self, event: Event, commands: Sequence[Command]) -> Ran | None:
        """Take one event and what the machine made of it."""
        if isinstance(event, Arrived):
            self._open[event.request] = event
            self.shapes.append(event.dims)
        ran = self._done(event) if isinstance(event, BatchDone) else None
        for command in commands:
            if isinstance(command, Dispatch):
                self._sent[command.batch] = command
            elif isinstance(command, Finish):
                late = event.t - self._open.pop(command.request).scheduled > self._late
                self._misses.append(late or command.error != "none")
                self._ended += 1
        return ran

    def _done(self, event: BatchDone) -> Ran | None:
        sent = self._sent.pop(event.batch, None)
        if sent is None or event.error != "none":
            return None
        took = event.ended - event.started - max(event.report.runqueue_ns, 0)
        promised = self._predictor.warm(sent.entry, sent.executed)
        if took <= 0 or not promised:
            return None
        self._took.setdefault(self._kinds[sent.entry], deque(maxlen=WINDOW)).append((took, promised))
        dims = [self._open[member].dims for member in sent.members if member in self._open]
        return Ran(tuple(map(max, *dims)) if len(dims) > 1 else dims[0], len(sent.members), took) if dims else None

    def prices(self) -> Prices:
        """What batches cost as things stand. Later batches do not change it."""
        factors = {
            kind: sum(took for took, _ in ran) / sum(promised for _, promised in ran)
            for kind, ran in self._took.items()
            if len(ran) >= FEWEST_BATCHES
        }
        return Prices(self._predictor, factors)

    def miss_share(self, last: int = WINDOW) -> float:
        """Of the last requests that ended: the share later than the bound, or failed."""
        recent = list(self._misses)[-last:]
        return sum(recent) / len(recent) if recent else 0.0

    @property
    def miss_windows(self) -> int:
        """How many windows of misses were filled."""
        return self._ended // MISS_WINDOW
