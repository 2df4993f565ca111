"""The attribute stage's series: waterfalls, groups, quantile curves, waits over time, and the timeline of the cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trimtab.domain.account import BATCH_PARTS, Account
from trimtab.domain.figure import Figure, Series
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table, window_edges
from trimtab.evidence.attribute import served
from trimtab.evidence.attribute.cuts import batch_ends
from trimtab.evidence.attribute.sets import (
    LABELS,
    TailSet,
    inherited,
    latencies,
    own,
    shares,
    without,
    without_any,
)
from trimtab.evidence.attribute.split import Int, batch_rows
from trimtab.evidence.figures import NS_MS, NS_S, series
from trimtab.evidence.stats.quantiles import Floats, quantile, tail_curve

BANDS = 6
CURVE_POINTS = 64
BINS = 200
GAINS = ("gain", "resimulated")
WAITS = ("hold", "busy", "dispatch", "unavailable", "occupied")

Row = dict[str, Any]


def waterfall(found: TailSet, account: Account, typical: Int, figures: dict[str, Figure]) -> Iterator[Row]:
    """One row a label, largest first: mean ms of the set, of typical requests, share, and removal gain."""
    rows = shares(account, found.rows, typical)
    whole = sum(row.total for row in rows)
    for row in sorted(rows, key=lambda r: -abs(r.total)):
        gain = figures.get(f"tail.{found.name}.{row.label}.gain")
        again = figures.get(f"tail.{found.name}.{row.label}.resimulated")
        between, around = (figure.interval if figure else None for figure in (gain, again))
        if row.total == 0 and row.typical == 0:
            continue
        yield {
            "cause": row.label,
            "own": row.own * NS_MS,
            "inherited": row.inherited * NS_MS,
            "typical": row.typical * NS_MS,
            "share": row.total / whole if whole else None,
            "gain": gain.value if gain else None,
            "gain_lo": between.lo if between else None,
            "gain_hi": between.hi if between else None,
            "resimulated": again.value if again else None,
            "resimulated_lo": around.lo if around else None,
            "resimulated_hi": around.hi if around else None,
        }


def groups(account: Account, found: TailSet, code: Int, names: list[str], title: str) -> Iterator[Row]:
    """One row for each group and label: what the label owns of the group's part of the set, ms a request."""
    latency = latencies(account)
    tail = np.zeros(latency.size, dtype=bool)
    tail[found.rows] = True
    for number, name in enumerate(names):
        mine = code == number
        rows = np.flatnonzero(mine & tail)
        if not rows.size:
            continue
        whole = float(latency[rows].sum())
        for label in LABELS:
            alone, handed = float(own(account, label)[rows].sum()), float(inherited(account, label)[rows].sum())
            if alone == 0 and handed == 0:
                continue
            yield {
                title: name,
                "requests": int(mine.sum()),
                "in_tail": rows.size,
                "p95": quantile(latency[mine], 0.95) * NS_MS,
                "cause": label,
                "own": alone / rows.size * NS_MS,
                "inherited": handed / rows.size * NS_MS,
                "share": (alone + handed) / whole if whole else None,
            }


def bands(trace: Trace, count: int = BANDS) -> tuple[Int, list[str]]:
    """Shape bands with about equal numbers of requests, by the product of the dynamic dims."""
    if not trace.dim_names or not len(trace.requests):
        return np.zeros(len(trace.requests), dtype=np.int64), ["all"]
    volume = np.prod(trace.requests.dims("dim", trace.dim_names), axis=1)
    edges = np.unique(np.quantile(volume, np.linspace(0, 1, count + 1)[1:-1], method="inverted_cdf"))
    code: Int = np.searchsorted(edges, volume, side="left").astype(np.int64)
    present, code = np.unique(code, return_inverse=True)
    names = []
    for number in range(present.size):
        mine = volume[code == number]
        low, high = int(mine.min()), int(mine.max())
        names.append(f"{low}" if low == high else f"{low}–{high}")
    return code.astype(np.int64), names


def windows(trace: Trace) -> tuple[Int, list[float]]:
    """Windows with equal numbers of requests, and the second at which each begins."""
    n = len(trace.requests)
    edges = window_edges(n)
    code: Int = np.searchsorted(edges, np.arange(n), side="right").astype(np.int64) - 1
    start = trace.requests["scheduled"]
    return code, [float(start[lo]) * NS_S for lo in edges[:-1] if lo < n]


def curves(account: Account, leader: str) -> Iterator[Row]:
    """Latency by quantile, evenly spaced in -log10(1 - p): as it was, without the leading cause, without any."""
    arms = {"observed": latencies(account), "without any cause": without_any(account)}
    if leader:
        arms[f"without {leader}"] = without(account, leader)
    for name, values in arms.items():
        for tail, value in tail_curve(values, CURVE_POINTS):
            yield {"arm": name, "tail": tail, "latency": value * NS_MS}


def waits(account: Account, code: Int, names: Sequence[Any], title: str) -> Iterator[Row]:
    """The queue-wait profile of groups of requests, ms: hold apart from busy wait. ``code`` < 0: in no group."""
    ended = account.requests["latency"] != NEVER
    for number, name in enumerate(names):
        rows = np.flatnonzero(ended & (code == number))
        if not rows.size:
            continue
        row: Row = {title: name, "requests": rows.size}
        for part in WAITS:
            values = account.requests[part][rows]
            row[f"{part}_mean"] = float(values.mean()) * NS_MS
            row[f"{part}_p95"] = quantile(values, 0.95) * NS_MS
        yield row


def entry_of(trace: Trace, batch_row: Int) -> Int:
    """The entry that ran each request, into ``Trace.entries``; NEVER = it never ran."""
    entry = trace.batches["entry"].astype(np.int64)
    if not entry.size:
        return np.full(batch_row.size, NEVER, dtype=np.int64)
    return np.where(batch_row >= 0, entry[np.maximum(batch_row, 0)], NEVER)


def waiting(trace: Trace) -> Iterator[Row]:
    """How many requests waited: the largest number in each bin of time."""
    edges = time_bins(trace)
    req = trace.requests
    queued = (req["enqueued"] != NEVER) & (req["dispatched"] != NEVER)
    came, went = np.sort(req["enqueued"][queued]), np.sort(req["dispatched"][queued])
    if not came.size or edges.size < 2:
        return
    t = np.concatenate((edges[:-1], came))
    depth = np.searchsorted(came, t, side="right") - np.searchsorted(went, t, side="right")
    bin_of = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, edges.size - 2)
    most = np.zeros(edges.size - 1, dtype=np.int64)
    np.maximum.at(most, bin_of, depth)
    for start, value in zip(edges[:-1], most, strict=True):
        yield {"t": float(start) * NS_S, "waiting": int(value)}


def time_bins(trace: Trace) -> Int:
    """Edges of at most BINS equal bins of time, from the first arrival to the last end."""
    start = trace.requests["scheduled"]
    columns = (trace.requests["done"], trace.batches["ended"])
    last = max((int(c.max()) for c in columns if c.size), default=0)
    if not start.size or last <= start[0]:
        return np.zeros(0, dtype=np.int64)
    return np.unique(np.linspace(int(start[0]), last, BINS + 1).astype(np.int64))


def cores(account: Account, trace: Trace) -> Iterator[Row]:
    """Busy time of each worker by cause, as a share of each bin of time."""
    edges = time_bins(trace)
    if edges.size < 2 or not len(trace.batches):
        return
    ends = batch_ends(trace, int(edges[-1]))
    parts = {name: account.batches[name] for name in BATCH_PARTS if account.batches[name].any()}
    starts = ends - sum(account.batches[name] for name in BATCH_PARTS)
    for worker in np.unique(trace.batches["worker"]):
        mine = np.flatnonzero(trace.batches["worker"] == worker)
        knots = np.stack((starts[mine], ends[mine]), axis=1).ravel()
        for name, part in parts.items():
            busy = _per_bin(edges, knots, part[mine])
            for row in np.flatnonzero(busy > served.SEEN):
                yield {"t": float(edges[row]) * NS_S, "worker": int(worker), "cause": name, "busy": float(busy[row])}


def _per_bin(edges: Int, knots: Int, part: Int) -> Floats:
    """Share of each bin that ``part`` takes when each batch's part is spread over its own time."""
    upto = np.cumsum(part)
    height = np.stack((upto - part, upto), axis=1).ravel()
    reached = np.interp(edges, np.maximum.accumulate(knots), height)
    out: Floats = np.diff(reached) / np.maximum(np.diff(edges), 1)
    return out


def _served(account: Account, trace: Trace) -> list[Row]:
    code, _ = bands(trace, served.BANDS)
    return served.served(account, trace, time_bins(trace), code)


def build(
    account: Account, trace: Trace, sets: list[TailSet], typical: Int, figures: dict[str, Figure], leader: str
) -> tuple[Series, ...]:
    """All series of the stage; a set without requests has none."""
    artifact = f"accounts/{account.run}.parquet"
    ms = {"own": "ms", "inherited": "ms", "share": "share", "p95": "ms"}
    found: list[tuple[str, list[Row], dict[str, str]]] = []
    code, starts = windows(trace)
    streams = account.requests["stream"].astype(np.int64), list(trace.streams)
    by = {
        "stream": streams,
        "band": bands(trace),
        "window": (code, [f"{start:.1f}" for start in starts]),
    }
    for each in sets:
        if not each.rows.size:
            continue
        units = ms | dict.fromkeys(("typical", *(f"{how}{end}" for how in GAINS for end in ("", "_lo", "_hi"))), "ms")
        found.append((f"tail.{each.name}.waterfall", list(waterfall(each, account, typical, figures)), units))
        for title, (code, names) in by.items():
            rows = list(groups(account, each, code, names, title))
            found.append((f"tail.{each.name}.by_{title}", rows, ms))
    wait_units = {"start": "s"} | {f"{part}_{how}": "ms" for part in WAITS for how in ("mean", "p95")}
    entries = entry_of(trace, batch_rows(trace))
    found += [
        ("tail.quantiles", list(curves(account, leader)), {"tail": "-log10(1-p)", "latency": "ms"}),
        ("queue.waits", list(waits(account, code, starts, "start")), wait_units),
        ("queue.by_stream", list(waits(account, *streams, "stream")), wait_units),
        ("queue.by_entry", list(waits(account, entries, trace.entries, "entry")), wait_units),
        ("queue.waiting", list(waiting(trace)), {"t": "s", "waiting": "requests"}),
        ("cores.timeline", list(cores(account, trace)), {"t": "s", "busy": "share"}),
        ("requests.served", _served(account, trace), {"t": "s", "end": "s", "busy": "share", "waiting": "requests"}),
    ]
    return tuple(series(name, table(rows), units, artifact) for name, rows, units in found if rows)
