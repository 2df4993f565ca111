"""Candidates: the proposed move, what was rejected, and why, on one axis of change in the primary metric."""

from __future__ import annotations

from trimtab.domain.figure import Figure
from trimtab.domain.verdict import Move, Proposal, Rejected
from trimtab.report import words
from trimtab.report.arms import Scale, touches
from trimtab.report.book import Book, real, source
from trimtab.report.page import Block, Cell, Column, Grid, Key, Mark, Prose, Row, Section, Strip

FAR = 0.6
"""Changes beyond this (or beyond twice the largest gain) are named at the edge: drawn, they would flatten the rest."""

TICKS = (-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4)


def section(book: Book) -> Section | None:
    proposal = book.record.proposal
    if proposal is None:
        return None
    to = _scale(proposal)
    floor = _floor(book)
    metric = book.record.study.sla.metric
    rows = [_proposed(proposal, to, floor), *(_rejected(item, to, floor) for item in proposal.rejected)]
    columns = (
        Column(label="Move"),
        Column(label="", ticks=tuple((to.at(t), words.change(t)) for t in TICKS if to.lo < t < to.hi), wide=True),
        Column(label=f"{metric} change", align="right"),
        Column(label="Evidence"),
        Column(label="Why it won or lost"),
    )
    legend = [Key(swatch="dot", text="measured"), Key(swatch="dot simulated", text="simulated")]
    if floor is not None:
        legend.append(Key(swatch="m-band", text=f"A/A floor ±{words.percent(floor)}; hollow and pale: touches it"))
    blocks: list[Block] = [Grid(columns=columns, rows=tuple(rows), legend=tuple(legend))]
    blocks.append(Prose(paragraphs=_way_back(book, proposal)))
    return Section(
        id="candidates",
        nav="Candidates",
        eyebrow="Retune",
        heading=_heading(book, proposal),
        lead=book.headline("retune"),
        blocks=tuple(blocks),
        source=source(
            "Searched on the tune slice, judged on the held-out slice", artifact="retune.json, proposal.json"
        ),
    )


def _heading(book: Book, proposal: Proposal) -> str:
    rejected = len(proposal.rejected)
    if book.candidate is None:
        lost = f"; {words.many(rejected, 'alternative')} lost" if rejected else ""
        return f"No change is proposed{lost}."
    move = words.ended(proposal.move.sentence).removesuffix(".")
    return f"{move}: {words.many(rejected, 'other candidate')} lost to it." if rejected else f"{move}."


def _scale(proposal: Proposal) -> Scale:
    figures = [proposal.expected, proposal.measured, *(item.figure for item in proposal.rejected)]
    known = [v for v in (real(figure.value) for figure in figures if figure) if v is not None]
    low = min([*known, -0.1])
    return Scale(lo=max(low * 1.15, -1.0), hi=max(min([max([*known, 0.1]) * 1.15, FAR, abs(low) * 2]), 0.12))


def _floor(book: Book) -> float | None:
    primary = book.primary
    if primary is not None and primary.floor is not None:
        return primary.floor
    figure = book.figure(f"replay.floor.{book.record.study.sla.metric}")
    return figure.value if figure else None


def _proposed(proposal: Proposal, to: Scale, floor: float | None) -> Row:
    best = proposal.measured if proposal.measured and proposal.measured.value is not None else proposal.expected
    return Row(
        cells=(
            Cell(text=proposal.move.sentence, sub=_price(proposal.move)),
            Cell(strip=_strip(to, floor, ((proposal.expected, "simulated", 32.0), (proposal.measured, "", 68.0)))),
            Cell(text=words.change(best.value, words.half(best.interval)), sub=words.spread(best.interval, "change")),
            Cell(text=_kind(best)),
            Cell(text="Proposed"),
        ),
        strong=True,
    )


def _rejected(item: Rejected, to: Scale, floor: float | None) -> Row:
    figure = item.figure
    look = "simulated" if figure is not None and _kind(figure) == "simulated" else ""
    value = figure.value if figure else None
    return Row(
        cells=(
            Cell(text=item.sentence, sub=item.plan),
            Cell(strip=_strip(to, floor, ((figure, look, 50.0),))),
            Cell(text=words.change(value, words.half(figure.interval) if figure else None)),
            Cell(text=_kind(figure) if figure and value is not None else "", look="muted"),
            Cell(text=words.opened(item.reason), look="muted"),
        )
    )


def _strip(to: Scale, floor: float | None, figures: tuple[tuple[Figure | None, str, float], ...]) -> Strip:
    marks: list[Mark] = []
    said = []
    if floor is not None:
        marks.append(Mark(form="band", x=to.at(-abs(floor)), x2=to.at(abs(floor))))
    marks.append(Mark(form="tick", x=to.at(0.0)))
    for figure, look, y in figures:
        value = real(figure.value) if figure else None
        if figure is None or value is None:
            continue
        said.append(f"{_kind(figure)} {words.change(value)}")
        marks += _figure_marks(to, floor, figure, value, look, y)
    return Strip(marks=tuple(marks), alt=", ".join(said) or "no figure")


def _figure_marks(to: Scale, floor: float | None, figure: Figure, value: float, look: str, y: float) -> list[Mark]:
    if value > to.hi:
        return [Mark(form="text", x=99.0, y=y, look="end", text="beyond →")]
    if touches(figure.interval, floor):
        look = f"{look} open".strip()
    marks = []
    if figure.interval is not None:
        marks.append(Mark(form="line", x=to.at(figure.interval.lo), x2=to.at(figure.interval.hi), y=y, look=look))
    return [*marks, Mark(form="dot", x=to.at(value), y=y, look=look)]


def _kind(figure: Figure) -> str:
    """Measured or simulated: the figure's own id says which."""
    return "simulated" if "simulated" in figure.id or "simulated" in figure.note else "measured"


def _price(move: Move) -> str:
    parts = [move.plan.id]
    if move.compile_s is not None:
        parts.append(f"{words.number(move.compile_s)}{words.GAP}s compile")
    if move.memory_mib is not None:
        parts.append(f"{words.signed(move.memory_mib)}{words.GAP}MiB")
    return ", ".join(parts)


def _way_back(book: Book, proposal: Proposal) -> tuple[tuple[str, str], ...]:
    paragraphs = [("Owner:", words.ended(book.owner(proposal.move.owner)))]
    if proposal.rollback:
        paragraphs.append(("Way back:", words.ended(proposal.rollback)))
    if proposal.move.risk:
        paragraphs.append(("Risk:", words.ended(proposal.move.risk)))
    return tuple(paragraphs)
