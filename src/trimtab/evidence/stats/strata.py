"""Quantiles over resamples in which groups of requests are drawn apart, each as often as it is large.

Theory. A group of m requests is drawn m times, with replacement. The q-quantile of n values is their l-th largest,
l = n - ceil(n q) + 1, so only draws from the requests that are among the largest can be it. How many of a group's m
draws these are is binomial, and which ones they are is uniform: so these are drawn first, and the others only where the
l-th largest of the first is not sure to be the l-th largest of all. Every resample has the distribution of drawing all.

Limits. The requests of a group are taken to be independent of one another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.evidence.stats._blocks import SPARE, largest
from trimtab.evidence.stats.quantiles import Floats, rank


def quantiles(
    series: Sequence[Floats], groups: Sequence[NDArray[np.bool_]], q: float, rng: np.random.Generator, resamples: int
) -> Floats:
    """float64[resamples, series]: the q-quantile of each of ``series`` (float64[n], the same requests).

    ``groups`` bool[n] hold every request once; an empty one is never drawn.
    """
    n = series[0].size
    place = n - rank(n, q) + 1
    least = [largest(one, SPARE * place) for one in series]
    upper = np.any([one >= edge for one, edge in zip(series, least, strict=True)], axis=0)
    drawn = [_Group(np.flatnonzero(group & upper), np.flatnonzero(group & ~upper), rng) for group in groups]
    out = np.empty((resamples, len(series)))
    for values in out:
        first = [group.upper() for group in drawn]
        rows = np.concatenate(first)
        values[:] = [largest(one[rows], place) for one in series]
        if rows.size < place or np.any(values < least):
            rest = [group.lower(own.size) for group, own in zip(drawn, first, strict=True)]
            rows = np.concatenate((rows, *rest))
            values[:] = [largest(one[rows], place) for one in series]
    return out


class _Group:
    """The requests of one group: those that may be the quantile, and the others."""

    def __init__(self, upper: NDArray[np.int64], lower: NDArray[np.int64], rng: np.random.Generator) -> None:
        self._upper, self._lower, self._rng = upper, lower, rng
        self._size = upper.size + lower.size

    def upper(self) -> NDArray[np.int64]:
        """What one resample draws of the first kind."""
        if not self._upper.size:
            return self._upper
        return self._rng.choice(self._upper, self._rng.binomial(self._size, self._upper.size / self._size))

    def lower(self, drawn: int) -> NDArray[np.int64]:
        """What it draws of the other kind where it drew ``drawn`` of the first."""
        return self._rng.choice(self._lower, self._size - drawn) if self._size > drawn else self._lower[:0]
