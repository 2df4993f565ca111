"""A run as it is, adapted, without stalls, and with each window known beforehand."""

from __future__ import annotations

import numpy as np
from evidence_cases import Ran, trace

from trimtab.domain.trace import Trace
from trimtab.evidence.score.adaptation import Adaptation, Shift
from trimtab.evidence.stats.floor import Floor, aa_floor

HELD = aa_floor([[1.0, 1.01, 1.03]])


def run(name: str, slow: tuple[float, float] = (1.0, 1.0), *, source: str = "simulated", wide: int = 0) -> Trace:
    """600 requests, each width of 100..299 once in 200; ``slow`` by half. ``wide``: all run at this width."""
    batches = []
    for i in range(600):
        width = 100 + i * 73 % 200
        executed = wide or width
        wall = (1 + 0.01 * executed) * slow[i >= 300]
        batches.append(Ran((width,), wall=wall, promised=1 + 0.01 * executed, executed=executed, arrived=i * 20.0))
    return trace(batches, source=source, id=f"simulated-{name}", plan=name)


def adaptation(adapted: float = 0.8, knowing: float = 0.6, floor: Floor = HELD) -> Adaptation:
    return Adaptation(
        static=run("static"), adapted=run("adapted", (1.0, adapted)), without_stalls=run("without-stalls", (1.0, 0.7)),
        clairvoyant=run("clairvoyant", (knowing, knowing)), floor=floor, edges=np.array([0, 200, 400, 600]),
        shifts=(
            Shift(ends=(), compiled=0, compiling=0, stall=0, best="this window"),
            Shift(ends=(299,), compiled=1, compiling=200_000_000, stall=5_000_000, best="this window"),
            Shift(ends=(150, 299), compiled=1, compiling=300_000_000, stall=6_000_000, best="baseline"),
        ),
        interpolated=0.25,
    )  # fmt: skip
