"""What the page of a diagnosis draws of imported requests, thinned so that the page of any table stays small.

- Latency curves are order statistics on -log10(1 - p); of a window of time p50 and p95, over at least 200 requests.
- Of single requests the SLOWEST of the slowest 5 % that ended are kept, and of the others every n-th, so that the cloud
  keeps its form; the note counts both. The cause of one is what its removal would take most of it; useful work counts.
- Stages are means of the slowest 5 %, beside those of the middle half (p25 to p75), which is what is typical.
- Padding = 1 - sum of true volumes / sum of executed volumes, by executed volume, in at most BARS bars of equal width.
- A percentile of a stream stands only where it has the requests that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Series
from trimtab.domain.imported import Imported
from trimtab.evidence._latency_tables import curves, table, window_edges
from trimtab.evidence.classify.classes import Effect
from trimtab.evidence.figures import NS_MS, series
from trimtab.evidence.imported._removals import Removals
from trimtab.evidence.imported.recorded import INSIDE, STAGES, Calls
from trimtab.evidence.stats.quantiles import Floats, needed_effective, quantile

SLOW = 0.95
SLOWEST = 300
OTHERS = 900
BARS = 40
STREAMS = 20
S = 1e-9  # ns -> s

Ints = NDArray[np.int64]
Row = dict[str, Any]


def charts(
    given: Imported, found: Removals, effect: Mapping[str, Effect], baseline: Imported | None
) -> tuple[Series, ...]:
    """The series ``diagnose.*`` of one table; what it does not hold is absent. ``effect`` = of removing each cause."""
    trace, calls = given.trace, found.given
    file = trace.run.id
    slow = (
        np.flatnonzero(calls.latency >= quantile(calls.latency, SLOW))
        if calls.latency.size
        else np.empty(0, dtype=np.int64)
    )
    shown, note = _chosen(calls.latency, slow)
    made = {
        "diagnose.shown": (_shown(given, found, shown, slow), {"t": "s", "latency": "ms"}, note),
        "diagnose.failed": (_failed(given, found), {"t": "s"}, ""),
        "diagnose.windows": (_windows(given, found), {"start": "s", "p50": "ms", "p95": "ms"}, ""),
        "diagnose.stages": (_stages(calls, slow), {"slow": "ms", "typical": "ms"}, f"{slow.size} requests"),
        "diagnose.causes": (_causes(effect), {"share": "share"}, ""),
        "diagnose.sizes": (_sizes(calls) if trace.dim_names else iter(()), {"run": "ms"}, " x ".join(trace.dim_names)),
        "diagnose.padding": (_padding(given, calls), {"padding": "share"}, " x ".join(trace.dim_names)),
        "diagnose.streams": (_streams(given, found), {"p50": "ms", "p95": "ms"}, ""),
    }
    rows = {name: (list(each), units, note) for name, (each, units, note) in made.items()}
    return (
        *_curves(given, baseline, file),
        *(series(name, table(each), units, file, note=note) for name, (each, units, note) in rows.items() if each),
    )


def _curves(given: Imported, baseline: Imported | None, file: str) -> tuple[Series, ...]:
    traces = [given.trace]
    if baseline is not None:
        run = msgspec.structs.replace(baseline.trace.run, id=f"baseline {baseline.trace.run.id}")
        traces.append(msgspec.structs.replace(baseline.trace, run=run))
    made = curves("diagnose.quantiles", traces, [trace.latency for trace in traces])
    return tuple(msgspec.structs.replace(one, artifact=file) for one in made)


def _chosen(latency: Floats, slow: Ints) -> tuple[Ints, str]:
    """The calls that are shown one by one, in their order, and how many of how many they are."""
    kept = slow[np.argsort(-latency[slow], kind="stable")][:SLOWEST]
    rest = np.ones(latency.size, dtype=bool)
    rest[slow] = False
    others = np.flatnonzero(rest)
    thinned = _every(others, OTHERS)
    note = f"{kept.size} of the {slow.size} slowest requests; {thinned.size} of the {others.size} others that ended"
    return np.sort(np.concatenate((kept, thinned))), note


def _every(rows: Ints, most: int) -> Ints:
    """Every n-th of ``rows``, so that at most ``most`` are left."""
    return rows[:: -(-rows.size // most)] if rows.size > most else rows


def _shown(given: Imported, found: Removals, shown: Ints, slow: Ints) -> Iterator[Row]:
    if not shown.size:
        return
    trace, calls = given.trace, found.given
    at = calls.row[shown]
    names = [*found.gone, "useful"]
    parts = np.stack([*(gone[shown] for gone in found.gone.values()), found.found.useful[shown]])
    largest, known = parts.argmax(axis=0).tolist(), (parts.max(axis=0) > 0).tolist()
    late = np.isin(shown, slow).tolist()
    for k, row in enumerate(at.tolist()):
        yield {
            "request": int(trace.requests["id"][row]),
            "t": float(trace.requests["scheduled"][row]) * S,
            "latency": float(calls.latency[shown[k]]) * NS_MS,
            "size": float(calls.true_volume[shown[k]]) if trace.dim_names else None,
            "stream": trace.streams[int(trace.requests["stream"][row])],
            "cause": names[largest[k]] if known[k] else "unmodelled",
            "slow": late[k],
        }


def _failed(given: Imported, found: Removals) -> Iterator[Row]:
    req = given.trace.requests
    for row in _every(np.flatnonzero(~np.isfinite(found.observed)), SLOWEST).tolist():
        code = int(req["error"][row])
        yield {"t": float(req["scheduled"][row]) * S, "kind": ERROR_KINDS[code] if code else "unfinished"}


def _windows(given: Imported, found: Removals) -> Iterator[Row]:
    edges = window_edges(found.observed.size)
    if edges.size < 3:
        return
    for lo, hi in pairwise(edges.tolist()):
        part = found.observed[lo:hi] * NS_MS
        start = float(given.trace.requests["scheduled"][lo]) * S
        yield {"start": start, "requests": hi - lo, "p50": quantile(part, 0.5), "p95": quantile(part, SLOW)}


def _stages(calls: Calls, slow: Ints) -> Iterator[Row]:
    """``inside`` = it is a part of the run, which counts it already."""
    if not slow.size:
        return
    lo, hi = quantile(calls.latency, 0.25), quantile(calls.latency, 0.75)
    middle = (calls.latency >= lo) & (calls.latency <= hi)
    for name in STAGES:
        part = getattr(calls, name)
        if np.isfinite(part).any():
            means = {"slow": _mean(part[slow]), "typical": _mean(part[middle])}
            yield {"stage": name, **means, "inside": name in INSIDE}


def _mean(part: Floats) -> float:
    """Over all of ``part``, ms; what is not recorded is no time."""
    return float(np.nansum(part)) / part.size * NS_MS if part.size else 0.0


def _causes(effect: Mapping[str, Effect]) -> Iterator[Row]:
    for name, one in sorted(effect.items(), key=lambda pair: -pair[1].share):
        if one.share > 0:
            yield {"cause": name, "share": one.share, "lo": one.lo, "hi": one.hi}


def _sizes(calls: Calls) -> Iterator[Row]:
    """Run time of batches by the volume that they executed; ``first`` = a first, compiling or outside run."""
    rows = np.flatnonzero(calls.head & np.isfinite(calls.run) & np.isfinite(calls.volume))
    if rows.size < 2 or np.ptp(calls.volume[rows]) == 0:
        return
    plain = calls.plain
    kept = np.concatenate((_every(rows[~plain[rows]], SLOWEST), _every(rows[plain[rows]], OTHERS)))
    for row in np.sort(kept).tolist():
        volume, run = float(calls.volume[row]), float(calls.run[row]) * NS_MS
        yield {"volume": volume, "run": run, "first": not bool(plain[row])}


def _padding(given: Imported, calls: Calls) -> Iterator[Row]:
    if not any(name.startswith("exec.") for name in given.stages.columns):
        return
    rows = calls.head & np.isfinite(calls.volume) & np.isfinite(calls.true_volume)
    executed, true = calls.volume[rows], calls.true_volume[rows]
    if not executed.size or not float(executed.sum()) > float(true.sum()):
        return
    lo, hi = math.floor(executed.min()), math.ceil(executed.max())
    width = max(1, math.ceil((hi - lo + 1) / BARS))
    bar = ((executed - lo) // width).astype(np.int64)
    count = np.bincount(bar)
    sums = np.bincount(bar, weights=executed), np.bincount(bar, weights=true)
    for k in np.flatnonzero(count).tolist():
        share = 1 - float(sums[1][k]) / float(sums[0][k]) if sums[0][k] else 0.0
        yield {"lo": lo + k * width, "hi": lo + (k + 1) * width - 1, "runs": int(count[k]), "padding": max(share, 0.0)}


def _streams(given: Imported, found: Removals) -> Iterator[Row]:
    trace = given.trace
    if len(trace.streams) < 2:
        return
    code = trace.requests["stream"]
    counts = np.bincount(code, minlength=len(trace.streams))
    for k in np.argsort(-counts, kind="stable")[:STREAMS].tolist():
        own = found.observed[code == k] * NS_MS
        if not own.size:
            continue
        enough = {name: own.size >= needed_effective(q) for name, q in (("p50", 0.5), ("p95", SLOW))}
        yield {
            "stream": trace.streams[k],
            "requests": own.size,
            "p50": quantile(own, 0.5) if enough["p50"] else None,
            "p95": quantile(own, SLOW) if enough["p95"] else None,
            "failed": int(np.isinf(own).sum()),
        }
