"""Queue and cores: the backlog over time above what each core did, the batches that formed, and fairness by stream."""

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
    cores, sizes = book.series("replay.cores"), book.series("replay.batch_sizes")
    panels = timeline.panels(book)
    left = _cores(book, cores) if cores else None
    beside = (_streams(book), _sizes(book, sizes) if sizes else None, _policy(book))
    right = tuple(grid for grid in beside if grid is not None)
    blocks: list[Block] = [Panels(panels=panels)] if panels else []
    if left and right:
        blocks.append(Split(left=(left, *right[1:]), right=right[:1]))
    else:
        blocks += [grid for grid in (left, *right) if grid is not None]
    if not blocks:
        return None
    return Section(
        id="queue",
        nav="Queue and cores",
        eyebrow="Replay",
        heading=_heading(book, cores),
        blocks=tuple(blocks),
        source=source(
            "Height of a worker's strip: share of that time it was busy" if panels else "",
            _fair(book),
            artifact="traces/, accounts/",
        ),
    )


def _first_run(rows: list[Values]) -> list[Values]:
    name = rows[0].get("run") if rows else None
    return [row for row in rows if row.get("run") == name]


def _heading(book: Book, cores: Series | None) -> str:
    busy = [
        (real(row.get("busy")) or 0.0, row["core"])
        for row in (_first_run(timeline.mine(book, cores)) if cores else [])
        if real(row.get("busy")) is not None and (real(row.get("batches")) or 0) > 0
    ]
    if not busy:
        return "How the queue went over time."
    said = [f"core {core} busy for {words.percent(share)}" for share, core in busy]
    return f"Batches kept {words.listed(said)} of the time."


def _cores(book: Book, series: Series) -> Grid:
    rows = _first_run(timeline.mine(book, series))
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


def _sizes(book: Book, series: Series) -> Grid | None:
    rows = _first_run(timeline.mine(book, series))
    if len(rows) < 2:
        return None
    to = scale([real(row.get("requests")) for row in rows])
    columns = (
        Column(label="Batch size"),
        Column(label="Batches", align="right"),
        Column(label="Requests", align="right"),
        Column(label=""),
    )
    return Grid(columns=columns, rows=tuple(_size(row, to) for row in rows), title="Batches that formed")


def _size(row: Values, to: Scale) -> Row:
    requests = real(row.get("requests")) or 0.0
    bar = Mark(form="bar", x=to.at(0.0), x2=to.at(requests), look="neutral")
    return Row(
        cells=(
            Cell(text=words.number(real(row.get("size")))),
            Cell(text=words.number(real(row.get("batches")))),
            Cell(text=words.number(requests)),
            Cell(strip=Strip(marks=(bar,), alt=words.number(requests))),
        )
    )


def _policy(book: Book) -> Grid | None:
    """What the batch policy holds back and what it saves, by entry; absent where nothing batches."""
    series = book.series("policy.by_entry")
    if series is None:
        return None
    columns = (
        Column(label="Entry"),
        Column(label="Batch of", align="right"),
        Column(label="Held", align="right"),
        Column(label="Saved", align="right"),
        Column(label="Net", align="right"),
    )
    rows = tuple(_entry_policy(row) for row in each(series))
    return Grid(columns=columns, rows=rows, title="Batching, ms a request: hold paid against service saved")


def _entry_policy(row: Values) -> Row:
    paid, saved, net = (real(row.get(key)) for key in ("paid", "saved", "net"))
    return Row(
        cells=(
            Cell(text=str(row["entry"])),
            Cell(text=words.number(real(row.get("mean_size")))),
            Cell(text=words.number(paid)),
            Cell(text=words.number(saved)),
            Cell(text=words.signed(net)),
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
    series = book.series("tail.p95.by_stream") or book.series("tail.p99.by_stream")
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
        rows.append(
            Row(
                cells=(Cell(text=name), Cell(text=words.quantity(p95, "ms")), Cell(strip=Strip(marks=marks, alt="p95")))
            )
        )
    return Grid(columns=columns, rows=tuple(rows), title="Fairness: slowest streams")
