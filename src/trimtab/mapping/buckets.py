"""Fit bucket boundaries to the shapes that really arrive, over measured milliseconds.

Question. One dynamic dim takes the values ``x_1 .. x_n``. An entry compiled at ``hi`` serves every ``x <= hi`` by
padding it up to ``hi``, and one request then costs ``cost(hi)``, which is read from a profile. Which ``k`` boundaries
make the whole workload cheapest?

Method. Some optimal solution has every boundary at an observed value (rounded up to ``multiple``, where the hardware
likes that): a boundary between two of them can slide down to the lower one and costs no more, as long as ``cost`` does
not fall with ``hi``. Let ``c_1 < .. < c_u`` be those values, ``W(i)`` the number of requests with ``x <= c_i`` and
``best_j(i)`` the least cost of serving those requests with at most ``j`` buckets, the last of them ending at ``c_i``:

    best_1(i) = cost(c_i) W(i)
    best_j(i) = min(best_{j-1}(i),  min over h < i of  best_{j-1}(h) + cost(c_i) (W(i) - W(h)))

The answer is ``best_k(u)``, exact, in O(k u^2) with numpy doing the inner minimum: 700 distinct widths and 12 buckets
take some 20 ms, and one table answers every smaller ``k``. It is the classic optimal one-dimensional partition
(Bellman 1961 for segmented curves; Jenks' natural breaks is the same recurrence with another cost).

Limits. One dim: with two, boxes overlap and the recurrence no longer holds. What is minimised is the total, which
loads the queue; boundaries that are finer among rare large shapes may cost more in total and still give a better p95.
Costs are per request at batch size 1. Queueing, batching and first runs, and so the tail, are judged by simulation.
What is measured is ``cost`` at the profiled points; between them it is as good as the profile's interpolation. The fit
knows the shapes it was given: a later, larger one needs a dynamic entry beside the buckets, which the moves keep. Where
``cost`` does fall with ``hi`` the result is the best among observed boundaries only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Noun
from trimtab.errors import StudyError
from trimtab.mapping import formulas

Cost = Callable[[int], float]
"""Milliseconds of one request in a bucket that ends at this value."""

Family = Literal["fitted", "linear", "exponential", "powers-of-two", "padding-aware", "exact", "dynamic"]
FORMULAS: tuple[Family, ...] = ("linear", "exponential", "powers-of-two", "padding-aware")

SHARES = (0.0, 0.125, 0.25, 0.375, 0.5)
"""Relative padding limits that are tried for the padding-aware formula: all that its users may set, in steps."""


class BucketFit(Noun, frozen=True, kw_only=True):
    """One way to cover a workload's shapes, and what it costs.

    ``total_ms`` sums over all requests, ``mean_ms`` is per request; ``padding`` is the share of executed positions
    that are padding. ``count`` is the number of compiled entries; ``boundaries`` is empty for ``dynamic``.
    """

    family: Family
    count: int
    boundaries: tuple[int, ...]
    total_ms: float
    mean_ms: float
    padding: float


def values(dims: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct values of the one dynamic dim (``int64[n]`` or ``int64[n, 1]``), ascending, and how often each came."""
    if dims.ndim == 2 and dims.shape[1] != 1:
        raise StudyError(
            f"Buckets are fitted to one dynamic dim; these shapes have {dims.shape[1]}.",
            where="dims",
            fix="Fit each dim alone, or declare the plan as a candidate.",
        )
    flat = dims.reshape(-1)
    if flat.size == 0:
        raise StudyError("Buckets cannot be fitted to a slice without requests.", fix="Choose a longer tune slice.")
    found, counts = np.unique(flat, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


def fit(dims: NDArray[np.int64], cost: Cost, k: int, *, multiple: int = 1, limit: int | None = None) -> tuple[int, ...]:
    """The cheapest boundaries, ascending: at most ``k`` of them, the last covers every value of ``dims``.

    ``cost`` is in ms per request. Boundaries are multiples of ``multiple``, except that none exceeds ``limit`` (the
    largest value the network takes). Fewer than ``k`` come back where more cannot help.
    """
    return sweep(dims, cost, k, multiple=multiple, limit=limit)[-1].boundaries


def sweep(
    dims: NDArray[np.int64], cost: Cost, most: int, *, multiple: int = 1, limit: int | None = None
) -> tuple[BucketFit, ...]:
    """The optimal fit for each number of buckets ``1 .. most``; ``total_ms`` never rises along it."""
    if most < 1:
        raise StudyError(f"Cannot fit {most} buckets.", fix="Ask for at least one.")
    found, counts = values(dims)
    ends, weights = _candidates(found, counts, multiple, limit)
    per_request = np.array([cost(int(end)) for end in ends], dtype=np.float64)
    parents = _solve(per_request, np.cumsum(weights), most)
    chosen = [tuple(int(ends[i]) for i in _trace_back(parents[: k + 1], len(ends) - 1)) for k in range(most)]
    return tuple(measure("fitted", found, counts, boundaries, cost) for boundaries in chosen)


def _candidates(
    found: NDArray[np.int64], counts: NDArray[np.int64], multiple: int, limit: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Possible boundaries and the number of requests whose value rounds up to each."""
    if multiple < 1:
        raise StudyError(f"Boundaries cannot be multiples of {multiple}.", fix="Use a positive multiple.")
    if limit is not None and int(found[-1]) > limit:
        raise StudyError(
            f"The shapes reach {int(found[-1])}, beyond the limit {limit}.",
            where="dims",
            fix="Raise the upper end of the dim's range, or drop those requests.",
        )
    rounded = -(-found // multiple) * multiple
    if limit is not None:
        rounded = np.minimum(rounded, limit)
    ends, where = np.unique(rounded, return_inverse=True)
    return ends, np.bincount(where, weights=counts).astype(np.int64)


def _solve(per_request: NDArray[np.float64], upto: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
    """``parents[j][i]``: the end of the bucket below, when ``j + 1`` buckets may be used and the last ends at ``i``.

    -1 = this bucket reaches down to the smallest value; ``i`` itself = the ``(j+1)``-th is not used.
    """
    best = per_request * upto
    parents = [np.full(best.size, -1, dtype=np.int64)]
    for _ in range(1, most):
        better, parent = best.copy(), np.arange(best.size)
        for i in range(1, best.size):
            split = best[:i] + per_request[i] * (upto[i] - upto[:i])
            h = int(np.argmin(split))
            if split[h] < better[i]:
                better[i], parent[i] = split[h], h
        best = better
        parents.append(parent)
    return parents


def _trace_back(parents: list[NDArray[np.int64]], last: int) -> list[int]:
    picked: list[int] = []
    for parent in reversed(parents):
        if parent[last] == last:
            continue
        picked.append(last)
        last = int(parent[last])
        if last < 0:
            break
    return picked[::-1]


def measure(
    family: Family, found: NDArray[np.int64], counts: NDArray[np.int64], boundaries: Sequence[int], cost: Cost
) -> BucketFit:
    """What ``boundaries`` (ascending) cost for distinct values ``found`` that came ``counts`` times.

    Each value goes to the smallest boundary that covers it, as the router does.
    """
    ends = np.asarray(boundaries, dtype=np.int64)
    if ends.size == 0 or int(ends[-1]) < int(found[-1]):
        raise StudyError(f"No bucket covers the value {int(found[-1])}.", where="boundaries", fix="Add a larger one.")
    slot = np.searchsorted(ends, found)
    load = np.bincount(slot, weights=counts, minlength=ends.size)
    prices = np.array([cost(int(end)) if n else 0.0 for end, n in zip(ends, load, strict=True)])
    return _row(family, ends, float(load @ prices), found, counts, float(load @ ends))


def _row(
    family: Family,
    ends: NDArray[np.int64],
    total: float,
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    executed: float,
) -> BucketFit:
    true = float(found @ counts)
    return BucketFit(
        family=family,
        count=int(ends.size),
        boundaries=tuple(int(end) for end in ends),
        total_ms=total,
        mean_ms=total / float(counts.sum()),
        padding=1.0 - true / executed if executed else 0.0,
    )


# --- for comparison -----------------------------------------------------------------------------------------


def exact(dims: NDArray[np.int64], cost: Cost) -> BucketFit:
    """One entry for each distinct value: no padding, and as many compiles as there are values."""
    found, counts = values(dims)
    return measure("exact", found, counts, tuple(int(v) for v in found), cost)


def dynamic(dims: NDArray[np.int64], cost: Cost) -> BucketFit:
    """One entry that runs every value as it is, at ``cost(value)`` ms of that dynamic entry, first runs left out."""
    found, counts = values(dims)
    total = float(sum(cost(int(v)) * int(n) for v, n in zip(found, counts, strict=True)))
    row = _row("dynamic", np.empty(0, dtype=np.int64), total, found, counts, float(found @ counts))
    return BucketFit(family="dynamic", count=1, boundaries=(), total_ms=row.total_ms, mean_ms=row.mean_ms, padding=0.0)


def families(dims: NDArray[np.int64], cost: Cost, most: int, limit: int | None = None) -> tuple[BucketFit, ...]:
    """What formulas would give: even and geometric spacing for ``1 .. most`` entries, powers of two, the padding-aware
    formula at its best setting for each number of entries up to ``most``, exact shapes."""
    found, counts = values(dims)
    low, high = int(found[0]), int(found[-1])
    rows: list[BucketFit] = []
    for k in range(1, most + 1):
        rows.append(measure("linear", found, counts, formulas.linear(low, high, k), cost))
        rows.append(measure("exponential", found, counts, formulas.exponential(low, high, k), cost))
    rows.append(measure("powers-of-two", found, counts, formulas.powers_of_two(low, high, limit), cost))
    return (*rows, *_padding_aware(found, counts, cost, most), exact(dims, cost))


def _padding_aware(found: NDArray[np.int64], counts: NDArray[np.int64], cost: Cost, most: int) -> tuple[BucketFit, ...]:
    """For each number of entries that some setting of the formula gives, the setting that is best on this traffic: its
    users tune the step and the limit by hand."""
    high = int(found[-1])
    steps = [1 << bits for bits in range(3, high.bit_length())]
    settings = {formulas.padding_aware(high, step, share=share) for step in steps for share in SHARES}
    best: dict[int, BucketFit] = {}
    for ends in sorted(each for each in settings if len(each) <= most):
        row = measure("padding-aware", found, counts, ends, cost)
        known = best.get(row.count)
        if known is None or row.total_ms < known.total_ms:
            best[row.count] = row
    return tuple(best[count] for count in sorted(best))


def compare(
    dims: NDArray[np.int64], cost: Cost, most: int, *, limit: int | None = None, dynamic_cost: Cost | None = None
) -> tuple[BucketFit, ...]:
    """The fitted boundaries for ``1 .. most`` beside what formulas would give, exact shapes, and one dynamic entry.

    ``cost`` is that of a padded entry, ``dynamic_cost`` that of the dynamic one (left out where it is not known).
    """
    rows = (*sweep(dims, cost, most, limit=limit), *families(dims, cost, most, limit))
    return rows if dynamic_cost is None else (*rows, dynamic(dims, dynamic_cost))
