"""The replay stage's figures: the tail first, over ALL scheduled requests, and whether the run may be believed.

Definitions
-----------
latency = done - SCHEDULED. Failed, rejected and unfinished requests are +inf, and so is a request later than the
study's deadline; each counts as a miss. miss rate = share of requests above the SLA's bound; goodput = its complement.
A percentile of one run is printed as "this run", without an interval: latencies of a queue are not independent. From
at least 5 fresh replays the median over replays has the order-statistic interval, because replays are independent.
The A/A floor is the set of differences between replays of the same plan (:mod:`trimtab.evidence.stats.floor`).

Limits: windows over time hold at least 200 requests and show p95 and miss rate only; p99 is for whole runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Figure, Finding, Findings, Interval, Series
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence import _latency_tables as tables
from trimtab.evidence.attribute.offcore import off_core
from trimtab.evidence.classify.gates import gates
from trimtab.evidence.figures import MS, NS_MS, Desk, percent
from trimtab.evidence.stats.floor import Floor, aa_floor
from trimtab.evidence.stats.quantiles import Floats, effective_samples, order_ranks, quantile, tail_text

PERCENTILES: dict[str, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
PRIMARY_TAILS: dict[str, str] = {"p50": "p95", "p95": "p95", "p99": "p99", "goodput": "p95"}
"""The tail that a diagnosis looks at, by primary metric."""
MIN_REPLAYS = 5
window_edges = tables.window_edges


def latencies(trace: Trace, sla: Sla) -> Floats:
    """Seconds from the scheduled time, in order of arrival; +inf = failed, or later than the study's deadline."""
    seconds = trace.latency
    if sla.deadline_ms is None:
        return seconds
    return np.asarray(np.where(seconds * MS > sla.deadline_ms, np.inf, seconds), dtype=np.float64)


def misses(seconds: Floats, sla: Sla) -> NDArray[np.bool_]:
    """Which latencies miss the SLA's bound."""
    return np.asarray(seconds * MS > sla.bound_ms, dtype=np.bool_)


def metric_value(trace: Trace, sla: Sla) -> float:
    """The study's primary metric of one run: seconds for a percentile, a share for goodput."""
    seconds = latencies(trace, sla)
    if sla.metric == "goodput":
        return 1 - float(misses(seconds, sla).mean()) if seconds.size else math.nan
    return quantile(seconds, PERCENTILES[sla.metric])


def over_replays(values: Sequence[float]) -> tuple[float, Interval | None]:
    """Median over fresh replays and, from 5 replays, its order-statistic interval at the level it really has.

    The level is 95 % where the ranks allow it, else that of the range: 1 - 2 / 2^replays (5 replays: 93.75 %).
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    if not x.size:
        return math.nan, None
    middle = float(x[x.size // 2] if x.size % 2 else (x[x.size // 2 - 1] + x[x.size // 2]) / 2)
    if x.size < MIN_REPLAYS:
        return middle, None
    ranks = order_ranks(x.size, 0.5, 0.95)
    r, s = ranks or (1, x.size)
    level = 0.95 if ranks else 1 - 2.0 ** (1 - x.size)
    method = f"order statistics over {x.size} fresh replays"
    return middle, Interval(lo=float(x[r - 1]), hi=float(x[s - 1]), level=level, method=method)


def curves(name: str, traces: Sequence[Trace], sla: Sla) -> tuple[Series, ...]:
    """The quantile curves of ``traces`` on the tail-weighted axis -log10(1 - p), as a series called ``name``."""
    return tables.curves(name, traces, [latencies(trace, sla) for trace in traces])


def findings(traces: Sequence[Trace], sla: Sla) -> Findings:
    """Everything the replay stage found, from the fresh replays of one or several plans, the baseline's first."""
    if not traces:
        return Findings(stage="replay", headline="Nothing was replayed.", status="partial")
    desk = Desk("replay", "this run", f"traces/{traces[0].run.id}/requests.parquet")
    for trace in traces:
        _run_figures(desk, trace, sla)
    plans = list(dict.fromkeys(trace.run.plan for trace in traces))
    floors = {name: _floor(desk, traces, plans, sla, name) for name in (*PERCENTILES, "miss_rate")}
    for plan in plans:
        _plan_figures(desk, plan, [t for t in traces if t.run.plan == plan], sla, first=plan == plans[0])
    said = [_tail_finding(desk, traces, plans[0], sla), _floor_finding(floors, sla)]
    for trace in traces:
        said += [
            Finding(text=f"Run {trace.run.id}: {gate.text}", figures=gate.figures, owner="observability")
            for gate in gates(trace, latencies(trace, sla), sla)
            if not gate.passed
        ]
    return Findings(
        stage="replay",
        headline=said[0].text,
        findings=tuple(said),
        figures=tuple(desk.figures),
        series=tables.build(traces, [latencies(t, sla) for t in traces], sla),
        status="done" if all(trace.run.complete for trace in traces) else "partial",
    )


def _run_figures(desk: Desk, trace: Trace, sla: Sla) -> None:
    run = trace.run.id
    seconds = latencies(trace, sla)
    n = seconds.size
    artifact = f"traces/{run}/requests.parquet"

    def add(name: str, value: float | None, unit: str, note: str = "", effective: float | None = None) -> None:
        desk.add(f"{run}.{name}", value, unit, n, artifact=artifact, note=note, effective=effective)

    for name, q in PERCENTILES.items():
        worth = effective_samples(seconds, q)
        note = "" if worth.enough else worth.reason or f"needs {worth.needed} effective samples: indicative only"
        if n and math.isinf(quantile(seconds, q)):
            note = f"{tail_text(seconds, q, sla.deadline_ms)}; {note}".rstrip("; ")
        add(name, quantile(seconds, q) * MS, "ms", effective=worth.effective, note=note)
    missed = float(misses(seconds, sla).mean()) if n else math.nan
    add("miss_rate", missed, "share", note=f"bound {sla.bound_ms:g} ms")
    add("goodput", 1 - missed, "share", note=f"done within {sla.bound_ms:g} ms")
    add("failed", float(np.isinf(seconds).sum()), "requests", note=_failure_note(trace))
    offered, issued, completed = rates(trace)
    add("offered_rate", offered, "1/s")
    add("issued_rate", issued, "1/s", note="how fast the load generator really issued the requests")
    add("completed_rate", completed, "1/s")
    slip = slips(trace)
    for label, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        add(f"slip_{label}", quantile(slip, q) * NS_MS, "ms", note="enqueued - scheduled")
    add("driver_cpu_share", trace.run.driver_cpu_share, "share", note="of the driver's core")
    _worker_figures(desk, trace)


def _worker_figures(desk: Desk, trace: Trace) -> None:
    """How busy the workers were, and how long their batches waited for a core."""
    run, artifact = trace.run.id, f"traces/{trace.run.id}/batches.parquet"
    wall = trace.batches["ended"] - trace.batches["started"]
    ran = (trace.batches["started"] >= 0) & (trace.batches["ended"] >= 0)
    queued = ran & (trace.batches["runqueue"] >= 0)
    whole = float(wall[queued].sum())
    waited = off_core(trace.batches, np.maximum(wall, 0))
    share = float(waited[queued].sum()) / whole if whole else math.nan
    note = "of the batches' wall time, waiting for a core" if whole else "run-queue delay was not readable"
    desk.add(f"{run}.runqueue_share", share, "share", int(queued.sum()), note=note, artifact=artifact)
    span = _span(trace)
    busy = float(wall[ran].sum()) / (span * max(trace.run.workers, 1)) if span and ran.any() else math.nan
    desk.add(f"{run}.utilisation", busy, "share", int(ran.sum()), note="workers' busy share", artifact=artifact)


def _failure_note(trace: Trace) -> str:
    counts = Counter(int(code) for code in trace.requests["error"] if code > 0)
    return ", ".join(f"{count} {ERROR_KINDS[code]}" for code, count in sorted(counts.items()))


def slips(trace: Trace) -> NDArray[np.int64]:
    """Loader slip, ns: enqueued - scheduled, of the requests that were issued at all."""
    req = trace.requests
    issued = req["enqueued"] >= 0
    return np.asarray((req["enqueued"] - req["scheduled"])[issued], dtype=np.int64)


def rates(trace: Trace) -> tuple[float, float, float]:
    """Requests/s offered (by schedule), issued (as enqueued) and completed without error; nan below 2 requests."""
    req = trace.requests
    issued = req["enqueued"][req["enqueued"] >= 0]
    done = req["done"][(req["error"] == 0) & (req["done"] >= 0)]
    start = int(req["scheduled"][0]) if len(req) else 0
    return _rate(req["scheduled"], start), _rate(issued, start), _rate(done, start)


def _rate(times: NDArray[np.int64], start: int) -> float:
    span = (int(times.max()) - start) / 1e9 if times.size > 1 else 0.0
    return (times.size - 1) / span if span > 0 else math.nan


def _span(trace: Trace) -> int:
    """From the first scheduled arrival to the last end of anything, ns."""
    if not len(trace.requests):
        return 0
    last = max(int(trace.requests["done"].max()), int(trace.requests["scheduled"].max()))
    return last - int(trace.requests["scheduled"][0])


def _value(trace: Trace, sla: Sla, name: str) -> float:
    seconds = latencies(trace, sla)
    if name == "miss_rate":
        return float(misses(seconds, sla).mean()) if seconds.size else math.nan
    return quantile(seconds, PERCENTILES[name])


def _floor(desk: Desk, traces: Sequence[Trace], plans: Sequence[str], sla: Sla, name: str) -> Floor:
    arms = [[_value(t, sla, name) for t in traces if t.run.plan == plan] for plan in plans]
    floor = aa_floor(arms, "absolute" if name == "miss_rate" else "relative")
    desk.add(
        f"floor.{name}",
        floor.value,
        "share",
        len(floor.differences),
        note=floor.reason,
        scope=traces[0].run.slice,
        artifact="traces",
    )
    return floor


def _plan_figures(desk: Desk, plan: str, traces: Sequence[Trace], sla: Sla, *, first: bool) -> None:
    """The plan's figure over its replays; the first plan's carry the short ids (``replay.p95``)."""
    head = "" if first else f"{plan}."
    scope = traces[0].run.slice
    for name in (*PERCENTILES, "miss_rate"):
        value, interval = over_replays([_value(t, sla, name) for t in traces])
        scale = 1.0 if name == "miss_rate" else MS
        if interval is not None:
            interval = Interval(
                lo=interval.lo * scale, hi=interval.hi * scale, level=interval.level, method=interval.method
            )
        desk.add(
            head + name,
            value * scale,
            "share" if name == "miss_rate" else "ms",
            sum(len(t.requests) for t in traces),
            interval=interval,
            note=f"plan {plan}, median of {len(traces)} replays" + ("" if interval else "; no interval below 5"),
            scope=scope if interval else "this run",
            artifact="traces" if len(traces) > 1 else f"traces/{traces[0].run.id}/requests.parquet",
        )


def _tail_finding(desk: Desk, traces: Sequence[Trace], plan: str, sla: Sla) -> Finding:
    runs = [t for t in traces if t.run.plan == plan]
    p95, p99, p50 = (_text(desk.figures, f"replay.{name}") for name in ("p95", "p99", "p50"))
    missed = next(f.value for f in desk.figures if f.id == "replay.miss_rate")
    count = f"{len(runs)} replays" if len(runs) > 1 else "one replay"
    text = (
        f"Plan {plan}: p95 {p95}, p99 {p99} (p50 {p50}) over {len(runs[0].requests)} scheduled requests, {count}; "
        f"{percent(missed)} miss the bound of {sla.bound_ms:g} ms."
    )
    return Finding(text=text, figures=("replay.p95", "replay.p99", "replay.p50", "replay.miss_rate"), owner="runtime")


def _text(figures: Sequence[Figure], name: str) -> str:
    value = next(f.value for f in figures if f.id == name)
    if value is None:
        return "unknown"
    return "above the deadline" if math.isinf(value) else f"{value:.4g} ms"


def _floor_finding(floors: dict[str, Floor], sla: Sla) -> Finding:
    name = "miss_rate" if sla.metric == "goodput" else sla.metric
    floor = floors[name]
    if floor.value is None:
        text = f"No A/A floor for {sla.metric}: {floor.reason}. No change can be told from noise yet."
    else:
        state = "provisional, nothing may pass against it" if floor.provisional else f"{floor.replays} replays an arm"
        text = f"Replays of the same plan differ in {sla.metric} by up to {percent(floor.value)} ({state})."
    return Finding(text=text, figures=(f"replay.floor.{name}",), owner="observability")
