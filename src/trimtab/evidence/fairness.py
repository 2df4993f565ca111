"""Fairness: over the streams that are served, and over the cores that serve them (R8, R29).

Definitions. Jain's index of x_1..x_n is (sum x)^2 / (n sum x^2): 1 = all alike, 1/n = one has everything.

    streams: x = useful time / latency, summed over a stream's requests: how much of its time in the system was its own
             work. A stream of large shapes is not called badly served for being large.
             Beside it the same index over the streams' p95, and the worst p95 over the best, which do mix shapes with
             service.
    cores:   x = time that each worker ran batches. Beside it the largest over the mean, and run-queue delay.

Limits: a stream with fewer than 20 requests has no p95 and does not enter worst to best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trimtab.domain.account import Account
from trimtab.domain.figure import Finding, Series
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.attribute.cuts import batch_ends
from trimtab.evidence.attribute.offcore import off_core
from trimtab.evidence.attribute.sets import latencies
from trimtab.evidence.figures import NS_MS, Desk, percent, series
from trimtab.evidence.stats.quantiles import jain, quantile, worst_to_best

FEWEST = 20
UNEVEN = 0.8

Row = dict[str, Any]


def fairness(account: Account, trace: Trace) -> tuple[Desk, list[Finding], list[Series]]:
    """Figures ``fairness.*``, what they say, and the tables by stream and by core."""
    desk = Desk("fairness", "this run", f"accounts/{account.run}.parquet")
    streams, cores = _streams(account, trace), _cores(account, trace)
    n, served = len(account.requests), [row["speed"] for row in streams if row["speed"] is not None]
    one = "one stream only" if len(streams) < 2 else ""
    desk.add("streams.jain", jain(served), "index", n, note=one or "of useful time / latency by stream")
    slow = [row["p95"] for row in streams if row["p95"] is not None]
    few = "" if len(slow) > 1 else one or f"fewer than two streams have {FEWEST} requests"
    desk.add("streams.jain_p95", jain(slow) if not few else None, "index", n, note=few or "of p95 by stream")
    desk.add("streams.worst_to_best", worst_to_best(slow) if not few else None, "ratio", n, note=few or "of p95")
    work = [row["work"] for row in cores]
    single = "one worker only" if len(cores) < 2 else ""
    batches = len(trace.batches)
    desk.add("cores.jain", jain(work), "index", batches, note=single or "of the time that each worker ran batches")
    most = max(work) / (sum(work) / len(work)) if sum(work) else None
    desk.add("cores.most_to_mean", most, "ratio", batches, note=single or "of the time that each worker ran batches")
    artifact = desk.artifact
    units = {"p95": "ms", "waiting_p95": "ms", "speed": "ratio", "work": "ms", "busy": "share", "runqueue": "ms"}
    tables = [
        series(f"fairness.{name}", table(rows), units, artifact)
        for name, rows in (("streams", streams), ("cores", cores))
        if rows
    ]
    return desk, _said(desk, streams, cores), tables


def _streams(account: Account, trace: Trace) -> list[Row]:
    latency = latencies(account)
    ended, stream = np.isfinite(latency), account.requests["stream"]
    waiting = sum(account.requests[part] for part in ("hold", "unavailable", "occupied", "busy", "dispatch"))
    rows = []
    for code in np.unique(stream):
        mine = stream == code
        done = np.flatnonzero(mine & ended)
        took = float(latency[done].sum())
        enough = int(mine.sum()) >= FEWEST
        rows.append(
            {
                "stream": trace.streams[code],
                "requests": int(mine.sum()),
                "failed": int(mine.sum()) - done.size,
                "speed": float(account.requests["useful"][done].sum()) / took if took else None,
                "p95": quantile(latency[mine], 0.95) * NS_MS if enough else None,
                "waiting_p95": quantile(np.asarray(waiting)[done], 0.95) * NS_MS if enough and done.size else None,
            }
        )
    return rows


def _cores(account: Account, trace: Trace) -> list[Row]:
    batches = trace.batches
    req = trace.requests
    last = max((int(c.max()) for c in (req["done"], batches["done"], batches["dispatched"]) if c.size), default=0)
    span = last - int(req["scheduled"].min(initial=0))
    took = batch_ends(trace, last) - batches["dispatched"]
    waited = off_core(batches, np.maximum(batches["ended"] - batches["started"], 0))
    rows = []
    for worker in range(trace.run.workers):
        mine = batches["worker"] == worker
        queued = waited[mine & (batches["runqueue"] != NEVER)]
        work = int(took[mine].sum())
        rows.append(
            {
                "worker": worker,
                "core": trace.run.cores[worker] if worker < len(trace.run.cores) else None,
                "batches": int(mine.sum()),
                "work": work * NS_MS,
                "busy": work / span if span > 0 else None,
                "runqueue": float(queued.sum()) * NS_MS if queued.size else None,
            }
        )
    return rows


def _said(desk: Desk, streams: list[Row], cores: list[Row]) -> list[Finding]:
    values = {figure.id: figure.value for figure in desk.figures}
    out = []
    spread, even = values["fairness.streams.worst_to_best"], values["fairness.streams.jain"]
    known = [row for row in streams if row["speed"] is not None]
    if len(known) > 1 and even is not None and even < UNEVEN:
        worst = min(known, key=lambda row: row["speed"])
        text = (
            f"Streams are served unevenly: only {percent(worst['speed'])} of {worst['stream']}'s time is its own work"
        )
        text += f", and the worst p95 is {spread:.2g} times the best." if spread is not None else "."
        ids = ("fairness.streams.jain", "fairness.streams.worst_to_best")
        out.append(Finding(text=text, figures=ids, owner="runtime"))
    shared = values["fairness.cores.jain"]
    if len(cores) > 1 and shared is not None and shared < UNEVEN:
        most = max(cores, key=lambda row: row["work"])
        share = most["work"] / sum(row["work"] for row in cores)
        text = f"Work is uneven over the cores: worker {most['worker']} did {percent(share)} of it."
        out.append(Finding(text=text, figures=("fairness.cores.jain",), owner="runtime"))
    return out
