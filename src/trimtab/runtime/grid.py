"""Where to profile: at most N executed shapes for each entry, chosen from the shapes that traffic has.

A static or bucket entry runs at its own dims, so only the batch size varies. A dynamic one gets a tensor grid: batch
sizes x quantiles of each dim over the requests that are routed to it, both ends included, so that what lies between is
interpolated and little lies beyond. Batch sizes double up to the largest that the policy can form.

A point carries requests to run (payload id, true dims): those that fit it best. A point that no request fits is run on
pad values alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from trimtab.domain.noun import NEVER, Dims, EntryId, Executed, Ns
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.workload import Workload
from trimtab.mapping.route import Router
from trimtab.runtime.wire import Member

NEW_SHAPES, AGAIN = 400, 200
"""How many requests a prelude has at most: those that bring new dims, and those that do not."""


class GridPoint(NamedTuple):
    """``due``: when traffic has it, ns, in a prelude."""

    executed: Executed
    members: tuple[Member, ...]
    due: Ns = NEVER


Grid = Mapping[EntryId, tuple[GridPoint, ...]]


def grid(
    workload: Workload, plan: Plan, points: int, sizes: Sequence[int] = ()
) -> dict[EntryId, tuple[GridPoint, ...]]:
    """At most ``points`` points for each entry of ``plan`` (but two for each batch size of a dynamic one).

    ``sizes``: batch sizes to profile instead of those that the plan's policy can form, as far as an entry allows.
    """
    router = Router(plan.compile)
    routed: dict[EntryId, dict[Dims, list[Member]]] = {entry: {} for entry in router.entries}
    for row, payload in zip(workload.dims.tolist(), workload.payload.tolist(), strict=True):
        dims = tuple(row)
        entry = router.route(dims).entry
        if entry is not None:
            routed[entry].setdefault(dims, []).append((payload, dims))
    wanted = tuple(sizes) or batch_sizes(plan.serve.batch.max_size)
    return {entry.id: _points(entry, routed[entry.id], points, wanted) for entry in plan.compile.entries}


def prelude(
    workload: Workload, plan: Plan, new: int = NEW_SHAPES, again: int = AGAIN
) -> dict[EntryId, tuple[GridPoint, ...]]:
    """Requests in order of arrival, each alone, by the entry that takes it. Over all entries together: at most ``new``
    that bring an entry dims which it has not run yet, and at most ``again`` that do not.
    """
    router = Router(plan.compile)
    found: dict[EntryId, list[GridPoint]] = {entry: [] for entry in router.entries}
    known: set[tuple[EntryId, Executed]] = set()
    columns = (workload.dims.tolist(), workload.payload.tolist(), workload.scheduled.tolist())
    for row, payload, due in zip(*columns, strict=True):
        dims = tuple(row)
        route = router.route(dims)
        if route.entry is None:
            continue
        shape = (route.entry, route.executed)
        left, new, again = (again, new, again - 1) if shape in known else (new, new - 1, again)
        if left > 0:
            known.add(shape)
            members = ((payload, dims),) * route.executed[0]
            found[route.entry].append(GridPoint(route.executed, members, due))
    return {entry: tuple(points) for entry, points in found.items()}


def batch_sizes(largest: int) -> tuple[int, ...]:
    """1, 2, 4 ... and ``largest`` itself."""
    doubled = [2**k for k in range(largest.bit_length()) if 2**k < largest]
    return (*doubled, largest)


def _points(
    entry: Entry, traffic: Mapping[Dims, list[Member]], points: int, sizes: Sequence[int]
) -> tuple[GridPoint, ...]:
    lo, hi = entry.batch
    rows = sorted({min(max(size, lo), hi) for size in sizes})
    shapes = _dims(entry, traffic, max(1, points // len(rows)))
    return tuple(GridPoint((n, *dims), _members(traffic, dims, n)) for n in rows for dims in shapes)


def _dims(entry: Entry, traffic: Mapping[Dims, list[Member]], count: int) -> list[Dims]:
    if entry.kind != "dynamic":
        return [entry.hi]
    if not traffic:
        return sorted({entry.lo, entry.hi})
    axes = len(entry.hi)
    each = max(2, int(count ** (1 / axes) + 1e-9))
    seen = np.array([member[1] for members in traffic.values() for member in members], dtype=np.int64)
    steps = np.linspace(0, 1, each)
    chosen = [np.unique(np.quantile(seen[:, axis], steps, method="nearest")).tolist() for axis in range(axes)]
    return [tuple(dims) for dims in product(*chosen)]


def _members(traffic: Mapping[Dims, list[Member]], dims: Dims, n: int) -> tuple[Member, ...]:
    """``n`` requests of the largest traffic shape that fits into ``dims``."""
    fits = [shape for shape in traffic if all(s <= d for s, d in zip(shape, dims, strict=True))]
    if not fits:
        return ()
    pool = traffic[max(fits, key=lambda shape: (prod(shape), shape))]
    return tuple(pool[i % len(pool)] for i in range(n))
