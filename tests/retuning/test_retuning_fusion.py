"""Fusion levels as candidates: which are offered, which refused, and the sentence that joins tail and memory."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from retuning_cases import Recorded, study

from trimtab.domain.figure import Cell, Series
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Move
from trimtab.retuning import _metric as metric
from trimtab.retuning import fusion, moves
from trimtab.retuning.confirm import Confirmed
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
    assert options.moves[1].sentence == (
        "Compile at the runtime's lowest level of graph optimisation; what it fuses even there stays fused."
    )
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


def level(plan: str, level: str, **changed: Cell) -> dict[str, Cell]:
    """A row of the compile stage: one entry at one level."""
    row: dict[str, Cell] = {
        "plan": plan, "entry": "any", "level": level, "operators": 9, "shape": "1x100", "warm": 4.0, "warm_lo": 3.9,
        "warm_hi": 4.1, "largest": "1x100", "long": 4.0, "long_lo": 3.9, "long_hi": 4.1,
        "workspace": None, "scratch": None, "peak": 200.0,
    }  # fmt: skip
    return row | changed


def compiled(*rows: dict[str, Cell]) -> Series:
    columns = {name: tuple(row[name] for row in rows) for name in rows[0]}
    return Series(id="compile.fusion", columns=columns, units={"peak": "MiB", "workspace": "MiB"}, artifact="profiles")


TODAY, OFF = level("today", "default"), level("fusion-off", "off", operators=12, peak=150.0)
TRIED = [simulated("today", "no-change", 50.0, 0.0), simulated("fusion-off", "optimisation", 60.0, 0.2)]


def told(table: Series, rows: list[Simulated], confirmed: tuple[Confirmed, ...] = ()) -> list[str]:
    found = fusion.joined(table, rows, confirmed, SLA)
    assert found is not None
    return [finding.text for finding in fusion.told(found)]


def test_tail_and_memory_stand_in_one_row() -> None:
    found = fusion.joined(compiled(TODAY, OFF, level("elsewhere", "all")), TRIED, (), SLA)
    assert found is not None
    assert {name: found.columns[name] for name in ("plan", "peak", "simulated", "change", "lo")} == {
        "plan": ("today", "fusion-off"), "peak": (200.0, 150.0), "simulated": (50.0, 60.0), "change": (0.0, 0.2),
        "lo": (0.0, 0.2),
    }  # fmt: skip
    assert found.units["simulated"] == "ms"
    assert found.columns["trade"][0] is None


def test_one_sentence_holds_operators_time_memory_and_tail_with_their_ends() -> None:
    less, more = TODAY | {"workspace": 16.0, "scratch": 40.0}, OFF | {"workspace": 12.0, "scratch": 50.0}
    slower = more | {"warm": 5.0, "warm_lo": 4.92, "warm_hi": 5.07, "largest": "1x400"}
    table = compiled(less, slower)
    assert told(table, TRIED) == [
        "any with off instead of default: 12 operators instead of 9, +25.0 % time at 1x100 (+20.0 % to +30.0 %), "
        "+0.0 % time at 1x400 (-4.9 % to +5.1 %), -25.0 % held in one run (12 MiB), "
        "+25.0 % scratch of one run (50 MiB), -25.0 % peak memory (150 MiB); "
        "p95 +20 % (+20 % to +20 %), simulated."
    ]
    found = fusion.joined(table, TRIED, (), SLA)
    assert found is not None
    assert [(one.figures, one.owner) for one in fusion.told(found)] == [(("retune.simulated.fusion-off",), "compiler")]


def test_what_a_replay_found_outranks_the_simulation() -> None:
    slow = np.random.default_rng(1).permutation(np.linspace(0.030, 0.090, 4000))
    judged = metric.judge([slow] * 3, [slow * 1.5] * 3, "p95", SLA, seed=1)
    replayed = Confirmed(TRIED[1].move, 130.0, (130.0, 0.0, 400), judged)
    assert told(compiled(TODAY, OFF), TRIED, (replayed,))[0].endswith("p95 +50 % (+50 % to +50 %), measured.")


def test_of_several_entries_the_one_that_holds_most_speaks_for_its_level() -> None:
    rows = [
        TODAY | {"workspace": 4.0}, OFF | {"workspace": 5.0}, TODAY | {"entry": "wide", "workspace": 16.0},
        OFF | {"entry": "wide", "workspace": 24.0}, OFF | {"entry": "alone", "workspace": 99.0},
    ]  # fmt: skip
    (sentence,) = told(compiled(*rows), TRIED)
    assert sentence.startswith("wide with off instead of default: ")
    assert "+50.0 % held in one run (24 MiB)" in sentence


def test_a_level_that_cannot_run_keeps_its_memory() -> None:
    failed = [TRIED[0], simulated("fusion-off", "optimisation", 0, 0, "no profile")]
    found = fusion.joined(compiled(TODAY, OFF), failed, (), SLA)
    assert found is not None
    assert (found.columns["simulated"], found.columns["change"]) == ((50.0, None), (0.0, None))
    assert told(compiled(TODAY, OFF), failed)[0].endswith("-25.0 % peak memory (150 MiB); p95 not known, simulated.")


def test_where_no_level_was_tried_there_is_no_row() -> None:
    rows = [TRIED[0], simulated("refit-4", "refit", 40.0, -0.2)]
    assert fusion.joined(compiled(TODAY, OFF), rows, (), SLA) is None
    assert fusion.joined(None, rows, (), SLA) is None
