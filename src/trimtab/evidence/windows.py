"""Traffic over time: how rate, bursts and sizes move from window to window, and how far its clock can be trusted (R1).

The span is cut into at most 12 windows of equal time. Of each: requests, rate, the gaps' cv and the median of every
dim; and how far its sizes differ from those of all other windows, by the Kolmogorov-Smirnov distance of
:mod:`.traffic`: 0 = alike, 1 = no overlap. Few requests differ by chance, so windows below 30 have no distance.

A recorded clock may tick. Where half of the requests and more bear the very time of the one before, and the other gaps
are 10 ms and more in the median, what happens within a tick is not recorded: gap cv and busiest second then say more of
the clock than of the traffic. Arrivals in batches look the same, so this is told, not decided.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Finding, Series
from trimtab.domain.workload import Workload
from trimtab.evidence.figures import Desk, percent, series
from trimtab.evidence.traffic import distance

MOST_WINDOWS = 12
FEWEST = 30
MOSTLY = 0.5
LEAST_TICK = 10_000_000
NAME = "workload.windows"

Ints = NDArray[np.int64]


def windows(workload: Workload, artifact: str) -> tuple[Series, tuple[Figure, ...], tuple[Finding, ...]]:
    """The windows of ``workload``, which is not empty, as a series; figures and sentences on drift and its clock."""
    desk = Desk("workload", "whole workload", artifact)
    edges = _edges(workload)
    parts = [slice(int(lo), int(hi)) for lo, hi in pairwise(edges)]
    gap = workload.span / len(parts) / 1e9
    columns: dict[str, list[float | int | None]] = {
        "start, s": [round(k * gap, 3) for k in range(len(parts))],
        "requests": [part.stop - part.start for part in parts],
        "rate, 1/s": [(part.stop - part.start) / gap if gap else None for part in parts],
        "gap cv": [_cv(workload.scheduled[part]) for part in parts],
    }
    for axis, name in enumerate(workload.dim_names):
        sizes = workload.dims[:, axis]
        columns[f"{name} p50"] = [float(np.median(sizes[part])) if part.stop > part.start else None for part in parts]
        columns[f"{name} differs"] = [_differs(sizes, part) for part in parts]
    table = series(NAME, columns, {}, artifact, scope="whole workload", note="windows of equal time")
    said = (*_rates(columns["rate, 1/s"], desk), *_drift(workload, columns, desk), *_clock(workload, desk))
    return table, tuple(desk.figures), said


def _edges(workload: Workload) -> Ints:
    """Positions at which windows of equal time begin, and the end."""
    count = max(1, min(MOST_WINDOWS, len(workload) // FEWEST)) if workload.span else 1
    at = np.linspace(0, workload.span, count + 1)[1:-1]
    inner = np.searchsorted(workload.scheduled, at, side="left")
    return np.concatenate(([0], inner, [len(workload)])).astype(np.int64)


def _cv(times: Ints) -> float | None:
    gaps = np.diff(times)
    mean = float(gaps.mean()) if gaps.size else 0.0
    return float(gaps.std()) / mean if mean else None


def _differs(sizes: Ints, part: slice) -> float | None:
    """Distance of one window's sizes from all others'; None where there are too few of either."""
    inside, outside = sizes[part], np.concatenate((sizes[: part.start], sizes[part.stop :]))
    return distance(inside, outside) if min(inside.size, outside.size) >= FEWEST else None


def _rates(rates: list[float | int | None], desk: Desk) -> tuple[Finding, ...]:
    known = [rate for rate in rates if rate is not None]
    if len(known) < 2:
        return ()
    least, most = min(known), max(known)
    desk.add("window_rate_min", least, "1/s", len(known), note="of windows of equal time")
    desk.add("window_rate_max", most, "1/s", len(known), note="of windows of equal time")
    text = f"The rate moves between {least:.3g}/s and {most:.3g}/s from window to window."
    return (
        Finding(text=text, figures=("workload.window_rate_min", "workload.window_rate_max"), owner="observability"),
    )


def _drift(workload: Workload, columns: dict[str, list[float | int | None]], desk: Desk) -> tuple[Finding, ...]:
    worst = ("", -1.0, 0)
    for name in workload.dim_names:
        known = [(value, k) for k, value in enumerate(columns[f"{name} differs"]) if value is not None]
        if not known:
            continue
        value, at = max(known)
        desk.add(f"{name}.window_drift", float(value), "share", len(known), note="of the window that differs most")
        worst = max(worst, (name, float(value), at), key=lambda one: one[1])
    name, value, at = worst
    if not name:
        return ()
    text = f"Sizes drift: {name} of window {at + 1} differs from all others by {percent(value)}."
    return (Finding(text=text, figures=(f"workload.{name}.window_drift",), owner="compiler"),)


def _clock(workload: Workload, desk: Desk) -> tuple[Finding, ...]:
    gaps = np.diff(workload.scheduled)
    if not gaps.size:
        return ()
    still = float((gaps == 0).mean())
    desk.add("same_time", still, "share", gaps.size, note="requests at the very time of the one before")
    moved = gaps[gaps > 0]
    tick = float(np.median(moved)) if moved.size else 0.0
    if still < MOSTLY or tick < LEAST_TICK:
        return ()
    desk.add("clock_tick", tick / 1e9, "s", moved.size, note="median of the other gaps")
    text = (
        f"{percent(still)} of the requests bear the very time of the one before, the others come {tick / 1e9:.3g} s "
        "later: a clock that ticks, or arrivals in batches. What happens within a tick is not recorded."
    )
    return (Finding(text=text, figures=("workload.same_time", "workload.clock_tick"), owner="observability"),)
