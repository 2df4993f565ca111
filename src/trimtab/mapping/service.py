"""What a simulated batch takes, drawn from what its entry's profile measured.

Theory
  Prelude    A profile's prelude ran the beginning of the traffic as one worker would have served it. What its runs took
             beyond their fitted value (:mod:`trimtab.mapping.cost`) is what service does to them: colder caches among
             many shapes, kernels that a runtime has dropped and makes again, a core that wakes up. A batch takes its
             own fitted value and the excess of a run of its entry and batch size in the prelude, drawn among the NEAR
             nearest to it in dims, of those that found the worker as rested as it does. Excesses are added and do not
             multiply: they hardly grow with the shape.
  First run  The same with the prelude's first runs, the FIRST nearest in size and in how many shapes the process had
             met before: a fresh one pays several times what a later one does. Its own first run counts alone where it
             came about as early. A larger batch takes what the first run of a single request took beyond a later one.
  Handling   From the event that leads to a batch to its start, and from its end to the answer, a worker is as busy as
             while it runs. Both are those of the very run whose time was drawn: a first run leaves colder caches.
  Otherwise  Without a prelude, and where it has too few runs of that entry and batch size (its requests run alone): the
             fitted value times a ratio raw/fitted of the nearest measured point, with what surrounded that repeat, and
             its first-run excess.

Draws are a hash of (seed, oldest member), so that the same requests meet the same luck whatever the plan or the order
of calls: plans are compared on common random numbers.

Limits
  Draws are independent from batch to batch; what a process or its machine is slower or faster by for seconds on end is
  not in them (2 % where this was written, and hardly to be read from the pace). Larger batches are drawn as if they ran
  among the grid's, whose order is random. Shapes on a warm list do not count as met. How rested a worker is has two
  values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.errors import DataError
from trimtab.mapping.cost import Again, CostModel, Exchange, First

RESTED: Ns = 4_000_000
"""A worker that was free for so long has to wake up."""
NEAR, FIRST = 16, 8
FEWEST = 8
"""With fewer runs of an entry in the prelude none of them is taken for its service."""
ALIKE = log(1.5)
"""Up to this factor in the number of shapes met before, a shape's own first run speaks for it alone."""
AGE = 0.5
"""How much a factor in that number weighs against the same factor in size."""

T = TypeVar("T")


class _Sample(NamedTuple):
    """What a batch of one shape may take: warm walls, and what surrounds a run."""

    walls: tuple[Ns, ...]
    exchanges: tuple[Exchange, ...]


class ProfileService:
    """Simulated service times of ONE run; a :class:`~trimtab.domain.ports.Service`."""

    def __init__(self, costs: CostModel, seed: int) -> None:
        self._costs = costs
        self._seed = seed
        self._units: list[float] = []
        self._first_units: list[float] = []
        self._known: dict[tuple[EntryId, Executed, bool], _Sample] = {}
        self._runs: dict[tuple[EntryId, int, bool], tuple[tuple[Again, ...], NDArray[np.float64]]] = {}
        self._usual: dict[tuple[EntryId, Executed], Ns] = {}
        self._firsts: dict[EntryId, Firsts] = {}
        self._met: dict[tuple[int, EntryId], dict[Executed, int]] = {}

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """Wall time of ``batch``, ns; all of it on the core, none of it in the run queue."""
        oldest = self._oldest(batch)
        wall = _pick(self._sample(batch).walls, self._units[oldest])
        if batch.first_seen:
            wall = self._first(batch, wall, self._first_units[oldest])
        return wall, BatchReport(wall, 0)

    def handling(self, batch: Dispatch) -> Exchange:
        """What sending ``batch`` and reporting its end take, ns; nothing where the profile did not take it."""
        oldest = self._oldest(batch)
        first = self._first_run(batch, self._first_units[oldest]) if batch.first_seen else None
        if first is not None and first.exchange is not None and first.executed[0] == batch.executed[0]:
            return first.exchange
        exchanges = self._sample(batch).exchanges
        return _pick(exchanges, self._units[oldest]) if exchanges else (0, 0)

    def _oldest(self, batch: Dispatch) -> int:
        """The oldest member, which has its draws."""
        members = batch.members
        oldest = members[0] if len(members) == 1 else min(members)
        if oldest >= len(self._units):
            count = max(4096, 2 * (oldest + 1))
            self._units = unit_draws(self._seed, count).tolist()
            self._first_units = unit_draws(~self._seed, count).tolist()
        return oldest

    def _fitted(self, entry: EntryId, executed: Executed) -> Ns:
        fitted = self._costs.estimate(entry, executed)
        if not fitted:
            raise DataError(
                f"the profile cannot say how long entry {entry!r} takes at {executed}",
                where="compile profile",
                fix="profile this entry at this batch size and on both sides of these dims",
            )
        return fitted

    # --- known shapes -------------------------------------------------------------------------------------------

    def _sample(self, batch: Dispatch) -> _Sample:
        key = (batch.entry, batch.executed, batch.idle >= RESTED)
        return self._known.get(key) or self._learn(*key)

    def _learn(self, entry: EntryId, executed: Executed, rested: bool) -> _Sample:
        fitted, near = self._fitted(entry, executed), self._near(entry, executed, rested)
        if near:
            walls = tuple(max(1, fitted + run.excess) for run in near)
        else:
            walls = tuple(max(1, round(fitted * ratio)) for ratio in self._costs.ratios(entry, executed).tolist())
        exchanges = tuple(run.exchange for run in near) or self._costs.exchanges(entry, executed)
        sample = self._known[entry, executed, rested] = _Sample(walls, exchanges)
        return sample

    def _near(self, entry: EntryId, executed: Executed, rested: bool) -> list[Again]:
        """Of its batch size the nearest in dims of those that found the worker so; of all, where these are too few."""
        key = entry, executed[0], rested
        if key not in self._runs:
            runs = tuple(run for run in self._costs.in_service(entry).again if run.executed[0] == executed[0])
            alike = tuple(run for run in runs if (run.idle >= RESTED) is rested)
            chosen = alike if len(alike) >= FEWEST else runs if len(runs) >= FEWEST else ()
            self._runs[key] = chosen, _logs(chosen)
        chosen, logs = self._runs[key]
        return [chosen[at] for at in _nearest(logs, executed, NEAR)] if chosen else []

    # --- new shapes ---------------------------------------------------------------------------------------------

    def _first(self, batch: Dispatch, warm: Ns, unit: float) -> Ns:
        """A first run, where a warm one would take ``warm``."""
        first = self._first_run(batch, unit)
        if first is None:
            return warm + _pick(self._costs.first_excesses(batch.entry, batch.executed), unit)
        if first.executed[0] == batch.executed[0]:
            return max(1, self._fitted(batch.entry, batch.executed) + first.excess)
        return warm + max(0, first.excess - self._usual_excess(batch.entry, first.executed))

    def _first_run(self, batch: Dispatch, unit: float) -> First | None:
        """The first run of the prelude that ``batch`` is like; None: it has too few."""
        if batch.entry not in self._firsts:
            self._firsts[batch.entry] = Firsts(self._costs.in_service(batch.entry).firsts)
        firsts = self._firsts[batch.entry]
        if len(firsts) < FEWEST:
            return None
        met = self._met.setdefault((batch.worker, batch.entry), {})
        age = met.setdefault(batch.executed, len(met))
        return _pick(firsts.nearest(batch.executed, age), unit)

    def _usual_excess(self, entry: EntryId, executed: Executed) -> Ns:
        """What a run like a first run of the prelude takes beyond its fitted value when it is none."""
        key = entry, executed
        if key not in self._usual:
            near = self._near(entry, executed, rested=False)
            self._usual[key] = sorted(run.excess for run in near)[len(near) // 2] if near else 0
        return self._usual[key]


class Firsts:
    """First runs of an entry, in the order in which a fresh process met their shapes."""

    def __init__(self, firsts: Sequence[First]) -> None:
        self._runs = tuple(firsts)
        self._logs = _logs(firsts)
        self._ages = np.log(np.arange(1, len(firsts) + 1))
        self._own: dict[Executed, list[int]] = {}
        for at, first in enumerate(firsts):
            self._own.setdefault(first.executed, []).append(at)

    def __len__(self) -> int:
        return len(self._runs)

    def nearest(self, executed: Executed, age: int) -> tuple[First, ...]:
        """The nearest to a first run at ``executed`` by a process that has met ``age`` shapes."""
        apart = np.abs(self._ages - log(age + 1))
        for at in self._own.get(executed, ()):
            if apart[at] <= ALIKE:
                return (self._runs[at],)
        return tuple(self._runs[at] for at in _nearest(self._logs, executed, FIRST, AGE * apart))


def _logs(runs: Sequence[First | Again]) -> NDArray[np.float64]:
    """float64[n, dims]: of the true dims; sizes matter by their proportion."""
    return np.log(np.array([run.executed[1:] for run in runs], dtype=np.float64)) if runs else np.empty((0, 0))


def _nearest(
    logs: NDArray[np.float64], executed: Executed, count: int, more: float | NDArray[np.float64] = 0.0
) -> list[int]:
    """Positions of the ``count`` nearest by distance in size plus ``more``, nearest first, and of all as near as the
    last: a padded entry's runs are equals, and its first ones alone would speak for one moment of the machine."""
    distance = np.abs(logs - np.log(np.array(executed[1:], dtype=np.float64))).sum(axis=1) + more
    order = np.argsort(distance, kind="stable")
    last = distance[order[min(count, len(order)) - 1]]
    order = order[: np.searchsorted(distance[order], last, side="right")]
    found: list[int] = order.tolist()
    return found


def _pick(values: Sequence[T], unit: float) -> T:
    return values[int(unit * len(values))]


def unit_draws(seed: int, count: int) -> NDArray[np.float64]:
    """float64[count] in [0, 1): draw i depends on (seed, i) alone.

    SplitMix64 as a counter-based generator: its finaliser over a Weyl sequence that starts at the hashed seed
    (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    """
    start = _mix(np.array([seed & 0xFFFF_FFFF_FFFF_FFFF], dtype=np.uint64))
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    high: NDArray[np.uint64] = _mix(start + steps) >> np.uint64(11)
    return high.astype(np.float64) * 2.0**-53


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return value ^ (value >> np.uint64(31))
