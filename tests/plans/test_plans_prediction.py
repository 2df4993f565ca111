"""The benches that hold simulation and search against replays: their arithmetic, on traces that are written down."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import prediction
import replayed
from rig import in_turn

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.serving.simulate import simulate

MS = 1_000_000
PLAN = Plan(
    id="p", compile=CompileSpec(backend="null", entries=(Entry(id="any", kind="dynamic", lo=(1,), hi=(9,)),))
)  # fmt: skip
INFO = RunInfo(
    id="r", plan="p", slice="s", source="simulated", workload_sha256="", envelope_sha256="", start_state="", seed=0,
    workers=1, cores=(0,), driver_core=1,
)  # fmt: skip


class Takes:
    def __init__(self, ms: int) -> None:
        self.ns = ms * MS

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        return self.ns, BatchReport()


def load(*ms: int) -> Workload:
    n = len(ms)
    return Workload(
        id="w", dim_names=("width",), scheduled=np.array(ms, dtype=np.int64) * MS, dims=np.ones((n, 1), dtype=np.int64),
        stream=np.zeros(n, dtype=np.int32), streams=("all",), payload=np.zeros(n, dtype=np.int32),
        payload_kind="random", deadline=np.full(n, -1, dtype=np.int64), provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


def served(run_ms: int, *arrivals: int) -> Trace:
    """Each batch starts 2 ms after its dispatch, and is known to have ended after 3 ms more."""
    nothing = CostModel({})
    return simulate(
        load(*arrivals), PLAN, Router(PLAN.compile), nothing, Takes(run_ms), INFO, handling=lambda _: (2 * MS, 3 * MS)
    )


def test_latency_is_wait_run_and_handling() -> None:
    """5 ms of run and 5 of handling: the second request, 1 ms later, waits 9 ms for all of the first one."""
    found = prediction.parts(served(5, 0, 1))
    assert {name: values.tolist() for name, values in found.items()} == {
        "wait": [0.0, 9.0],
        "run": [5.0, 5.0],
        "handling": [5.0, 5.0],
    }
    told = prediction.said([served(5, 0, 100), served(7, 0, 100)])
    assert told == {0.5: 10.0, 0.95: 12.0, 0.99: 12.0, "wait": 0.0, "run": 6.0, "handling": 5.0}


@pytest.mark.parametrize(
    ("error", "floor", "verdict"), [(0.06, 0.01, "NOT met"), (-0.06, 0.07, "met"), (0.05, 0.0, "met")]
)
def test_a_goal_is_met_within_itself_or_within_the_floor(error: float, floor: float, verdict: str) -> None:
    row = prediction.Row(
        case=prediction.Case(PLAN, load(0), load(0)),
        busy=0.5,
        replayed=prediction.said([served(5, 0, 100)]),
        error=dict.fromkeys(prediction.KEYS, error),
        alone=dict.fromkeys(prediction.KEYS, (0.2, -0.3, 0.1)),
        floor=dict.fromkeys(prediction.KEYS, floor),
    )
    line = next(line for line in prediction.page([row, row, row], "c").splitlines() if line.startswith("| p50 |"))
    *_, alone, _, _, said = line.removesuffix(" |").split(" | ")
    assert (alone, said) == ("20.0%", verdict)


def test_rounds_go_to_and_fro() -> None:
    assert list(in_turn(3, 2)) == [(0, 1), (1, 1), (2, 1), (2, 2), (1, 2), (0, 2)]


def test_every_plan_of_a_grid_is_a_move_from_the_first() -> None:
    class Grid:
        plans = {
            (0, 0, 0): PLAN,
            (0, 0, 1): replace(PLAN, id="ordered", serve=replace(PLAN.serve, order="shortest")),
            (1, 0, 1): replace(
                PLAN,
                id="fitted",
                compile=replace(PLAN.compile, entries=(Entry(id="to-4", kind="bucket", lo=(1,), hi=(4,)),)),
                serve=replace(PLAN.serve, order="shortest"),
            ),
        }

    moves = replayed.moves_of(Grid())  # type: ignore[arg-type]
    assert [(move.kind, move.plan.id) for move in moves] == [
        ("no-change", "p"),
        ("order", "ordered"),
        ("refit", "fitted"),
    ]
    assert moves[0].size == 0 < moves[1].size < moves[2].size
