"""Fast replays of the queue: the wait of every request when its batch's work is given.

Theory. Requests in order of readiness are each taken by the earliest free worker of their eligibility class:
start_i = max(ready_i, min free), free = start_i + work_i (Kiefer-Wolfowitz; for one worker Lindley's recursion, which
is a running maximum over prefix sums). Classes that share no worker are replayed apart. Each replay is linear in the
requests, O(log workers) each: prefix sums for one worker, two variables for two, a heap for more. Stretches in which so
few run that nobody waits are left out.

Where the order is not first come, first served, the waiting request that the recorded run sent first goes first: the
policy's own ranking, as it was recorded. A freed worker then picks from those that wait, by event.

Limits: batches do not re-form; a batch is n requests of one n-th of its work each.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from trimtab.evidence.attribute.split import Int

Sets = tuple[tuple[int, ...], ...]
Blocks = Sequence[tuple[int, int, int]]
Starts = Callable[[list[int], list[int], list[int]], Int]
TOGETHER = 1 << 12
"""Requests that are Python numbers at the same time: a million of them would take 100 MB."""


def one(ready: Int, work: Int) -> Int:
    """Waits behind one worker. Both int64[n], in order of readiness."""
    before = np.cumsum(work) - work
    start: Int = before + np.maximum.accumulate(ready - before)
    return start - ready


def two(ready: Int, work: Int) -> Int:
    """Waits behind two equal workers, in order of readiness."""
    return _waits(ready, work, 2, _starts_of_two)


def many(ready: Int, work: Int, workers: int) -> Int:
    """Waits behind any number of equal workers, in order of readiness."""
    return _waits(ready, work, workers, _starts_of_many)


def _waits(ready: Int, work: Int, workers: int, starts: Starts) -> Int:
    """Only stretches in which somebody may wait are gone through one by one.

    To find them, work below 0 counts as none: the next one finds that worker free either way.
    """
    waits, ends = np.zeros(ready.size, dtype=np.int64), ready + np.maximum(work, 0)
    free, done, clear = [int(ready[0])] * workers, 0, 0
    for begin, last in _crowded(ready, ends, workers):
        if begin > done:
            free = sorted([*free, *np.sort(ends[done:begin])[-workers:].tolist()])[-workers:]
            done = begin
        while done < ready.size and (done <= last or int(ready[done]) < clear):
            part = slice(done, done + TOGETHER)
            waits[part] = starts(ready[part].tolist(), work[part].tolist(), free) - ready[part]
            clear = max(clear, int((ends[part] + waits[part])[waits[part] > 0].max(initial=0)))
            done += TOGETHER
    return waits


def _crowded(ready: Int, ends: Int, workers: int) -> list[tuple[int, int]]:
    """First and last request of each stretch in which all workers might be busy when one comes, had nobody waited.

    Request i finds fewer than k others there if more than i - k of all ends lie before its own readiness; then a worker
    is free, unless one that waited is still there. Stretches with fewer than TOGETHER requests between them are one.
    """
    found = np.flatnonzero(np.sort(ends)[:-workers] >= ready[workers:]) + workers
    if not found.size:
        return []
    cut = np.flatnonzero(np.diff(found) > TOGETHER)
    return list(zip(found[np.append(0, cut + 1)].tolist(), found[np.append(cut, -1)].tolist(), strict=True))


def _starts_of_two(ready: list[int], work: list[int], free: list[int]) -> Int:
    """When each request starts; ``free`` = when each worker is, as it was and, at the end, as it is."""
    starts: list[int] = []
    a, b = free
    for r, w in zip(ready, work, strict=True):
        if b < a:
            a, b = b, a
        start = a if a > r else r
        starts.append(start)
        a = start + w
    free[:] = a, b
    return np.array(starts, dtype=np.int64)


def _starts_of_many(ready: list[int], work: list[int], free: list[int]) -> Int:
    """The same; ``free`` is a heap."""
    starts: list[int] = []
    replace = heapq.heapreplace
    for r, w in zip(ready, work, strict=True):
        start = free[0]
        if start < r:
            start = r
        starts.append(start)
        replace(free, start + w)
    return np.array(starts, dtype=np.int64)


def overlapping(ready: Int, work: Int, kind: Int, sets: Sets) -> Int:
    """Waits where request i may run on the workers ``sets[kind[i]]`` and sets overlap, in order of readiness.

    Of several free workers the one that has been free the longest takes the work, one never used before all others.
    """
    starts: list[int] = []
    free = [int(ready[0]) - 1] * (1 + max(max(s) for s in sets))
    for r, w, k in zip(ready.tolist(), work.tolist(), kind.tolist(), strict=True):
        worker = min(sets[k], key=free.__getitem__)
        start = max(free[worker], r)
        starts.append(start)
        free[worker] = start + w
    return np.array(starts, dtype=np.int64) - ready


def interrupted(ready: Int, work: Int, kind: Int, sets: Sets, blocks: Blocks) -> Int:
    """:func:`overlapping`, where worker w can do nothing for ``length`` ns from ``t`` on, or from the end of what it
    does then: ``blocks`` = (t, length, w) in order of t."""
    starts: list[int] = []
    free = [int(ready[0]) - 1] * (1 + max(max(s) for s in sets))
    coming = iter([*blocks, (2**62, 0, sets[0][0])])
    t, length, blocked = next(coming)
    for r, w, k in zip(ready.tolist(), work.tolist(), kind.tolist(), strict=True):
        worker = min(sets[k], key=free.__getitem__)
        start = max(free[worker], r)
        while t <= start:
            free[blocked] = max(free[blocked], t) + length
            t, length, blocked = next(coming)
            worker = min(sets[k], key=free.__getitem__)
            start = max(free[worker], r)
        starts.append(start)
        free[worker] = start + w
    return np.array(starts, dtype=np.int64) - ready


def ranked(ready: Int, work: Int, kind: Int, sets: Sets, rank: Int, blocks: Blocks = ()) -> Int:
    """Waits where the eligible waiting request of the lowest ``rank`` goes first. Sets may overlap; ``blocks`` as in
    :func:`interrupted`."""
    queue = _ByEvent(work.tolist(), kind.tolist(), sets, int(ready[0]) - 1)
    coming = list(reversed(blocks))
    for request, (t, key) in enumerate(zip(ready.tolist(), rank.tolist(), strict=True)):
        while coming and coming[-1][0] <= t:
            queue.block(*coming.pop())
        queue.arrive(t, request, key)
    while coming:
        queue.block(*coming.pop())
    queue.drain(2**62)
    return np.array(queue.starts, dtype=np.int64) - ready


class _ByEvent:
    """Workers that pick, when they become free, from the requests that wait."""

    def __init__(self, works: list[int], kinds: list[int], sets: Sets, begin: int) -> None:
        self.starts = [0] * len(works)
        self._works, self._kinds, self._sets = works, kinds, sets
        self._idle = dict.fromkeys(sorted({w for s in sets for w in s}), begin)
        self._takes = {w: [k for k, s in enumerate(sets) if w in s] for w in self._idle}
        self._waiting: list[list[tuple[int, int]]] = [[] for _ in sets]
        self._running: list[tuple[int, int]] = []

    def _begin(self, request: int, worker: int, t: int) -> None:
        self.starts[request] = t
        heapq.heappush(self._running, (t + self._works[request], worker))

    def drain(self, until: int) -> None:
        """Let every worker that becomes free by ``until`` pick its next request."""
        running, waiting = self._running, self._waiting
        while running and running[0][0] <= until:
            t, worker = heapq.heappop(running)
            choice = min((waiting[k][0] for k in self._takes[worker] if waiting[k]), default=None)
            if choice is None:
                self._idle[worker] = t
                continue
            self._begin(heapq.heappop(waiting[self._kinds[choice[1]]])[1], worker, t)

    def arrive(self, t: int, request: int, rank: int) -> None:
        """A request is ready: the eligible worker that has been idle the longest takes it, or it waits."""
        self.drain(t)
        kind = self._kinds[request]
        able = [w for w in self._sets[kind] if w in self._idle]
        if not able:
            heapq.heappush(self._waiting[kind], (rank, request))
            return
        worker = min(able, key=self._idle.__getitem__)
        del self._idle[worker]
        self._begin(request, worker, t)

    def block(self, t: int, length: int, worker: int) -> None:
        """Keep a worker from its next request for ``length`` ns."""
        self.drain(t)
        if worker in self._idle:
            del self._idle[worker]
            heapq.heappush(self._running, (t + length, worker))
            return
        self._running = [(end + length * (w == worker), w) for end, w in self._running]
        heapq.heapify(self._running)


class Group:
    """Requests whose eligibility classes are connected: ``rows`` in order of readiness; all of them where they are so
    already."""

    def __init__(self, rows: Int, ready: Int, kind: Int, sets: Sets, rank: Int | None, blocks: Blocks) -> None:
        own: Int = ready if rows.size == ready.size else ready[rows]
        self.rows: Int | slice = rows if own is not ready else slice(None)
        if np.any(own[1:] < own[:-1]):
            order = np.argsort(own, kind="stable")
            self.rows, own = rows[order], own[order]
        self.ready: Int = own
        used, self.kind = ([0], np.zeros(own.size, np.int64)) if len(sets) == 1 else _renumbered(kind[self.rows])
        self.sets: Sets = tuple(sets[k] for k in used)
        self.rank = None if rank is None else rank[self.rows]
        mine, begin = {worker for workers in self.sets for worker in workers}, int(self.ready[0])
        cut = [(max(t, begin), length - max(begin - t, 0), worker) for t, length, worker in blocks if worker in mine]
        self.blocks: Blocks = [block for block in cut if block[1] > 0]

    def waits(self, work: Int) -> Int:
        """Wait of each of ``rows``, ns; ``work`` in their order."""
        if self.rank is not None:
            return ranked(self.ready, work, self.kind, self.sets, self.rank, self.blocks)
        if self.blocks:
            return interrupted(self.ready, work, self.kind, self.sets, self.blocks)
        if len(self.sets) > 1:
            return overlapping(self.ready, work, self.kind, self.sets)
        if len(self.sets[0]) == 1:
            return one(self.ready, work)
        if len(self.sets[0]) == 2:
            return two(self.ready, work)
        return many(self.ready, work, len(self.sets[0]))


def _renumbered(kind: Int) -> tuple[list[int], Int]:
    """Which kinds there are, and each one's position among those."""
    used, position = np.unique(kind, return_inverse=True)
    return used.tolist(), position.astype(np.int64, copy=False)


def connected(sets: Sets) -> list[list[int]]:
    """Positions of ``sets`` in groups that share no worker with each other."""
    groups: list[tuple[set[int], list[int]]] = []
    for position, workers in enumerate(sets):
        union, members = set(workers), [position]
        apart = []
        for other, positions in groups:
            if other & union:
                union, members = union | other, positions + members
            else:
                apart.append((other, positions))
        groups = [*apart, (union, members)]
    return [members for _, members in groups]


class Queue:
    """The replays of one run under one set of rules: when requests are ready, and who may run them.

    ``rows`` lists the requests that ran; ``ready`` int64[n], ``kind`` int64[n] into ``sets`` over all requests;
    ``rank`` None = first come, first served; ``blocks`` as in :func:`interrupted`, [] = none.
    """

    def __init__(self, rows: Int, ready: Int, kind: Int, sets: Sets, rank: Int | None, blocks: Blocks) -> None:
        self._size = ready.size
        self._groups: list[Group] = []
        for positions in connected(sets):
            mine = rows if len(positions) == len(sets) else rows[np.isin(kind[rows], positions)]
            if mine.size:
                self._groups.append(Group(mine, ready, kind, sets, rank, blocks))

    def waits(self, work: Int) -> Int:
        """Busy wait of every request, int64[n], when request i brings ``work[i]`` ns; 0 for those that never ran."""
        if len(self._groups) == 1 and isinstance(self._groups[0].rows, slice):
            return self._groups[0].waits(work)
        out = np.zeros(self._size, dtype=np.int64)
        for group in self._groups:
            out[group.rows] = group.waits(work[group.rows])
        return out


def pooled(workers: Sequence[int]) -> Sets:
    """The one class of a fleet in which any worker may run anything."""
    return (tuple(workers),)
