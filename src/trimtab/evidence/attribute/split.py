"""Exact apportioning of whole nanoseconds.

Theory. To share P over weights x_1..x_K with D = sum x, piece k gets floor(P X_k / D) - floor(P X_(k-1) / D), where
X_k = x_1 + ... + x_k. The pieces are non-negative, sum to P exactly, and each is within 1 ns of P x_k / D. Dividing
each piece alone would lose up to K ns a request.

P X / D overflows int64 as soon as both factors pass 3 s, so the product is never formed: P = q D + r gives
q X + floor(r X / D), and r X / D is a long division over the digits of X in a base that keeps each step below 2^63.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace

Int = NDArray[np.int64]


def muldiv(a: Int, b: Int, d: Int) -> Int:
    """floor(a * b / d) elementwise, exact, for 0 <= a, 0 <= b <= d, 0 < d < 2^61 (73 years in ns)."""
    if a.size == 0:
        return np.zeros(0, dtype=np.int64)
    whole = a // d
    rest = a - whole * d
    step = 62 - int(d.max()).bit_length()
    if step < 1:
        raise OverflowError("muldiv: the divisor must be below 2^61")
    digits = -(-int(b.max()).bit_length() // step)
    quotient = np.zeros(a.shape, dtype=np.int64)
    carry = np.zeros(a.shape, dtype=np.int64)
    mask = (1 << step) - 1
    for place in range(digits - 1, -1, -1):
        value = (carry << step) + rest * ((b >> (place * step)) & mask)
        digit = value // d
        carry = value - digit * d
        quotient = (quotient << step) + digit
    return whole * b + quotient


def apportion(total: Int, weights: Sequence[Int]) -> Iterator[Int]:
    """Share ``total`` (>= 0) over ``weights`` (each >= 0), one array of pieces a weight, by cumulative floors.

    Pieces sum to ``total`` exactly; where all weights are 0, every piece is 0 and the caller says what that means.
    """
    whole = np.maximum(sum(weights, np.zeros_like(total)), 1)
    reached = np.zeros_like(total)
    given = np.zeros_like(total)
    for weight in weights:
        reached += weight
        upto = muldiv(total, reached, whole)
        yield upto - given
        given = upto


def batch_rows(trace: Trace) -> Int:
    """Row of each request in the batch table, -1 = it never ran."""
    wanted, ids = trace.requests["batch"], trace.batches["id"]
    if ids.size == 0:
        return np.full(wanted.size, NEVER, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], wanted), ids.size - 1)
    row: Int = order[place]
    return np.where((wanted != NEVER) & (ids[row] == wanted), row, NEVER)


class Members:
    """Who is in which batch: ``row`` int64[n] is each request's row in the batch table, -1 = it never ran."""

    def __init__(self, row: Int, batches: int) -> None:
        self.row = row
        ran = np.flatnonzero(row >= 0)
        self.order: Int = ran[np.argsort(row[ran], kind="stable")]
        self.count: Int = np.bincount(row[ran], minlength=batches).astype(np.int64)
        self.first: Int = np.cumsum(self.count) - self.count
        self.rank: Int = np.zeros(row.shape, dtype=np.int64)
        self.rank[self.order] = np.arange(self.order.size) - self.first[row[self.order]]

    def shares(self, amount: Int) -> Int:
        """One n-th of each batch's ``amount`` for each of its n members, int64[requests]; sums exactly."""
        out = np.zeros(self.row.shape, dtype=np.int64)
        rows, rank = self.row[self.order], self.rank[self.order]
        size, value = self.count[rows], amount[rows]
        out[self.order] = value * (rank + 1) // size - value * rank // size
        return out

    def reduce(self, how: np.ufunc, values: NDArray[np.int64], absent: int) -> Int:
        """``how`` over the members of each batch, int64[batches]; ``absent`` where a batch has none."""
        out = np.full(self.count.shape, absent, dtype=np.int64)
        some = np.flatnonzero(self.count)
        if some.size:
            out[some] = how.reduceat(values[self.order], self.first[some])
        return out
