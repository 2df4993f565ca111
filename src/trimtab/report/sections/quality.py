"""Quality: how far each plan's answers lie from the reference's, beside what they cost and the precision executed."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.domain.figure import Series
from trimtab.report import words
from trimtab.report.arms import unit_of
from trimtab.report.book import Book, Values, each, real, source, value
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Row, Section, said_only

STAGES = ("compile", "retune")
KINDS = {"band": "shape band", "entry": "entry", "padding": "padding alone, entry"}
LOOKS = {"pass": ("holds", "pass"), "fail": ("fails", "fail"), "inconclusive": ("open", "open")}

PARTS = (
    Column(label="Plan"),
    Column(label="Part"),
    Column(label="Answers", align="right"),
    Column(label="Worst request", align="right"),
    Column(label="Floor", align="right"),
    Column(label=""),
    Column(label="Warm", align="right"),
    Column(label="Executed precision"),
    Column(label="Requests", align="right"),
)


def section(book: Book) -> Section | None:
    """One row a plan, then every part; a plan that several stages judged stands once, as the last of them found it."""
    found = [series for stage in STAGES if (series := book.series(f"{stage}.quality")) is not None]
    if not found:
        return None
    rows = {str(row["plan"]): row for series in found for row in each(series)}
    batched = any(row.get("worst_batched") for row in rows.values())
    grid = Grid(columns=_columns(batched), rows=tuple(_row(book, row, batched) for row in rows.values()))
    return Section(
        id="quality",
        nav="Quality",
        eyebrow="Compile, validate",
        heading=_heading(list(rows.values())),
        lead=f"Warm times are profiled, of the same requests; {book.baseline.id}'s own stand below.",
        blocks=(said_only(grid), *_parts(book)),
        source=_source(found[-1]),
    )


def _heading(rows: list[Values]) -> str:
    below = [str(row["plan"]) for row in rows if row.get("status") == "fail"]
    unsure = [str(row["plan"]) for row in rows if row.get("status") not in ("fail", "pass")]
    if not below and not unsure:
        return "The answers of every plan stay within their floor, in every shape band and entry."
    said = [f"The answers of {words.listed(below)} leave the floor"] if below else []
    said += [f"{'those' if below else 'the answers'} of {words.listed(unsure)} stay open"] if unsure else []
    return words.ended(words.opened("; ".join(said)))


def _source(series: Series) -> str:
    return source(words.opened(series.note), words.opened(series.scope), artifact=series.artifact)


def _columns(batched: bool) -> tuple[Column, ...]:
    """``batched``: some plan forms batches."""
    return (
        Column(label="Plan"),
        Column(label="Answers", align="right"),
        Column(label="Floor", align="right"),
        Column(label=""),
        Column(label="Worst request", align="right"),
        Column(label="Worst band", align="right"),
        Column(label="Worst entry", align="right"),
        Column(label="Padding alone", align="right"),
        *((Column(label="In batches", align="right"),) if batched else ()),
        Column(label="Warm", align="right"),
        Column(label="Executed precision"),
        Column(label="Requests", align="right"),
    )


def _row(book: Book, row: Values, batched: bool) -> Row:
    mine = row["plan"] in (book.baseline.id, book.candidate.id if book.candidate else "")
    return Row(
        cells=(
            Cell(text=str(row["plan"])),
            Cell(text=_said(row, "value"), sub=str(row.get("metric", ""))),
            Cell(text=_said(row, "floor")),
            _status(row),
            Cell(text=_said(row, "worst")),
            *(_worst(row, kind) for kind in ("band", "entry", "padding")),
            *((Cell(text=_said(row, "worst_batched_value")),) if batched else ()),
            _time(book, row),
            Cell(text=str(row.get("executed", ""))),
            _requests(row),
        ),
        strong=mine,
    )


def _parts(book: Book) -> Iterator[Block]:
    """Every band, entry and padding of every plan; folded."""
    found = [series for stage in STAGES if (series := book.series(f"{stage}.quality_parts")) is not None]
    rows = {(str(row["plan"]), str(row["kind"]), str(row["part"])): row for series in found for row in each(series)}
    if rows:
        said = f"Show {words.many(len(rows), 'part')}: shape bands, entries, padding alone"
        yield Fold(summary=said, grid=Grid(columns=PARTS, rows=tuple(_part(book, row) for row in rows.values())))


def _part(book: Book, row: Values) -> Row:
    return Row(
        cells=(
            Cell(text=str(row["plan"])),
            Cell(text=str(row["part"]), sub=KINDS.get(str(row["kind"]), "")),
            Cell(text=_said(row, "value"), sub=str(row.get("metric", ""))),
            Cell(text=_said(row, "worst")),
            Cell(text=_said(row, "floor")),
            _status(row),
            _time(book, row),
            Cell(text=str(row.get("executed", "")), look="muted"),
            _requests(row),
        )
    )


def _said(row: Values, key: str) -> str:
    """Infinity is a value here: the error of a request without an answer."""
    return words.quantity(value(row.get(key)), unit_of(str(row.get("metric", ""))))


def _status(row: Values) -> Cell:
    text, glyph = LOOKS.get(str(row.get("status")), LOOKS["inconclusive"])
    return Cell(text=text, glyph=glyph, look=f"{glyph}-ink")


def _worst(row: Values, kind: str) -> Cell:
    name = row.get(f"worst_{kind}")
    return Cell(text=_said(row, f"worst_{kind}_value"), sub=str(name)) if name else Cell(text="")


def _time(book: Book, row: Values) -> Cell:
    mine, before = real(row.get("time")), real(row.get("baseline_time"))
    if mine is None or before is None:
        return Cell(text=words.NOTHING)
    return Cell(
        text=words.time(mine),
        sub="" if row["plan"] == book.baseline.id else f"{words.short(book.baseline.id)} {words.time(before)}",
    )


def _requests(row: Values) -> Cell:
    return Cell(text=words.number(real(row.get("samples"))), sub=str(row.get("payloads", "")))
