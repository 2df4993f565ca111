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
    """A sentence on the step from which more clients only wait; empty where throughput still grows."""
    known = sorted((p for p in points if p.clients and p.achieved), key=lambda p: p.clients or 0.0)
    for before, after in pairwise(known):
        if before.clients == after.clients or before.achieved is None or after.achieved is None:
            continue
        more = (after.clients or 0.0) / (before.clients or 1.0) - 1
        gained = after.achieved / before.achieved - 1
        waits = mean_latency(before), mean_latency(after)
        if gained >= FLAT * more or waits[0] is None or waits[1] is None:
            continue
        return (
            f"from {before.name} to {after.name} throughput goes from {before.achieved:.4g}/s to "
            f"{after.achieved:.4g}/s and the mean latency from {lasting(waits[0])} to {lasting(waits[1])}: "
            "who is added only waits"
        )
    return ""


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
