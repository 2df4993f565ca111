"""Time that a set of spans covers, overlaps counted once: exact, in nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Intervals = tuple[Ints, Ints]
"""Starts and ends; in any order, overlapping or not."""


class Cover(msgspec.Struct, frozen=True):
    """Disjoint intervals in order; ``before`` = what the ones before each cover together, and all of them at last."""

    starts: Ints
    ends: Ints
    before: Ints

    def until(self, at: Ints) -> Ints:
        """ns covered before each time in ``at``."""
        count = np.searchsorted(self.starts, at, side="right")
        if not self.ends.size:
            return np.zeros(at.size, dtype=np.int64)
        beyond = np.maximum(self.ends[np.maximum(count - 1, 0)] - at, 0)
        return np.asarray(self.before[count] - np.where(count > 0, beyond, 0), dtype=np.int64)


def cover(intervals: Intervals) -> Cover:
    """The union of ``intervals``."""
    starts, ends = intervals
    if not starts.size:
        return Cover(starts, ends, np.zeros(1, dtype=np.int64))
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    new = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(new)[1:] - 1, [starts.size - 1]))
    begins, stops = starts[new], reach[last]
    return Cover(begins, stops, np.concatenate(([0], np.cumsum(stops - begins))))


def layers(sets: Mapping[str, Intervals], edges: Ints) -> dict[str, Ints]:
    """ns of each layer between neighbouring ``edges``: time belongs to the first set that covers it, the rest to none.

    The layers and the rest (key "") add up to the pieces exactly.
    """
    out: dict[str, Ints] = {}
    starts, ends = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    so_far = np.zeros(edges.size - 1, dtype=np.int64)
    for name, (begins, stops) in sets.items():
        starts, ends = np.concatenate((starts, begins)), np.concatenate((ends, stops))
        covered = np.diff(cover((starts, ends)).until(edges))
        out[name], so_far = covered - so_far, covered
    out[""] = np.diff(edges) - so_far
    return out


def less(intervals: Intervals, without: Intervals) -> Intervals:
    """What ``intervals`` cover and ``without`` does not, as disjoint intervals."""
    edges = np.unique(np.concatenate((*intervals, *without)))
    if edges.size < 2:
        return edges[:0], edges[:0]
    inside = np.diff(cover(intervals).until(edges)) > 0
    outside = np.diff(cover(without).until(edges)) == 0
    keep = inside & outside
    return edges[:-1][keep], edges[1:][keep]


def lasting(ns: float) -> str:
    """A time as people say it, three digits: ``441 us``, ``10.3 s``."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= scale:
            return f"{ns / scale:.0f} {unit}" if abs(ns) >= 100 * scale else f"{ns / scale:.3g} {unit}"
    return f"{ns:.0f} ns"
