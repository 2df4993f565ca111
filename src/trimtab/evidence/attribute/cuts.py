"""Waiting time, cut on the recorded timeline.

Theory. At every instant each worker is down, running a batch (from dispatch to end), occupied by the pace kernel or a
warm-up, or free. For the requests of one eligibility class S (the set of workers that placement allows) the instant is

    unavailable  no live worker in S
    free         a live worker in S is free: *hold* before the batch was ready by policy, *dispatch* after
    occupied     none is free, and the pace kernel or a warm-up holds at least one of them
    busy         all live workers of S run batches

Cumulative time per state at the breakpoints makes the cut of any interval two look-ups, exact in ns. Whether a worker
outside S was free during ``busy`` is recorded beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.evidence.attribute.split import Int

FREE, BUSY, OCCUPIED, UNAVAILABLE = 0, 1, 2, 3
State = NDArray[np.int8]
Spans = tuple[Int, Int]
Block = tuple[int, int, int]


def _marks(trace: Trace, worker: int, *kinds: str) -> Spans:
    marks = trace.marks
    codes = [MARK_KINDS.index(kind) for kind in kinds]
    keep = (marks["worker"] == worker) & np.isin(marks["kind"], codes)
    return marks["t"][keep], marks["end"][keep]


def down_spans(trace: Trace, worker: int, last: int) -> Spans:
    """When a worker was not live: before it first takes traffic, and from each ``worker-down`` until it does again.

    It takes traffic from the last ``entry-ready`` or ``entry-failed`` before its next batch; traces that record none
    have ``worker-up`` instead. A worker without marks was live all along. What is prepared beside
    it keeps it from nothing.
    """
    downs = np.sort(_marks(trace, worker, "worker-down")[0])
    ready = _got_ready(trace, worker)
    ups = ready if ready.size else np.sort(_marks(trace, worker, "worker-up")[0])
    sent = np.sort(trace.batches["dispatched"][trace.batches["worker"] == worker])
    if not (ups.size or downs.size):
        return downs, downs
    starts = downs
    if ups.size and not (downs.size and downs[0] < ups[0]):
        early = min(int(trace.requests["scheduled"].min(initial=0)), int(ups[0]))
        starts = np.concatenate(([early], downs))
    ends = np.append(starts[1:], last)
    until = [_live_from(ups, sent, int(a), int(b)) for a, b in zip(starts, ends, strict=True)]
    return starts, np.array(until, dtype=np.int64)


def _got_ready(trace: Trace, worker: int) -> Int:
    """When entries became ready, or failed, that the worker prepared itself."""
    marks = trace.marks.take(trace.marks["worker"] == worker)
    own = np.isin(marks["kind"], [MARK_KINDS.index(kind) for kind in ("entry-ready", "entry-failed")])
    beside = marks["kind"] == MARK_KINDS.index("prepare")
    came = set(zip(marks["end"][beside].tolist(), marks["detail"][beside].tolist(), strict=True))
    ready = zip(marks["t"][own].tolist(), marks["detail"][own].tolist(), strict=True)
    return np.sort(np.array([t for t, entry in ready if (t, entry) not in came], dtype=np.int64))


def _live_from(ups: Int, sent: Int, start: int, end: int) -> int:
    """The last of ``ups`` in [start, end) that is not after the first batch sent in there; ``end`` if there is none."""
    batches = sent[(sent > start) & (sent < end)]
    before = ups[(ups >= start) & (ups < end)]
    if batches.size:
        before = before[before <= batches[0]]
    return int(before[-1]) if before.size else end


def batch_ends(trace: Trace, last: int) -> Int:
    """When each batch freed its worker: its end; if it has none, when the driver knew; else the end of the run."""
    ended, done = trace.batches["ended"], trace.batches["done"]
    return np.where(ended != NEVER, ended, np.where(done != NEVER, done, last))


def _count(at: Int, spans: Spans) -> NDArray[np.int32]:
    """How many spans [start, end) cover each segment that begins at a breakpoint."""
    start, end = spans
    keep = end > start
    delta = np.bincount(np.searchsorted(at, start[keep]), minlength=at.size)
    delta -= np.bincount(np.searchsorted(at, end[keep]), minlength=at.size)
    return np.cumsum(delta).astype(np.int32)


class Timeline:
    """The state of every worker between breakpoints: ``at`` int64[m], ``states`` one int8[m] a worker."""

    def __init__(self, trace: Trace, workers: int) -> None:
        batches = trace.batches
        columns = [trace.requests[c] for c in ("scheduled", "done")] + [batches[c] for c in ("ended", "done")]
        last = max((int(c.max()) for c in columns if c.size), default=0) + 1
        ends = batch_ends(trace, last)
        spans: list[list[Spans]] = []
        for worker in range(workers):
            mine = batches["worker"] == worker
            start, end = _marks(trace, worker, "pace", "warm-up")
            pace = start, np.where(end == NEVER, last, end)
            spans.append([(batches["dispatched"][mine], ends[mine]), pace, down_spans(trace, worker, last)])
        edges = [edge for kinds in spans for pair in kinds for edge in pair if edge.size]
        first = min((int(e.min()) for e in [trace.requests["scheduled"], *edges] if e.size), default=0)
        merged = np.sort(np.concatenate([np.array([first - 1, last], dtype=np.int64), *edges]), kind="stable")
        self.at: Int = merged[np.append(True, merged[1:] != merged[:-1])]
        self.length: Int = np.diff(self.at, append=self.at[-1])
        self.states: list[State] = [self._state(kinds) for kinds in spans]

    def _state(self, kinds: Sequence[Spans]) -> State:
        state = np.zeros(self.at.size, dtype=np.int8)
        for code, span in zip((BUSY, OCCUPIED, UNAVAILABLE), kinds, strict=True):
            if span[0].size:
                covered = _count(self.at, span) > 0
                state[covered & ((state == FREE) | (code == UNAVAILABLE))] = code
        return state

    def blocks(self, code: int) -> list[Block]:
        """Every (start, length, worker) during which a worker was in one state, in order of start, ns."""
        out: list[Block] = []
        for worker, state in enumerate(self.states):
            inside = np.concatenate(([False], state == code, [False]))
            if not inside.any():
                continue
            first, last = (np.flatnonzero(step) for step in (inside[1:] & ~inside[:-1], ~inside[1:] & inside[:-1]))
            ends = np.append(self.at, self.at[-1])
            out += [(int(self.at[a]), int(ends[z] - self.at[a]), worker) for a, z in zip(first, last, strict=True)]
        return sorted(out)

    def view(self, eligible: Sequence[int]) -> View:
        """The timeline as the requests see it that may run on ``eligible`` only."""
        shape = self.at.size
        free, live, paced = (np.zeros(shape, dtype=bool) for _ in range(3))
        elsewhere = np.zeros(shape, dtype=bool)
        for worker, state in enumerate(self.states):
            if worker not in eligible:
                elsewhere |= state == FREE
                continue
            free |= state == FREE
            live |= state != UNAVAILABLE
            paced |= state == OCCUPIED
        label = np.full(shape, BUSY, dtype=np.int8)
        label[paced] = OCCUPIED
        label[free] = FREE
        label[~live] = UNAVAILABLE
        return View(self, label, elsewhere & (label == BUSY))


class View:
    """One eligibility class's labels over time, with cumulative time in each."""

    def __init__(self, timeline: Timeline, label: State, elsewhere: NDArray[np.bool_]) -> None:
        self.at, self.label, self.elsewhere = timeline.at, label, elsewhere
        self._length = timeline.length
        changed = np.ones(label.size, dtype=bool)
        changed[1:] = label[1:] != label[:-1]
        self._since: Int = np.maximum.accumulate(np.where(changed, self.at, self.at[0]))

    def place(self, t: Int) -> Int:
        """Segment of each time (right-continuous)."""
        place: Int = np.searchsorted(self.at, t, side="right") - 1
        return np.maximum(place, 0)

    def upto(self, inside: NDArray[np.bool_], t: Int, place: Int) -> Int:
        """Time with ``inside`` true from the first breakpoint to each ``t``."""
        total = np.cumsum(np.where(inside, self._length, 0))
        before = total[place] - np.where(inside[place], self._length[place], 0)
        return before + np.where(inside[place], t - self.at[place], 0)

    def lag(self, ready: Int, dispatched: Int) -> Int:
        """How long a worker had been free and the request ready, just before ``dispatched``, ns."""
        before = np.maximum(np.searchsorted(self.at, dispatched, side="left") - 1, 0)
        since = np.maximum(self._since[before], ready)
        return np.where(self.label[before] == FREE, np.maximum(dispatched - since, 0), 0)


def cut(view: View, enqueued: Int, ready: Int, dispatched: Int) -> dict[str, Int]:
    """The parts of [enqueued, dispatched): hold, unavailable, occupied, busy, dispatch; idle_elsewhere beside busy.

    ``ready`` lies within the interval. The five parts are >= 0 and sum to its length.
    """
    from_, till, middle = view.place(enqueued), view.place(dispatched), view.place(ready)

    def spent(inside: NDArray[np.bool_]) -> Int:
        return view.upto(inside, dispatched, till) - view.upto(inside, enqueued, from_)

    free = view.label == FREE
    held = view.upto(free, ready, middle) - view.upto(free, enqueued, from_)
    waited = dispatched - enqueued
    out: dict[str, Any] = {
        "hold": held,
        "dispatch": spent(free) - held,
        "unavailable": spent(view.label == UNAVAILABLE),
        "occupied": spent(view.label == OCCUPIED),
    }
    out["busy"] = waited - sum(out.values())
    out["idle_elsewhere"] = spent(view.elsewhere)
    return out
