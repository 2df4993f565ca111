"""What is known of one metric for both plans: the values of each arm, their change, and the noise floor."""

from __future__ import annotations

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.noun import Noun
from trimtab.domain.verdict import MatrixCell
from trimtab.report import words
from trimtab.report.book import Book
from trimtab.report.page import Cell, Mark, Strip

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


class Arms(Noun, frozen=True, kw_only=True):
    """One metric, two plans. Any part may be unknown."""

    metric: str
    unit: str
    static: float | None
    adapted: float | None
    static_interval: Interval | None = None
    adapted_interval: Interval | None = None
    change: float | None = None
    interval: Interval | None = None
    floor: float | None = None
    open: bool = True
    note: str = ""


def unit_of(metric: str) -> str:
    """Latencies are stored in ms, peak memory in MiB, an error in the output's own unit, everything else as a share."""
    if metric in PERCENTILES:
        return "ms"
    return {"memory": "MiB", "memory limit": "MiB", "max-error": "", "error-function": "", "cosine": ""}.get(
        metric, "share"
    )


def arms(book: Book, metric: str) -> Arms:
    """The metric on the slice that decides; from the replays' own figures where the matrix has no such cell."""
    cell = deciding_cell(book, metric)
    return _from_cell(book, cell) if cell else _from_replays(book, metric)


def _from_cell(book: Book, cell: MatrixCell) -> Arms:
    static, adapted = _figures(book, cell.metric)
    return Arms(
        metric=cell.metric,
        unit=unit_of(cell.metric),
        static=cell.baseline,
        adapted=cell.candidate,
        static_interval=_around(cell, cell.baseline, static),
        adapted_interval=_around(cell, cell.candidate, adapted),
        change=cell.change,
        interval=cell.interval,
        floor=cell.floor,
        open=cell.status == "inconclusive" or touches(cell.interval, cell.floor),
        note=cell.note,
    )


def _from_replays(book: Book, metric: str) -> Arms:
    static, adapted = _figures(book, metric)
    floor = book.figure(f"replay.floor.{metric}")
    return Arms(
        metric=metric,
        unit=unit_of(metric),
        static=static.value if static else None,
        adapted=adapted.value if adapted else None,
        static_interval=static.interval if static else None,
        adapted_interval=adapted.interval if adapted else None,
        floor=floor.value if floor else None,
        note=static.note if static else "",
    )


def _figures(book: Book, metric: str) -> tuple[Figure | None, Figure | None]:
    """The replay stage's figures of both plans."""
    name = {"miss": "miss_rate"}.get(metric, metric)
    adapted = book.figure(f"replay.{book.candidate.id}.{name}") if book.candidate else None
    return book.figure(f"replay.{name}"), adapted


def deciding_cell(book: Book, metric: str) -> MatrixCell | None:
    """The cell of ``metric`` on the primary cell's slice and condition."""
    verdict, primary = book.record.verdict, book.primary
    if verdict is None or primary is None:
        return None
    same = [c for c in verdict.cells if (c.slice, c.condition, c.metric) == (primary.slice, primary.condition, metric)]
    return same[0] if same else None


def touches(interval: Interval | None, floor: float | None) -> bool:
    """Whether an interval cannot be told from the noise floor: then the mark is hollow."""
    if interval is None:
        return True
    edge = abs(floor) if floor is not None else 0.0
    return interval.lo <= edge and interval.hi >= -edge


def _around(cell: MatrixCell, value: float | None, figure: Figure | None) -> Interval | None:
    """The interval of a replay's figure, where it speaks of the same slice and value as the cell."""
    interval = figure.interval if figure and figure.scope == cell.slice else None
    return interval if interval and value is not None and interval.lo <= value <= interval.hi else None


class Scale(Noun, frozen=True, kw_only=True):
    """A linear scale onto per cent of a strip's width."""

    lo: float
    hi: float

    def at(self, value: float) -> float:
        """Per cent, held inside the strip."""
        if self.hi <= self.lo:
            return 50.0
        return round(min(max((value - self.lo) / (self.hi - self.lo), 0.0), 1.0) * 100, 2)


def scale(values: list[float | None], *, zero: bool = True, room: float = 0.06) -> Scale:
    """A scale that holds all finite ``values`` (and zero), with a little room at both ends."""
    known = [value for value in values if value is not None and abs(value) != float("inf")]
    known += [0.0] if zero else []
    if not known:
        return Scale(lo=0.0, hi=1.0)
    lo, hi = min(known), max(known)
    space = (hi - lo or abs(hi) or 1.0) * room
    return Scale(lo=lo - space, hi=hi + space)


def change_strip(to: Scale, change: float | None, interval: Interval | None, floor: float | None, look: str) -> Strip:
    """A change with its interval over the noise floor around zero."""
    marks: list[Mark] = []
    if floor is not None:
        marks.append(Mark(form="band", x=to.at(-abs(floor)), x2=to.at(abs(floor))))
    marks.append(Mark(form="tick", x=to.at(0.0)))
    if change is not None:
        marks += [*_whisker(to, interval, look), Mark(form="dot", x=to.at(change), look=look)]
    said = f"{words.change(change, words.half(interval))} {words.spread(interval, 'change')}".strip()
    return Strip(marks=tuple(marks), alt=f"change {said}" if change is not None else "no change known")


def _whisker(to: Scale, interval: Interval | None, look: str) -> list[Mark]:
    if interval is None:
        return []
    return [Mark(form="line", x=to.at(interval.lo), x2=to.at(interval.hi), look=look)]


def change_cell(to: Scale, item: Arms) -> Cell:
    """The strip of one metric's change; or what the values stand for without one."""
    if item.change is None:
        return Cell(text="this run", look="muted")
    return Cell(strip=change_strip(to, item.change, item.interval, item.floor, "open" if item.open else ""))
