"""How long a warm run takes, learnt from the runs of a table: T(v) by executed volume.

Theory. The executed volume v of a run is the product of its executed dims, rows of the batch included. Plain runs
(neither first of their shape nor compiling, and, where enough exist, not changed from the run before) are grouped by
volume, at most 24 groups of equal counts; the median of a group is its time. Between groups T is linear; beyond them it
follows the line through the two outermost groups, never below 0. Across groups nothing is smoothed: a kernel may be
faster at a wider shape. With one volume only, T is known at that volume and nowhere else.

Limits. Shapes of equal volume are taken to take equal time. The median of a group that queues for memory or cores is
not a time on a quiet machine: T says what this system usually takes, not what it could take.
"""

from __future__ import annotations

import math

import numpy as np

from trimtab.evidence.stats.quantiles import Floats

GROUPS = 24


class Warm:
    """T by volume: ``at`` (rising) and ``time`` float64[k]. Empty = nothing is known."""

    def __init__(self, at: Floats, time: Floats) -> None:
        self.at, self.time = at, time

    def __bool__(self) -> bool:
        return bool(self.at.size)

    def covers(self, volume: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where ``volume`` lies within the volumes that were seen."""
        if not self:
            return np.zeros(volume.shape, dtype=bool)
        return np.asarray((volume >= self.at[0]) & (volume <= self.at[-1]), dtype=np.bool_)

    def __call__(self, volume: Floats) -> Floats:
        """Warm time at ``volume``; nan where it is not known."""
        if not self:
            return np.full(volume.shape, math.nan)
        if self.at.size == 1:
            return np.where(volume == self.at[0], self.time[0], math.nan)
        out = np.interp(volume, self.at, self.time)
        for beyond, a, b in ((volume < self.at[0], 0, 1), (volume > self.at[-1], -1, -2)):
            rows = np.flatnonzero(beyond)
            slope = (self.time[b] - self.time[a]) / (self.at[b] - self.at[a])
            out[rows] = np.maximum(self.time[a] + slope * (volume[rows] - self.at[a]), 0.0)
        return np.asarray(out, dtype=np.float64)

    def with_more(self, other: Warm) -> Warm:
        """This, and the points of ``other`` outside the volumes that were seen here."""
        outside = ~self.covers(other.at)
        at = np.concatenate((self.at, other.at[outside]))
        order = np.argsort(at)
        return Warm(at[order], np.concatenate((self.time, other.time[outside]))[order])


def learn(volume: Floats, run: Floats) -> Warm:
    """T from plain runs: their volumes, and their run times."""
    known = np.isfinite(volume) & np.isfinite(run)
    if not known.all():
        volume, run = volume[known], run[known]
    if not volume.size:
        return Warm(np.empty(0), np.empty(0))
    group = np.searchsorted(_edges(volume), volume, side="right").astype(np.uint8)
    order, ends = np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]
    at, time = (
        np.array([np.median(part) for part in np.split(column[order], ends) if part.size]) for column in (volume, run)
    )
    return Warm(at, time)


def _edges(volume: Floats) -> Floats:
    """Where one group ends and the next begins: between all volumes where these are few."""
    ordered = np.sort(volume)
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if distinct.size <= GROUPS:
        return np.asarray(distinct[1:], dtype=np.float64)
    return np.unique(np.quantile(ordered, np.arange(1, GROUPS) / GROUPS))
