"""Padding, literal in -> literal out: by entry, by size, and of a whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence_cases import Ran, run, trace
from msgspec.structs import replace

from trimtab.domain.figure import Findings
from trimtab.domain.trace import Trace
from trimtab.evidence import padding

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
NOTHING = Findings(stage="validate", headline="")


def padded() -> Trace:
    """Two requests of 100 and 200 in an entry of 200, two of 250 and 300 in one of 300; one alone at its own size."""
    ran = [
        Ran((100,), wall=5, executed=200, entry="to-200", arrived=0),
        Ran((200,), wall=5, executed=200, entry="to-200", arrived=10),
        Ran((250,), wall=7, executed=300, entry="to-300", arrived=20),
        Ran((300,), wall=7, executed=300, entry="to-300", arrived=30),
        Ran((400,), wall=9, executed=400, entry="dyn", arrived=40),
    ]
    return trace(ran, plan="refit", slice="held-out")


def rows(found: Findings, name: str) -> list[dict[str, Any]]:
    table = found.table(name)
    assert table is not None, name
    return table.rows


def test_an_entry_pads_what_its_requests_leave_of_it() -> None:
    found = padding.told(NOTHING, [padded()], seed=1)
    assert "300 of 400 positions are true, padding 0.25" in " ".join(PAGE.read_text().split())
    told = {
        row["entry"]: (row["lo"], row["hi"], row["requests"], row["padding"])
        for row in rows(found, "validate.padding_by_entry")
    }
    assert told == {
        "to-200": (100, 200, 2, 0.25),  # 300 of 400 positions
        "to-300": (250, 300, 2, pytest.approx(1 / 12)),
        "dyn": (400, 400, 1, 0.0),
    }
    figure = found.figure("validate.padding.refit")
    assert figure is not None
    assert (figure.value, figure.samples, figure.scope) == (pytest.approx(1 - 1250 / 1400), 5, "held-out")


def test_a_bar_reaches_over_the_sizes_that_came_and_never_over_two_entries() -> None:
    bars = rows(padding.told(NOTHING, [padded()], seed=1), "validate.padding")
    assert [(row["entry"], row["lo"], row["hi"], row["padding"]) for row in bars] == [
        (entry, size, size, pytest.approx(share, abs=1e-6))
        for entry, size, share in (
            ("to-200", 100, 0.5), ("to-200", 200, 0.0), ("to-300", 250, 1 / 6), ("to-300", 300, 0.0), ("dyn", 400, 0.0)
        )
    ]  # fmt: skip


def test_mates_of_a_batch_pad_each_other() -> None:
    """Both ran at the width of the larger one."""
    found = padding.executed(trace([Ran((100, 300), wall=5, executed=300)]))
    assert found.executed.tolist() == [300.0, 300.0]
    assert found.size.tolist() == [100, 300]


def test_of_each_plan_the_first_replay_counts_and_what_failed_does_not() -> None:
    again = replace(padded(), run=run(id="r2", plan="refit", slice="held-out"))
    failed = trace([Ran((100,), wall=5, executed=200, error="crash")], plan="today", slice="held-out")
    found = padding.told(NOTHING, [padded(), again, failed], seed=1)
    assert [figure.id for figure in found.figures] == ["validate.padding.refit"]
    assert sum(row["requests"] for row in rows(found, "validate.padding")) == 5


def test_where_nothing_ran_nothing_is_added() -> None:
    assert padding.told(NOTHING, [], seed=1) == NOTHING
