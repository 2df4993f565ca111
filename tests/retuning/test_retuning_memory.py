"""Memory and quality charged to candidates: literal moves, arms and tables."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import trace

from trimtab.domain.figure import Findings, Series
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.retuning import beside
from trimtab.retuning.arms import Arms, arms_of
from trimtab.retuning.memory import admit, limit_cell

GIB = 2**30
ENTRY = Entry(id="any", kind="dynamic", lo=(1,), hi=(9,))
ARMS = Arms("normal", (np.ones(1),), (np.ones(1),), baseline_bytes=(3 * GIB // 4,), candidate_bytes=(GIB, 2 * GIB))


def move(plan: str, peak_mib: float | None, kind: str = "refit") -> Move:
    made = Plan(id=plan, compile=CompileSpec(backend="null", entries=(ENTRY,)))
    return Move(kind=kind, sentence=f"Serve {plan}.", owner="runtime", plan=made, size=1, peak_mib=peak_mib)


def test_a_candidate_above_the_limit_is_refused_with_its_figure_and_the_baseline_never() -> None:
    moves = [move("today", 4096, "no-change"), move("large", 3072), move("small", 1024), move("unknown", None)]
    fitting, refused = admit(moves, 2 * GIB)
    assert [one.plan.id for one in fitting] == ["today", "small", "unknown"]
    assert [(one.plan, one.reason) for one in refused] == [
        ("large", "its peak memory of 3072 MiB is 50.0 % above the limit of 2048 MiB")
    ]
    assert admit(moves, None) == (moves, [])


@pytest.mark.parametrize(("limit", "status"), [(3 * GIB, "pass"), (2 * GIB, "pass"), (GIB, "fail")])
def test_the_replays_own_peaks_are_held_against_the_limit(limit: int, status: str) -> None:
    (cell,) = limit_cell(ARMS, limit)
    assert (cell.role, cell.status, cell.baseline, cell.candidate, cell.samples) == ("guard", status, 768, 2048, 2)
    assert ("above the limit of 1024 MiB" in cell.note) is (status == "fail")


def test_an_unknown_limit_or_peak_makes_no_cell() -> None:
    assert limit_cell(ARMS, None) == ()
    assert limit_cell(Arms("normal", (), ()), GIB) == ()


def test_plans_with_different_workers_are_compared_by_what_all_of_them_hold() -> None:
    """One worker of 600 MiB against two: 400 and 300 MiB, and again one that ran nothing."""

    def ran(workers: int, *peaks: int) -> Trace:
        run = trace([10.0] * max(len(peaks), 2))
        run.batches["worker"][:] = [k % len(peaks) for k in range(len(run.batches))]
        run.batches["peak_bytes"][:] = [peaks[k % len(peaks)] << 20 for k in range(len(run.batches))]
        return replace(run, run=replace(run.run, workers=workers))

    found = arms_of("normal", [ran(1, 600)], [ran(2, 400, 300), ran(2, 400), ran(1, -1)])
    assert [size >> 20 for size in (*found.baseline_bytes, *found.candidate_bytes)] == [600, 700, 800]


def test_candidates_carry_speed_memory_and_quality_in_one_row() -> None:
    table = Series(id="retune.candidates", columns={"plan": ("today", "refit", "other"), "measured": (0.0, -0.4, None)})
    names = ("plan", "metric", "value", "floor", "status", "samples", "payloads", "executed")
    rows = [
        ("today", "cosine", 0.999, 0.9, "pass", 24, "real", "f32 100%"),
        ("refit", "cosine", 0.8, 0.9, "fail", 40, "real", "bf16 98%"),
    ]
    quality = Series(id="retune.quality", columns={name: tuple(row[i] for row in rows) for i, name in enumerate(names)})
    found = beside.candidates(Findings(stage="retune", headline="", series=(table,)), quality, {"refit": 812.5})
    joined = found.table("retune.candidates")
    assert joined is not None
    assert {name: column[1] for name, column in joined.columns.items()} == {
        "plan": "refit", "measured": -0.4, "peak_mib": 812.5, "quality_metric": "cosine", "quality": 0.8,
        "quality_floor": 0.9, "quality_status": "fail", "quality_samples": 40, "payloads": "real",
        "executed": "bf16 98%",
    }  # fmt: skip
    assert joined.columns["quality_status"][2] is None
    assert joined.columns["peak_mib"] == (None, 812.5, None)
    unjudged = beside.candidates(replace(found, series=(table,)), None, {}).table("retune.candidates")
    assert unjudged is not None
    assert unjudged.columns["quality"] == (None, None, None)
