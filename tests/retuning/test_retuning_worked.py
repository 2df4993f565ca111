"""The worked example of docs/metrics.md, "Deciding": from latencies to cells, a verdict, and what must be watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retuning_cases import study

from trimtab.domain.study import Guard, SignOff, Sla
from trimtab.domain.verdict import Move
from trimtab.retuning.arms import Arms
from trimtab.retuning.case import Case
from trimtab.retuning.decide import decide
from trimtab.retuning.rollback import Redrawn, Rehearsal
from trimtab.retuning.triggers import triggers
from trimtab.retuning.validate import Matrix, validate

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
SLA = Sla(metric="p95", bound_ms=60.0)
COLD = Guard(metric="p95", margin=0.10, condition="cold start")
MOVE = Move(kind="warm", sentence="Warm 8 shapes.", owner="runtime", plan=study().baseline, size=1)
N = 2000


def arm(scale: float) -> tuple[Any, ...]:
    """Latencies 0.05, 0.10, ..., 100 ms, shuffled, in three replays that differ by 1 %; all of it times ``scale``."""
    base = (np.arange(N) * 7919 % N + 1) / N * 0.100
    return tuple(base * scale * luck for luck in (1.0, 1.01, 0.99))


def rehearsed() -> Rehearsal:
    """The candidate on 200 redrawn orders of the same latencies; with service 1.5 times as long on 50 more."""

    def some(seed: int, count: int, longer: float) -> tuple[Redrawn, ...]:
        rows = [np.random.default_rng((seed, k)).permutation(N) for k in range(count)]
        return tuple(Redrawn(order, arm(0.5)[0][order] * longer) for order in rows)

    return Rehearsal(Redrawn(np.arange(N), arm(0.5)[0]), some(1, 200, 1.0), {"service x 1.5": some(2, 50, 1.5)})


def matrix(cold: float | None) -> Matrix:
    pairs = [Arms("normal", arm(1.0), arm(0.5))]
    pairs += [Arms("cold start", arm(1.0), arm(cold))] if cold else []
    return validate(SLA, [COLD], pairs, {"held-out": np.arange(N)}, seed=4)


@pytest.mark.parametrize("cold", [1.05, 1.11, 1.2, None])
def test_the_table_of_the_document_holds(cold: float | None) -> None:
    found = matrix(cold)
    verdict = decide(Case(move=MOVE, baseline="today", cells=found.cells, sla=SLA, signoff=SignOff()))
    reason = f"{verdict.decision}, {verdict.reason}" if verdict.reason else verdict.decision
    row = f"| {cold or 'not replayed'} | {found.guards[0].status} | {reason} |"
    assert row in DOCUMENT.read_text().splitlines()


def test_the_primary_cell_and_the_trigger_of_the_document_hold() -> None:
    found = matrix(1.05)
    primary = found.primary
    assert primary is not None
    assert primary.interval is not None
    shown = (primary.baseline, primary.candidate, primary.change, primary.floor)
    assert shown == pytest.approx((95.0, 47.5, -0.5, 0.0202), rel=2e-2)
    (trigger,) = triggers(
        found.cells, Arms("normal", arm(1.0), arm(0.5)), {"held-out": np.arange(N)}, SLA, MOVE,
        rehearsal=rehearsed(), baseline="today", rate_hz=50.0, seed=4,
    )  # fmt: skip
    assert trigger.sentence in " ".join(DOCUMENT.read_text().replace("\n> ", " ").split())
