"""The replay stage's series: runs, quantile curves, windows over time, batch sizes, cores, failures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Series
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.offcore import off_core
from trimtab.evidence.figures import MS, NS_MS, series
from trimtab.evidence.stats.quantiles import Floats, quantile, tail_curve

WINDOW = 200
MAX_WINDOWS = 48
CURVE_POINTS = 64

Row = dict[str, Any]


def build(traces: Sequence[Trace], latencies: Sequence[Floats], sla: Sla) -> tuple[Series, ...]:
    """All series of the replay stage; ``latencies`` in seconds, one array a trace."""
    pairs = list(zip(traces, latencies, strict=True))
    makers = {
        "replay.runs": ([r for t, x in pairs for r in _run(t, x, sla)], {"p50": "ms", "p95": "ms", "p99": "ms"}),
        "replay.over_time": (
            [r for t, x in pairs for r in _windows(t, x, sla)],
            {"start": "s", "p50": "ms", "p95": "ms", "miss_rate": "share"},
        ),
        "replay.batch_sizes": ([r for t, _ in pairs for r in _sizes(t)], {}),
        "replay.cores": (
            [r for t, _ in pairs for r in _cores(t)],
            {"busy": "share", "machine_busy": "share", "stolen": "share", "runqueue": "ms", "work": "ms"},
        ),
        "replay.failures": ([r for t, x in pairs for r in _failures(t, x)], {}),
        "replay.slip": ([r for t, _ in pairs for r in _slip(t)], {"p50": "ms", "p95": "ms", "p99": "ms", "max": "ms"}),
    }
    made = [series(name, table(rows), units, "traces") for name, (rows, units) in makers.items() if rows]
    return (*made, *curves("replay.quantiles", traces, latencies))


def curves(name: str, traces: Sequence[Trace], latencies: Sequence[Floats]) -> tuple[Series, ...]:
    """The quantile curve of each run, as one series; none where nothing was scheduled."""
    rows = [row for trace, seconds in zip(traces, latencies, strict=True) for row in _curve(trace, seconds)]
    return (series(name, table(rows), {"tail": "-log10(1-p)", "latency": "ms"}, "traces"),) if rows else ()


def table(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows of equal keys to columns."""
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {}


def window_edges(n: int, at_least: int = WINDOW, at_most: int = MAX_WINDOWS) -> NDArray[np.int64]:
    """Edges of windows with equal numbers of requests, each at least ``at_least``; fewer requests are one window."""
    count = min(max(n // at_least, 1), at_most)
    return np.linspace(0, n, count + 1).astype(np.int64)


def _run(trace: Trace, seconds: Floats, sla: Sla) -> Iterator[Row]:
    yield {
        "run": trace.run.id,
        "plan": trace.run.plan,
        "source": trace.run.source,
        "requests": seconds.size,
        "failed": int(np.isinf(seconds).sum()),
        **{name: quantile(seconds, q) * MS for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "miss_rate": float((seconds * MS > sla.bound_ms).mean()) if seconds.size else math.nan,
        "driver_cpu_share": trace.run.driver_cpu_share,
    }


def _curve(trace: Trace, seconds: Floats) -> Iterator[Row]:
    for tail, value in tail_curve(seconds, CURVE_POINTS):
        yield {"run": trace.run.id, "plan": trace.run.plan, "tail": tail, "latency": value * MS}


def _windows(trace: Trace, seconds: Floats, sla: Sla) -> Iterator[Row]:
    scheduled = trace.requests["scheduled"]
    edges = window_edges(seconds.size)
    for lo, hi in itertools.pairwise(edges):
        part = seconds[lo:hi]
        if not part.size:
            continue
        yield {
            "run": trace.run.id,
            "plan": trace.run.plan,
            "start": float(scheduled[lo]) / 1e9,
            "requests": part.size,
            "p50": quantile(part, 0.5) * MS,
            "p95": quantile(part, 0.95) * MS,
            "miss_rate": float((part * MS > sla.bound_ms).mean()),
        }


def _sizes(trace: Trace) -> Iterator[Row]:
    sizes, counts = np.unique(trace.batches["size"], return_counts=True)
    for size, count in zip(sizes, counts, strict=True):
        yield {
            "run": trace.run.id,
            "plan": trace.run.plan,
            "size": int(size),
            "batches": int(count),
            "requests": int(size * count),
        }


def _cores(trace: Trace) -> Iterator[Row]:
    """Work and run-queue delay of our batches by core, beside the machine's own busy and stolen shares of that core."""
    b, s = trace.batches, trace.samples
    ran = (b["started"] >= 0) & (b["ended"] >= 0)
    waited = off_core(b, np.maximum(b["ended"] - b["started"], 0))
    ours, machine = set(b["core"].tolist()), {core for core in s["core"].tolist() if core >= 0}
    done = trace.requests["done"]
    span = int(done.max() - trace.requests["scheduled"][0]) if done.size else 0
    for core in sorted(ours | machine):
        mine = ran & (b["core"] == core)
        here = s["core"] == core
        work = int((b["ended"] - b["started"])[mine].sum())
        queued = waited[mine & (b["runqueue"] >= 0)]
        yield {
            "run": trace.run.id,
            "plan": trace.run.plan,
            "core": int(core),
            "batches": int(mine.sum()),
            "work": work * NS_MS,
            "busy": work / span if span > 0 else None,
            "machine_busy": _mean(s["busy"][here]),
            "stolen": _mean(s["stolen"][here]),
            "runqueue": float(queued.sum()) * NS_MS if queued.size else None,
        }


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _failures(trace: Trace, seconds: Floats) -> Iterator[Row]:
    codes, counts = np.unique(trace.requests["error"], return_counts=True)
    for code, count in zip(codes, counts, strict=True):
        if code > 0:
            yield {"run": trace.run.id, "plan": trace.run.plan, "kind": ERROR_KINDS[code], "requests": int(count)}
    late = int((np.isinf(seconds) & (trace.requests["error"] == 0)).sum())
    if late:
        yield {"run": trace.run.id, "plan": trace.run.plan, "kind": "past the deadline", "requests": late}


def _slip(trace: Trace) -> Iterator[Row]:
    req = trace.requests
    slip = (req["enqueued"] - req["scheduled"])[req["enqueued"] >= 0]
    if slip.size:
        named = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
        yield {
            "run": trace.run.id,
            "plan": trace.run.plan,
            **{name: quantile(slip, q) * NS_MS for name, q in named},
        }
