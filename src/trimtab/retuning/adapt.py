"""The online controller: refits a plan's padded entries while it serves, one entry at a time, within bounds (R24).

Theory
------
*Drift* here is what a refit could mend: the live shapes are served dearer than a table fitted to them would. Every
``REFIT_EVERY`` arrivals the exact dynamic programme (:mod:`trimtab.mapping.buckets`) fits a candidate table to the last
``WINDOW`` shapes. Each batch after that gives one number,

    x = (took - price) / max(took, price)  in [-1, 1]

with ``took`` its measured run time (less run-queue delay) and ``price`` what it would take under the candidate: the
warm promise of its entry there, times what batches of that kind of entry lately took against theirs. That factor is the
promise accuracy as events tell it; the mean of x is the mapping accuracy that the candidate would win. The candidate
never saw the batches it is judged on. A detector (:mod:`trimtab.retuning._proof`) holds x against ``WORTH``: where the
candidate is worth no more, it raises at most one false alarm in ``ALARM_EVERY`` batches, in the mean, whatever the
traffic's distribution or memory. A false alarm costs compile time; the guard below keeps it from costing more.

After the alarm, an *episode*: of the candidate's ends the one that saves most on the window is prepared for each
worker in turn, on a core that serves nobody: compiled, and run once at each size of batch. When all hold it, the table
with it is swapped in, whole, for what waits too; then the next, as long as one saves ``LEAST`` of the window's cost and
the bounds allow. Entries that were there stay in the table. The first of them is prepared ahead, as soon as the
evidence reaches ``HINT_EVERY``: a queue grows while one proves and compiles, and preparing changes nothing for traffic.
Where the evidence dies down instead, it goes again.

The *guard* runs from the first swap. It compares each batch with its price under the table before the episode, at the
prices that held then. It passes when "dearer than before by ``MARGIN`` or more" is refuted, rolls back when "not
dearer than before" is refuted, or "no more misses than before, and ``MISS_MARGIN``" (shares over windows of 100
ends): each at an error of ``ERROR``. Passed: the entries that save least go, until no more are left than may stay.
Rolled back: the table of before returns at once, the new entries go, and nothing is refitted for ``REST`` arrivals,
twice as many each time until a guard passes.

Limits. One dynamic dim. Prices are for one worker's run time: queueing, and so the tail, follow from it but are not
modelled; batches are priced at the largest of their members. Prices of a kind that nothing ran lately are those of
the profile. What dynamic entries have warmed is not forgotten, so their price falls with time and a refit pays less.
No clock, no draws: the same events give the same changes.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    EntryAsked,
    EntryDropped,
    EntryFailed,
    EntryReady,
    Event,
    PlanChange,
    Remapped,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import EntryId, Ns
from trimtab.domain.plan import Bounds, CompileSpec, Entry, Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.study import Sla
from trimtab.retuning import _table as table
from trimtab.retuning._drift import Watch
from trimtab.retuning._guard import Guard
from trimtab.retuning._live import WINDOW, Live, Ran, Workers

REFIT_EVERY = 20
LEAST = 0.01
REST = 2 * WINDOW
HOUR: Ns = 3_600_000_000_000


@dataclass(frozen=True)
class Known:
    """What an entry costs before anybody has compiled it: ``compile_ns``, and ``memory_bytes`` on each worker."""

    compile_ns: Callable[[Entry], Ns]
    memory_bytes: Callable[[Entry], int]


class Adapter:
    """A :class:`~trimtab.domain.ports.Controller`. ``predictor`` promises times of every entry within ``bounds``."""

    def __init__(self, plan: Plan, bounds: Bounds, sla: Sla, predictor: Predictor, known: Known) -> None:
        self._plan, self._bounds, self._predictor, self._known = plan, bounds, predictor, known
        self._spec = plan.compile
        self._live = Live(predictor, sla)
        self._padded = {entry.id for entry in table.padded(plan.compile)}
        self._own = {entry.id for entry in plan.compile.entries}
        for entry in plan.compile.entries:
            self._live.know(entry)
        self._workers = Workers()
        self._memory: dict[EntryId, int] = {}
        self._refused: set[EntryId] = set()
        self._spent: deque[tuple[Ns, Ns]] = deque()
        self._arrived, self._rest_until, self._rest = 0, 0, REST
        self._watch = Watch()
        self._targets: tuple[Entry, ...] = ()
        self._coming: Entry | None = None
        self._asked: EntryAsked | None = None
        self._guard: Guard | None = None

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        """What to change after this event; mostly nothing."""
        ran = self._live.feed(event, commands)
        self._workers.feed(event, commands)
        if isinstance(event, Arrived):
            return self._arrival(event.t)
        if isinstance(event, BatchDone):
            return self._batch(event.t, ran)
        if isinstance(event, EntryReady | EntryFailed | WorkerUp | WorkerDown):
            return self._worker(event)
        return []

    # --- watching -----------------------------------------------------------------------------------------------

    def _arrival(self, t: Ns) -> list[PlanChange]:
        """Fit a candidate, when it is time and nothing is under way; let go what was prepared for nothing."""
        self._arrived += 1
        busy = self._guard is not None or self._targets
        if busy or self._arrived < self._rest_until or self._arrived % REFIT_EVERY or not self._live.full:
            return []
        self._watch.aim(self._spec, self._fit(), self._live.prices())
        return self._give_up(t) if self._watch.idle else []

    def _fit(self) -> tuple[Entry, ...]:
        """The padded entries for the shapes that come now, less those that failed before."""
        found = table.fitted(self._plan, self._bounds, self._shapes(), self._predictor)
        return tuple(entry for entry in found if entry.id not in self._refused)

    def _batch(self, t: Ns, ran: Ran | None) -> list[PlanChange]:
        if self._guard is not None:
            self._guard.feed(ran, self._live)
            return self._judge(t, self._guard)
        if ran is None or self._targets:
            return []
        self._watch.feed(ran)
        if self._watch.proved:
            self._targets, self._watch = self._fit(), Watch()
            return self._advance(t)
        return self._ahead(t)

    def _ahead(self, t: Ns) -> list[PlanChange]:
        """While drift is suspected, have the entry ready that would be swapped in first."""
        if self._coming is None and self._watch.hint():
            self._coming = self._best(self._watch.targets)
        return self._prepare(t)

    def _prepare(self, t: Ns) -> list[PlanChange]:
        """Ask for what is to come where it is missing; nothing while somebody still prepares."""
        coming = self._coming
        if coming is None or self._asked is not None or not self._workers.settled:
            return []
        missing = self._workers.without(coming.id)
        if not missing:
            return []
        return self._ask(t, coming, missing[0]) if self._affordable(t, coming, missing[0]) else self._give_up(t)

    def _best(self, targets: tuple[Entry, ...]) -> Entry | None:
        """The target that is worth most now, if it is worth anything."""
        found = table.next_best(self._spec, targets, self._shapes(), self._live.prices())
        return found[0] if found is not None and found[1] >= LEAST else None

    def _judge(self, t: Ns, guard: Guard) -> list[PlanChange]:
        if guard.trigger:
            return self._roll_back(t, guard)
        if self._targets or not guard.passed:
            return []
        self._guard, self._rest = None, REST
        return self._settle(t)

    # --- an episode ---------------------------------------------------------------------------------------------

    def _advance(self, t: Ns) -> list[PlanChange]:
        """The next step, while nothing is being prepared: choose an entry, ask for it, or swap it in."""
        self._coming = self._coming or self._choose()
        if self._coming is None or self._asked is not None or not self._workers.settled:
            return []
        if self._workers.without(self._coming.id):
            return self._prepare(t)
        return self._swap(t, self._coming)

    def _choose(self) -> Entry | None:
        """The best target; none ends the episode."""
        best = self._best(self._targets)
        if best is None:
            self._targets = ()
        return best

    def _affordable(self, t: Ns, entry: Entry, worker: int) -> bool:
        bounds, memory = self._bounds, self._known.memory_bytes(entry)
        while self._spent and self._spent[0][0] <= t - HOUR:
            self._spent.popleft()
        compiling = sum(ns for _, ns in self._spent) + self._known.compile_ns(entry)
        holds = self._workers.holds
        added = sum(self._memory[name] for held in holds.values() for name in held - self._own)
        return (
            len(holds[worker] & self._padded) < bounds.held
            and compiling <= bounds.compile_s * 1e9
            and added + memory <= bounds.memory_bytes
        )

    def _ask(self, t: Ns, entry: Entry, worker: int) -> list[PlanChange]:
        self._spent.append((t, self._known.compile_ns(entry)))
        self._memory[entry.id] = self._known.memory_bytes(entry)
        self._padded.add(entry.id)
        self._live.know(entry)
        self._asked = EntryAsked(t, worker, entry, table.batches(entry, self._plan.serve.batch))
        return [self._asked]

    def _swap(self, t: Ns, entry: Entry) -> list[PlanChange]:
        self._guard = self._guard or Guard(self._spec, self._live)
        self._spec, self._coming = table.added(self._spec, entry), None
        return [Remapped(t, self._spec), *self._advance(t)]

    def _give_up(self, t: Ns) -> list[PlanChange]:
        """End the episode where it is; what some workers got of the entry that was to come goes."""
        entry, self._coming, self._targets = self._coming, None, ()
        if entry is None or not self._workers.holding(entry.id):
            return []
        return [EntryDropped(t, entry.id)]

    def _settle(self, t: Ns) -> list[PlanChange]:
        """Keep as many padded entries as may stay, those that save most."""
        spec, shapes, prices = self._spec, self._shapes(), self._live.prices()
        while len(table.padded(spec)) > self._bounds.entries:
            least = table.least_needed(spec, shapes, prices)
            if least is None:
                break
            spec = table.without(spec, [least])
        return self._leave(t, spec, Remapped(t, spec))

    def _roll_back(self, t: Ns, guard: Guard) -> list[PlanChange]:
        self._guard = None
        self._rest_until, self._rest = self._arrived + self._rest, 2 * self._rest
        dropped = self._give_up(t)
        return [*dropped, *self._leave(t, guard.before, Remapped(t, guard.before, "roll-back", guard.trigger))]

    def _leave(self, t: Ns, spec: CompileSpec, change: Remapped) -> list[PlanChange]:
        """Change to ``spec``, and let go what it does not name any more."""
        gone = [entry.id for entry in self._spec.entries if entry not in spec.entries]
        self._spec = spec
        return [change, *(EntryDropped(t, name) for name in gone)] if gone else []

    # --- workers ------------------------------------------------------------------------------------------------

    def _worker(self, event: EntryReady | EntryFailed | WorkerUp | WorkerDown) -> list[PlanChange]:
        asked = self._asked
        if asked is not None and not _answers(event, asked):
            return []
        self._asked = None
        if asked is not None and isinstance(event, EntryFailed):
            self._refused.add(event.entry)
            return self._give_up(event.t)
        dropped: list[PlanChange] = []
        if asked is not None and isinstance(event, EntryReady) and self._coming is None:
            dropped.append(EntryDropped(event.t, event.entry))
        return [*dropped, *(self._advance(event.t) if self._targets else self._prepare(event.t))]

    def _shapes(self) -> table.Shapes:
        return Counter(self._live.shapes)


def _answers(event: EntryReady | EntryFailed | WorkerUp | WorkerDown, asked: EntryAsked) -> bool:
    """Whether what was asked for is settled: ready, failed, or lost with its worker."""
    if event.worker != asked.worker:
        return False
    return isinstance(event, WorkerDown) or getattr(event, "entry", None) == asked.entry.id
