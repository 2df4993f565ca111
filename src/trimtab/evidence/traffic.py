"""What the traffic is like, before any plan is looked at: rate, bursts, shapes, clients, drift (R1).

Definitions
-----------
rate = (requests - 1) / span, per second. gap cv = standard deviation / mean of the gaps between arrivals (1 for
Poisson, 0 for a metronome). peak to mean = most arrivals in one second / mean arrivals a second, on a grid of whole
seconds from the first arrival; the last second is counted whole. Shape quantiles are order statistics of the true dims
(rank ``ceil(q n)``), so each is a size that occurred. Distinct shapes counts tuples of all dims.

Drift between the slices ``tune`` and ``held-out``: the Kolmogorov-Smirnov distance of each dim's two empirical
distributions, D = max |F_tune(x) - F_held(x)|, 0 = alike, 1 = no overlap; and the share of held-out requests whose
shape never occurs in tune. With n and m independent samples D stays below 1.36 sqrt((n + m) / (n m)) in 95 % of cases
without drift (Smirnov 1948); sizes of neighbouring requests are rarely independent, so the bound is printed as a
guide and never as a test.

Limits: a recorded trace with stepped time stamps looks burstier than it was; a second is too coarse for a service
whose requests take microseconds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.workload import Slice, Workload
from trimtab.evidence.figures import Desk, percent, series

ARTIFACT = "workload.parquet"
_SECOND = 1_000_000_000
_POINTS = 600
_BARS = 40
_STREAMS = 20
_QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}


def describe(workload: Workload) -> Findings:
    """The workload stage's findings: figures ``workload.*``, and series for its charts and tables."""
    if not len(workload):
        return Findings(stage="workload", headline="There is no request.", status="partial")
    desk = Desk("workload", "whole workload", ARTIFACT)
    _arrival_figures(desk, workload)
    _shape_figures(desk, workload)
    _drift_figures(desk, workload)
    desk.add("streams", len(workload.streams), "streams", len(workload))
    made = Findings(stage="workload", headline="", figures=tuple(desk.figures))
    said = (_rate_finding(made, workload), _shape_finding(made, workload), *_drift_finding(made, workload))
    joined = workload.provenance.joined
    if joined:
        said = (*said, Finding(text=f"{joined[0].upper()}{joined[1:]}.", owner="observability"))
    return Findings(
        stage="workload",
        headline=said[0].text,
        findings=said,
        figures=made.figures,
        series=(_arrivals(workload), *_histograms(workload), _streams(workload), _slices(workload)),
    )


def distance(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """Kolmogorov-Smirnov distance of two samples, 0..1; nan if one is empty."""
    if not a.size or not b.size:
        return math.nan
    at = np.unique(np.concatenate((a, b)))
    below_a = np.searchsorted(np.sort(a), at, side="right") / a.size
    below_b = np.searchsorted(np.sort(b), at, side="right") / b.size
    return float(np.abs(below_a - below_b).max())


def per_second(scheduled: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The seconds, from the first arrival, in which something arrived, and how much; quiet seconds are left out."""
    seconds, counts = np.unique(scheduled // _SECOND, return_counts=True)
    return seconds, counts.astype(np.int64)


def _arrival_figures(desk: Desk, workload: Workload) -> None:
    n, span = len(workload), workload.span
    seconds, counts = per_second(workload.scheduled)
    length = int(seconds[-1]) + 1
    gaps = np.diff(workload.scheduled)
    short = "all arrivals are at one time" if n > 1 else "one request has no gaps"
    rate = (n - 1) / span * 1e9 if span else math.nan
    desk.add("requests", n, "requests", n)
    desk.add("span", span / 1e9, "s", n)
    desk.add("rate", rate, "1/s", n, note="" if span else short)
    desk.add(
        "gap_cv", float(gaps.std() / gaps.mean()) if span else math.nan, "1", gaps.size, note="" if span else short
    )
    desk.add("peak", int(counts.max()), "1/s", length, note="most arrivals in one second")
    desk.add("peak_to_mean", float(counts.max() * length / n), "1", length, note="over seconds")
    desk.add("time_scale", workload.provenance.time_scale, "1", n, note="our time / recorded time")


def _shape_figures(desk: Desk, workload: Workload) -> None:
    n = len(workload)
    for axis, name in enumerate(workload.dim_names):
        ordered = np.sort(workload.dims[:, axis])
        desk.add(f"{name}.min", int(ordered[0]), "size", n)
        for label, q in _QUANTILES.items():
            desk.add(f"{name}.{label}", int(ordered[math.ceil(q * n) - 1]), "size", n)
        desk.add(f"{name}.distinct", len(np.unique(ordered)), "sizes", n)
    desk.add("shapes", len(np.unique(workload.dims, axis=0)), "shapes", n)


def _drift_figures(desk: Desk, workload: Workload) -> None:
    tune, held = (_dims_of(workload, name) for name in ("tune", "held-out"))
    if tune is None or held is None:
        return
    n, m = len(tune), len(held)
    guide = 1.36 * math.sqrt((n + m) / (n * m)) if n and m else math.nan
    for axis, name in enumerate(workload.dim_names):
        note = f"below {guide:.3f} in 95 % of cases without drift, if requests were independent"
        desk.add(f"{name}.drift", distance(tune[:, axis], held[:, axis]), "share", n + m, scope="held-out", note=note)
    known = {tuple(row) for row in tune.tolist()}
    new = [tuple(row) not in known for row in held.tolist()]
    note = "requests whose shape never occurs in the tune slice"
    desk.add("new_shapes", float(np.mean(new)) if new else math.nan, "share", m, scope="held-out", note=note)


def _dims_of(workload: Workload, name: str) -> NDArray[np.int64] | None:
    part = next((part for part in workload.slices if part.name == name), None)
    return None if part is None else workload.dims[workload.index(part)]


def _rate_finding(made: Findings, workload: Workload) -> Finding:
    figures = {f.id.removeprefix("workload."): f.value for f in made.figures}
    rate, ratio = figures["rate"], figures["peak_to_mean"]
    pace = f" at {rate:.3g}/s" if rate is not None else ""
    text = f"{len(workload)} requests{pace} over {workload.span / 1e9:.3g} s"
    return Finding(
        text=f"{text}; the busiest second has {ratio:.1f} times the mean.",
        figures=("workload.requests", "workload.rate", "workload.span", "workload.peak_to_mean"),
        owner="observability",
    )


def _shape_finding(made: Findings, workload: Workload) -> Finding:
    figures = {f.id.removeprefix("workload."): f.value for f in made.figures}
    ranges = [f"{name} {figures[f'{name}.min']:.0f} to {figures[f'{name}.max']:.0f}" for name in workload.dim_names]
    median = [f"{figures[f'{name}.p50']:.0f}" for name in workload.dim_names]
    text = f"{figures['shapes']:.0f} distinct shapes: {', '.join(ranges)} (median {' x '.join(median)})."
    ids = [f"workload.{name}.{label}" for name in workload.dim_names for label in ("min", "p50", "max")]
    return Finding(text=text, figures=("workload.shapes", *ids), owner="compiler")


def _drift_finding(made: Findings, workload: Workload) -> tuple[Finding, ...]:
    new = made.figure("workload.new_shapes")
    if new is None:
        return ()
    drifts = [made.figure(f"workload.{name}.drift") for name in workload.dim_names]
    worst = max(
        (f for f in drifts if f is not None and f.value is not None), key=lambda f: f.value or 0.0, default=None
    )
    moved = "" if worst is None else f"; the distributions differ by up to {percent(worst.value)}"
    text = f"{percent(new.value)} of the held-out requests have a shape that the tune slice never showed{moved}."
    ids = (new.id, *([worst.id] if worst else []))
    return (Finding(text=text, figures=ids, owner="runtime"),)


def _arrivals(workload: Workload) -> Series:
    """Arrivals a second, over at most 600 windows of whole seconds."""
    seconds, counts = per_second(workload.scheduled)
    length = int(seconds[-1]) + 1
    width = math.ceil(length / _POINTS)
    starts = np.arange(0, length, width)
    sums = np.bincount(seconds // width, weights=counts, minlength=starts.size)
    peaks = np.zeros(starts.size, dtype=np.int64)
    np.maximum.at(peaks, seconds // width, counts)
    lengths = np.minimum(starts + width, length) - starts
    return series(
        "workload.arrivals",
        {"start": starts, "rate": sums / lengths, "peak": peaks},
        {"start": "s", "rate": "1/s", "peak": "1/s"},
        ARTIFACT,
        scope="whole workload",
        note=f"windows of {width} s; peak is the busiest second of each",
    )


def _histograms(workload: Workload) -> list[Series]:
    return [_histogram(workload, axis, name) for axis, name in enumerate(workload.dim_names)]


def _histogram(workload: Workload, axis: int, name: str) -> Series:
    """Requests by size, in at most 40 bars of equal width; also how many of them are in each slice."""
    sizes = workload.dims[:, axis]
    lo, hi = int(sizes.min()), int(sizes.max())
    width = max(1, math.ceil((hi - lo + 1) / _BARS))
    bars = (hi - lo) // width + 1
    columns: dict[str, NDArray[np.int64]] = {
        "lo": lo + width * np.arange(bars),
        "hi": np.minimum(lo + width * np.arange(1, bars + 1) - 1, hi),
        "requests": np.bincount((sizes - lo) // width, minlength=bars),
    }
    for part in ("tune", "held-out"):
        dims = _dims_of(workload, part)
        if dims is not None:
            columns[part] = np.bincount((dims[:, axis] - lo) // width, minlength=bars)
    units = dict.fromkeys(columns, "requests") | {"lo": "size", "hi": "size"}
    return series(f"workload.{name}", columns, units, ARTIFACT, scope="whole workload", note=f"bars of {width}")


def _streams(workload: Workload) -> Series:
    """Requests and median size of each stream: the 20 busiest, the rest together."""
    counts = np.bincount(workload.stream, minlength=len(workload.streams))
    order = np.argsort(-counts, kind="stable")
    groups = [(workload.streams[k], workload.stream == k) for k in order[:_STREAMS]]
    if len(order) > _STREAMS:
        groups.append((f"{len(order) - _STREAMS} others", ~np.isin(workload.stream, order[:_STREAMS])))
    groups = [(name, rows) for name, rows in groups if rows.any()]
    columns: dict[str, list[object]] = {
        "stream": [name for name, _ in groups],
        "requests": [int(rows.sum()) for _, rows in groups],
        "share": [float(rows.mean()) for _, rows in groups],
    }
    for axis, dim in enumerate(workload.dim_names):
        columns[f"{dim}.p50"] = [float(np.median(workload.dims[rows, axis])) for _, rows in groups]
    units = {"requests": "requests", "share": "share"}
    return series("workload.streams", columns, units, ARTIFACT, scope="whole workload")


def _slices(workload: Workload) -> Series:
    rows = [(part, workload.index(part)) for part in workload.slices]
    return series(
        "workload.slices",
        {
            "slice": [part.name for part, _ in rows],
            "requests": [at.size for _, at in rows],
            "start": [_seconds(workload, at, 0) for _, at in rows],
            "stop": [_seconds(workload, at, -1) for _, at in rows],
            "what": [_words(part) for part, _ in rows],
        },
        {"requests": "requests", "start": "s", "stop": "s"},
        ARTIFACT,
        scope="whole workload",
        note="start and stop are the first and the last arrival",
    )


def _seconds(workload: Workload, at: NDArray[np.int64], end: int) -> float | None:
    return float(workload.scheduled[at[end]] / 1e9) if at.size else None


def _words(part: Slice) -> str:
    bands = [f"{name} {lo} to {hi}" for name, (lo, hi) in part.band.items()]
    return "; ".join([*bands, *(["streams " + ", ".join(part.streams)] if part.streams else [])])
