"""w(S): the busy wait that a queue model gives every request when only the causes in S exist.

Work causes add their parts of each batch, one n-th a member, to its useful work. The other causes are rules: hold and
outages make requests ready later, outages and pace runs block their worker, imbalance keeps requests to the workers
that placement allows.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.account import BATCH_PARTS, CAUSES
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.cuts import OCCUPIED, UNAVAILABLE, Timeline
from trimtab.evidence.attribute.replays import Queue, Sets, pooled
from trimtab.evidence.attribute.split import Int, Members

Columns = dict[str, NDArray[np.int64]]
BLOCKS = {"unavailable": UNAVAILABLE, "occupied": OCCUPIED}
RULES = frozenset(("hold", "imbalance", *BLOCKS))
"""Causes that are no work of a batch: they change when requests are ready, or who may run them."""


class Model:
    """w(S): the queue model of one run, asked with different sets of causes.

    ``waiting`` holds each request's own hold, unavailable and occupied time, by which it is ready later.
    """

    def __init__(
        self,
        trace: Trace,
        members: Members,
        behind: Columns,
        waiting: Columns,
        timeline: Timeline,
        sets: Sets,
        kind: Int,
        order: str,
    ) -> None:
        self._rows = np.flatnonzero(members.row >= 0)
        self._useful = members.shares(behind["useful"])
        self._work = {name: members.shares(behind[name]) for name in BATCH_PARTS[1:] if np.any(behind[name])}
        self._enqueued, self._waiting = trace.requests["enqueued"], waiting
        self._blocks = {name: timeline.blocks(code) for name, code in BLOCKS.items()}
        self._sets, self._kind = sets, kind
        self._any = pooled(range(trace.run.workers))
        self._rank: Int | None = None
        if order != "fifo":
            sent = np.zeros(kind.size, dtype=np.int64)
            sent[self._rows] = trace.batches["dispatched"][members.row[self._rows]]
            self._rank = np.argsort(np.argsort(sent, kind="stable"), kind="stable").astype(np.int64)
        self._queues: dict[frozenset[str], Queue] = {}
        self.causes = [name for name in CAUSES if self._present(name)]

    def _present(self, cause: str) -> bool:
        if cause == "imbalance":
            return self._sets != self._any
        if cause == "hold":
            return bool(np.any(self._waiting[cause]))
        return bool(self._blocks[cause]) if cause in BLOCKS else cause in self._work

    def _queue(self, rules: frozenset[str]) -> Queue:
        """The queue under those causes that are no work: readiness, eligibility, outages."""
        if rules not in self._queues:
            imbalance = "imbalance" in rules
            ready = self._enqueued.copy()
            for name in rules - {"imbalance"}:
                ready += self._waiting[name]
            kind = self._kind if imbalance else np.zeros_like(self._kind)
            blocks = sorted(block for name in rules if name in BLOCKS for block in self._blocks[name])
            sets = self._sets if imbalance else self._any
            self._queues[rules] = Queue(self._rows, ready, kind, sets, self._rank, blocks)
        return self._queues[rules]

    def wait(self, present: Collection[str]) -> Int:
        """w(present), int64[requests]."""
        work = self._useful.copy()
        for cause in present:
            if cause in self._work:
                work += self._work[cause]
        return self._queue(frozenset(present) & RULES & set(self.causes)).waits(work)
