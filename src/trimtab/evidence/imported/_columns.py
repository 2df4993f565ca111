"""Columns of durations, float64 ns, in which nan stands for what is not recorded.

A column of which nothing is recorded is one nan, seen n times (:func:`trimtab.domain.imported.unknown`). What is made
of it stays one value, so that a table of many rows pays for the columns that it has and for no others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.evidence.stats.quantiles import Floats

Ints = NDArray[np.int64]


def single(column: NDArray[Any]) -> bool:
    """Whether ``column`` is one value that is seen many times."""
    return column.size > 0 and column.strides == (0,)


def same(value: float, size: int) -> Floats:
    """``value``, seen ``size`` times; read-only."""
    return np.broadcast_to(np.float64(value), (size,))


def at(column: NDArray[Any], rows: Ints) -> NDArray[Any]:
    """``column`` at ``rows``, which rise; no copy where these are all of them."""
    if single(column):
        return column[: rows.size]
    return column if rows.size == column.size else column[rows]


def ns(column: NDArray[Any]) -> Floats:
    """Whole numbers as float64, nan where NEVER."""
    if single(column):
        return same(math.nan if column[0] == NEVER else float(column[0]), column.size)
    out = column.astype(np.float64)
    np.copyto(out, np.nan, where=column == NEVER)
    return out


def filled(column: Floats, value: float = 0.0) -> Floats:
    """``column`` with ``value`` where it is not known."""
    if single(column):
        return same(value if math.isnan(column[0]) else float(column[0]), column.size)
    missing = np.isnan(column)
    return np.where(missing, value, column) if missing.any() else column


def recorded(column: Floats) -> bool:
    """Whether any value is known."""
    return bool(np.isfinite(column[:1] if single(column) else column).any())


def empty(column: Floats) -> bool:
    """Whether ``column`` is a single 0: nothing, wherever it is added."""
    return single(column) and column[0] == 0


def total(first: Floats, *others: Floats) -> Floats:
    """The sum of columns; what is nothing costs nothing."""
    out = first
    for column in others:
        if not empty(column):
            out = column if empty(out) else out + column
    return out


def codes(*columns: Floats) -> Ints:
    """A number for each different row of ``columns``, none of them negative (nan = nan): int64[n], 0 to n - 1."""
    code, kinds = np.zeros(columns[0].size, dtype=np.int64), 1
    for column in columns:
        if single(column):
            continue
        own, many = _coded(filled(column, -1.0))
        code, kinds = code * many + own, kinds * many
        if kinds > code.size:
            distinct, code = np.unique(code, return_inverse=True)
            kinds = distinct.size
    return code


def _coded(values: Floats) -> tuple[Ints, int]:
    """A code of each value, and below which number they all are: whole numbers near each other are their own code."""
    if not values.size:
        return values.astype(np.int64), 1
    lo, hi = float(values.min()), float(values.max())
    if hi - lo < values.size:
        code = (values - lo).astype(np.int64)
        if np.array_equal(code + lo, values):
            return code, int(hi - lo) + 1
    distinct, inverse = np.unique(values, return_inverse=True)
    return inverse, distinct.size


def first_places(code: Ints) -> Ints:
    """Where each code appears for the first time; codes as :func:`codes` makes them."""
    first = np.full(int(code.max(initial=-1)) + 1, code.size, dtype=np.int64)
    np.minimum.at(first, code, np.arange(code.size))
    return first[first < code.size]
