"""Queue and cores: the backlog over time above what each core did, the batches that formed, and fairness by stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.marks import Base
from trimtab.report.page import Block, Cell, Column, Grid, Line, Mark, Panel, Panels, Row, Section, Spec, Split, Strip
from trimtab.report.palette import cause_look, colour

Datum = dict[str, float]


def section(book: Book) -> Section | None:
    over_time, cores = book.series("replay.over_time"), book.series("replay.cores")
    sizes = book.series("replay.batch_sizes")
    if over_time is None and cores is None and sizes is None:
        return None
    tables = tuple(
        grid
        for grid in (_cores(book, cores) if cores else None, _sizes(book, sizes) if sizes else None)
        if grid is not None
    )
    picture = _picture(book, over_time) if over_time else None
    blocks: list[Block] = [picture] if picture else []
    if len(tables) > 1:
        blocks.append(Split(left=(tables[0],), right=tables[1:]))
    else:
        blocks += tables
    if not blocks:
        return None
    return Section(
        id="queue",
        nav="Queue and cores",
        eyebrow="Replay",
        heading=_heading(book, cores),
        blocks=tuple(blocks),
        source=source("Each line is one replay; windows of equal numbers of requests", artifact="traces/"),
    )


def _mine(book: Book, series: Series) -> list[Values]:
    """The rows of the baseline's runs, or of all where no plan is named."""
    rows = list(each(series))
    mine = [row for row in rows if row.get("plan") == book.baseline.id]
    return mine or rows


def _first_run(rows: list[Values]) -> list[Values]:
    name = rows[0].get("run") if rows else None
    return [row for row in rows if row.get("run") == name]


def _heading(book: Book, cores: Series | None) -> str:
    busy = [
        (real(row.get("busy")) or 0.0, row["core"])
        for row in (_first_run(_mine(book, cores)) if cores else [])
        if real(row.get("busy")) is not None and (real(row.get("batches")) or 0) > 0
    ]
    if not busy:
        return "How the queue went over time."
    said = [f"core {core} {words.percent(share)}" for share, core in busy]
    return f"Share of the time that batches kept a core busy: {words.listed(said)}."


def _picture(book: Book, series: Series) -> Panels | None:
    rows = _mine(book, series)
    data = [{k: n for k, n in ((k, real(v)) for k, v in row.items()) if n is not None} for row in rows]
    runs = [str(row.get("run")) for row in rows]
    points = [(run, row) for run, row in zip(runs, data, strict=True) if "start" in row]
    if not points:
        return None
    far = max(row["start"] for _, row in points) or 1.0
    where = marks.x("start", domain=(0.0, far), tickCount=8, title="s, start of the window")
    makers: tuple[Callable[[Base], Panel | None], ...] = (partial(_p95, book, points), partial(_late, book, points))
    panels = marks.stack(makers, where)
    return Panels(panels=panels) if panels else None


def _p95(book: Book, points: list[tuple[str, Datum]], base: Base) -> Panel | None:
    known = [(run, row) for run, row in points if "p95" in row]
    if not known:
        return None
    bound = book.record.study.sla.bound_ms
    top = max([row["p95"] for _, row in known] + [bound]) * 1.08
    high = marks.y("p95", domain=(0.0, top), title="ms")
    layers = [*_lines(known, base.where, high), marks.layer(marks.bound(), [{"p95": bound}], y=high)]
    label = {"start": 0.0, "p95": bound, "text": f"bound {words.number(bound)} ms"}
    tag = marks.words(dx=4, dy=-8, color=colour("fail"))
    layers.append(marks.layer(tag, [label], x=base.where, y=high, text=marks.to("text")))
    chart = marks.chart("queue-p95", layers, base.height(132), "p95 over time, one line a replay", base.room)
    return Panel(label="p95", sub=f"{book.baseline.id}, by window", chart=chart, lines=(_key(points),))


def _late(book: Book, points: list[tuple[str, Datum]], base: Base) -> Panel | None:
    known = [(run, row) for run, row in points if "miss_rate" in row]
    if not known:
        return None
    top = max(max(row["miss_rate"] for _, row in known) * 1.15, 0.01)
    high = marks.shares(marks.y("miss_rate", domain=(0.0, top)))
    layers = _lines(known, base.where, high)
    chart = marks.chart("queue-late", layers, base.height(96), "Share of late requests over time", base.room)
    sub = f"than {words.number(book.record.study.sla.bound_ms)} ms"
    return Panel(label="Later", sub=sub, chart=chart)


def _lines(points: list[tuple[str, Datum]], where: Spec, high: Spec) -> list[Spec]:
    """One line a replay; all of one plan, so all in one ink."""
    mark: Spec = {"type": "line", "color": colour("static"), "strokeWidth": 1.25, "clip": True}
    runs = dict.fromkeys(run for run, _ in points)
    return [marks.layer(mark, [row for name, row in points if name == run], x=where, y=high) for run in runs]


def _key(points: list[tuple[str, Datum]]) -> Line:
    return Line(text=words.many(len({run for run, _ in points}), "replay"), swatch="line static")


def _cores(book: Book, series: Series) -> Grid:
    rows = _first_run(_mine(book, series))
    to = Scale(lo=0.0, hi=1.0)
    columns = (
        Column(label="Core"),
        Column(label="Batches", align="right"),
        Column(label="Busy with batches", align="right"),
        Column(label="", ticks=((0.0, "0"), (100.0, "100 %")), wide=True),
        Column(label="Machine busy", align="right"),
        Column(label="Stolen", align="right"),
        Column(label="Run-queue delay", align="right"),
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
            Cell(text=words.number(real(row.get("batches")))),
            Cell(text=words.percent(busy)),
            Cell(strip=Strip(marks=tuple(marks_), alt=f"busy {words.percent(busy)}")),
            Cell(text=words.percent(machine)),
            Cell(text=words.percent(real(row.get("stolen")))),
            Cell(text=words.time(delay) if delay is not None else words.NOTHING),
        )
    )


def _sizes(book: Book, series: Series) -> Grid | None:
    rows = _first_run(_mine(book, series))
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
