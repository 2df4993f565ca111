"""The score stage's series: windows, loss, bands, routes, predicted against measured, simulated against replayed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from trimtab.domain.figure import Series
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.score import Score
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table, window_edges
from trimtab.evidence.attribute.parts import unique_rows
from trimtab.evidence.attribute.split import Int
from trimtab.evidence.figures import MS, NS_MS, Desk, series
from trimtab.evidence.latency import PERCENTILES, latencies, over_replays
from trimtab.evidence.score.batches import Batches, Bool
from trimtab.evidence.stats.floor import aa_floor
from trimtab.evidence.stats.quantiles import Floats, quantile

BANDS = 5
SHAPE_ROWS = 200

Row = dict[str, Any]


def windows(trace: Trace, batches: Batches, seconds: Floats, sla: Sla, adapted: Floats | None) -> Series:
    """Windows of equal numbers of requests; a batch belongs to the window of its oldest member.

    ``gain_p95`` is the adapted run's gain in that window's p95 (absent without an adapted run on these arrivals).
    """
    scheduled = trace.requests["scheduled"]
    rows: list[Row] = []
    for number, (lo, hi) in enumerate(itertools.pairwise(window_edges(seconds.size).tolist())):
        keep = (batches.oldest >= lo) & (batches.oldest < hi)
        p95 = quantile(seconds[lo:hi], 0.95)
        row: Row = {
            "window": number,
            "start": float(scheduled[lo]) / 1e9 if hi > lo else None,
            "requests": hi - lo,
            "p95": p95 * MS,
            "miss_rate": float((seconds[lo:hi] * MS > sla.bound_ms).mean()) if hi > lo else None,
            "mapping_accuracy": batches.mapping(keep),
            "promise_accuracy": batches.promise(keep & ~batches.first),
            "first_runs": int(batches.first[keep].sum()),
        }
        if adapted is not None and adapted.size == seconds.size:
            row["gain_p95"] = 1 - quantile(adapted[lo:hi], 0.95) / p95 if np.isfinite(p95) and p95 > 0 else None
        rows.append(row)
    units = {"start": "s", "p95": "ms", "miss_rate": "share", "mapping_accuracy": "share", "promise_accuracy": "share"}
    return series("score.windows", table(rows), units | {"gain_p95": "share"}, _requests(trace))


def trend(of_windows: Series) -> tuple[float, float] | None:
    """Mean mapping accuracy of the first and of the last third of the windows; None below 6 windows."""
    known = [v for v in of_windows.columns.get("mapping_accuracy", ()) if isinstance(v, float)]
    third = len(known) // 3
    return (sum(known[:third]) / third, sum(known[-third:]) / third) if third >= 2 else None


def loss(score: Score, batches: Batches) -> Series:
    """Where mapping accuracy is lost: shares of measured time that sum to 1 - accuracy."""
    rows = [
        {
            "cause": cause,
            "share": figure.value,
            "lo": figure.interval.lo if figure.interval else None,
            "hi": figure.interval.hi if figure.interval else None,
            "time": float(batches.loss[cause].sum()) * NS_MS,
        }
        for cause, figure in score.loss.items()
    ]
    units = {"share": "share", "lo": "share", "hi": "share", "time": "ms"}
    return series("score.loss", table(rows), units, score.mapping.artifact)


def bands(trace: Trace, batches: Batches, seconds: Floats, sla: Sla) -> Series:
    """Bands of the request's volume (product of its dims) with equal numbers of requests; a batch belongs to the band
    of its largest member."""
    band, names = shape_bands(trace)
    if not names:
        return series("score.bands", {}, {}, _requests(trace))
    volume = trace.requests.dims("dim", trace.dim_names).prod(axis=1)
    of_batch = np.zeros(batches.row.size, dtype=np.int64)
    ran = batches.of_request >= 0
    np.maximum.at(of_batch, batches.of_request[ran], band[ran])
    rows = []
    for number, label in enumerate(names):
        here, keep = band == number, of_batch == number
        rows.append(
            {
                "band": label,
                "lo": int(volume[here].min()),
                "hi": int(volume[here].max()),
                "requests": int(here.sum()),
                "p95": quantile(seconds[here], 0.95) * MS,
                "miss_rate": float((seconds[here] * MS > sla.bound_ms).mean()),
                **_accuracies(batches, keep),
            }
        )
    name = trace.dim_names[0] if len(trace.dim_names) == 1 else "volume"
    return series("score.bands", table(rows), {"p95": "ms"}, _requests(trace), note=f"bands of {name}")


def shape_bands(trace: Trace) -> tuple[Int, list[str]]:
    """The band of each request, by volume (product of its dims), and each band's range; equal numbers of requests."""
    if not trace.dim_names or not len(trace.requests):
        return np.zeros(len(trace.requests), dtype=np.int64), []
    volume = trace.requests.dims("dim", trace.dim_names).prod(axis=1)
    cuts = np.unique([int(quantile(volume, (i + 1) / BANDS)) for i in range(BANDS)])
    band = np.searchsorted(cuts, volume).astype(np.int64)
    of_band = (volume[band == number] for number in range(cuts.size))
    return band, [f"{mine.min()}..{mine.max()}" for mine in of_band]


def routes(trace: Trace, batches: Batches, seconds: Floats) -> Series:
    """By route kind, and first runs once more by themselves."""
    route = trace.requests["route"]
    first = np.zeros(route.size, dtype=np.bool_)
    ran = batches.of_request >= 0
    first[ran] = batches.first[batches.of_request[ran]]
    kinds = [(kind, route == code, batches.route == code) for code, kind in enumerate(ROUTE_KINDS)]
    rows = [
        {
            "route": name,
            "requests": int(here.sum()),
            "share": float(here.mean()),
            "p95": quantile(seconds[here], 0.95) * MS,
            "time": float(batches.measured[keep].sum()) * NS_MS,
            **_accuracies(batches, keep),
        }
        for name, here, keep in [*kinds, ("(first runs)", first, batches.first)]
        if here.any()
    ]
    return series("score.routes", table(rows), {"share": "share", "p95": "ms", "time": "ms"}, _requests(trace))


def _accuracies(batches: Batches, keep: Bool) -> Row:
    return {
        "batches": int(keep.sum()),
        "mapping_accuracy": batches.mapping(keep),
        "promise_accuracy": batches.promise(keep),
        "promise_accuracy_warm": batches.promise(keep & ~batches.first),
        "bias": batches.bias(keep),
    }


def shapes(trace: Trace, batches: Batches) -> Series:
    """Predicted against measured for each (entry, executed dims), warm runs; the shapes that took most time first.

    ``true`` = range of the members' true volumes, ``error`` = median measured / promised - 1.
    """
    b = trace.batches.take(batches.row)
    columns = [b["entry"].astype(np.int64), b["executed_size"].astype(np.int64)]
    columns += [b[f"exec.{name}"] for name in trace.dim_names]
    if not batches.row.size:
        return series("score.shapes", {}, {}, _batches(trace))
    _, code = unique_rows(columns)
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
    groups.sort(key=lambda rows: -int(batches.measured[rows].sum()))
    lowest, highest = _volumes(trace, batches)
    rows = []
    for group in groups[:SHAPE_ROWS]:
        at, warm = group[0], group[~batches.first[group]]
        promised, median = int(batches.promised[at]), quantile(batches.measured[warm], 0.5)
        rows.append(
            {
                "entry": trace.entries[int(columns[0][at])],
                "executed": "x".join(str(int(column[at])) for column in columns[1:]),
                "true": f"{lowest[group].min()}..{highest[group].max()}",
                "promised": promised * NS_MS if promised else None,
                "expected": float(b["expected"][group].mean()) * NS_MS if promised else None,
                "measured": median * NS_MS,
                "measured_p95": quantile(batches.measured[warm], 0.95) * NS_MS,
                "n": int(warm.size),
                "first_runs": int(group.size - warm.size),
                "error": median / promised - 1 if promised else None,
            }
        )
    units = dict.fromkeys(("promised", "expected", "measured", "measured_p95"), "ms") | {"error": "share"}
    left = len(groups) - len(rows)
    return series("score.shapes", table(rows), units, _batches(trace), note=f"{left} more shapes" if left else "")


def _volumes(trace: Trace, batches: Batches) -> tuple[Int, Int]:
    """Smallest and largest true volume among each batch's members."""
    dims = trace.requests.dims("dim", trace.dim_names) if trace.dim_names else np.ones((len(trace.requests), 1))
    volume = dims.prod(axis=1).astype(np.int64)
    ran = batches.of_request >= 0
    low, high = np.full(batches.row.size, 2**62, dtype=np.int64), np.zeros(batches.row.size, dtype=np.int64)
    np.minimum.at(low, batches.of_request[ran], volume[ran])
    np.maximum.at(high, batches.of_request[ran], volume[ran])
    return low, high


def simulation(simulated: Sequence[Trace], replayed: Sequence[Trace], sla: Sla, desk: Desk) -> Series:
    """Percentiles of simulated runs beside replayed ones on the same arrivals: medians over runs, relative error, and
    the replays' A/A floor (None below two). Stored as ``score.simulation.<percentile>`` too."""
    rows: list[Row] = []
    for name in ("p50", "p95", "p99"):
        q = PERCENTILES[name]
        seen = [quantile(latencies(t, sla), q) for t in replayed]
        made, real = over_replays([quantile(latencies(t, sla), q) for t in simulated])[0], over_replays(seen)[0]
        error = made / real - 1 if np.isfinite(real) and real > 0 else None
        floor = aa_floor([seen])
        note = f"simulated / replayed - 1, {len(simulated)} simulated and {len(replayed)} replayed runs"
        desk.add(f"simulation.{name}", error, "share", len(replayed), note=note, artifact="traces")
        rows.append(
            {
                "metric": name,
                "replayed": real * MS,
                "simulated": made * MS,
                "error": error,
                "floor": floor.value,
                "floor_note": floor.reason,
            }
        )
    units = {"replayed": "ms", "simulated": "ms", "error": "share", "floor": "share"}
    return series("score.simulation", table(rows), units, "traces")


def _requests(trace: Trace) -> str:
    return f"traces/{trace.run.id}/requests.parquet"


def _batches(trace: Trace) -> str:
    return f"traces/{trace.run.id}/batches.parquet"
