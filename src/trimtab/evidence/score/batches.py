"""The score's view of executed batches: measured, promised and best time of each, and where it lost time.

The loss of a batch, R - b, is split into signed parts that sum exactly; :mod:`.accuracy` has the theory.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Dims, EntryId, Ns
from trimtab.domain.ports import Predictor
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.score import LossCause
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.account import batch_rows
from trimtab.evidence.attribute.parts import Execution
from trimtab.evidence.attribute.split import Int, Members
from trimtab.evidence.score.reference import ReferenceSet, cheapest

Bool = NDArray[np.bool_]
COMPILED_ROUTES = tuple(ROUTE_KINDS.index(kind) for kind in ("exact", "padded", "dynamic"))


class Yardstick(msgspec.Struct, frozen=True):
    """What a run is held against: its own plan's profile, the one reference entry, and all known entries."""

    promise: Predictor
    reference: Predictor
    reference_entry: EntryId
    best: ReferenceSet


class Batches(msgspec.Struct, frozen=True):
    """The score's view of the batches that ended well, in order of dispatch; int64 ns each, 0 = unknown.

    ``row`` into the trace's batch table, ``of_request`` int64[requests] = each request's position in here (-1: none),
    ``oldest`` = index of the oldest member, ``size`` members. ``loss`` by cause sums to ``measured - best``. ``first``
    = first run of a shape, or a compile event inside.
    """

    row: Int
    of_request: Int
    oldest: Int
    size: Int
    route: Int
    first: Bool
    measured: Int
    promised: Int
    best: Int
    useful: Int
    executed: Int
    loss: dict[LossCause, Int]
    failed: int

    def mapping(self, keep: Bool | None = None) -> float:
        """sum b / sum m over the batches in ``keep``; nan without any."""
        return share_of(self.best, self.measured, keep)

    def promise(self, keep: Bool | None = None) -> float:
        """1 - sum |m - c| / sum m."""
        return 1 - share_of(np.abs(self.measured - self.promised), self.measured, keep)

    def bias(self, keep: Bool | None = None) -> float:
        """sum (m - c) / sum m; above 0 = slower than promised."""
        return share_of(self.measured - self.promised, self.measured, keep)

    def lost(self, cause: LossCause, keep: Bool | None = None) -> float:
        """Share of measured time lost to ``cause``."""
        return share_of(self.loss[cause], self.measured, keep)


def share_of(part: Int, whole: Int, keep: Bool | None = None) -> float:
    """sum(part) / sum(whole) over ``keep`` (None: all); nan where the whole is 0."""
    chosen = slice(None) if keep is None else keep
    total = float(whole[chosen].sum())
    return float(part[chosen].sum()) / total if total else float("nan")


def measure(trace: Trace, yardstick: Yardstick) -> Batches:
    """m, c, b and the parts of the loss of every batch of ``trace``."""
    b = trace.batches
    members = Members(batch_rows(trace), len(b))
    wall = np.maximum(b["ended"] - b["started"], 0)
    known = Execution(trace, members, wall, yardstick.promise, yardstick.reference, yardstick.reference_entry)
    well = (b["error"] == 0) & (b["started"] >= 0) & (b["ended"] >= b["started"]) & (members.count > 0)
    row = np.flatnonzero(well)
    run, change = known.run[row], known.change[row]
    promise, reference, _, useful = (level[row] for level in known.levels)
    best, alone = _lowest(trace, members, row, yardstick)
    position = np.full(len(b) + 1, -1, dtype=np.int64)
    position[row] = np.arange(row.size)
    return Batches(
        row=row,
        of_request=position[members.row],
        oldest=members.order[members.first[row]],
        size=members.count[row],
        route=b["route"][row].astype(np.int64),
        first=known.first[row],
        measured=run,
        promised=np.maximum(b["promised"][row], 0),
        best=best,
        useful=np.where(reference > 0, useful, 0),
        executed=np.where(useful > 0, reference, 0),
        loss=_loss(run, promise, reference, alone, best, np.where(known.first[row], run, change)),
        failed=int((b["error"] != 0).sum()),
    )


def _loss(run: Int, promise: Int, reference: Int, alone: Int, best: Int, coldest: Int) -> dict[LossCause, Int]:
    """Parts of R - b, signed; ``alone`` = r of the theory, ``coldest`` = the most that may be cold. What needs an
    unknown time is unprofiled."""
    promised = promise > 0
    above = np.where(promised, run - promise, 0)
    cold = np.minimum(np.maximum(above, 0), coldest)
    split = promised & (reference > 0) & (alone > 0) & (best > 0)
    premium = np.where(split, promise - reference + alone - best, 0)
    padding = np.where(split, reference - alone, 0)
    parts: dict[LossCause, Int] = {
        "cold": cold,
        "premium": premium,
        "padding": padding,
        "interference": above - cold,
        "unprofiled": run - best - above - premium - padding,
    }
    return parts


def _lowest(trace: Trace, members: Members, row: Int, yardstick: Yardstick) -> tuple[Int, Int]:
    """(b, r) of the batches ``row``: over the ReferenceSet, and by the reference entry alone."""
    columns = [trace.requests[f"dim.{name}"].tolist() for name in trace.dim_names]
    dims: list[Dims] = list(zip(*columns, strict=True)) if columns else [()] * len(trace.requests)
    by_reference: dict[tuple[Dims, ...], Ns] = {}

    def reference_cost(group: tuple[Dims, ...]) -> tuple[Ns, Ns]:
        executed = (len(group), *(map(max, zip(*group, strict=True))))
        ns = max(yardstick.reference.warm(yardstick.reference_entry, executed), 0)
        return ns, ns

    best, alone = np.zeros(row.size, dtype=np.int64), np.zeros(row.size, dtype=np.int64)
    order = members.order.tolist()
    for i, r in enumerate(row.tolist()):
        start = int(members.first[r])
        group = tuple(sorted(dims[j] for j in order[start : start + int(members.count[r])]))
        if group not in by_reference:
            by_reference[group] = cheapest(group, reference_cost, len(group))
        best[i], alone[i] = yardstick.best.best(group), by_reference[group]
    return best, alone


def coverage(trace: Trace) -> float:
    """Share of all scheduled requests that ran on a compiled route; nan without requests."""
    route = trace.requests["route"]
    return float(np.isin(route, COMPILED_ROUTES).mean()) if route.size else float("nan")
