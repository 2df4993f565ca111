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

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.domain.route import ROUTE_KINDS
from trimtab.evidence.stats.quantiles import Floats

Bool = NDArray[np.bool_]
EXCEEDS = 0.02  # stages may exceed the latency by rounding
TOLERATED = 0.05
READINGS = ((), ("compile",), ("hold",), ("compile", "hold"))
STAGES = ("slip", "hold", "queue", "run", "compile", "off_core", "stall", "remainder")
INSIDE = ("compile", "off_core", "stall")
"""Stages that are parts of the run."""


class Calls(msgspec.Struct, frozen=True):
    """Requests that ended well, in order of start; float64 ns each, nan = not recorded.

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
        return np.asarray(self.run - np.nan_to_num(self.off_core) - np.nan_to_num(self.stall), dtype=np.float64)

    @property
    def plain(self) -> Bool:
        """Runs that were neither first, nor compiling, nor outside the range."""
        compiled = np.nan_to_num(self.compile) > 0
        return np.asarray(self.head & ~self.first & ~self.outside & ~compiled & np.isfinite(self.run), dtype=np.bool_)


def calls(table: Imported) -> Calls:
    """The stages of ``table``'s requests."""
    req = table.trace.requests
    row = np.flatnonzero((req["error"] == 0) & (req["done"] != NEVER))
    stage = {name: column[row] for name, column in table.stages.columns.items()}
    start = _ns(req["scheduled"][row])
    latency = _ns(req["done"][row]) - start
    slip = np.maximum(_ns(req["enqueued"][row]) - start, 0.0)
    told = {name: _ns(stage[name]) for name in ("hold", "queue", "compute", "compile", "on_core", "runqueue")}
    batch, size, head = _batches(req["batch"][row], _ns(stage["size"]))
    volume, true_volume, key = _volumes(table, row, stage, batch, size)
    first, changed = _order_flags(key, stage["worker"].astype(np.int64), head, batch)
    reading, oversum = _reading(latency, slip, told)
    hold, queue, run, compiled = _unfolded(reading, told)
    waits = np.nan_to_num(slip) + np.nan_to_num(hold) + np.nan_to_num(queue)
    derived = not np.isfinite(run).any()
    if derived:
        run = np.maximum(latency - waits, 0.0)
    off_core, stall = _off_core(run, told, _ns(stage["throttled"]))
    begin = start + waits
    return Calls(
        row=row, latency=latency, arrived=start + np.nan_to_num(slip), slip=slip, hold=hold, queue=queue, run=run,
        compile=compiled, off_core=off_core, stall=stall,
        remainder=np.maximum(latency - waits - np.nan_to_num(run), 0.0),
        begin=begin, volume=volume, true_volume=true_volume, size=size, worker=stage["worker"].astype(np.int64),
        batch=batch, head=head, first=first, changed=changed, outside=_outside(table, row),
        peak=stage.get("peak_mb", np.full(row.size, np.nan)), derived=derived,
        overlap=_overlaps(start, latency), reading=reading, oversum=oversum,
    )  # fmt: skip


def _ns(column: NDArray[np.int64]) -> Floats:
    return np.where(column == NEVER, np.nan, column.astype(np.float64))


def _batches(batch: NDArray[np.int64], size: Floats) -> tuple[NDArray[np.int64], Floats, Bool]:
    """Batch code, members, and the first member of each batch; a request without a batch is its own."""
    head = np.ones(batch.size, dtype=bool)
    known = batch != NEVER
    if not known.any():
        return batch, size, head
    _, first, code, count = np.unique(batch[known], return_index=True, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(known)
    head[rows] = False
    head[rows[first]] = True
    members = size.copy()
    members[rows] = np.where(np.isfinite(size[rows]), size[rows], count[code].astype(np.float64))
    return batch, members, head


def _volumes(
    table: Imported, row: NDArray[np.int64], stage: dict[str, NDArray[np.int64]], batch: NDArray[np.int64], size: Floats
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Executed volume and true volume of each request's run, and a code of what was executed (0 = no dims known).

    The true volume of a batch is the sum over its members; where members are counted and not listed, ``size`` times
    the request's own.
    """
    names = table.trace.dim_names
    executed = [name.removeprefix("exec.") for name in stage if name.startswith("exec.")]
    one = np.ones(row.size)
    members = one if "batch" in names else np.where(np.isfinite(size), size, 1.0)
    true = one.copy()
    for name in names:
        true = true * _ns(table.trace.requests[f"dim.{name}"][row])
    true = _summed(true, batch, members)
    columns: list[Floats] = []
    for name in dict.fromkeys((*names, *executed, "batch")):
        own = _ns(table.trace.requests[f"dim.{name}"][row]) if name in names else members if name == "batch" else None
        ran = _ns(stage[f"exec.{name}"]) if name in executed else None
        columns.append(_first_known(ran, own))
    done = np.prod(np.stack(columns), axis=0) if executed else true
    key = np.zeros(row.size, dtype=np.int64)
    if names or executed:
        stacked = np.nan_to_num(np.stack(columns, axis=1), nan=-1.0)
        key = np.unique(stacked, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64) + 1
    return done, true, key


def _first_known(*columns: Floats | None) -> Floats:
    given = [column for column in columns if column is not None]
    out = given[0]
    for column in given[1:]:
        out = np.where(np.isfinite(out), out, column)
    return out


def _summed(true: Floats, batch: NDArray[np.int64], members: Floats) -> Floats:
    known = batch != NEVER
    out = true * members
    if known.any():
        _, code, count = np.unique(batch[known], return_inverse=True, return_counts=True)
        total = np.bincount(code, weights=true[known])
        listed = count[code] >= members[known]
        out[known] = np.where(listed, total[code], out[known])
    return out


def _order_flags(
    key: NDArray[np.int64], worker: NDArray[np.int64], head: Bool, batch: NDArray[np.int64]
) -> tuple[Bool, Bool]:
    """First run of a shape on its worker, and one that differs from that worker's run before; members as their head."""
    first, changed = np.zeros(key.size, dtype=bool), np.zeros(key.size, dtype=bool)
    if not key.any():
        return first, changed
    heads = np.flatnonzero(head)
    for one in np.unique(worker[heads]):
        rows = heads[worker[heads] == one]
        first[rows[np.unique(key[rows], return_index=True)[1]]] = True
        changed[rows[1:]] = key[rows[1:]] != key[rows[:-1]]
    return _spread(first, batch), _spread(changed, batch)


def _spread(flag: Bool, batch: NDArray[np.int64]) -> Bool:
    """``flag`` of each batch's head for all of its members."""
    return np.asarray(flag | ((batch != NEVER) & np.isin(batch, batch[flag])), dtype=np.bool_)


def _reading(latency: Floats, slip: Floats, told: dict[str, Floats]) -> tuple[tuple[str, ...], float]:
    """Which stages lie within others here, and in what share of rows the sum exceeds the latency even then."""
    found: list[tuple[bool, float, float, tuple[str, ...]]] = []
    for inside in READINGS:
        names = [name for name in ("hold", "queue", "compute", "compile") if name not in inside]
        total = np.nan_to_num(slip) + sum(np.nan_to_num(told[name]) for name in names)
        over = float((total > latency * (1 + EXCEEDS) + 1e5).mean()) if latency.size else 0.0
        found.append((over > TOLERATED, -float(total.sum()), over, inside))
    best = min(found, key=lambda one: one[:2])
    return ((), found[0][2]) if best[0] else (best[3], best[2])


def _unfolded(reading: tuple[str, ...], told: dict[str, Floats]) -> tuple[Floats, Floats, Floats, Floats]:
    """(hold, queue without hold, run with compile, compile)."""
    hold, queue, run, compiled = (told[name] for name in ("hold", "queue", "compute", "compile"))
    if "hold" in reading:
        queue = np.maximum(queue - np.nan_to_num(hold), 0.0)
    if "compile" not in reading:
        run = run + np.nan_to_num(compiled)
    return hold, queue, run, compiled


def _off_core(run: Floats, told: dict[str, Floats], throttled: Floats) -> tuple[Floats, Floats]:
    """Run-queue delay, and time neither on a core nor waiting for one (throttled time where it is recorded)."""
    off = np.clip(told["runqueue"], 0.0, run)
    if np.isfinite(throttled).any():
        return off, np.clip(throttled, 0.0, run - np.nan_to_num(off))
    if not np.isfinite(off).any():
        return off, np.full(run.shape, np.nan)
    return off, np.maximum(run - told["on_core"] - off, 0.0)


def _outside(table: Imported, row: NDArray[np.int64]) -> Bool:
    fallback = table.trace.requests["route"][row] == ROUTE_KINDS.index("fallback")
    return np.asarray(fallback, dtype=np.bool_)


def _overlaps(start: Floats, latency: Floats) -> bool:
    """Whether some request begins before an earlier one has ended (by more than 1 %)."""
    if start.size < 2:
        return False
    ends = np.maximum.accumulate(start + latency)
    return bool(np.any(start[1:] < ends[:-1] - 0.01 * latency[:-1]))
