"""A run as a timeline that opens in Perfetto or chrome://tracing: the JSON trace-event format.

Process "cores" has one track a worker: its batches, pace runs, and when it came up or went down. Process "streams" has
the requests of each client from scheduled to done; requests that overlap stand on further tracks of the same stream. An
arrow leads from each request to the batch it rode in. A counter shows how many requests wait. Times are us from the
run's first scheduled arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.noun import NEVER
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.trace import MARK_KINDS, Trace

CORES, STREAMS = 1, 2
US = 1e-3  # ns -> us

Item = dict[str, Any]


def events(trace: Trace) -> Iterator[Item]:
    """Trace events, not in order of time: the format does not ask for it."""
    yield _named("process_name", CORES, 0, f"cores, {trace.run.id}")
    yield _named("process_name", STREAMS, 0, "streams")
    yield from _batches(trace)
    yield from _marks(trace)
    yield from _requests(trace)
    yield from _waiting(trace)


def _named(what: str, process: int, track: int, name: str) -> Item:
    return {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}}


def _span(process: int, track: int, name: str, start: int, end: int, args: Item) -> Item:
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": track,
        "ts": start * US,
        "dur": max(end - start, 0) * US,
        "args": args,
    }


def _batches(trace: Trace) -> Iterator[Item]:
    b = trace.batches
    dims = b.dims("exec", trace.dim_names).tolist()
    cores = dict(zip(b["worker"].tolist(), b["core"].tolist(), strict=True))
    for worker, core in sorted(cores.items()):
        where = f" on core {core}" if core >= 0 else ""
        yield _named("thread_name", CORES, worker, f"worker {worker}{where}")
    for row, (worker, started, ended) in enumerate(
        zip(b["worker"].tolist(), b["started"].tolist(), b["ended"].tolist(), strict=True)
    ):
        if NEVER in (started, ended):
            continue
        entry = trace.entries[int(b["entry"][row])] if b["entry"][row] >= 0 else "unknown entry"
        args = {
            "batch": int(b["id"][row]),
            "members": int(b["size"][row]),
            "executed": [int(b["executed_size"][row]), *dims[row]],
            "route": ROUTE_KINDS[int(b["route"][row])],
            "promised_ms": float(b["promised"][row]) * 1e-6,
            "first_seen": bool(b["first_seen"][row]),
            "error": ERROR_KINDS[int(b["error"][row])],
        }
        yield _span(CORES, worker, entry, started, ended, args)


def _marks(trace: Trace) -> Iterator[Item]:
    m = trace.marks
    columns = (m["t"].tolist(), m["end"].tolist(), m["kind"].tolist(), m["worker"].tolist(), m["detail"].tolist())
    for t, end, kind, worker, detail in zip(*columns, strict=True):
        args = {"detail": trace.details[detail]} if detail >= 0 else {}
        if end > t:
            yield _span(CORES, max(worker, 0), MARK_KINDS[kind], t, end, args)
        else:
            at = {"pid": CORES, "tid": max(worker, 0), "ts": t * US}
            yield {"ph": "i", "s": "t", "name": MARK_KINDS[kind], "args": args, **at}


def _requests(trace: Trace) -> Iterator[Item]:
    req = trace.requests
    started = req["started"].tolist()
    workers = dict(zip(trace.batches["id"].tolist(), trace.batches["worker"].tolist(), strict=True))
    dims = req.dims("dim", trace.dim_names).tolist()
    columns = (req["id"].tolist(), req["scheduled"].tolist(), req["done"].tolist(), req["batch"].tolist())
    names = dict[int, str]()
    tracks = _tracks(trace, names)
    for row, (request, scheduled, done, batch) in enumerate(zip(*columns, strict=True)):
        if done == NEVER:
            continue
        track = tracks[row]
        args = {"dims": dims[row], "batch": batch, "error": ERROR_KINDS[int(req["error"][row])]}
        yield _span(STREAMS, track, f"request {request}", scheduled, done, args)
        if batch in workers and started[row] != NEVER:
            flow = {"cat": "batch", "name": "rides in", "id": request}
            yield {"ph": "s", "pid": STREAMS, "tid": track, "ts": scheduled * US, **flow}
            yield {"ph": "f", "bp": "e", "pid": CORES, "tid": workers[batch], "ts": started[row] * US, **flow}
    for track, name in sorted(names.items()):
        yield _named("thread_name", STREAMS, track, name)


def _tracks(trace: Trace, names: dict[int, str]) -> list[int]:
    """A track for each request, so that requests of one track never overlap; fills in the tracks' names."""
    req = trace.requests
    free: dict[int, list[tuple[int, int]]] = {}
    count: dict[int, int] = {}
    out = []
    for stream, start, end in zip(req["stream"].tolist(), req["scheduled"].tolist(), req["done"].tolist(), strict=True):
        ends = free.setdefault(stream, [])
        if ends and ends[0][0] <= start:
            track = heappop(ends)[1]
        else:
            number = count[stream] = count.get(stream, 0) + 1
            track = len(names)
            names[track] = trace.streams[stream] + (f" ({number})" if number > 1 else "")
        heappush(ends, (max(end, start), track))
        out.append(track)
    return out


def _waiting(trace: Trace) -> Iterator[Item]:
    """How many requests are enqueued and not dispatched, at each change."""
    req = trace.requests
    came = req["enqueued"][req["enqueued"] != NEVER]
    left = np.where(req["dispatched"] != NEVER, req["dispatched"], req["done"])
    left = left[(left != NEVER) & (req["enqueued"] != NEVER)]
    t = np.concatenate((came, left))
    step = np.concatenate((np.ones(came.size, dtype=np.int64), np.full(left.size, -1, dtype=np.int64)))
    order = np.lexsort((step, t))
    for at, waiting in zip(t[order].tolist(), np.cumsum(step[order]).tolist(), strict=True):
        yield {"ph": "C", "name": "waiting", "pid": STREAMS, "ts": at * US, "args": {"requests": max(waiting, 0)}}
