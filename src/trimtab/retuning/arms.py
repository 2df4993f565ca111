"""What is compared: the two plans' replays under one condition, and the slices of the arrivals they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import ConditionKind
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.evidence.memory import peak_of_run
from trimtab.evidence.stats.floor import incomparable
from trimtab.evidence.stats.quantiles import Floats

HELD_OUT = "held-out"
AS_RECORDED = "normal"
CONDITIONS = (AS_RECORDED, *get_args(ConditionKind))
"""What a plan may meet; ``normal`` is the traffic as recorded on this machine. Conditions that were not run are cells
too, marked not-run."""

BANDS = 3
"""Bands that the shapes of traffic are cut into."""


@dataclass(frozen=True)
class Arms:
    """Both plans under one condition: latencies in seconds, one array a replay, all on the same arrivals (+inf =
    failed). ``*_bytes`` is the peak memory of each replay, over all its workers, ``seconds`` the traffic that all
    replays served. ``refusal`` says why they must not be compared."""

    condition: str
    baseline: tuple[Floats, ...]
    candidate: tuple[Floats, ...]
    baseline_bytes: tuple[int, ...] = ()
    candidate_bytes: tuple[int, ...] = ()
    refusal: str = ""
    seconds: float = 0.0


def arms_of(condition: str, baseline: Sequence[Trace], candidate: Sequence[Trace]) -> Arms:
    """The arms of recorded runs; runs that are incomplete or differ in what must be equal carry a refusal."""
    runs = [trace.run for trace in (*baseline, *candidate)]
    stopped = [run.id for run in runs if not run.complete]
    differs = sorted({name for run in runs[1:] for name in _differences(runs[0], run)})
    refusal = f"incomplete runs: {', '.join(stopped)}" if stopped else ""
    if differs:
        refusal = f"the runs differ in {', '.join(differs)}"
    return Arms(
        condition=condition,
        baseline=tuple(trace.latency for trace in baseline),
        candidate=tuple(trace.latency for trace in candidate),
        baseline_bytes=_peaks(baseline),
        candidate_bytes=_peaks(candidate),
        refusal=refusal,
        seconds=sum(float(np.max(trace.requests["scheduled"], initial=0)) / 1e9 for trace in (*baseline, *candidate)),
    )


def _differences(a: RunInfo, b: RunInfo) -> list[str]:
    """What makes two runs incomparable. Two backends each name their own version: only those both name must agree."""
    same = all(a.versions[name] == b.versions[name] for name in a.versions.keys() & b.versions.keys())
    return [name for name in incomparable(a, b) if not (name == "versions" and same)]


def _peaks(traces: Sequence[Trace]) -> tuple[int, ...]:
    return tuple(held for trace in traces if (held := peak_of_run(trace)) is not None)


def slice_rows(
    workload: Workload, held_out: Slice, *, bands: int = BANDS, most_streams: int = 6
) -> dict[str, NDArray[np.int64]]:
    """Positions within the held-out slice of: all of it, the declared slices, its busiest streams, its shape bands.

    ``workload`` is the whole one. Bands hold about equal numbers of requests, along the first dynamic dim.
    """
    rows = workload.index(held_out)
    slices = {HELD_OUT: np.arange(rows.size)}
    for part in workload.slices:
        if part.name not in (HELD_OUT, "tune"):
            slices[part.name] = np.flatnonzero(np.isin(rows, workload.index(part)))
    stream = workload.stream[rows]
    counts = np.bincount(stream, minlength=len(workload.streams))
    busiest = np.argsort(-counts, kind="stable")[: most_streams if len(workload.streams) > 1 else 0]
    for i in sorted(int(i) for i in busiest if counts[i]):
        slices[f"stream {workload.streams[i]}"] = np.flatnonzero(stream == i)
    if rows.size and workload.dim_names:
        slices.update(shape_bands(workload.dim_names[0], workload.dims[rows, 0], bands))
    return slices


def shape_bands(name: str, column: NDArray[np.int64], bands: int = BANDS) -> dict[str, NDArray[np.int64]]:
    """Positions by band of one dim's values; bands hold about equal numbers of them and are named by their ends."""
    cuts = np.quantile(column, [i / bands for i in range(1, bands)], method="inverted_cdf")
    edges = [int(column.min()) - 1, *(int(c) for c in np.unique(cuts)), int(column.max())]
    out = {}
    for low, high in pairwise(edges):
        inside = np.flatnonzero((column > low) & (column <= high))
        if inside.size:
            out[f"{name} {int(column[inside].min())}-{high}"] = inside
    return out
