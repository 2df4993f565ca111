"""Queue and cores: the backlog over time above what each core did, what was waited for, and fairness by stream."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Block, Cell, Column, Grid, Mark, Panels, Row, Section, Split, Strip
from trimtab.report.palette import cause_look
from trimtab.report.sections import timeline

STREAMS = 8
"""Streams that are listed, the slowest first."""


def section(book: Book) -> Section | None:
    cores = book.series("replay.cores")
    panels = timeline.panels(book)
    left = _cores(book, cores) if cores else None
    left_side = tuple(grid for grid in (left, _waits(book)) if grid is not None)
    fair = _streams(book)
    blocks: list[Block] = [Panels(panels=panels)] if panels else []
    if left_side and fair:
        blocks.append(Split(left=left_side, right=(fair,)))
    else:
        blocks += [*left_side, *([fair] if fair else [])]
    if not blocks:
        return None
    return Section(
        id="queue",
        nav="Queue and cores",
        eyebrow="Replay",
        heading=_heading(book, cores),
        blocks=tuple(blocks),
        source=source(
            "Height of a worker's strip: share of that time it was busy" if panels and cores else "",
            _fair(book),
            artifact="traces/, accounts/",
        ),
    )


def _heading(book: Book, cores: Series | None) -> str:
    busy = [
        (real(row.get("busy")) or 0.0, row["core"])
        for row in (timeline.first_run(timeline.mine(book, cores)) if cores else [])
        if real(row.get("busy")) is not None and (real(row.get("batches")) or 0) > 0
    ]
    if not busy:
        return "How it went over time."
    said = [f"core {core} busy for {words.percent(share)}" for share, core in busy]
    return f"Batches kept {words.listed(said)} of the time."


def _cores(book: Book, series: Series) -> Grid:
    rows = timeline.first_run(timeline.mine(book, series))
    to = Scale(lo=0.0, hi=1.0)
    columns = (
        Column(label="Core"),
        Column(label="Batches busy", align="right"),
        Column(label="", ticks=((0.0, "0"), (100.0, "100 %"))),
        Column(label="Machine busy", align="right"),
        Column(label="Stolen", align="right"),
        Column(label="Run queue", align="right"),
    )
    return Grid(columns=columns, rows=tuple(_core(row, to) for row in rows), title="What each core did")


def _core(row: Values, to: Scale) -> Row:
    busy, machine = real(row.get("busy")), real(row.get("machine_busy"))
    marks_ = [Mark(form="bar", x=0.0, x2=to.at(busy or 0.0), look=cause_look("useful"))]
    if machine is not None:
        marks_.append(Mark(form="tick", x=to.at(machine), look="ink"))
    delay = real(row.get("runqueue"))
    return Row(
        cells=(
            Cell(text=f"Core {row['core']}"),
            Cell(text=words.percent(busy)),
            Cell(strip=Strip(marks=tuple(marks_), alt=f"busy {words.percent(busy)}")),
            Cell(text=words.percent(machine)),
            Cell(text=words.percent(real(row.get("stolen")))),
            Cell(text=words.time(delay) if delay is not None else words.NOTHING),
        )
    )


def _fair(book: Book) -> str:
    """Jain's index where there is anything to be unfair to."""
    named = (("fairness.streams.jain", "streams"), ("fairness.cores.jain", "cores"))
    found = [(book.figure(id_), what) for id_, what in named]
    said = [f"{what} {words.number(item.value)}" for item, what in found if item and "only" not in item.note]
    return f"Jain's index, 1 = all alike: {words.listed(said)}" if said else ""


def _streams(book: Book) -> Grid | None:
    """p95 of each stream against the bound: is anybody served much worse?"""
    series = book.series("fairness.streams", "tail.p95.by_stream", "tail.p99.by_stream")
    if series is None:
        return None
    found = {str(row["stream"]): real(row.get("p95")) for row in each(series)}
    known = sorted(((p95, name) for name, p95 in found.items() if p95 is not None), reverse=True)[:STREAMS]
    if len(known) < 2:
        return None
    bound = book.record.study.sla.bound_ms
    to = scale([bound, *(p95 for p95, _ in known)])
    columns = (
        Column(label="Stream"),
        Column(label="p95", align="right"),
        Column(label="", ticks=((to.at(bound), "bound"),)),
    )
    rows = []
    for p95, name in known:
        marks = (Mark(form="tick", x=to.at(bound), look="bound"), Mark(form="dot", x=to.at(p95), look="static"))
        said = words.quantity(p95, "ms")
        rows.append(Row(cells=(Cell(text=name), Cell(text=said), Cell(strip=Strip(marks=marks, alt=f"p95 {said}")))))
    return Grid(columns=columns, rows=tuple(rows), title="Fairness: slowest streams")


WAITS = {
    "hold": "for the batch to fill",
    "busy": "for a busy worker",
    "dispatch": "to be sent and started",
    "unavailable": "for a live worker",
    "occupied": "for pace runs and warm-ups",
}
"""Parts of the wait, as stored -> what was waited for."""


def _waits(book: Book) -> Grid | None:
    """The wait profile: what the requests of each window waited for, mean and p95."""
    series = book.series("queue.waits")
    if series is None:
        return None
    rows = list(each(series))
    present = [part for part in WAITS if any(real(row.get(f"{part}_p95")) for row in rows)]
    if not present:
        return None
    columns = (
        Column(label="From"),
        Column(label="Requests", align="right"),
        *(Column(label=WAITS[part], sub="mean, p95", align="right") for part in present),
    )
    return Grid(columns=columns, rows=tuple(_wait(row, present) for row in rows), title="What requests waited for, ms")


def _wait(row: Values, present: list[str]) -> Row:
    pairs = [(real(row.get(f"{part}_mean")), real(row.get(f"{part}_p95"))) for part in present]
    return Row(
        cells=(
            Cell(text=f"{words.number(real(row.get('start')))}{words.GAP}s"),
            Cell(text=words.number(real(row.get("requests")))),
            *(Cell(text=f"{words.number(mean)}, {words.number(p95)}") for mean, p95 in pairs),
        )
    )
