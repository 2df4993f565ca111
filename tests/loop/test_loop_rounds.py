"""More replays where cells cannot be decided yet: who gets them, and when none are left."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study
from msgspec.structs import replace

from trimtab.domain.verdict import Move
from trimtab.loop import judging, rounds
from trimtab.loop.context import Context
from trimtab.loop.loop import run_until
from trimtab.loop.rounds import grant
from trimtab.store.packet import Packet
from trimtab.store.study import load_study


@pytest.mark.parametrize(
    ("wanted", "affordable", "granted"),
    [
        ({"normal": 5}, 10, {"normal": 5}),
        ({"normal": 50}, 10, {"normal": 9}),
        ({"normal": 5, "cold start": 6}, 4, {"normal": 5, "cold start": 5}),
        ({"normal": 5, "cold start": 6}, 1, {"normal": 4, "cold start": 3}),
        ({"normal": 5}, -3, {"normal": 3}),
        ({}, 10, {}),
    ],
    ids=["what-it-needs", "at-most-three-times", "first-come", "one-left", "budget-spent", "nothing-wanted"],
)
def test_rounds_go_to_the_traffic_as_recorded_first(
    wanted: dict[str, int], affordable: int, granted: dict[str, int]
) -> None:
    assert grant(wanted, 3, affordable) == granted


HELD_BACK = """
[baseline.serve.batch]
kind = "size-hold"
max_size = 4
hold_ms = 20.0

[[guards]]
metric = "p95"
margin = 0.5
condition = "cold start"

[[conditions]]
kind = "cold start"

[space]"""


@pytest.mark.slow
def test_replays_that_the_floor_lacks_are_added_while_the_budget_lasts(tmp_path: Path) -> None:
    """Two fixed rounds leave every floor provisional. Null backend: plumbing only."""
    need_two_cores()
    text = STUDY.replace("\n[space]", HELD_BACK).replace('metric = "p99"', 'metric = "p50"')
    path, out = write_study(tmp_path, text), tmp_path / "packet"
    run_until(path, "compile", out=out, budget=None, fresh=False, progress=Silent())
    ctx = Context(study=load_study(path), folder=tmp_path, packet=Packet(out), budget_s=0.0, progress=Silent())
    today = ctx.study.baseline
    plan = replace(today, id="at-once", serve=replace(today.serve, batch=replace(today.serve.batch, hold_ms=0.0)))
    move = Move(kind="batch", sentence="Hold nothing.", owner="runtime", plan=plan, size=1)

    spent = judging.measured(ctx, move)
    assert [len(arm) for arm in spent.values()] == [2, 2]
    ctx.budget_s = 3600.0
    replays = judging.measured(ctx, move)
    assert [len(arm) for arm in replays.values()] == [rounds.of(ctx, "normal")] * 2
    assert rounds.of(ctx, "normal") >= 3
    assert rounds.of(ctx, "cold start") >= 3
    cells = judging.matrix_of(ctx, move, replays)
    assert all("provisional" not in cell.note for cell in cells.cells if cell.role != "informative")
    assert {each.back_to for each in judging.triggers_of(ctx, move, cells, replays)} == {"today"}
    made = {each: each.stat().st_mtime_ns for each in (out / "traces").rglob("*.parquet")}
    assert [len(arm) for arm in judging.held_out(ctx, move).values()] == [len(arm) for arm in replays.values()]
    assert {each: each.stat().st_mtime_ns for each in (out / "traces").rglob("*.parquet")} == made
