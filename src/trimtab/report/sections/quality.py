"""Quality: how far each plan's answers lie from the reference's, beside the precision that it really executes."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import words
from trimtab.report.arms import unit_of
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Cell, Column, Grid, Row, Section

SERIES = ("compile.quality", "retune.quality", "validate.quality", "decide.quality")


def section(book: Book) -> Section | None:
    """One row a plan; a plan that several stages judged stands once, as the last of them found it."""
    found = [series for name in SERIES if (series := book.series(name)) is not None]
    if not found:
        return None
    rows = {str(row["plan"]): row for series in found for row in each(series)}
    columns = (
        Column(label="Plan"),
        Column(label="Metric"),
        Column(label="Value", align="right"),
        Column(label="Worst request", align="right"),
        Column(label="Floor", align="right"),
        Column(label=""),
        Column(label="Executed precision"),
        Column(label="Requests", align="right"),
        Column(label="Payloads"),
    )
    return Section(
        id="quality",
        nav="Quality",
        eyebrow="Compile, validate",
        heading=_heading(list(rows.values())),
        blocks=(Grid(columns=columns, rows=tuple(_row(book, row) for row in rows.values())),),
        source=_source(found[-1]),
    )


def _heading(rows: list[Values]) -> str:
    below = [str(row["plan"]) for row in rows if row.get("status") != "pass"]
    if not below:
        return "The answers of every plan stay within their floor."
    return f"The answers of {words.listed(below)} leave the floor."


def _source(series: Series) -> str:
    return source(words.opened(series.note), words.opened(series.scope), artifact=series.artifact)


def _row(book: Book, row: Values) -> Row:
    unit = unit_of(str(row.get("metric", "")))
    passed = row.get("status") == "pass"
    mine = row["plan"] in (book.baseline.id, book.candidate.id if book.candidate else "")

    def said(key: str) -> str:
        return words.quantity(real(row.get(key)), unit)

    return Row(
        cells=(
            Cell(text=str(row["plan"])),
            Cell(text=str(row.get("metric", ""))),
            Cell(text=said("value")),
            Cell(text=said("worst")),
            Cell(text=said("floor")),
            Cell(
                text="holds" if passed else "fails",
                glyph="pass" if passed else "fail",
                look="pass-ink" if passed else "fail-ink",
            ),
            Cell(text=str(row.get("executed", ""))),
            Cell(text=words.number(real(row.get("samples")))),
            Cell(text=str(row.get("payloads", "")), look="muted"),
        ),
        strong=mine,
    )
