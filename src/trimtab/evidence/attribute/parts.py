"""The execution of a batch, split into parts by what the profiles know.

Theory. Run time R = wall - off-core time (:mod:`.offcore`) descends through known levels to 0; each step is a part:

    R -> T_e(D) -> T_ref(D) -> T_ref(n, s_max) -> T_ref(1, s_i) -> 0         for a member
    R -> T_e(D) -> T_ref(D) -> T_ref(n, s_max) -> mean_j T_ref(n, s_j) -> 0  for those behind

The steps are cold or interference, premium, bucket padding, co-batching (ragged padding), useful. T_e is the warm
promise of the entry that ran, T_ref that of one reference entry that covers every shape, D the executed dims, n the
members and s_max their largest dims. Interference and premium are signed. Where a level is unknown (a promise of 0)
the steps on both sides of it merge into ``unprofiled``. A level is never above the one before it except at a signed
step, so all other parts are >= 0; this only binds where profiles are not monotone.

``cold`` is all run time above the promise in a first or compiling run, interference included. A batch that merely
ran other dims than the one before it is another matter: under mixed shapes nearly every batch is one, and calling
its noise cold would leave no interference at all. The promise comes from repeats interleaved over shapes, so it holds
what a usual change costs. Beyond that, a changed run is cold by at most what changed runs of its entry typically take
longer, relative to the promise, than unchanged ones of the same trace (difference of medians, at least 20 of each).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import EntryId
from trimtab.domain.ports import Predictor
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.offcore import off_core
from trimtab.evidence.attribute.split import Int, Members

KEY_SPAN = 2**62
CHANGES_NEEDED = 20


def unique_rows(columns: Sequence[NDArray[Any]]) -> tuple[Int, Int]:
    """(first position of each distinct row, code of every row). Columns are packed into one int64 key."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    span = 1
    for column in columns:
        low, high = int(column.min()), int(column.max())
        width = high - low + 1
        if span > KEY_SPAN // width:
            distinct, key = np.unique(key, return_inverse=True)
            span = len(distinct)
        key = key * width + (column.astype(np.int64) - low)
        span *= width
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    return first, code


def look_up(predictor: Predictor, entries: Sequence[EntryId], entry: Int, executed: Sequence[Int]) -> Int:
    """Warm promise of each row, ns (0 = none): ``entry`` codes into ``entries``, ``executed`` = (n, *dims) columns.

    The predictor is asked once for each distinct row.
    """
    if len(entry) == 0:
        return np.zeros(0, dtype=np.int64)
    first, code = unique_rows([entry, *executed])
    asked = [max(predictor.warm(entries[int(entry[i])], tuple(int(c[i]) for c in executed)), 0) for i in first]
    return np.array(asked, dtype=np.int64)[code]


def descend(top: Int, levels: Sequence[Int], signed: Sequence[bool]) -> tuple[list[Int], Int]:
    """Walk from ``top`` down ``levels`` and on to 0. Level 0 = unknown.

    Returns the named step above each level, the last one down to 0 included (``len(levels) + 1`` arrays), and what
    fell into gaps. Steps and gaps sum to ``top``.
    """
    last, gap = top, np.zeros(top.shape, dtype=bool)
    steps: list[Int] = []
    unprofiled = np.zeros_like(top)
    for level, free in zip(levels, signed, strict=True):
        known = level > 0
        low = np.where(gap, np.minimum(level, last), level) if free else np.minimum(level, last)
        drop = np.where(known, last - low, 0)
        steps.append(np.where(gap, 0, drop))
        unprofiled += np.where(gap, drop, 0)
        last, gap = np.where(known, low, last), ~known
    steps.append(np.where(gap, 0, last))
    unprofiled += np.where(gap, last, 0)
    return steps, unprofiled


class Execution:
    """What is known of each batch's execution: int64[batches] each, ns.

    ``off_core`` + ``run`` = wall; ``levels`` = T_e(D), T_ref(D), T_ref(n, s_max), then for those behind the mean over
    members of T_ref(n, s_j); ``alone`` int64[requests] = T_ref(1, s_i). 0 = unknown.
    """

    def __init__(
        self,
        trace: Trace,
        members: Members,
        wall: Int,
        promise: Predictor,
        reference: Predictor,
        reference_entry: EntryId,
    ) -> None:
        batches, names = trace.batches, trace.dim_names
        self.failed: NDArray[np.bool_] = batches["error"] != 0
        self.off_core: Int = np.where(self.failed, 0, off_core(batches, wall))
        self.run: Int = wall - self.off_core
        self.first: NDArray[np.bool_] = batches["first_seen"] | (batches["compile_events"] > 0)
        true = [trace.requests[f"dim.{name}"] for name in names]
        padded = [batches["executed_size"].astype(np.int64), *(batches[f"exec.{name}"] for name in names)]
        size = batches["size"].astype(np.int64)
        largest = [np.minimum(members.reduce(np.maximum, c, 0), p) for c, p in zip(true, padded[1:], strict=True)]
        largest = [np.where(members.count > 0, c, p) for c, p in zip(largest, padded[1:], strict=True)]

        def ref(executed: Sequence[Int]) -> Int:
            return look_up(reference, (reference_entry,), np.zeros(len(executed[0]), dtype=np.int64), executed)

        self.levels: list[Int] = [
            look_up(promise, trace.entries, batches["entry"].astype(np.int64), padded),
            ref(padded),
            ref([size, *largest]),
        ]
        self.change: Int = self._change(trace)
        ran = members.order
        self.alone: Int = np.zeros(len(trace.requests), dtype=np.int64)
        self.alone[ran] = ref([np.ones(ran.size, dtype=np.int64), *(c[ran] for c in true)])
        with_mates = np.zeros(len(trace.requests), dtype=np.int64)
        with_mates[ran] = ref([size[members.row[ran]], *(c[ran] for c in true)])
        total, least = members.reduce(np.add, with_mates, 0), members.reduce(np.minimum, with_mates, 0)
        self.levels.append(np.where(least > 0, total // np.maximum(members.count, 1), 0))

    def _change(self, trace: Trace) -> Int:
        """What a change of shape typically costs each changed batch beyond its promise, ns."""
        entry, changed = trace.batches["entry"], trace.batches["changed"]
        promised = self.levels[0]
        warm = (promised > 0) & ~self.failed & ~self.first
        ratio = self.run / np.maximum(promised, 1)
        out = np.zeros_like(promised)
        for code in np.unique(entry[warm & changed]):
            mine = warm & (entry == code)
            other, same = ratio[mine & changed], ratio[mine & ~changed]
            if min(other.size, same.size) < CHANGES_NEEDED:
                continue
            slower = max(float(np.median(other) - np.median(same)), 0.0)
            rows = np.flatnonzero(mine & changed)
            out[rows] = np.rint(slower * promised[rows]).astype(np.int64)
        return out

    def _cold(self, excess: Int, batch: Int) -> Int:
        """Of ``excess`` over the promise, what is due to a first, compiling or changed run; ``batch`` = its rows."""
        over = np.maximum(excess, 0)
        cold: Int = np.where(self.first[batch], over, np.minimum(over, self.change[batch]))
        return cold

    def own(self, members: Members, rows: Int) -> dict[str, Int]:
        """Parts of the execution of the requests ``rows`` (each has run), own view."""
        batch = members.row[rows]
        levels = [level[batch] for level in self.levels[:3]]
        steps, unprofiled = descend(self.run[batch], [*levels, self.alone[rows]], (True, True, False, False))
        excess, premium, padding, co_batching, useful = steps
        cold = self._cold(excess, batch)
        return {
            "off_core": self.off_core[batch],
            "cold": cold,
            "interference": excess - cold,
            "premium": premium,
            "padding": padding,
            "co_batching": co_batching,
            "useful": useful,
            "unprofiled": unprofiled,
        }

    def behind(self, dispatch: Int) -> dict[str, Int]:
        """Parts of each batch as those behind it see them (BATCH_PARTS): >= 0, negative steps netted.

        ``dispatch`` = scheduler lag + [dispatched, started). The parts sum to it plus the wall time. All of a failed
        batch's time is ``failed``: no profile promises anything about it.
        """
        steps, unprofiled = descend(self.run, self.levels, (True, True, False, False))
        excess, premium, padding, ragged, useful = steps
        cold = self._cold(excess, np.arange(excess.size))
        parts = {
            "useful": useful,
            "padding": padding + ragged,
            "premium": np.maximum(premium, 0),
            "interference": np.maximum(excess - cold, 0),
            "unprofiled": unprofiled,
            "cold": cold,
        }
        owed = -(np.minimum(excess - cold, 0) + np.minimum(premium, 0))
        for name, part in parts.items():
            paid = np.minimum(part, owed)
            parts[name], owed = part - paid, owed - paid
        wall = self.run + self.off_core + dispatch
        parts = {name: np.where(self.failed, 0, part) for name, part in parts.items()}
        parts["off_core"] = np.where(self.failed, 0, self.off_core)
        parts["dispatch"] = np.where(self.failed, 0, dispatch)
        parts["failed"] = np.where(self.failed, wall, 0)
        return parts
