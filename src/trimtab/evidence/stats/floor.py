"""The A/A floor: how far replays of the SAME plan lie apart, and which runs may be compared at all.

Theory
------
Nothing differs between two replays of one plan on the same arrivals but what the machine did meanwhile. The set of
within-plan differences, larger / smaller - 1 (latency) or larger - smaller (shares), shows what a difference between
plans must exceed. The floor's value is their 0.95-quantile by order statistic: with fewer than 20 differences, the
largest. With fewer than 3 replays an arm it is provisional, and nothing may pass against it.

Limits: three replays an arm give three differences an arm; a rare slow spell may be missing among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from trimtab.domain.trace import RunInfo
from trimtab.evidence.stats.quantiles import quantile

MIN_REPLAYS = 3


class Floor(msgspec.Struct, frozen=True):
    """The A/A floor of one metric: ``value`` None = one replay only. ``provisional`` = nothing may pass against it."""

    value: float | None
    differences: tuple[float, ...]
    replays: int
    kind: Literal["relative", "absolute"]
    reason: str = ""

    @property
    def provisional(self) -> bool:
        return self.value is None or bool(self.reason)


def aa_floor(arms: Sequence[Sequence[float]], kind: Literal["relative", "absolute"] = "relative") -> Floor:
    """The floor from one metric's values, one sequence an arm, one value a fresh replay.

    ``relative``: larger / smaller - 1 (latencies); ``absolute``: the difference (shares, rates that may be 0).
    """
    differences = []
    for arm in arms:
        for x, y in itertools.combinations(arm, 2):
            lo, hi = min(x, y), max(x, y)
            differences.append(hi - lo if kind == "absolute" else (hi / lo - 1 if lo > 0 else math.inf))
    replays = min((len(arm) for arm in arms), default=0)
    if not differences:
        return Floor(None, (), replays, kind, "one replay an arm: no difference to see")
    if not all(math.isfinite(d) for d in differences):
        return Floor(None, tuple(differences), replays, kind, "the figure falls among failed requests in a replay")
    reason = "" if replays >= MIN_REPLAYS else f"provisional: {replays} replays an arm, {MIN_REPLAYS} are needed"
    return Floor(quantile(differences, 0.95), tuple(sorted(differences)), replays, kind, reason)


def incomparable(a: RunInfo, b: RunInfo) -> tuple[str, ...]:
    """Why two runs must not be compared: the names of what differs; empty = comparable."""
    same = {
        "workload": a.workload_sha256 == b.workload_sha256,
        "envelope": a.envelope_sha256 == b.envelope_sha256,
        "versions": a.versions == b.versions,
        "start state": a.start_state == b.start_state,
        "source": a.source == b.source,
        "slice": a.slice == b.slice,
    }
    return tuple(name for name, equal in same.items() if not equal)
