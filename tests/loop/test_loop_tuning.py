"""What is replayed on the tune slice: moves whose answers hold, as long as there are any that gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Move
from trimtab.loop import quality, tuning
from trimtab.retuning.search import Simulated

ENTRY = Entry(id="any", kind="dynamic", lo=(1,), hi=(9,))


def row(kind: str, size: int, value: float) -> Simulated:
    """A candidate of ``value`` ms, the same in every replica; the baseline has 100."""
    plan = Plan(id=kind, compile=CompileSpec(backend="null", entries=(ENTRY,), fallback="any"))
    move = Move(kind=kind, sentence="", owner="runtime", plan=plan, size=size)
    return Simulated(move, (value,) * 3, (value / 100 - 1,) * 3, 0.0)


ROWS = [row("refit", 308, 40.0), row("round-up", 303, 50.0), row("warm", 110, 80.0), row("no-change", 0, 100.0)]


def shortlisted(monkeypatch: pytest.MonkeyPatch, *failing: str) -> tuple[list[Simulated], list[str]]:
    """The rows and the plans to replay where the answers of ``failing`` do not hold."""
    ctx: Any = SimpleNamespace(
        study=SimpleNamespace(sla=Sla(metric="p95", bound_ms=60.0)), schedule=SimpleNamespace(confirmed=2)
    )
    monkeypatch.setattr(tuning, "replay_floor", lambda ctx: 0.0)
    monkeypatch.setattr(quality, "failing", lambda ctx, plan, stage: "wrong" if plan.id in failing else "")
    rows, short = tuning.shortlisted(ctx, ROWS)
    return rows, [move.plan.id for move in short]


def test_a_move_whose_answers_do_not_hold_makes_room_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, short = shortlisted(monkeypatch, "refit")
    assert short == ["round-up", "warm"]
    assert [row.barred for row in rows] == ["wrong", "", "", ""]


def test_where_all_answers_hold_nothing_is_barred(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, short = shortlisted(monkeypatch)
    assert (rows, short) == (ROWS, ["refit", "round-up"])


def test_where_no_move_that_holds_gains_the_best_are_measured_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, short = shortlisted(monkeypatch, "refit", "round-up", "warm")
    assert (rows, short) == (ROWS, ["refit", "round-up"])
