"""The tail: where its time goes, own and inherited, and what removing each cause alone would buy.

Typical and tail requests stand on ONE millisecond scale, side by side: typical ones look as small as they are.
"""

from __future__ import annotations

import math

from trimtab.domain.figure import Series
from trimtab.domain.noun import Noun
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, each, real, source
from trimtab.report.page import Answer, Cell, Column, Grid, Key, Mark, Row, Section, Strip
from trimtab.report.palette import cause, cause_label, cause_look
from trimtab.report.sections import classes

FIRST = ("useful", "co-batching", "capacity")
"""What a request costs by itself, and the queue that useful work makes: they open the waterfall."""
LAST = ("unprofiled", "unmodelled")
REMARKS = {
    "useful": "the work itself",
    "capacity": "needs more cores or less work",
    "unmodelled": "not attributable",
    "unprofiled": "profile these shapes first",
}
FINE = 0.005
"""Parts are printed as fine as this share of the whole: nobody decides on less."""

GAP = 0.03
LEAST = 0.15
"""Shares of the strip: between typical and tail, and at least for typical, so that both headings have room."""


class Part(Noun, frozen=True, kw_only=True):
    """One cause's part of the tail, ms a request."""

    cause: str
    own: float
    inherited: float
    typical: float
    share: float | None
    gain: float | None
    lo: float | None
    hi: float | None
    again: float | None

    @property
    def size(self) -> float:
        return max(self.own, 0.0) + max(self.inherited, 0.0)


def _set(book: Book) -> tuple[str, Series | None]:
    """The set that belongs to the primary metric, else the other one."""
    names = ("p99", "p95") if book.record.study.sla.metric == "p99" else ("p95", "p99")
    found = ((name, book.series(f"tail.{name}.waterfall")) for name in names)
    return next(((name, series) for name, series in found if series is not None), (names[0], None))


def _parts(series: Series) -> list[Part]:
    """In the order of the waterfall: the work itself, then causes by size, then what is not explained."""
    parts = [
        Part(
            cause=cause(str(row["cause"])),
            own=real(row.get("own")) or 0.0,
            inherited=real(row.get("inherited")) or 0.0,
            typical=real(row.get("typical")) or 0.0,
            share=real(row.get("share")),
            gain=real(row.get("gain")),
            lo=real(row.get("gain_lo")),
            hi=real(row.get("gain_hi")),
            again=real(row.get("resimulated")),
        )
        for row in each(series)
    ]

    def place(part: Part) -> tuple[int, float]:
        if part.cause in FIRST:
            return FIRST.index(part.cause) - len(FIRST), 0.0
        return (1 if part.cause in LAST else 0), -part.size

    return sorted((part for part in parts if part.size or part.typical), key=place)


def _lost(book: Book, name: str) -> str:
    """How many requests failed, where the percentile falls among them; else empty."""
    bound, failed = book.figure(f"tail.{name}.bound"), book.figure(f"tail.{name}.failed_requests")
    if bound is None or failed is None or bound.value != math.inf:
        return ""
    return f"{words.figure(failed)} of {words.count(failed.samples)} requests failed"


def _owner(parts: list[Part]) -> Part | None:
    known = [part for part in parts if part.share is not None]
    return max(known, key=lambda part: part.share or 0.0) if known else None


# --- the first screen ---------------------------------------------------------------------------------------------


def answer(book: Book) -> Answer | None:
    """Who owns the tail, with its share."""
    name, series = _set(book)
    if lost := _lost(book, name):
        return Answer(label=f"Owner of the tail, {name} set", value="Failed requests", caption=lost)
    parts = _parts(series) if series else []
    owner = _owner(parts)
    if owner is None:
        return None
    ranked = sorted(parts, key=lambda part: -(part.share or 0.0))
    shown = [f"{cause_label(part.cause)} {words.percent(part.share)}" for part in ranked[:3] if part.share]
    return Answer(
        label=f"Owner of the tail, {name} set",
        value=f"{cause_label(owner.cause)}, {words.percent(owner.share)}",
        caption=f"{words.time(owner.own)} own, {words.time(owner.inherited)} inherited",
        strip=_stacked(ranked),
        under=tuple(shown),
        foot=_gain_words(name, owner),
    )


def _stacked(parts: list[Part]) -> Strip:
    to = Scale(lo=0.0, hi=sum(part.size for part in parts) or 1.0)
    marks: list[Mark] = []
    at = 0.0
    for part in parts:
        marks += _bars(to, at, part)
        at += part.size
    return Strip(marks=tuple(marks), alt=words.listed([cause_label(part.cause) for part in parts[:3]]))


def _bars(to: Scale, at: float, part: Part) -> list[Mark]:
    """Own solid, inherited in the same hue with a fine hatch."""
    look, own, end = cause_look(part.cause), at + max(part.own, 0.0), at + part.size
    bars = [Mark(form="bar", x=to.at(at), x2=to.at(own), look=f"{look} gap", cause=part.cause)] if part.own > 0 else []
    if part.inherited > 0:
        bars.append(Mark(form="bar", x=to.at(own), x2=to.at(end), look=f"{look} gap inherited", cause=part.cause))
    return bars


def _gain_words(name: str, part: Part) -> str:
    if part.gain is None:
        return REMARKS.get(part.cause, "")
    interval = ""
    if part.lo is not None and part.hi is not None:
        width = (part.hi - part.lo) / 2
        interval = f" ({words.number(part.lo, width)} to {words.number(part.hi, width)})"
    return f"Removed alone: {name} {words.number(part.gain, _half(part))}{words.GAP}ms less{interval}"


def _half(part: Part) -> float | None:
    return None if part.lo is None or part.hi is None else (part.hi - part.lo) / 2


def sentence(book: Book) -> str:
    """The owner of the tail, for the verdict."""
    name, series = _set(book)
    if lost := _lost(book, name):
        return f"Failed requests own the {name} tail: {lost}."
    owner = _owner(_parts(series)) if series else None
    if owner is None:
        return ""
    return f"{cause_label(owner.cause)}: {words.percent(owner.share)} of the {name} tail."


# --- the section --------------------------------------------------------------------------------------------------


def section(book: Book) -> Section | None:
    name, series = _set(book)
    parts = _parts(series) if series else []
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
    account = _table(book, name, parts, words.figure(total) if total else "")
    return Section(
        id="tail",
        nav="Tail",
        eyebrow="Attribute",
        heading=_heading(book, name, parts),
        lead=book.headline("attribute"),
        blocks=(account, *classes.blocks(book)),
        source=source(
            *said, "Gains do not add: each is what removing that cause alone would buy", artifact=series.artifact
        ),
    )


def _heading(book: Book, name: str, parts: list[Part]) -> str:
    if lost := _lost(book, name):
        return f"Failed requests own the {name} tail: {lost}."
    owner = _owner(parts)
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
    owner = _owner(parts)
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
    width = max(_half(part) or 0.0, fine)
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
    marks += _bars(to, at, part)
    if leads and part.inherited > 0:
        text = f"{words.number(part.inherited)} of it inherited"
        marks.append(Mark(form="text", x=to.at(at + part.size), text=text))
    alt = f"{cause_label(part.cause)}: {words.time(part.own)} own, {words.time(part.inherited)} inherited"
    return Strip(marks=tuple(marks), alt=alt)


def _gain_strip(part: Part, gains: Scale, edge: float | None) -> Strip:
    marks = [Mark(form="band", x=gains.at(-edge), x2=gains.at(edge))] if edge is not None else []
    marks.append(Mark(form="tick", x=gains.at(0.0)))
    if part.gain is None:
        remark = REMARKS.get(part.cause, "")
        marks += [Mark(form="text", x=gains.at(0.0), text=remark)] if remark else []
        return Strip(marks=tuple(marks), alt=remark or "not known")
    hollow = part.lo is None or part.lo <= (edge or 0.0)
    look = "open" if hollow else ""
    if part.lo is not None and part.hi is not None:
        marks.append(Mark(form="line", x=gains.at(part.lo), x2=gains.at(part.hi), look=look))
    marks.append(Mark(form="dot", x=gains.at(part.gain), look=look))
    return Strip(marks=tuple(marks), alt=f"{words.number(part.gain)} ms less")
