"""The quantile of many block resamples of one arm, without drawing all of their values.

Of a resample's n values the q-quantile is the m-th largest, m = n - ceil(n q) + 1. So of each block only the values are
taken that lie among the largest of the whole arm: if at least m of them were drawn, the m-th largest of these is the
m-th largest of all. A resample that happens to draw fewer is drawn in full. The result is that of drawing everything.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from trimtab.evidence.stats.quantiles import Floats, rank

SPARE = 3
"""Times m that are taken: blocks hold more and fewer of the largest values by turns."""

Ints = NDArray[np.int64]


def quantiles(arm: Floats, starts: Ints, length: int, q: float) -> Floats:
    """The q-quantile of each resample, float64[resamples].

    ``arm`` float64[replays, n] in order of arrival; ``starts`` int64[resamples, blocks]: where circular blocks of
    ``length`` begin, the last one cut so that n values of each replay are drawn. n and the resamples are at least 1.
    """
    place = arm.size - rank(arm.size, q) + 1
    some = _Drawn(arm, starts, length, largest(arm.reshape(-1), SPARE * place))
    every = cache(lambda: _Drawn(arm, starts, length, -math.inf))
    out = np.empty(len(starts))
    for k in range(len(starts)):
        values = some.values(k)
        out[k] = largest(values if values.size >= place else every().values(k), place)
    return out


def largest(values: Floats, place: int) -> float:
    """The ``place``-th largest; -inf where there are fewer."""
    if place > values.size:
        return -math.inf
    at = values.size - place
    return float(np.partition(values, at)[at])


class _Drawn:
    """What each resample draws of the values from ``least`` on."""

    def __init__(self, arm: Floats, starts: Ints, length: int, least: float) -> None:
        n, blocks = arm.shape[1], starts.shape[1]
        ends = starts + np.minimum(length, n - length * np.arange(blocks))
        self._rows: list[tuple[Floats, list[list[int]], list[list[int]], list[list[int]]]] = []
        for row in arm:
            places = np.flatnonzero(row >= least)
            begin, end, around = (
                np.searchsorted(places, edge).tolist() for edge in (starts, np.minimum(ends, n), ends - n)
            )
            self._rows.append((row[places], begin, end, around))

    def values(self, k: int) -> Floats:
        """Of resample ``k``, from all replays."""
        parts = []
        for kept, begin, end, around in self._rows:
            parts += [kept[a:b] for a, b in zip(begin[k], end[k], strict=True)]
            parts += [kept[:c] for c in around[k] if c]
        return np.concatenate(parts)
