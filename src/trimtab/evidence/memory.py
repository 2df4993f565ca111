"""Memory of compiled entries: what a plan holds at most, and how it grows with the shapes that it meets (R15, R29).

Definitions
-----------
*peak* of a plan = the most that one process held while any of its entries was compiled or ran, times its workers; it is
held against the *limit*: the least of what the study assumes, what the control group allows, and what the machine has.
*scratch* = the most that one run took above what was held before it. *workspace* = the most that the runtime's own
allocator held in one run, of the entry that holds most. *growth* of a dynamic entry = what its process holds more for
100 further distinct shapes: (last - first) / shapes between them, over the whole curve, and over its second half, which
says whether it goes on.

Limits: peaks are of a profile, one request or batch at a time, with the shapes that it ran; traffic with more shapes
goes on along the curve. What the driver, the pace kernel and the payloads of a run take is inside the worker's peak as
far as the worker holds it, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from trimtab.domain.figure import Cell, Finding, Series
from trimtab.domain.noun import NEVER
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileProfile, MemoryPoint
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import MIB, percent, series
from trimtab.evidence.fusion import workspace

HUNDRED = 100
GROWN = 0.10
"""Growth that is worth a sentence: as a share of what was held at first."""

Row = dict[str, Cell]
Profiles = Sequence[CompileProfile]


def peak(plan: Plan, profiles: Profiles) -> int | None:
    """Bytes that the workers of ``plan`` hold at most; None where no profile could read it."""
    known = [profile.peak_bytes for profile in profiles if profile.peak_bytes > 0]
    return max(known) * plan.serve.workers if known else None


def peak_of_run(trace: Trace) -> int | None:
    """Bytes that all workers of a run held at most, one that ran no batch as much as the one that held most; None where
    a peak was not readable."""
    worker, peaks = trace.batches["worker"], trace.batches["peak_bytes"]
    held = [int(peaks[worker == one].max()) for one in np.unique(worker)]
    if not held or min(held) <= 0:
        return None
    return sum(held) + max(held) * max(trace.run.workers - len(held), 0)


def growth(points: Sequence[MemoryPoint]) -> float | None:
    """MiB for 100 further shapes; None where the curve has no two points."""
    if len(points) < 2 or points[-1].shapes == points[0].shapes:
        return None
    more = points[-1].resident_bytes - points[0].resident_bytes
    return more / MIB * HUNDRED / (points[-1].shapes - points[0].shapes)


def second_half(points: Sequence[MemoryPoint]) -> tuple[MemoryPoint, ...]:
    """The points from the middle of the shapes on."""
    middle = (points[0].shapes + points[-1].shapes) / 2 if points else 0
    return tuple(point for point in points if point.shapes >= middle)


def by_plan(plans: Mapping[str, tuple[Plan, Profiles]], limit: int | None) -> Series | None:
    """``compile.memory``: one row a plan; None where there is none. ``limit`` in bytes."""
    rows = [_row(plan, profiles, limit) for plan, profiles in plans.values() if profiles]
    in_mib = ("peak", "memory", "scratch", "workspace", "growth", "growth_late", "limit")
    units = dict.fromkeys(in_mib, "MiB") | {"share": "share"}
    note = "growth for 100 further distinct shapes; peak of all workers"
    return series("compile.memory", table(rows), units, "profiles", scope="this machine", note=note) if rows else None


def curves(profiles: Profiles) -> Series | None:
    """``compile.growth``: what a dynamic entry's process holds over the distinct shapes it has run."""
    rows = [
        {"plan": one.plan, "entry": one.entry, "shapes": point.shapes, "resident": point.resident_bytes / MIB}
        for one in profiles
        for point in one.growth
    ]
    units = {"resident": "MiB"}
    return series("compile.growth", table(rows), units, "profiles", scope="this machine") if rows else None


def told(plans: Mapping[str, tuple[Plan, Profiles]], limit: int | None) -> Iterator[Finding]:
    """Plans above the limit, and entries that grow by more than a tenth over the shapes that their profile ran."""
    for plan, profiles in plans.values():
        most = peak(plan, profiles)
        if most is not None and limit is not None and most > limit:
            text = f"{plan.id} holds {most / MIB:.4g} MiB at most, above the limit of {limit / MIB:.4g} MiB."
            yield Finding(text=text, owner="compiler")
        yield from (_grown(profile) for profile in profiles if _grows(profile))


def _grows(profile: CompileProfile) -> bool:
    points = profile.growth
    return len(points) > 1 and points[-1].resident_bytes > (1 + GROWN) * points[0].resident_bytes


def _grown(profile: CompileProfile) -> Finding:
    first, last = profile.growth[0], profile.growth[-1]
    late = growth(second_half(profile.growth))
    still = "" if late is None else f", {late:.3g} MiB for 100 in the second half"
    text = (
        f"{profile.plan}.{profile.entry}: memory grows with the shapes it meets, from "
        f"{first.resident_bytes / MIB:.4g} MiB after {first.shapes} to {last.resident_bytes / MIB:.4g} MiB after "
        f"{last.shapes}{still}."
    )
    return Finding(text=text, owner="compiler")


def _row(plan: Plan, profiles: Profiles, limit: int | None) -> Row:
    most = peak(plan, profiles)
    scratch = max((one.scratch_bytes for one in profiles), default=NEVER)
    held = [one for one in map(workspace, profiles) if one is not None]
    curve = max((one.growth for one in profiles), key=lambda points: growth(points) or 0.0, default=())
    return {
        "plan": plan.id,
        "entries": len(profiles),
        "workers": plan.serve.workers,
        "memory": sum(one.memory_bytes for one in profiles) / MIB,
        "peak": None if most is None else most / MIB,
        "scratch": None if scratch == NEVER else scratch / MIB,
        "workspace": max(held, default=None),
        "growth": growth(curve),
        "growth_late": growth(second_half(curve)),
        "shapes": curve[-1].shapes if curve else None,
        "limit": None if limit is None else limit / MIB,
        "share": most / limit if most is not None and limit else None,
    }


def above(most: int | None, limit: int | None) -> str:
    """Why a plan with this peak cannot be served within the limit; an empty string: it can, or nobody knows."""
    if most is None or limit is None or most <= limit:
        return ""
    over = percent(most / limit - 1)
    return f"its peak memory of {most / MIB:.4g} MiB is {over} above the limit of {limit / MIB:.4g} MiB"
