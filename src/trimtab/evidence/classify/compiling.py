"""What a runtime compiled by itself while it served, as a run's marks tell it: where, why, and what ran without.

*compiling batches* = those with a compile event inside (``compile``, ``recompile`` or the fall to ``eager``). *guard* =
what the first of them inside the slow batches says failed; a first compile fails no guard. *fallen* batches = those
that a worker ran on an entry after the runtime had given up on that entry there. ``uncompiled`` = their share of the
time that warm runs took above their promise: only what is slow because of the fall may be charged to it.

Limits: a runtime says that it gave up once, not which later run is uncompiled. Fallen batches that fit what is still
compiled keep their promise, so they add nothing to that share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.evidence.figures import percent
from trimtab.evidence.score.batches import Batches, Bool

EAGER = MARK_KINDS.index("eager")
GUARDED = (MARK_KINDS.index("recompile"), EAGER)
COMPILING = (MARK_KINDS.index("compile"), *GUARDED)


class Compiling(NamedTuple):
    """``slow`` / ``fast`` = share of compiling batches among the slowest and the faster ones; ``falls`` = how often the
    runtime gave up, ``why`` as it said first."""

    slow: float
    fast: float
    guard: str
    falls: int
    why: str
    uncompiled: float | None

    @property
    def inside(self) -> str:
        """How often it compiled inside slow and fast batches, and the first guard."""
        guard = f"; first guard: {self.guard}" if self.guard else ""
        return (
            f"compile events in {percent(self.slow)} of the slowest batches, {percent(self.fast)} of the faster{guard}"
        )

    @property
    def gave_up(self) -> str:
        """That it runs uncompiled, and why."""
        times = "once" if self.falls == 1 else f"{self.falls} times"
        after = (
            "" if self.uncompiled is None else f"; {percent(self.uncompiled)} of the time above promise came after it"
        )
        return f"the runtime gave up compiling {times} and runs uncompiled: {self.why}{after}"


def compiling(trace: Trace, batches: Batches, slow: Bool, fast: Bool) -> Compiling | None:
    """None where nothing was compiled while serving. ``slow`` and ``fast`` pick from ``batches``."""
    found = trace.marks.take(np.isin(trace.marks["kind"], COMPILING))
    if not len(found):
        return None
    ids = trace.batches["id"][batches.row]
    inside = np.isin(ids, found["value2"])
    guarded = np.isin(found["kind"], GUARDED) & np.isin(found["value2"], ids[slow])
    fell = found["kind"] == EAGER
    return Compiling(
        slow=_share(inside, slow),
        fast=_share(inside, fast),
        guard=_first(trace, found["detail"][guarded]),
        falls=int(fell.sum()),
        why=_first(trace, found["detail"][fell]),
        uncompiled=_uncompiled(trace, batches, found["value2"][fell].astype(np.int64).tolist()),
    )


def _share(inside: Bool, among: Bool) -> float:
    return float(inside[among].mean()) if among.any() else 0.0


def _first(trace: Trace, details: NDArray[np.int32]) -> str:
    known = details[details != NEVER]
    return trace.details[int(known[0])] if known.size else ""


def _uncompiled(trace: Trace, batches: Batches, falls: list[int]) -> float | None:
    """None where no warm run took longer than promised."""
    above = np.maximum(batches.measured - batches.promised, 0)
    above = np.where(batches.first | (batches.promised <= 0), 0, above)
    total = float(above.sum())
    return float(above[_fallen(trace, falls)[batches.row]].sum()) / total if total else None


def _fallen(trace: Trace, falls: list[int]) -> Bool:
    """By row of the batch table: it ran where the runtime had given up before."""
    table = trace.batches
    fallen = np.zeros(len(table), dtype=np.bool_)
    for batch in falls:
        at = np.flatnonzero(table["id"] == batch)
        for row in at.tolist():
            same = (table["worker"] == table["worker"][row]) & (table["entry"] == table["entry"][row])
            fallen |= same & (table["started"] >= table["ended"][row])
    return fallen
