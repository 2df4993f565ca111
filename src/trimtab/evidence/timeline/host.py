"""Where the host's time goes: by operator, and in which precision.

*Self time* of a span = its time less that of the spans directly inside it on the same lane, so that self times of one
lane add up to what the lane was busy. Of device work only kernels count, by name.

*Precision.* An operator is taken to compute in the type of its first input of a floating or 8-bit type. Where kernels
are recorded, a kernel's time counts under the type of the innermost operator around its launch; else the self time of
operators counts. Without recorded types nothing is said.

Limits: the type of the inputs is not that of the arithmetic: a device may round float32 to TF32 inside a kernel, and a
library may run it in bfloat16.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Spans
from trimtab.domain.trace import Table
from trimtab.evidence.timeline.cover import Ints


class Part(msgspec.Struct, frozen=True):
    """One name: how often, and how long together, ns."""

    name: str
    calls: int
    took: int


def parents(table: Table, rows: Ints) -> Ints:
    """Position in ``rows`` of the span around each, on its lane; NEVER = none. ``rows`` are in order of start.

    A span that begins in another and ends behind it lies in neither.
    """
    out = np.full(rows.size, NEVER, dtype=np.int64)
    open_: dict[int, list[int]] = {}
    order = np.lexsort((-table["end"][rows], table["start"][rows]))
    lanes, ends = table["lane"][rows].tolist(), table["end"][rows].tolist()
    for position in order.tolist():
        stack = open_.setdefault(lanes[position], [])
        while stack and ends[stack[-1]] < ends[position]:
            stack.pop()
        out[position] = stack[-1] if stack else NEVER
        stack.append(position)
    return out


def own_time(table: Table, rows: Ints, parent: Ints) -> Ints:
    """Self time of each of ``rows``, ns, never negative."""
    took = table["end"][rows] - table["start"][rows]
    inside = np.zeros(rows.size, dtype=np.int64)
    has = parent != NEVER
    np.add.at(inside, parent[has], took[has])
    return np.asarray(np.maximum(took - inside, 0), dtype=np.int64)


def by_name(spans: Spans, rows: Ints, took: Ints) -> tuple[Part, ...]:
    """Time by name, the longest first."""
    names, inverse, counts = np.unique(spans.table["name"][rows], return_inverse=True, return_counts=True)
    totals = np.zeros(names.size, dtype=np.int64)
    np.add.at(totals, inverse, took)
    order = np.argsort(-totals, kind="stable")
    return tuple(Part(spans.names[names[k]], int(counts[k]), int(totals[k])) for k in order)


def busiest(spans: Spans) -> tuple[str, tuple[Part, ...]]:
    """What the time goes to: kernels, else operators, else whatever spans there are; and which of these it is."""
    table = spans.table
    for kind in ("kernel", "op", "other", "note"):
        rows = np.flatnonzero(table["kind"] == KIND[kind])
        if rows.size:
            took = table["end"][rows] - table["start"][rows]
            own = took if kind == "kernel" else own_time(table, rows, parents(table, rows))
            return kind, by_name(spans, rows, own)
    return "", ()


def precision(spans: Spans) -> dict[str, float]:
    """Share of time by the type in which operators compute, the largest first; empty where no type is recorded."""
    table = spans.table
    ops = np.flatnonzero(table["kind"] == KIND["op"])
    if not ops.size or not np.any(table["dtype"][ops] != NEVER):
        return {}
    parent = parents(table, ops)
    kernels = np.flatnonzero((table["kind"] == KIND["kernel"]) & (table["launch"] != NEVER))
    if kernels.size:
        around = _around(table, ops, parent, table["launch"][kernels])
        known = around != NEVER
        dtype = _inherited(table["dtype"][ops], parent)[around[known]]
        took = (table["end"][kernels] - table["start"][kernels])[known]
    else:
        dtype, took = table["dtype"][ops], own_time(table, ops, parent)
    said = dtype != NEVER
    totals = np.bincount(dtype[said], weights=took[said], minlength=len(spans.dtypes))
    if not totals.sum():
        return {}
    shares = {spans.dtypes[code]: float(total / totals.sum()) for code, total in enumerate(totals.tolist()) if total}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def _inherited(dtype: NDArray[np.int32], parent: Ints) -> NDArray[np.int32]:
    """The type of each operator, or of the nearest one around it that has one."""
    out, at = dtype.copy(), parent.copy()
    for _ in range(64):
        open_ = (out == NEVER) & (at != NEVER)
        if not open_.any():
            break
        out[open_] = dtype[at[open_]]
        at[open_] = parent[at[open_]]
    return out


def _around(table: Table, ops: Ints, parent: Ints, calls: Ints) -> Ints:
    """Position in ``ops`` of the innermost operator around each host call; NEVER = none."""
    out = np.full(calls.size, NEVER, dtype=np.int64)
    start, end = table["start"][ops], table["end"][ops]
    for lane in np.unique(table["lane"][calls]):
        here = np.flatnonzero(table["lane"][calls] == lane)
        mine = np.flatnonzero(table["lane"][ops] == lane)
        if not mine.size:
            continue
        at = table["start"][calls[here]]
        found = mine[np.maximum(np.searchsorted(start[mine], at, side="right") - 1, 0)]
        for _ in range(64):
            outside = (found != NEVER) & ((end[found] < at) | (start[found] > at))
            if not outside.any():
                break
            found[outside] = parent[found[outside]]
        out[here] = found
    return out
