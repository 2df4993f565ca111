"""Candidates: every move that was tried, on one axis of change in the primary metric, and why it won or lost."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.noun import Noun
from trimtab.report import words
from trimtab.report.arms import Scale, touches, unit_of
from trimtab.report.book import Book, Values, each, real, source, value
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Key, Mark, Prose, Row, Section, Strip, said_only
from trimtab.report.sections import sweep

FAR = 0.6
"""Changes beyond this (or beyond twice the largest gain) are named at the edge: drawn, they would flatten the rest."""

TICKS = (-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4)
QUALITY = ("quality", "quality_metric", "quality_status", "payloads", "executed")
SHOWN = 12
"""Rows of the open table; the rest folds."""


class Effect(Noun, frozen=True, kw_only=True):
    """A change of the primary metric as it was found: measured, or simulated."""

    value: float
    interval: Interval | None


class Tried(Noun, frozen=True, kw_only=True):
    """One candidate."""

    plan: str
    sentence: str
    status: str
    reason: str
    simulated: Effect | None = None
    measured: Effect | None = None
    owner: str = ""
    compile_s: float | None = None
    memory_mib: float | None = None
    peak_mib: float | None = None
    quality: Values = {}

    @property
    def best(self) -> Effect | None:
        """Measured where it was measured."""
        return self.measured or self.simulated


def section(book: Book) -> Section | None:
    tried = _tried(book)
    if not tried:
        return None
    to, floor = _scale(tried), _floor(book)
    rows = tuple(_row(book, item, to, floor) for item in tried)
    columns = _columns(book, to)
    legend = [Key(swatch="dot", text="measured"), Key(swatch="dot simulated", text="simulated")]
    if floor is not None:
        legend.append(Key(swatch="m-band", text=f"A/A floor ±{words.percent(floor)}; pale and hollow: touches it"))
    whole = said_only(Grid(columns=columns, rows=rows, legend=tuple(legend)))
    blocks: list[Block] = [replace(whole, rows=whole.rows[:SHOWN])]
    if len(rows) > SHOWN:
        said = f"Show {words.many(len(rows) - SHOWN, 'more candidate')}"
        blocks.append(Fold(summary=said, grid=replace(whole, rows=whole.rows[SHOWN:], legend=())))
    if (counted := sweep.panels(book)) is not None:
        blocks.append(counted)
    return Section(
        id="candidates",
        nav="Candidates",
        eyebrow="Retune",
        heading=words.ended(book.headline("retune")) or _outcome(book, tried),
        lead=_outcome(book, tried) if book.headline("retune") else "",
        blocks=(*blocks, *_way_back(book)),
        source=source(
            "Searched on the tune slice, judged on the held-out slice", artifact="retune.json, proposal.json"
        ),
    )


def _outcome(book: Book, tried: tuple[Tried, ...]) -> str:
    lost = sum(item.status in ("rejected", "refused") for item in tried)
    if book.candidate is None:
        return f"No change is proposed; {words.many(lost, 'candidate')} lost." if lost else "No change is proposed."
    return f"{words.opened(words.many(lost, 'other candidate'))} lost to it." if lost else "Nothing else was tried."


# --- what was tried -----------------------------------------------------------------------------------------------


def _tried(book: Book) -> tuple[Tried, ...]:
    """The stored table, chosen first, then by what it would change; the proposal alone where there is no table."""
    series = book.series("retune.candidates")
    found = [_from_row(row) for row in each(series)] if series else list(_from_proposal(book))
    order = {"chosen": 0, "baseline": 2, "refused": 3}
    return tuple(sorted(found, key=lambda item: (order.get(item.status, 1), item.best.value if item.best else 9e9)))


def _from_row(row: Values) -> Tried:
    return Tried(
        plan=str(row["plan"]),
        sentence=str(row["sentence"]),
        status=str(row.get("status") or ""),
        reason=str(row.get("reason") or ""),
        simulated=_effect(row, "simulated"),
        measured=_effect(row, "measured"),
        owner=str(row.get("owner") or ""),
        compile_s=real(row.get("compile_s")),
        memory_mib=real(row.get("memory_mib")),
        peak_mib=real(row.get("peak_mib")),
        quality={name: row.get(name) for name in QUALITY},
    )


def _effect(row: Values, name: str) -> Effect | None:
    value, lo, hi = (real(row.get(key)) for key in (name, f"{name}_lo", f"{name}_hi"))
    if value is None:
        return None
    return Effect(value=value, interval=None if lo is None or hi is None else Interval(lo=lo, hi=hi))


def _from_proposal(book: Book) -> Iterator[Tried]:
    proposal = book.record.proposal
    if proposal is None:
        return
    move = proposal.move
    effects = [_of_figure(figure) for figure in (proposal.expected, proposal.measured)]
    yield Tried(
        plan=move.plan.id, sentence=move.sentence, status="chosen", reason="", owner=move.owner,
        simulated=effects[0], measured=effects[1], compile_s=move.compile_s, memory_mib=move.memory_mib,
        peak_mib=move.peak_mib,
    )  # fmt: skip
    for item in proposal.rejected:
        yield Tried(plan=item.plan, sentence=item.sentence, status="rejected", reason=item.reason)


def _of_figure(figure: Figure | None) -> Effect | None:
    number = real(figure.value) if figure else None
    return None if figure is None or number is None else Effect(value=number, interval=figure.interval)


# --- the table ----------------------------------------------------------------------------------------------------


def _scale(tried: tuple[Tried, ...]) -> Scale:
    known = [effect.value for item in tried for effect in (item.simulated, item.measured) if effect]
    low, high = min([*known, -0.1]), max([*known, 0.1])
    return Scale(lo=max(low * 1.15, -1.0), hi=max(min(high * 1.15, max(FAR, abs(low) * 2)), 0.12))


def _floor(book: Book) -> float | None:
    primary = book.primary
    if primary is not None and primary.floor is not None:
        return primary.floor
    figure = book.figure(f"replay.floor.{book.record.study.sla.metric}")
    return figure.value if figure else None


def _columns(book: Book, to: Scale) -> tuple[Column, ...]:
    step = 0.2 if to.hi - to.lo < 1.0 else 0.4
    ticks = tuple((to.at(tick), words.change(tick)) for tick in TICKS if to.lo < tick < to.hi and _on(tick, step))
    return (
        Column(label="Move"),
        Column(label="", ticks=ticks, wide=True),
        Column(label=f"{book.record.study.sla.metric} change", align="right"),
        Column(label="Compile", align="right"),
        Column(label="MiB, peak", align="right"),
        Column(label="Answers", align="right"),
        Column(label="Owner"),
        Column(label="Why it won or lost"),
    )


def _on(tick: float, step: float) -> bool:
    return abs(tick / step - round(tick / step)) < 1e-9


def _row(book: Book, item: Tried, to: Scale, floor: float | None) -> Row:
    best = item.best
    chosen = item.status == "chosen"
    return Row(
        cells=(
            Cell(text=item.sentence or item.plan, sub=item.plan),
            Cell(strip=_strip(to, floor, item)),
            Cell(text=words.change(best.value, words.half(best.interval)) if best else ""),
            Cell(text=f"{words.number(item.compile_s)}{words.GAP}s" if item.compile_s is not None else ""),
            _memory(item),
            _answers(item),
            Cell(text=words.opened(item.owner)),
            Cell(text=item.reason, look="" if chosen else "muted"),
        ),
        strong=chosen,
    )


def _memory(item: Tried) -> Cell:
    """What its entries take, and below it the most that all its workers hold."""
    taken = words.signed(item.memory_mib) if item.memory_mib is not None else ""
    return Cell(text=taken, sub=words.number(item.peak_mib) if item.peak_mib is not None else "")


def _answers(item: Tried) -> Cell:
    """Quality beside speed, with what it was judged on; only those that were replayed have been judged."""
    found = item.quality
    if not found.get("quality_status"):
        return Cell(text="")
    said = words.quantity(value(found["quality"]), unit_of(str(found["quality_metric"])))
    glyph = str(found["quality_status"]) if found["quality_status"] in ("pass", "fail") else "open"
    executed = f"{found['payloads']}, {found['executed']}" if found.get("executed") else str(found["payloads"])
    return Cell(text=said, sub=executed, glyph=glyph, look=f"{glyph}-ink")


def _strip(to: Scale, floor: float | None, item: Tried) -> Strip:
    marks: list[Mark] = []
    if floor is not None:
        marks.append(Mark(form="band", x=to.at(-abs(floor)), x2=to.at(abs(floor))))
    marks.append(Mark(form="tick", x=to.at(0.0)))
    both = item.simulated is not None and item.measured is not None
    said = []
    for name, effect, look, y in (
        ("simulated", item.simulated, "simulated", 32.0 if both else 50.0),
        ("measured", item.measured, "", 68.0 if both else 50.0),
    ):
        if effect is not None:
            said.append(f"{name} {words.change(effect.value)}")
            marks += _effect_marks(to, floor, effect, look, y)
    return Strip(marks=tuple(marks), alt=", ".join(said) or "no figure")


def _effect_marks(to: Scale, floor: float | None, effect: Effect, look: str, y: float) -> list[Mark]:
    if effect.value > to.hi:
        return [Mark(form="text", x=99.0, y=y, look="end", text="beyond →")]
    if touches(effect.interval, floor):
        look = f"{look} open".strip()
    ends = effect.interval
    whisker = [Mark(form="line", x=to.at(ends.lo), x2=to.at(ends.hi), y=y, look=look)] if ends else []
    return [*whisker, Mark(form="dot", x=to.at(effect.value), y=y, look=look)]


def _way_back(book: Book) -> tuple[Block, ...]:
    proposal = book.record.proposal
    if proposal is None or book.candidate is None:
        return ()
    paragraphs = [("Owner:", words.ended(book.owner(proposal.move.owner)))]
    if proposal.rollback:
        paragraphs.append(("Way back:", words.ended(proposal.rollback)))
    if proposal.move.risk:
        paragraphs.append(("Risk:", words.ended(proposal.move.risk)))
    return (Prose(paragraphs=tuple(paragraphs)),)
