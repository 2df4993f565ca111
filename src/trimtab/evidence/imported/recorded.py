"""The stages of an imported request, as its own system recorded them.

Theory. latency = slip + hold + queue + run + remainder, where

    run = off core + stall + on core          off core = run-queue delay, stall = neither on a core nor waiting for one

The remainder is time that no recorded stage holds: it stays a remainder. What the time on the core should have been is
the matter of :mod:`._expected`.

Some systems count the hold within the queue, or the compile within the run. Which one this table does is read off the
sums: of the readings whose stages exceed the latency in at most 5 % of rows, the one that explains most of it.

Without a run time, what the latency leaves after the recorded waits stands for it, and ``derived`` says so: with waits
recorded, or with requests that never overlap, it is a run time; else it holds waits as well, and only differences
between requests may be read from it.

Flags come from the calls alone: first = the first of its executed shape (batch size included) on its worker, changed =
another shape than that worker's run before, outside = it ran on the fallback.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.domain.route import ROUTE_KINDS
from trimtab.evidence.imported._columns import (
    Ints,
    at,
    codes,
    empty,
    filled,
    first_places,
    ns,
    recorded,
    same,
    single,
    total,
)
from trimtab.evidence.stats.quantiles import Floats

Bool = NDArray[np.bool_]
EXCEEDS = 0.02  # stages may exceed the latency by rounding
TOLERATED = 0.05
READINGS = ((), ("compile",), ("hold",), ("compile", "hold"))
STAGES = ("slip", "hold", "queue", "run", "compile", "off_core", "stall", "remainder")
INSIDE = ("compile", "off_core", "stall")
"""Stages that are parts of the run."""


class Calls(msgspec.Struct, frozen=True):
    """Requests that ended well, in order of start; float64 ns each, nan = not recorded (:mod:`._columns`).

    ``row`` = rows of the trace. ``head`` marks one request a batch. ``run`` is wall time, compile included. ``begin`` =
    when it ran, from the first start. ``oversum`` = share of rows whose stages exceed their latency.
    """

    row: NDArray[np.int64]
    latency: Floats
    arrived: Floats
    slip: Floats
    hold: Floats
    queue: Floats
    run: Floats
    compile: Floats
    off_core: Floats
    stall: Floats
    remainder: Floats
    begin: Floats
    volume: Floats
    true_volume: Floats
    size: Floats
    worker: NDArray[np.int64]
    batch: NDArray[np.int64]
    head: Bool
    first: Bool
    changed: Bool
    outside: Bool
    peak: Floats
    derived: bool
    overlap: bool
    reading: tuple[str, ...]
    oversum: float

    @property
    def on_core(self) -> Floats:
        """Run time without run-queue delay and stalls."""
        lost = total(filled(self.off_core), filled(self.stall))
        return self.run if empty(lost) else self.run - lost

    @property
    def plain(self) -> Bool:
        """Runs that were neither first, nor compiling, nor outside the range."""
        compiled = filled(self.compile) > 0
        return np.asarray(self.head & ~self.first & ~self.outside & ~compiled & np.isfinite(self.run), dtype=np.bool_)


def calls(table: Imported) -> Calls:
    """The stages of ``table``'s requests."""
    req = table.trace.requests
    row = np.flatnonzero((req["error"] == 0) & (req["done"] != NEVER))
    stage = {name: at(column, row) for name, column in table.stages.columns.items()}
    start = ns(at(req["scheduled"], row))
    latency = ns(at(req["done"], row)) - start
    enqueued = ns(at(req["enqueued"], row))
    slip = np.maximum(enqueued - start, 0.0) if recorded(enqueued) else same(np.nan, row.size)
    told = {name: ns(stage[name]) for name in ("hold", "queue", "compute", "compile", "on_core", "runqueue")}
    batch, size, head = _batches(at(req["batch"], row), ns(stage["size"]))
    volume, true_volume, key = _volumes(table, row, stage, batch, size)
    worker = stage["worker"] if single(stage["worker"]) else stage["worker"].astype(np.int64)
    first, changed = _order_flags(key, worker, head, batch)
    reading, oversum = _reading(latency, slip, told)
    hold, queue, run, compiled = _unfolded(reading, told)
    waits = total(filled(slip), filled(hold), filled(queue))
    derived = not recorded(run)
    if derived:
        run = np.maximum(latency - waits, 0.0)
    off_core, stall = _off_core(run, told, ns(stage["throttled"]))
    return Calls(
        row=row, latency=latency, arrived=total(start, filled(slip)), slip=slip, hold=hold, queue=queue, run=run,
        compile=compiled, off_core=off_core, stall=stall,
        remainder=np.maximum(latency - total(waits, filled(run)), 0.0),
        begin=total(start, waits), volume=volume, true_volume=true_volume, size=size, worker=worker,
        batch=batch, head=head, first=first, changed=changed, outside=_outside(table, row),
        peak=stage.get("peak_mb", same(np.nan, row.size)), derived=derived,
        overlap=_overlaps(start, latency), reading=reading, oversum=oversum,
    )  # fmt: skip


def _batches(batch: Ints, size: Floats) -> tuple[Ints, Floats, Bool]:
    """Batch code, members, and the first member of each batch; a request without a batch is its own."""
    head = np.ones(batch.size, dtype=bool)
    known = batch != NEVER
    if single(batch) or not known.any():
        return batch, size, head
    _, first, code, count = np.unique(batch[known], return_index=True, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(known)
    head[rows] = False
    head[rows[first]] = True
    members = size.copy()
    members[rows] = np.where(np.isfinite(size[rows]), size[rows], count[code].astype(np.float64))
    return batch, members, head


def _volumes(
    table: Imported, row: Ints, stage: dict[str, NDArray[np.int64]], batch: Ints, size: Floats
) -> tuple[Floats, Floats, Ints | None]:
    """Executed volume and true volume of each request's run, and a code of what was executed (None = no dims known).

    The true volume of a batch is the sum over its members; where members are counted and not listed, ``size`` times
    the request's own.
    """
    names = table.trace.dim_names
    executed = [name.removeprefix("exec.") for name in stage if name.startswith("exec.")]
    members = same(1.0, row.size) if "batch" in names else filled(size, 1.0)
    dims = {name: ns(at(table.trace.requests[f"dim.{name}"], row)) for name in names}
    own = reduce(np.multiply, dims.values()) if dims else np.ones(row.size)
    true = _summed(own, batch, members)
    columns: list[Floats] = []
    for name in dict.fromkeys((*names, *executed, "batch")):
        counted = dims.get(name, members if name == "batch" else None)
        ran = ns(stage[f"exec.{name}"]) if name in executed else None
        columns.append(_first_known(ran, counted))
    done = reduce(np.multiply, columns) if executed else true
    return done, true, codes(*columns) if names or executed else None


def _first_known(*columns: Floats | None) -> Floats:
    given = [column for column in columns if column is not None]
    out = given[0]
    for column in given[1:]:
        out = np.where(np.isfinite(out), out, column)
    return out


def _summed(own: Floats, batch: Ints, members: Floats) -> Floats:
    out = own if single(members) and members[0] == 1 else own * members
    known = batch != NEVER
    if single(batch) or not known.any():
        return out
    _, code, count = np.unique(batch[known], return_inverse=True, return_counts=True)
    sums = np.bincount(code, weights=own[known])
    listed = count[code] >= members[known]
    out = out.copy()
    out[known] = np.where(listed, sums[code], out[known])
    return out


def _order_flags(key: Ints | None, worker: Ints, head: Bool, batch: Ints) -> tuple[Bool, Bool]:
    """First run of a shape on its worker, and one that differs from that worker's run before; members as their head."""
    first, changed = np.zeros(head.size, dtype=bool), np.zeros(head.size, dtype=bool)
    if key is None:
        return first, changed
    heads = np.flatnonzero(head)
    for rows in _by_worker(heads, worker):
        ran = at(key, rows)
        first[rows[first_places(ran)]] = True
        changed[rows[1:]] = ran[1:] != ran[:-1]
    return _spread(first, batch), _spread(changed, batch)


def _by_worker(heads: Ints, worker: Ints) -> Iterator[Ints]:
    """``heads`` of each worker."""
    if single(worker):
        yield heads
        return
    own = worker[heads]
    for one in np.unique(own):
        yield heads[own == one]


def _spread(flag: Bool, batch: Ints) -> Bool:
    """``flag`` of each batch's head for all of its members."""
    if single(batch):
        return flag
    return np.asarray(flag | ((batch != NEVER) & np.isin(batch, batch[flag])), dtype=np.bool_)


def _reading(latency: Floats, slip: Floats, told: dict[str, Floats]) -> tuple[tuple[str, ...], float]:
    """Which stages lie within others here, and in what share of rows the sum exceeds the latency even then."""
    stages = {name: filled(told[name]) for name in ("hold", "queue", "compute", "compile")}
    limit = latency * (1 + EXCEEDS) + 1e5
    found: list[tuple[bool, float, float, tuple[str, ...]]] = []
    for inside in READINGS:
        if any(empty(stages[name]) for name in inside):
            continue  # what is not recorded lies nowhere
        whole = total(filled(slip), *(stage for name, stage in stages.items() if name not in inside))
        over = float((whole > limit).mean()) if latency.size else 0.0
        found.append((over > TOLERATED, -float(whole.sum()), over, inside))
    best = min(found, key=lambda one: one[:2])
    return ((), found[0][2]) if best[0] else (best[3], best[2])


def _unfolded(reading: tuple[str, ...], told: dict[str, Floats]) -> tuple[Floats, Floats, Floats, Floats]:
    """(hold, queue without hold, run with compile, compile)."""
    hold, queue, run, compiled = (told[name] for name in ("hold", "queue", "compute", "compile"))
    if "hold" in reading:
        queue = np.maximum(queue - filled(hold), 0.0)
    if "compile" not in reading:
        run = total(run, filled(compiled))
    return hold, queue, run, compiled


def _off_core(run: Floats, told: dict[str, Floats], throttled: Floats) -> tuple[Floats, Floats]:
    """Run-queue delay, and time neither on a core nor waiting for one (throttled time where it is recorded)."""
    nothing = same(np.nan, run.size)
    off = np.clip(told["runqueue"], 0.0, run) if recorded(told["runqueue"]) else nothing
    if recorded(throttled):
        return off, np.clip(throttled, 0.0, run - filled(off))
    if not recorded(off):
        return off, nothing
    return off, np.maximum(run - told["on_core"] - off, 0.0)


def _outside(table: Imported, row: Ints) -> Bool:
    fallback = at(table.trace.requests["route"], row) == ROUTE_KINDS.index("fallback")
    return np.asarray(fallback, dtype=np.bool_)


def _overlaps(start: Floats, latency: Floats) -> bool:
    """Whether some request begins before an earlier one has ended (by more than 1 %)."""
    if start.size < 2:
        return False
    ends = np.maximum.accumulate(start + latency)
    return bool(np.any(start[1:] < ends[:-1] - 0.01 * latency[:-1]))
