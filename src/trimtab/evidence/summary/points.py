"""Operating points: what can be said of several settings without taking their percentiles apart.

*Saturated*: from one number of clients to the next larger one the throughput grows by less than 5 % of what the
clients do, while the mean latency grows: whoever is added only waits. By Little's law the mean latency of a closed loop
is clients / throughput (Little 1961), so it need not be in the file.
"""

from __future__ import annotations

from itertools import pairwise

from trimtab.domain.summary import Point
from trimtab.evidence.figures import percent
from trimtab.evidence.timeline.cover import lasting

FLAT = 0.05
LARGE = 0.25


def mean_latency(point: Point) -> float | None:
    """Mean latency, ns: as measured, else the sum of its parts, else by Little's law; None where none of these is."""
    if "mean" in point.latency:
        return float(point.latency["mean"])
    if point.stages:
        return float(sum(point.stages.values()))
    if point.clients and point.achieved:
        return point.clients / point.achieved * 1e9
    return None


def saturated(points: tuple[Point, ...]) -> str:
    """A sentence on the first step from which more clients only wait; empty where throughput still grows.

    Only points of one setting are compared."""
    known = sorted((p for p in points if p.clients and p.achieved), key=lambda p: (p.setting, p.clients or 0.0))
    return next(filter(None, (_step(before, after) for before, after in pairwise(known))), "")


def _step(before: Point, after: Point) -> str:
    a, b = before.clients or 0.0, after.clients or 0.0
    rate, reached = before.achieved or 0.0, after.achieved or 0.0
    waits = mean_latency(before), mean_latency(after)
    if before.setting != after.setting or not a < b or waits[0] is None or waits[1] is None:
        return ""
    if reached / rate - 1 >= FLAT * (b / a - 1):
        return ""
    return (
        f"from {before.name} to {after.name} throughput goes from {rate:.4g}/s to {reached:.4g}/s and the mean "
        f"latency from {lasting(waits[0])} to {lasting(waits[1])}: who is added only waits"
    )


def largest_stage(points: tuple[Point, ...]) -> str:
    """A sentence on the stage that takes most of the mean latency at the last point; empty without stages."""
    staged = [point for point in points if point.stages and sum(point.stages.values())]
    if not staged:
        return ""
    last = max(staged, key=lambda point: point.clients or point.offered or 0.0)
    name, took = max(last.stages.items(), key=lambda pair: pair[1])
    share = took / sum(last.stages.values())
    if share < LARGE:
        return ""
    return f"{name} is {percent(share)} of the mean latency at {last.name} ({lasting(took)}); a mean is no tail"
