"""The server that was driven: what it says of itself, what it counted over each run, and what stays unknown."""

from __future__ import annotations

from trimtab.domain.packet import Record
from trimtab.report import words
from trimtab.report.book import Book, each, real, source
from trimtab.report.page import Block, Cell, Column, Facts, Grid, Prose, Row, Section
from trimtab.report.sections import classes

ABSENT = ("compile", "score", "retune", "validate", "decide")
"""Stages that say why they have nothing to do."""


def section(book: Book) -> Section | None:
    target = book.record.study.workload.target
    if not target:
        return None
    blocks = [block for block in (_facts(book), _counted(book), *classes.blocks(book), _unknown(book)) if block]
    return Section(
        id="server",
        nav="Server",
        eyebrow="Replay",
        heading=f"Driven against {target}: its queue, its batches and its cores are its own.",
        lead=book.headline("attribute"),
        blocks=tuple(blocks),
        source=source("Means are the server's own, over each run", artifact="server/, diagnosis.json"),
    )


def short(record: Record) -> str:
    """The fact for the margin; empty where trimtab's own queue ran."""
    target = record.study.workload.target
    return f"driven against {target}" if target else ""


def _facts(book: Book) -> Block | None:
    said = book.series("plan.server")
    if said is None:
        return None
    pairs = tuple((words.opened(str(row["what"])), str(row["says"])) for row in each(said))
    return Facts(pairs=pairs, title="What the server says of itself")


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
