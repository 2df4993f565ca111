"""Fusion levels as candidates: which are offered, which refused, and the row that joins tail and memory."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from retuning_cases import Recorded, study

from trimtab.domain.figure import Series
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Move
from trimtab.retuning import fusion, moves
from trimtab.retuning.search import Simulated

BASE = study().baseline
SLA = Sla(metric="p95", bound_ms=60.0)
NOT_EAGER = {"mode eager": "it compiles everything"}
KNOWN = moves.Known(np.array([[100]]), (), Recorded(), unable=NOT_EAGER)
LEVELS = {"optimisations": ["off", "default", "all"]}


def test_each_level_but_the_baselines_is_a_move_of_the_compiler_lead() -> None:
    options = moves.enumerate_moves(study(space=LEVELS), KNOWN)
    assert [(m.plan.id, m.kind, m.owner, m.size, m.plan.compile.optimisation) for m in options.moves[1:]] == [
        ("fusion-off", "optimisation", "compiler", 400, "off"),
        ("fusion-all", "optimisation", "compiler", 400, "all"),
    ]
    assert options.moves[1].sentence == "Compile without graph optimisations: no operator is fused."
    assert [moves.changed(BASE, m.plan) for m in options.moves[1:]] == [("optimisation",)] * 2
    assert [(r.plan, r.reason) for r in options.refused] == [
        ("fusion-default", "it is the baseline's level"), ("eager", "openvino: it compiles everything"),
    ]  # fmt: skip


def test_a_backend_without_levels_refuses_them_with_its_reason() -> None:
    none = moves.Known(
        KNOWN.dims, (), Recorded(), unable=NOT_EAGER | {"graph-optimisation levels": "OpenVINO has none"}
    )
    options = moves.enumerate_moves(study(space=LEVELS), none)
    assert len(options.moves) == 1
    assert [r.reason for r in options.refused] == [
        "openvino: OpenVINO has none", "it is the baseline's level", "openvino: OpenVINO has none",
        "openvino: it compiles everything",
    ]  # fmt: skip


def simulated(plan: str, kind: str, value: float, change: float, failed: str = "") -> Simulated:
    move = Move(kind=kind, sentence=".", owner="compiler", plan=replace(BASE, id=plan), size=0)
    return Simulated(move, () if failed else (value,) * 3, () if failed else (change,) * 3, 0.0, failed)


COMPILED = Series(
    id="compile.fusion",
    columns={
        "plan": ("today", "fusion-off", "elsewhere"), "level": ("default", "off", "all"), "peak": (200.0, 150.0, 9.0),
        "workspace": (None, None, 2.0),
    },
    units={"peak": "MiB", "workspace": "MiB"},
    artifact="profiles",
)  # fmt: skip


def test_tail_and_memory_stand_in_one_row() -> None:
    rows = [simulated("today", "no-change", 50.0, 0.0), simulated("fusion-off", "optimisation", 60.0, 0.2)]
    found = fusion.joined(COMPILED, rows, SLA)
    assert found is not None
    assert {name: found.columns[name] for name in ("plan", "peak", "simulated", "change", "lo")} == {
        "plan": ("today", "fusion-off"), "peak": (200.0, 150.0), "simulated": (50.0, 60.0), "change": (0.0, 0.2),
        "lo": (0.0, 0.2),
    }  # fmt: skip
    assert found.units["simulated"] == "ms"
    told = fusion.told(found, SLA)
    assert told.text == (
        "Fusion levels, simulated, each with its peak memory: default p95 +0.0 %, peak 200 MiB; off p95 +20 %, "
        "peak 150 MiB."
    )
    assert told.figures == ("retune.simulated.today", "retune.simulated.fusion-off")


def test_of_several_entries_those_that_hold_most_speak_for_their_level() -> None:
    columns = COMPILED.columns | {
        "plan": ("today", "today", "fusion-off"), "level": ("default", "default", "off"), "workspace": (4.0, 18.0, 6.0),
    }  # fmt: skip
    rows = [simulated("today", "no-change", 50.0, 0.0), simulated("fusion-off", "optimisation", 60.0, 0.2)]
    found = fusion.joined(replace(COMPILED, columns=columns), rows, SLA)
    assert found is not None
    assert fusion.told(found, SLA).text == (
        "Fusion levels, simulated, each with its peak memory: default p95 +0.0 %, peak 200 MiB, of which one run holds "
        "18 MiB; off p95 +20 %, peak 9 MiB, of which one run holds 6 MiB."
    )


def test_a_level_that_cannot_run_keeps_its_memory() -> None:
    rows = [simulated("today", "no-change", 50.0, 0.0), simulated("fusion-off", "optimisation", 0, 0, "no profile")]
    found = fusion.joined(COMPILED, rows, SLA)
    assert found is not None
    assert (found.columns["simulated"], found.columns["change"]) == ((50.0, None), (0.0, None))
    assert "off p95 not known, peak 150 MiB" in fusion.told(found, SLA).text


def test_where_no_level_was_tried_there_is_no_row() -> None:
    rows = [simulated("today", "no-change", 50.0, 0.0), simulated("refit-4", "refit", 40.0, -0.2)]
    assert fusion.joined(COMPILED, rows, SLA) is None
    assert fusion.joined(None, rows, SLA) is None
