"""Batch policy, the wait profile, columns without a word, and how almost all is written."""

from __future__ import annotations

import pytest
import sample_record as sample
from msgspec.structs import replace
from sample_findings import series

from trimtab.domain.packet import Record
from trimtab.domain.plan import BatchPolicy
from trimtab.report import words
from trimtab.report.page import Cell, Column, Facts, Grid, Row, Section, Split, said_only
from trimtab.report.view import view

G = "\u00a0"


def part(record: Record, id_: str) -> Section:
    return next(section for section in view(record).sections if section.id == id_)


def batching() -> Record:
    """The baseline lets four requests share a batch."""
    record = sample.ship()
    policy = BatchPolicy(kind="hold", max_size=4, hold_ms=2.0)
    plan = replace(record.study.baseline, serve=replace(record.study.baseline.serve, batch=policy))
    return replace(record, study=replace(record.study, baseline=plan))


def test_the_policy_of_each_plan_is_said() -> None:
    facts = part(batching(), "batching").blocks[0]
    assert isinstance(facts, Facts)
    assert facts.pairs == (
        ("today", "hold: up to 4 requests a batch, held up to 2 ms"),
        ("refit-4", "one request a batch"),
    )


def test_batching_that_was_only_tried_has_its_row() -> None:
    record = sample.ship()
    found = record.findings["retune"]
    tried = {
        "plan": "batch-4", "sentence": "Batch up to 4 requests.", "kind": "batch", "owner": "runtime", "size": 1,
        "status": "rejected", "simulated": -0.17, "simulated_lo": -0.31, "simulated_hi": -0.05, "measured": None,
        "reason": "others gained more",
    }  # fmt: skip
    kept = tuple(each for each in found.series if each.id != "retune.candidates")
    table = series("retune.candidates", [tried])
    section = part(
        replace(record, findings={**record.findings, "retune": replace(found, series=(*kept, table))}), "batching"
    )
    assert section.heading == "Every request runs alone: nothing is held, and nothing is saved by batching."
    grid = section.blocks[-1]
    assert isinstance(grid, Grid)
    assert [cell.text for cell in grid.rows[0].cells] == [
        "Batch up to 4 requests.", f"−17{G}%", f"−31{G}% to −5{G}%", "–", "others gained more",
    ]  # fmt: skip


def test_the_wait_profile_names_what_was_waited_for_and_leaves_out_the_rest() -> None:
    split = next(block for block in part(sample.ship(), "queue").blocks if isinstance(block, Split))
    waits = next(block for block in split.left if isinstance(block, Grid) and "waited for" in block.title)
    assert [column.label for column in waits.columns] == ["From", "Requests", "for a busy worker"]
    assert [[cell.text for cell in row.cells] for row in waits.rows] == [
        [f"0{G}s", "30", "4.5, 31"],
        [f"21{G}s", "30", "4.5, 31"],
    ]


def test_a_column_of_which_no_row_says_anything_is_left_out() -> None:
    columns = (Column(label="a"), Column(label="b"), Column(label="c"))
    rows = (
        Row(cells=(Cell(text="1"), Cell(text="–"), Cell(glyph="pass"))),
        Row(cells=(Cell(text="2"), Cell(), Cell(text="3"))),
    )
    assert [column.label for column in said_only(Grid(columns=columns, rows=rows)).columns] == ["a", "c"]
    wide = Grid(columns=columns, rows=(*rows, Row(cells=(Cell(text="all", span=3),))))
    assert said_only(wide) is wide


@pytest.mark.parametrize(
    ("share", "said"), [(0.9978, f"99.8{G}%"), (1.0, f"100{G}%"), (0.982, f"98{G}%"), (0.004, f"0.4{G}%")]
)
def test_almost_all_is_not_all(share: float, said: str) -> None:
    assert words.percent(share) == said


def test_stored_sentences_get_real_minus_signs() -> None:
    assert words.typeset("goodput changes by -93.3 % (-95 to -91), avx-512, 3-4") == (
        "goodput changes by −93.3 % (−95 to −91), avx-512, 3-4"
    )
