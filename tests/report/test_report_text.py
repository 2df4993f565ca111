"""The same page in a terminal."""

from __future__ import annotations

import io

import sample_record as sample
from rich.console import Console

from trimtab.report import text
from trimtab.report.page import Cell, Column, Grid, Mark, Opening, Page, Row, Section, Strip
from trimtab.report.view import view


def printed(page: Page, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    text.show(page, console)
    out = console.file
    assert isinstance(out, io.StringIO)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_a_small_page() -> None:
    strip = Strip(marks=(Mark(form="band", x=40, x2=60), Mark(form="line", x=5, x2=30), Mark(form="dot", x=20)))
    grid = Grid(
        columns=(Column(label="Move"), Column(label="", wide=True), Column(label="p99", align="right")),
        rows=(Row(cells=(Cell(text="Add two entries"), Cell(strip=strip), Cell(text="−44 %"))),),
    )
    page = Page(
        title="x",
        opening=Opening(status="pass", word="Ship", sentence="Add two entries.", text="p99 falls."),
        sections=(Section(id="a", nav="A", eyebrow="Retune", heading="It helps.", blocks=(grid,), source="a.json"),),
        rail=(),
    )
    assert (
        printed(page, 60)
        == """\
✓ Ship Add two entries.
p99 falls.

Retune
It helps.
Move                                p99
Add two entries   ───●─── ░░░░░░  −44 %
a.json"""
    )


def test_the_sample_report_starts_with_the_verdict() -> None:
    lines = printed(view(sample.ship())).splitlines()
    assert lines[0] == "✓ Ship Add padded entries 160, 288, 512 and 960, and warm each at start."
    assert any("All guards hold" in line for line in lines)


def test_names_are_neither_markup_nor_control_sequences() -> None:
    hostile = "[red]x[/red]\x1b[31m\r\n"
    page = Page(
        title=hostile,
        opening=None,
        sections=(Section(id="a", nav="A", eyebrow=hostile, heading=hostile, blocks=()),),
        rail=(),
    )
    out = printed(page)
    assert "[red]x[/red]" in out
    assert "\x1b" not in out
    assert "\r" not in out


def test_every_kind_of_record_prints() -> None:
    for make in (sample.ship, sample.hold, sample.rollback, sample.failing, sample.minimal, sample.hostile):
        assert printed(view(make()))


def test_the_name_of_a_mark_is_not_printed_where_the_mark_is_not_drawn() -> None:
    lines = printed(view(sample.ship())).splitlines()
    assert "p95 better in 6 of 6 windows of 200 requests." in lines
    assert "Padding refit-4: 21 % · today: 0 %" in lines
    assert not any("predicted at compile" in line for line in lines)
