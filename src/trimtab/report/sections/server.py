"""The server that was driven: what it says of itself, what it counted over each run, and what stays unknown."""

from __future__ import annotations

from trimtab.domain.packet import Record
from trimtab.report import words
from trimtab.report.arms import unit_of
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Block, Cell, Column, Facts, Grid, Prose, Row, Section
from trimtab.report.sections import classes

ABSENT = ("compile", "score", "retune", "validate", "decide")
"""Stages that say why they have nothing to do."""


def section(book: Book) -> Section | None:
    if not book.record.study.workload.target:
        return None
    made = (_held_against(book), *_facts(book), _counted(book), *classes.blocks(book), _unknown(book))
    blocks = [block for block in made if block]
    return Section(
        id="server",
        nav="Server",
        eyebrow="Replay",
        heading=f"{words.opened(short(book.record))}: queue, batches and cores there are not trimtab's.",
        lead=book.headline("attribute"),
        blocks=tuple(blocks),
        source=source("Means are the server's own, over each run", artifact="server/, diagnosis.json"),
    )


def short(record: Record) -> str:
    """The fact for the margin; empty where trimtab's own queue ran."""
    workload = record.study.workload
    named = words.listed([target for target in (workload.target, workload.against) if target])
    return f"driven against {named}" if named else ""


def _facts(book: Book) -> tuple[Block, ...]:
    """What each server says of itself."""
    said = book.series("plan.server")
    rows = list(each(said)) if said else []
    targets = dict.fromkeys(str(row["target"]) for row in rows)
    return tuple(_of_one(target, [row for row in rows if row["target"] == target]) for target in targets)


def _of_one(target: str, rows: list[Values]) -> Facts:
    said = ((words.opened(str(row["what"])), str(row["says"])) for row in rows)
    return Facts(pairs=(("Target", target), *said), title="What the server says of itself")


def _held_against(book: Book) -> Block | None:
    """The two servers on the same arrivals."""
    gate = book.series("validate.gate")
    if gate is None:
        return None
    columns = (
        Column(label=""),
        Column(label="First", align="right"),
        Column(label="Second", align="right"),
        Column(label="Change", align="right"),
        Column(label="Forgiven", align="right"),
        Column(label=""),
    )
    return Grid(columns=columns, rows=tuple(_metric(row) for row in each(gate)), title=book.headline("validate"))


def _metric(row: Values) -> Row:
    unit = unit_of(str(row["metric"]))
    first, second = (words.quantity(real(row[key]), unit) for key in ("old", "new"))
    texts = (row["metric"], first, second, words.change(real(row["change"])), words.percent(real(row["margin"])))
    look = {"pass": "pass", "fail": "fail"}.get(str(row["status"]), "open")
    cell = Cell(text=str(row["status"]), sub=str(row["note"] or ""), glyph=look, look=f"{look}-ink")
    return Row(cells=(*(Cell(text=str(text)) for text in texts), cell), strong=row["role"] == "primary")


def _counted(book: Book) -> Block | None:
    runs = book.series("replay.server")
    if runs is None:
        return None
    columns = (
        Column(label="Run"),
        Column(label="Requests", align="right"),
        Column(label="Failed", align="right"),
        Column(label="Wait", sub="mean, ms", align="right"),
        Column(label="Compute", sub="mean, ms", align="right"),
        Column(label="Batch", sub="mean", align="right"),
        Column(label="In its trace", align="right"),
    )
    keys = ("requests", "failed", "queue", "compute", "batch", "traced")
    rows = tuple(
        Row(cells=(Cell(text=str(row["run"])), *(Cell(text=words.number(real(row.get(key)))) for key in keys)))
        for row in each(runs)
    )
    return Grid(columns=columns, rows=rows, title="What the server counted")


def _unknown(book: Book) -> Block | None:
    """Why there is no score, no candidate and no verdict, each in its stage's own words."""
    said = tuple((f"{words.opened(stage)}:", book.headline(stage)) for stage in ABSENT if book.headline(stage))
    return Prose(paragraphs=said) if said else None
