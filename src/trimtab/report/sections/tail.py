"""The tail: where its time goes, own and inherited, and what removing each cause alone would buy.

Typical and tail requests stand on ONE millisecond scale, side by side: typical ones look as small as they are.
"""

from __future__ import annotations

from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, real, source
from trimtab.report.page import Cell, Column, Grid, Key, Mark, Row, Section, Strip
from trimtab.report.palette import cause_label, cause_look
from trimtab.report.sections import account, classes
from trimtab.report.sections.account import Part

FINE = 0.005
"""Parts are printed as fine as this share of the whole: nobody decides on less."""

GAP = 0.03
LEAST = 0.15
"""Shares of the strip: between typical and tail, and at least for typical, so that both headings have room."""


def section(book: Book) -> Section | None:
    name, series = account.primary_set(book)
    parts = account.parts_of(series) if series else []
    if series is None or not parts:
        return None
    total = book.figure(f"tail.{name}.total")
    requests = book.figure(f"tail.{name}.requests")
    modelled = book.figure(f"tail.{name}.modelled")
    said = [f"{words.figure(requests)} requests in the {name} set"] if requests else []
    if modelled is not None:
        said.append(f"The queue model explains {words.percent(modelled.value)} of the recorded busy wait")
    again = book.figure(f"tail.{name}.reproduced")
    if again is not None and again.value is not None:
        said.append(f"Run again: {again.note}, {words.percent(again.value)} of it")
    waterfall = _table(book, name, parts, words.figure(total) if total else "")
    return Section(
        id="tail",
        nav="Tail",
        eyebrow="Attribute",
        heading=_heading(book, name, parts),
        lead=book.headline("attribute"),
        blocks=(waterfall, *classes.blocks(book)),
        source=source(
            *said, "Gains do not add: each is what removing that cause alone would buy", artifact=series.artifact
        ),
    )


def _heading(book: Book, name: str, parts: list[Part]) -> str:
    if failed := account.lost(book, name):
        return f"Failed requests own the {name} tail: {failed}."
    owner = account.owner_of(parts)
    if owner is None:
        return f"Where the time of the {name} set goes."
    head = f"{cause_label(owner.cause)}: {words.percent(owner.share)} of the {name} tail"
    if not owner.inherited or not owner.own:
        how = "all of it own" if owner.own else "all of it inherited through the queue"
        return f"{head}, {how}."
    return f"{head}, {words.time(owner.own)} own and {words.time(owner.inherited)} inherited through the queue."


def _table(book: Book, name: str, parts: list[Part], total: str) -> Grid:
    usual, whole = sum(part.typical for part in parts), sum(part.size for part in parts)
    lead = max(usual, (usual + whole) * LEAST) + (usual + whole) * GAP
    to = Scale(lo=0.0, hi=(lead + whole) * 1.3)
    gains = scale([v for part in parts for v in (part.gain, part.lo, part.hi)])
    edge = _floor(book, name)
    columns = (
        Column(label="Cause"),
        Column(label="", ticks=((0.0, "Typical"), (to.at(lead), "Tail, same scale")), heads=True, wide=True),
        Column(label="Own, ms", align="right"),
        Column(label="Inherited, ms", align="right"),
        Column(label="Share", align="right"),
        Column(label=f"Removing it alone cuts {name} by", ticks=_ticks(gains)),
        Column(label="Account, ms", align="right"),
        Column(label="Run again, ms", align="right"),
    )
    rows, at, before = [], lead, 0.0
    owner = account.owner_of(parts)
    for part in parts:
        cells = _cells(part, to, (before, at), gains, edge, whole * FINE, part is owner)
        rows.append(Row(cells=cells, strong=part is owner))
        before, at = before + max(part.typical, 0.0), at + part.size
    rows.append(Row(cells=(Cell(text="Mean of the set"), Cell(), Cell(text=total, span=2), *[Cell()] * 4), total=True))
    legend = [
        Key(swatch="m-bar ink", text="solid: own"),
        Key(swatch="hatched", text="hatched: inherited from work in front"),
        Key(swatch="dot open", text="hollow: touches the noise floor"),
    ]
    return Grid(columns=columns, rows=tuple(rows), legend=tuple(legend))


def _ticks(gains: Scale) -> tuple[tuple[float, str], ...]:
    """Zero, and the far end in round numbers."""
    far = gains.hi * 0.9
    digits = 10 ** (len(str(int(max(far, 1)))) - 1)
    top = int(far // digits) * digits
    return ((gains.at(0.0), "0"), (gains.at(top), f"{words.number(top)} ms")) if top > 0 else ((gains.at(0.0), "0"),)


def _floor(book: Book, name: str) -> float | None:
    """Half the width of the noise band on the axis of gains, ms."""
    floor, bound = book.figure(f"replay.floor.{name}"), book.figure(f"tail.{name}.bound")
    if floor is None or bound is None or floor.value is None or real(bound.value) is None:
        return None
    return floor.value * (bound.value or 0.0)


def _cells(
    part: Part,
    to: Scale,
    start: tuple[float, float],
    gains: Scale,
    edge: float | None,
    fine: float,
    leads: bool,
) -> tuple[Cell, ...]:
    width = max(part.half or 0.0, fine)
    return (
        Cell(text=cause_label(part.cause)),
        Cell(strip=_waterfall(part, to, start, leads)),
        Cell(text=words.number(part.own, fine)),
        Cell(text=words.number(part.inherited, fine)),
        Cell(text=words.percent(part.share, FINE)),
        Cell(strip=_gain_strip(part, gains, edge)),
        Cell(text=words.number(part.gain, width) if part.gain is not None else "", look="" if leads else "muted"),
        Cell(text=words.number(part.again, width) if part.again is not None else "", look="muted"),
    )


def _waterfall(part: Part, to: Scale, start: tuple[float, float], leads: bool) -> Strip:
    before, at = start
    look = cause_look(part.cause)
    marks = [Mark(form="link", x=to.at(at), y=0.0), Mark(form="link", x=to.at(at + part.size), y=50.0)]
    if part.typical > 0:
        end = to.at(before + part.typical)
        marks.append(Mark(form="bar", x=to.at(before), x2=max(end, to.at(before) + 0.1), look=look, cause=part.cause))
    marks += account.bars(to, at, part)
    if leads and part.inherited > 0:
        text = f"{words.time(part.inherited)} inherited"
        marks.append(Mark(form="text", x=to.at(at + part.size), text=text))
    alt = f"{cause_label(part.cause)}: {words.time(part.own)} own, {words.time(part.inherited)} inherited"
    return Strip(marks=tuple(marks), alt=alt)


def _gain_strip(part: Part, gains: Scale, edge: float | None) -> Strip:
    marks = [Mark(form="band", x=gains.at(-edge), x2=gains.at(edge))] if edge is not None else []
    marks.append(Mark(form="tick", x=gains.at(0.0)))
    if part.gain is None:
        remark = account.REMARKS.get(part.cause, "")
        marks += [Mark(form="text", x=gains.at(0.0), text=remark)] if remark else []
        return Strip(marks=tuple(marks), alt=remark or "not known")
    hollow = part.lo is None or part.lo <= (edge or 0.0)
    look = "open" if hollow else ""
    if part.lo is not None and part.hi is not None:
        marks.append(Mark(form="line", x=gains.at(part.lo), x2=gains.at(part.hi), look=look))
    marks.append(Mark(form="dot", x=gains.at(part.gain), look=look))
    return Strip(marks=tuple(marks), alt=f"{words.number(part.gain)} ms less")
