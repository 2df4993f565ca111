"""Whether a simulation may stand for replays: its error against what replays of one plan differ by."""

from __future__ import annotations

import pytest

from trimtab.domain.figure import Series
from trimtab.domain.study import Metric
from trimtab.evidence.score.adaptation import beyond_floor, doubt


def simulation(error: float | None, floor: float | None) -> Series:
    columns = {"metric": ("p50", "p95"), "error": (0.9, error), "floor": (0.01, floor)}
    return Series(id="score.simulation", columns=columns)


@pytest.mark.parametrize("metric", ["p95", "goodput"])
@pytest.mark.parametrize(
    ("error", "floor", "beyond", "doubted"),
    [
        (0.05, 0.06, "", False),
        (-0.05, 0.06, "", False),
        (0.10, 0.06, "the simulation misses the replayed p95 by +10.0 %; replays differ by 6.0 %", False),
        (-0.40, 0.06, "the simulation misses the replayed p95 by -40.0 %; replays differ by 6.0 %", True),
        (0.40, 0.50, "", False),
        (0.20, None, "", False),
        (
            0.30,
            None,
            "the simulation misses the replayed p95 by +30.0 %; and how far replays differ is not known",
            True,
        ),
        (None, None, "no replay has a p95 that the simulation could be held against", False),
    ],
)
def test_a_miss_beyond_the_floor_is_told(
    error: float | None, floor: float | None, beyond: str, doubted: bool, metric: Metric
) -> None:
    assert beyond_floor(simulation(error, floor), metric) == beyond
    assert bool(doubt(simulation(error, floor), metric)) is doubted
