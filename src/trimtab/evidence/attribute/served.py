"""For whom the workers ran and who waited, over time: so that a reader who chooses a stream or a band of shapes sees
what of a worker's time, and of the queue, was theirs.

A request's part of its batch's time is one n-th, spread over the batch's time from dispatch to end; its waiting is the
time from when it was enqueued until it was dispatched. Both are shares of a bin of time, so the parts of all requests
add up to the worker's busy share and to the mean number that waited.

Requests are grouped by worker, stream and one of BANDS bands of size with about equal numbers of requests; a band
stands at the median size of its requests, and four of these bands make one of those that a reader can choose by name.
Where that gives more than MOST rows, bins of time are joined until it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.domain.account import BATCH_PARTS, Account
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.cuts import batch_ends
from trimtab.evidence.attribute.split import Int, batch_rows
from trimtab.evidence.figures import NS_S
from trimtab.evidence.stats.quantiles import Floats, quantile

MOST = 4000
BANDS = 24
SEEN = 0.0005
"""Parts of a bin below this are not drawn."""

Row = dict[str, Any]


def served(account: Account, trace: Trace, edges: Int, band: Int) -> list[Row]:
    """Rows of ``requests.served``: bins between ``edges`` (ns), joined in pairs until there are at most MOST rows;
    none for more groups than that. ``band``: the band of each request."""
    groups = list(_groups(account, trace, band))
    if not groups or edges.size < 2:
        return []
    while True:
        rows = [row for group in groups for row in _over(edges, group)]
        if len(rows) <= MOST or edges.size == 2:
            return sorted(rows, key=lambda row: (row["t"], row["worker"], row["stream"], row["size"]))
        edges = np.append(edges[:-1:2], edges[-1])


Group = tuple[Row, tuple[Int, Int, Floats], tuple[Int, Int, Floats]]
"""Who they are; (starts, ends, weights) of their parts of batches, and of their waiting."""


def _groups(account: Account, trace: Trace, band: Int) -> Iterator[Group]:
    rows, requests = batch_rows(trace), trace.requests
    ran = np.flatnonzero(rows >= 0)
    if not ran.size:
        return
    ends = batch_ends(trace, int(requests["done"].max(initial=0)))
    begins = ends - sum(account.batches[name] for name in BATCH_PARTS)
    members = np.bincount(rows[ran], minlength=ends.size)
    sizes = np.prod(requests.dims("dim", trace.dim_names), axis=1) if trace.dim_names else np.ones_like(rows)
    worker = trace.batches["worker"][rows[ran]].astype(np.int64)
    stream = requests["stream"][ran].astype(np.int64)
    keys = np.stack((worker, stream, band[ran]), axis=1)
    found, code, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    if len(found) > MOST:
        return
    middle = [int(quantile(sizes[band == number], 0.5)) for number in range(int(band.max()) + 1)]
    members_of = np.split(ran[np.argsort(code.ravel(), kind="stable")], np.cumsum(count)[:-1])
    for key, mine in zip(found.tolist(), members_of, strict=True):
        batch = rows[mine]
        who: Row = {
            "worker": key[0],
            "stream": trace.streams[key[1]],
            "size": middle[key[2]],
        }
        waited = requests["enqueued"][mine], np.maximum(requests["dispatched"][mine], requests["enqueued"][mine])
        yield who, (begins[batch], ends[batch], 1.0 / members[batch]), (*waited, np.ones(mine.size))


def _over(edges: Int, group: Group) -> Iterator[Row]:
    who, run, wait = group
    busy, waiting = covered(edges, *run), covered(edges, *wait)
    for at in np.flatnonzero((busy > SEEN) | (waiting > SEEN)).tolist():
        yield {
            "t": float(edges[at]) * NS_S,
            "end": float(edges[at + 1]) * NS_S,
            **who,
            "busy": float(busy[at]),
            "waiting": float(waiting[at]),
        }


def covered(edges: Int, starts: Int, ends: Int, weights: Floats) -> Floats:
    """How much of each bin between ``edges`` the spans cover, as a share of the bin; spans may overlap, and each counts
    ``weights``."""
    upto = _reached(edges, starts, weights) - _reached(edges, ends, weights)
    out: Floats = np.diff(upto) / np.maximum(np.diff(edges), 1)
    return out


def _reached(edges: Int, times: Int, weights: Floats) -> Floats:
    """Sum over ``times`` of weight x (edge - time), for those before the edge."""
    order = np.argsort(times, kind="stable")
    since = (times[order] - edges[0]).astype(np.float64)
    weight = weights[order]
    upto = np.searchsorted(times[order], edges, side="right")
    count = np.concatenate(([0.0], np.cumsum(weight)))[upto]
    moment = np.concatenate(([0.0], np.cumsum(weight * since)))[upto]
    out: Floats = count * (edges - edges[0]) - moment
    return out
