"""What adapting at run time would win on these arrivals: gain, headroom, capture, window by window. SIMULATED (R24).

Theory
------
Four simulated runs of the same arrivals with the same draws (how they are made: ``retuning/adaptation.py``): static,
adapted by the online controller, the same with compiles that take no time, clairvoyant.
By metric (:mod:`trimtab.evidence.score.gain`; positive = better):

    gain                (static, adapted)          with its paired block bootstrap interval
    gain without stalls (static, without stalls)   apart, to tell compiling from a lag
    headroom            (static, clairvoyant)
    capture             gain / headroom, only where headroom's interval lies above the floor

The floor is that of the simulation, static runs which differ in their draws alone: measured and simulated never meet,
neither in a ratio nor in a test. By window: p95 of each run, gain and headroom in p95, mapping accuracy of static, and
what was compiled in it.

All of it is doubted, and says so in every note, where the simulated percentile of the static plan misses the replayed
one by more than a quarter and by more than replays differ: first runs are mostly to blame, which a busy machine
stretches while profiling. Then there is no capture, and the reading names no gain.

Limits: windows show p95 and misses only; a window's figure has no interval. Everything here is as good as the profiles
that the times are drawn from; where entries were never profiled, ``interpolated`` says for how much of the work.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Finding, Series
from trimtab.domain.noun import Ns
from trimtab.domain.study import Metric, Sla
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table, window_edges
from trimtab.evidence.figures import MS, NS_MS, NS_S, Desk, counted, percent, percent_within, series
from trimtab.evidence.latency import PERCENTILES, latencies, misses
from trimtab.evidence.score.batches import Batches
from trimtab.evidence.score.gain import Capture, capture, gain, paired_gains
from trimtab.evidence.stats.floor import Floor
from trimtab.evidence.stats.quantiles import Floats, quantile

Row = dict[str, Any]

MISSED = 0.25
"""A simulation that is further from the replays than this, and than they are from each other, is not relied on."""


class Shift(msgspec.Struct, frozen=True, kw_only=True):
    """The adapted run in one window: where its buckets end at its end, how many entries were compiled in it and for how
    many ns, ns that the first runs of new entries took beyond their promise; and what the clairvoyant took."""

    ends: tuple[int, ...]
    compiled: int
    compiling: Ns
    stall: Ns
    best: str


class Adaptation(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated runs; ``edges`` int64[windows + 1] of request numbers, one shift a window. ``floor`` of the primary
    metric between static runs. ``interpolated`` = share of the adapted run's work on entries nobody profiled."""

    static: Trace
    adapted: Trace
    without_stalls: Trace
    clairvoyant: Trace
    floor: Floor
    edges: NDArray[np.int64]
    shifts: tuple[Shift, ...]
    interpolated: float


def windows(requests: int) -> NDArray[np.int64]:
    """Edges of the windows: equal numbers of requests, at least 200 in each."""
    return window_edges(requests)


def window_values(trace: Trace, sla: Sla, edges: NDArray[np.int64]) -> Floats:
    """The primary metric in each window; p99 is for whole slices, so p95 stands for it."""
    seconds = latencies(trace, sla)
    parts = [seconds[lo:hi] for lo, hi in pairwise(edges.tolist())]
    if sla.metric == "goodput":
        return np.array([1 - misses(part, sla).mean() for part in parts])
    q = min(PERCENTILES[sla.metric], 0.95)
    return np.array([quantile(part, q) for part in parts])


def absent(reason: str, desk: Desk) -> None:
    """Store the figures without a value: why there is no adapted run."""
    for name in ("gain", "headroom", "capture"):
        desk.add(name, None, "share", 0, note=f"simulated: {reason}")


def doubt(simulation: Series, metric: Metric) -> str:
    """Why the simulation must not be relied on: it misses the replays of the same plan by more than they differ among
    themselves, and by more than MISSED. Empty = nothing speaks against it. ``simulation`` = ``score.simulation``."""
    name, error, floor = _against_replays(simulation, metric)
    if error is None or abs(error) <= max(MISSED, floor or 0.0):
        return ""
    return _missed(name, error)


def beyond_floor(simulation: Series, metric: Metric) -> str:
    """Why the simulation must not stand for replays: it misses those of the same plan by more than they differ among
    themselves (by more than MISSED where that is not known), or there is nothing to hold it against. Empty = it may."""
    name, error, floor = _against_replays(simulation, metric)
    if error is None:
        return f"no replay has a {name} that the simulation could be held against"
    if abs(error) <= (MISSED if floor is None else floor):
        return ""
    known = "and how far replays differ is not known" if floor is None else f"replays differ by {percent(floor)}"
    return f"{_missed(name, error)}; {known}"


def _against_replays(simulation: Series, metric: Metric) -> tuple[str, float | None, float | None]:
    """The percentile that is compared, the simulation's error there, and the replays' A/A floor."""
    name = "p95" if metric == "goodput" else metric
    at = simulation.columns["metric"].index(name)
    error, floor = simulation.columns["error"][at], simulation.columns["floor"][at]
    return name, error if isinstance(error, float) else None, floor if isinstance(floor, float) else None


def _missed(name: str, error: float) -> str:
    return f"the simulation misses the replayed {name} by {'+' if error > 0 else ''}{percent(error)}"


def figures(found: Adaptation, sla: Sla, rng: np.random.Generator, desk: Desk, doubted: str = "") -> Figure:
    """Every figure of the comparison on ``desk``; returns the gain in the primary metric. ``doubted`` (see
    :func:`doubt`) enters every note, and leaves nothing to capture."""
    start = len(desk.figures)
    won = paired_gains("gain", [found.static], [found.adapted], sla, rng, desk)
    paired_gains("gain_without_stalls", [found.static], [found.without_stalls], sla, rng, desk)
    most = paired_gains("headroom", [found.static], [found.clairvoyant], sla, rng, desk)
    n, floor = len(found.static.requests), found.floor
    note = floor.reason or f"simulated {sla.metric}, {floor.replays} static runs that differ in their draws alone"
    desk.add("simulated_floor", floor.value, "share", len(floor.differences), note=note)
    share = Capture(None) if doubted else capture(won.value, most.value, most.interval, floor)
    desk.add(
        "capture", share.value, "share", n, note=share.reason or f"of the headroom in {sla.metric}; both simulated"
    )
    stall = sum(shift.stall for shift in found.shifts)
    compiled = sum(shift.compiled for shift in found.shifts)
    failed = float(np.isinf(latencies(found.adapted, sla)).mean())
    desk.add(
        "adapted_failed", failed, "share", n, note="simulated: requests that the adapted run ends after the deadline"
    )
    desk.add("stall", stall * NS_MS, "ms", compiled, note="simulated: first runs of new entries beyond their promise")
    compiling = sum(shift.compiling for shift in found.shifts)
    desk.add("compiling", compiling * NS_MS, "ms", compiled, note="simulated: on a core that serves nobody")
    note = "of the adapted run's work: entries that were never profiled, timed by the reference entry at their dims"
    desk.add("interpolated", found.interpolated, "share", len(found.adapted.batches), note=note)
    if doubted:
        desk.figures[start:] = [msgspec.structs.replace(f, note=f"{f.note}; {doubted}") for f in desk.figures[start:]]
    return won


def by_window(found: Adaptation, batches: Batches, sla: Sla, doubted: str = "") -> Series:
    """One row a window; ``batches`` = the score's view of the static run. All of it simulated."""
    runs = {
        "static": latencies(found.static, sla),
        "adapted": latencies(found.adapted, sla),
        "without_stalls": latencies(found.without_stalls, sla),
        "clairvoyant": latencies(found.clairvoyant, sla),
    }
    start = found.static.requests["scheduled"]
    rows: list[Row] = []
    for number, ((lo, hi), shift) in enumerate(zip(pairwise(found.edges.tolist()), found.shifts, strict=True)):
        p95 = {name: quantile(seconds[lo:hi], 0.95) * MS for name, seconds in runs.items()}
        rows.append(
            {
                "window": number,
                "start": float(start[lo]) / 1e9,
                "requests": hi - lo,
                **{f"{name}_p95": value for name, value in p95.items()},
                "gain": gain("p95", p95["static"], p95["adapted"]),
                "gain_without_stalls": gain("p95", p95["static"], p95["without_stalls"]),
                "headroom": gain("p95", p95["static"], p95["clairvoyant"]),
                "static_misses": float(misses(runs["static"][lo:hi], sla).mean()),
                "adapted_misses": float(misses(runs["adapted"][lo:hi], sla).mean()),
                "mapping_accuracy": batches.mapping((batches.oldest >= lo) & (batches.oldest < hi)),
                "compiled": shift.compiled,
                "compiling": shift.compiling * NS_MS,
                "stall": shift.stall * NS_MS,
                "ends": " ".join(map(str, shift.ends)),
                "best": shift.best,
            }
        )
    units = {"start": "s", "compiling": "ms", "stall": "ms"} | dict.fromkeys((f"{name}_p95" for name in runs), "ms")
    shares = ("gain", "gain_without_stalls", "headroom", "static_misses", "adapted_misses", "mapping_accuracy")
    note = "simulated: all runs on the same arrivals with the same draws" + (f"; {doubted}" if doubted else "")
    return series("score.adaptation", table(rows), units | dict.fromkeys(shares, "share"), "profiles", note=note)


def clause(won: Figure, desk: Desk, doubted: str = "") -> str:
    """What refitting at run time would win, as part of the one sentence that reads the score."""
    if doubted:
        return f"what refitting at run time would win cannot be read ({doubted})"
    if won.value is None:
        return f"refitting at run time, simulated: {_why_not(desk)}"
    between = won.interval
    text = percent_within(won.value, between) if between else f"{percent(won.value)}, no interval"
    if between is None or between.lo <= 0 <= between.hi:
        return f"no gain of refitting at run time is shown in simulation ({text})"
    return f"refitting at run time, simulated, {'wins back' if won.value > 0 else 'loses'} {text}"


def said(found: Adaptation, metric: Metric, desk: Desk, doubted: str = "") -> Finding:
    """Where the gain comes from or is lost, in one sentence; after ``doubted``, if anything speaks against it."""
    stall = sum(shift.stall for shift in found.shifts) * NS_MS
    compiling = sum(shift.compiling for shift in found.shifts) * NS_S
    compiled = sum(shift.compiled for shift in found.shifts)
    text = (
        f"In simulation, refitting the buckets while serving makes {metric} {_words('gain', desk)}: "
        f"{counted(compiled, 'compile')} {'takes' if compiled == 1 else 'take'} {compiling:.3g} s of a core "
        f"that serves nobody, and first runs {stall:.3g} ms of the workers. With compiles that take no time it would "
        f"be {_words('gain_without_stalls', desk)}; with each window known beforehand, {_words('headroom', desk)}."
    )
    if not compiled:
        text = (
            f"In simulation, refitting the buckets while serving changes nothing: no table was proved to be worth it. "
            f"With each window known beforehand, {metric} would be {_words('headroom', desk)}."
        )
    if doubted:
        text = f"Not to be relied on, because {doubted}. {text}"
    ids = ("score.gain", "score.gain_without_stalls", "score.headroom", "score.stall")
    return Finding(text=text, figures=ids, owner="runtime")


def _words(name: str, desk: Desk) -> str:
    """``12.0 % better``."""
    figure = _stored(name, desk)
    if figure.value is None:
        return f"unknown ({_why_not(desk)})"
    return f"{percent(abs(figure.value))} {'better' if figure.value >= 0 else 'worse'}"


def _why_not(desk: Desk) -> str:
    failed = _stored("adapted_failed", desk).value
    if not failed:
        return "it cannot be computed"
    good = next((figure.value for figure in desk.figures if figure.id == "score.gain.goodput"), None)
    lost = f", and goodput changes by {percent(good)}" if good is not None else ""
    return f"{percent(failed)} of the requests end after the deadline{lost}"


def _stored(name: str, desk: Desk) -> Figure:
    return next(figure for figure in desk.figures if figure.id == f"score.{name}")
