"""The prediction ledger: what each request was told its batch would take, and what it took.

Definitions
-----------
Unit: one request whose batch ended well. m = its batch's run time (wall - run-queue delay). Two predictions p were
written into the trace before it ran: *at compile*, the warm time that the profile promised for the route, and *at
dispatch*, what was expected of this very batch, the excess of a first run included. Over a group of requests:

    bias              sum (m - p) / sum m            above 0 = slower than predicted
    median, p95       of |m - p|, ms

by all requests, route kind, and shape band. Requests without a prediction (p = 0) are counted apart, never dropped
silently. Where the error at dispatch is much smaller than at compile, first runs were foreseen; where both are large,
the profile does not hold.

Limits: members of one batch share one m, so a large batch counts once for each member. The time in the queue is not
predicted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.domain.figure import Series
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.attribute.split import Int
from trimtab.evidence.figures import NS_MS, Desk, series
from trimtab.evidence.score._tables import shape_bands
from trimtab.evidence.score.batches import Batches, Bool
from trimtab.evidence.stats.quantiles import quantile

PREDICTIONS = ("compile", "dispatch")

Row = dict[str, Any]


def ledger(trace: Trace, batches: Batches, desk: Desk) -> Series:
    """The error summary by group; those of all requests are stored as ``<stage>.ledger.<prediction>.<what>`` too."""
    row = batches.of_request
    ran = row >= 0
    measured = np.zeros(row.size, dtype=np.int64)
    measured[ran] = batches.measured[row[ran]]
    predicted = {name: trace.requests[f"predicted_at_{name}"] for name in PREDICTIONS}
    rows = [_row(by, group, here & ran, measured, predicted) for by, group, here in _groups(trace)]
    found = [row for row in rows if row["n"] + row["unpredicted"]]
    for name in PREDICTIONS if found else ():
        n = found[0]["n"]
        for what, unit in (("bias", "share"), ("median", "ms"), ("p95", "ms")):
            note = f"predicted at {name}, by request" if n else "no request had a prediction"
            desk.add(f"ledger.{name}.{what}", found[0][f"{name}_{what}"], unit, n, note=note)
    units = {f"{name}_{what}": "ms" for name in PREDICTIONS for what in ("median", "p95")}
    units |= {f"{name}_bias": "share" for name in PREDICTIONS}
    return series("score.ledger", table(found), units, f"traces/{trace.run.id}/requests.parquet")


def _groups(trace: Trace) -> Iterator[tuple[str, str, Bool]]:
    route = trace.requests["route"]
    yield "all", "all requests", np.ones(route.size, dtype=np.bool_)
    for code, kind in enumerate(ROUTE_KINDS):
        yield "route", kind, route == code
    band, names = shape_bands(trace)
    for code, name in enumerate(names):
        yield "band", name, band == code


def _row(by: str, group: str, here: Bool, measured: Int, predicted: dict[str, Int]) -> Row:
    known = here & (predicted["compile"] > 0) & (predicted["dispatch"] > 0)
    row: Row = {"by": by, "group": group, "n": int(known.sum()), "unpredicted": int((here & ~known).sum())}
    took = measured[known]
    for name in PREDICTIONS:
        off = took - predicted[name][known]
        row[f"{name}_bias"] = float(off.sum()) / float(took.sum()) if took.sum() else None
        row[f"{name}_median"] = quantile(np.abs(off), 0.5) * NS_MS
        row[f"{name}_p95"] = quantile(np.abs(off), 0.95) * NS_MS
    return row
