"""Who was in front: occupancy while requests waited, and what each cause's removal would give back to those behind.

Theory. A call occupies a worker from ``begin`` for its run time. The number of workers is a given one, else the
distinct recorded ones, else what was seen: the larger of the usual concurrency while requests waited and the
concurrency that is exceeded in at most 5 % of busy time; a worker that was never used is not seen. Waiting while the
own worker was busy is *busy wait*, while another was free besides *elsewhere*, while the own one was free *idle wait*.

As in the tail account: w(S) is the wait in a first come, first served queue in which only the causes
in S exist. A cause that is removed alone gives back busy wait x max(0, w(all) - w(all less k)) / w(all); capacity is
w(none), what useful work alone makes others wait. Where w(all) is 0 the wait is not modelled.

Times that are whole milliseconds (or microseconds, or seconds) overlap and leave gaps by rounding: to count workers,
runs are cut by one and a half of that unit at each end; to find idle time, lengthened by it.

Limits. Batches do not re-form; a batch is its members' equal shares of its run. The order of service is taken to be
that of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.evidence.attribute.replays import Queue
from trimtab.evidence.imported._columns import Ints, at, empty, filled, recorded, same, single, total
from trimtab.evidence.imported.recorded import Calls
from trimtab.evidence.stats.quantiles import Floats

RARE = 0.05
MOST_WORKERS = 256
FEW = 1000
SLICE = 1 << 20
"""Instants that are looked up at once, so that what is made on the way stays small."""


class Waits(msgspec.Struct, frozen=True):
    """Waiting of each call, float64 ns: ``busy`` + ``idle`` = its queue; ``elsewhere`` lies within busy.

    ``workers`` 0 = not known; ``seen`` = they were counted from the run and may be too few.
    """

    busy: Floats
    idle: Floats
    elsewhere: Floats
    workers: int
    seen: bool


def waits(given: Calls, workers: int) -> Waits:
    """The queue of every call, cut by who was busy meanwhile; ``workers`` 0 = count them."""
    nothing = same(0.0, given.latency.size)
    if given.derived or not recorded(given.queue):
        return Waits(nothing, nothing, nothing, workers, False)
    wait, grain = filled(given.queue), 1.5 * _unit(given)
    named = np.unique(given.worker[given.worker != NEVER]) if not single(given.worker) else np.empty(0, dtype=np.int64)
    if 1 < named.size <= MOST_WORKERS and np.all(given.worker != NEVER):
        return _named(given, wait, named, max(workers, named.size), grain)
    count = _Level(*_spans(given, grain))
    known = max(workers, int(named.size))
    many = known or _seen(_Level(*_spans(given, -grain)) if grain else count, given, wait)
    below = count.below(many)
    idle = np.minimum(np.maximum(below(given.begin) - below(given.begin - wait), 0.0), wait)
    return Waits(wait - idle, idle, nothing, many, not known)


def _spans(given: Calls, wider: float) -> tuple[Floats, Floats]:
    """Begin and end of each batch's run, moved apart by ``wider`` at each end."""
    heads = np.flatnonzero(given.head & np.isfinite(given.run))
    begin, run = at(given.begin, heads), at(given.run, heads)
    by = np.maximum(wider, -0.49 * run)
    return begin - by, begin + run + by


def _unit(given: Calls) -> float:
    """The unit in which times were rounded, ns: 0 unless all of them are whole seconds, ms or us."""
    run = given.run[np.isfinite(given.run)]
    for unit in (1e9, 1e6, 1e3):
        if given.begin.size and all(_multiples(told, unit) for told in (given.begin, run)):
            return unit
    return 0.0


def _multiples(told: Floats, unit: float) -> bool:
    """Whether all are; the first few nearly always tell."""
    return bool(np.all(told[:FEW] % unit == 0) and np.all(told % unit == 0))


def _named(given: Calls, wait: Floats, named: NDArray[np.int64], workers: int, grain: float) -> Waits:
    """The cut where each call says its worker."""
    heads = given.head & np.isfinite(given.run)
    idle, elsewhere = np.zeros(wait.size), np.zeros(wait.size)
    short = _Level(*_spans(given, grain)).below(workers)
    for worker in named:
        rows = np.flatnonzero(given.worker == worker)
        mine = heads & (given.worker == worker)
        own = _Level(given.begin[mine] - grain, given.begin[mine] + given.run[mine] + grain).below(1)
        till, from_ = given.begin[rows], given.begin[rows] - wait[rows]
        idle[rows] = np.clip(own(till) - own(from_), 0.0, wait[rows])
        elsewhere[rows] = np.maximum(np.clip(short(till) - short(from_), 0.0, wait[rows]) - idle[rows], 0.0)
    return Waits(wait - idle, idle, elsewhere, workers, False)


def _seen(count: _Level, given: Calls, wait: Floats) -> int:
    """How many workers there seem to be."""
    usual = count.exceeded_rarely()
    rows = np.flatnonzero(wait > 0)
    if not rows.size:
        return max(usual, 1)
    middle = given.begin[rows] - wait[rows] / 2
    return max(usual, int(np.median(count.at(middle))), 1)


class _Level:
    """How many spans cover each instant."""

    def __init__(self, start: Floats, end: Floats) -> None:
        edges = np.concatenate((np.sort(start), np.sort(end)))
        order = np.argsort(edges, kind="stable")  # which merges what is sorted already
        self._at = edges[order]
        self._level = np.cumsum(np.where(order < start.size, np.int8(1), np.int8(-1)), dtype=np.int32)

    def at(self, t: Floats) -> Floats:
        place = np.searchsorted(self._at, t, side="right") - 1
        return np.where(place >= 0, self._level[np.maximum(place, 0)], 0.0)

    def exceeded_rarely(self) -> int:
        """The smallest level that is exceeded in at most 5 % of busy time."""
        spent = np.bincount(np.maximum(self._level[:-1], 0), weights=np.diff(self._at))
        above = np.cumsum(spent[::-1])[::-1]  # above[k] = time at level k or more
        allowed = RARE * float(spent[1:].sum())
        return int(np.argmax(np.append(above, 0.0)[1:] <= allowed)) if spent.size > 1 else 1

    def below(self, level: int) -> Callable[[Floats], Floats]:
        """Time from before the first edge to each instant during which fewer than ``level`` spans covered it."""
        if not self._at.size:
            return lambda t: t
        under = self._level < level
        before = np.diff(self._at, prepend=self._at[0])
        before[1:][~under[:-1]] = 0.0
        np.cumsum(before, out=before)

        def until(t: Floats) -> Floats:
            place = np.searchsorted(self._at, t, side="right") - 1
            inside = np.maximum(place, 0)
            since = np.where(under[inside], t - self._at[inside], 0.0)
            return np.asarray(np.where(place >= 0, before[inside] + since, t - self._at[0]), dtype=np.float64)

        return lambda t: np.concatenate([until(t[k : k + SLICE]) for k in range(0, max(t.size, 1), SLICE)])


class Backlog(msgspec.Struct, frozen=True):
    """Busy wait that each cause's removal alone gives back (``relief``), that useful work alone makes (``capacity``),
    and that all causes together make beyond what they give back one by one (``excess``); float64 ns each. What the
    model does not explain is in none of them."""

    relief: dict[str, Floats]
    capacity: Floats
    excess: Floats


def backlog(given: Calls, wait: Waits, useful: Floats, causes: Mapping[str, Floats]) -> Backlog:
    """What made the queue. ``useful`` and ``causes`` = parts of each call's run, ns; ``idle`` makes a call ready later.

    The cause ``imbalance`` keeps calls to their recorded worker; without it any of them may take any call.
    """
    rows = np.flatnonzero(np.isfinite(given.run))
    nothing = same(0.0, given.latency.size)
    if not wait.workers or not wait.busy.any() or not rows.size:
        return Backlog(dict.fromkeys(causes, nothing), nothing, nothing)
    model = _Model(given, wait, rows)
    work = {name: _shared(given, part) for name, part in causes.items() if part.any()}
    base = _shared(given, useful)
    held = ("hold",) if model.held else ()
    names = (*work, *held, *(("imbalance",) if wait.elsewhere.any() else ()))

    def waiting(present: tuple[str, ...]) -> Floats:
        given_work = (work[name] for name in present if name in work)
        return model.wait(total(base, *given_work), held="hold" in present, pinned="imbalance" in present)

    everything = waiting(names)
    modelled = everything > 0
    capacity = waiting(())
    _share(np.minimum(capacity, everything, out=capacity), wait.busy, everything, modelled)
    relief = dict.fromkeys((*causes, "hold", "imbalance"), nothing)
    for name in names:
        saved = waiting(tuple(n for n in names if n != name))
        np.maximum(np.subtract(everything, saved, out=saved), 0.0, out=saved)
        relief[name] = _share(saved, wait.busy, everything, modelled)
    excess = wait.busy - capacity
    excess[~modelled] = 0.0
    for each in relief.values():
        if not empty(each):
            excess -= each
    return Backlog(relief, capacity, np.maximum(excess, 0.0, out=excess))


def _share(part: Floats, busy: Floats, whole: Floats, modelled: NDArray[np.bool_]) -> Floats:
    """``busy`` times ``part`` over ``whole``, in place; ``part`` is at most ``whole``, and 0 where that is."""
    part *= busy
    return np.divide(part, whole, out=part, where=modelled)


def _shared(given: Calls, part: Floats) -> Floats:
    """Each call's share of its batch's part."""
    if single(given.batch):
        return part
    size = np.where(np.isfinite(given.size) & (given.batch != NEVER), np.maximum(given.size, 1.0), 1.0)
    return np.asarray(part / size, dtype=np.float64)


class _Model:
    """The queue of the calls that ran, asked with different work. ``held`` = some of them became ready later than they
    arrived."""

    def __init__(self, given: Calls, wait: Waits, rows: Ints) -> None:
        late = total(filled(given.hold), wait.idle)
        self.held = bool(late.any())
        self._given, self._rows, self._late, self._workers = given, rows, late, wait.workers
        self._queues: dict[tuple[bool, bool], Queue] = {}

    def wait(self, work: Floats, *, held: bool, pinned: bool) -> Floats:
        if (held, pinned) not in self._queues:
            self._queues[held, pinned] = self._queue(held, pinned)
        work = np.maximum(work, 0.0)
        whole = np.rint(work, out=work).astype(np.int64)
        del work
        return np.asarray(self._queues[held, pinned].waits(whole), dtype=np.float64)

    def _queue(self, held: bool, pinned: bool) -> Queue:
        ready = (total(self._given.arrived, self._late) if held else self._given.arrived).astype(np.int64)
        if not pinned:
            kind = np.zeros(ready.size, dtype=np.int64)
            return Queue(self._rows, ready, kind, (tuple(range(self._workers)),), None, [])
        named, code = np.unique(self._given.worker, return_inverse=True)
        return Queue(self._rows, ready, code.reshape(-1), tuple((k,) for k in range(named.size)), None, [])
