"""What adapting at run time would win, by window: accuracy of the static plan against gain and headroom. Simulated."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.arms import scale
from trimtab.report.book import Book, each, length, real
from trimtab.report.marks import Base
from trimtab.report.page import Cell, Column, Fold, Grid, Line, Panel, Panels, Row, Spec
from trimtab.report.palette import colour
from trimtab.report.sections import windows

LOWEST = -1.0
"""Gains below this are outside the chart: twice the static latency and more."""
FEWEST = 3

Datum = dict[str, float]


def panels(book: Book) -> tuple[Panel, ...]:
    """Accuracy above gain, on one axis of windows; none where the run is too short for a trend."""
    series = book.series("score.adaptation")
    if series is None or length(series) < FEWEST:
        return ()
    data = _data(series)
    title = "window of equal requests, simulated"
    ends = (0.5, len(data) + 0.5)
    where = marks.x("window", domain=ends, tickMinStep=1, tickCount=8, format="d", title=title)
    makers = (partial(_late, book, data), partial(_accuracy, data), partial(_gain, book, data))
    return marks.stack(makers, where, "window")


def _data(series: Series) -> list[Datum]:
    rows = [{key: real(value) for key, value in row.items()} for row in each(series)]
    return [
        {key: value for key, value in row.items() if value is not None} | {"window": at + 1.0}
        for at, row in enumerate(rows)
    ]


def _late(book: Book, data: list[Datum], base: Base) -> Panel | None:
    chart = windows.late(book, data, "static_misses", "adaptation-late", base)
    if chart is None:
        return None
    simulated = replace(chart, alt=f"{chart.alt}, simulated")
    return Panel(label="Late requests", sub=f"{windows.slower(book)}, simulated", chart=simulated)


def _accuracy(data: list[Datum], base: Base) -> Panel | None:
    points = [row for row in data if "mapping_accuracy" in row]
    if not points:
        return None
    high = marks.shares(marks.y("mapping_accuracy", domain=(0.0, max(1.0, *(r["mapping_accuracy"] for r in points)))))
    layers = [marks.layer(marks.line("static"), points, x=base.where, y=high)]
    alt = "Mapping accuracy of the static plan, by window, simulated"
    chart = marks.chart("adaptation-accuracy", layers, base.height(96), alt, base.room, base.axis)
    return Panel(label="Mapping accuracy", sub="of the plan as it is, simulated", chart=chart)


def _gain(book: Book, data: list[Datum], base: Base) -> Panel | None:
    shown = [
        (key, [r for r in data if r.get(key, -9.0) >= LOWEST]) for key in ("headroom", "gain_without_stalls", "gain")
    ]
    known = {key: rows for key, rows in shown if rows}
    if not known:
        return None
    floor = book.figure("score.simulated_floor")
    edge = floor.value if floor and floor.value is not None else 0.0
    values = [row[key] for key, rows in known.items() for row in rows]
    high = marks.shares(marks.y("headroom", domain=(min(-edge * 1.2, *values, 0.0), max(edge * 1.2, *values) * 1.08)))
    width = {"window": 0.5, "end": len(data) + 0.5, "headroom": -edge, "top": edge}
    layers = [marks.layer(marks.floor_band(), [width], x=base.where, x2=marks.to("end"), y=high, y2=marks.to("top"))]
    layers += [_drawn(key, rows, edge, base.where, high) for key, rows in known.items()]
    alt = "Headroom and adaptation gain in p95, by window, simulated"
    chart = marks.chart("adaptation-gain", layers, base.height(132), alt, base.room, base.axis)
    lines = tuple(line for key, line in _LINES.items() if key in known)
    below = sum("gain" not in row or row["gain"] < LOWEST for row in data)
    if below:
        lines += (Line(text=f"{words.many(below, 'window')} below {words.change(LOWEST)}, or beyond the deadline"),)
    band = Line(text=f"floor of the simulation ±{words.percent(edge)}; pale: inside it", swatch="m-band")
    return Panel(label="Gain in p95", sub="against the plan as it is", chart=chart, lines=(*lines, band))


def _drawn(key: str, rows: list[Datum], edge: float, where: Spec, high: Spec) -> Spec:
    """The clairvoyant's headroom as a dashed tick a window, gains as rings: all of it is simulated."""
    place: Spec = {"x": where, "y": {**high, "field": key}}
    if key == "headroom":
        ticks = [{"window": r["window"] - TICK / 2, "end": r["window"] + TICK / 2, "headroom": r[key]} for r in rows]
        dashed: Spec = {"type": "rule", "color": colour("ink"), "strokeWidth": 1.5, "strokeDash": [3, 2], "clip": True}
        return marks.layer(dashed, ticks, **place, x2=marks.to("end"))
    if key == "gain_without_stalls":
        thin: Spec = {"type": "line", "color": colour("ink"), "strokeWidth": 1}
        return marks.layer(thin, rows, **place)
    outside: Spec = {"test": f"abs(datum.gain) > {edge}", "value": colour("ink")}
    return marks.layer(RING, rows, **place, color={"condition": outside, "value": colour("static")})


RING: Spec = {"type": "point", "filled": False, "size": 34, "opacity": 1, "strokeWidth": 1.5, "fill": colour("ground")}
"""A simulated value; a measured one is filled."""
TICK = 0.6
"""The width of a headroom's tick, in windows."""
_LINES = {
    "headroom": Line(text="headroom: each window known", strong=True, swatch="line dashed"),
    "gain_without_stalls": Line(text="the same, compiles in no time", swatch="line"),
    "gain": Line(text="adapted while serving", swatch="dot simulated"),
}


def scatter(book: Book) -> Panels | None:
    """Headroom against accuracy, one dot a window: is there more to win where the mapping fits less?"""
    series = book.series("score.adaptation")
    data = [row for row in _data(series) if {"mapping_accuracy", "headroom"} <= row.keys()] if series else []
    if len(data) < FEWEST:
        return None
    xs = scale([row["mapping_accuracy"] for row in data], zero=False)
    ys = scale([row["headroom"] for row in data])
    title = "mapping accuracy, simulated"
    where = marks.shares(marks.x("mapping_accuracy", domain=(xs.lo, xs.hi), tickCount=4, title=title))
    high = marks.shares(marks.y("headroom", domain=(ys.lo, ys.hi)))
    fade = marks.faded(marks.inside(window="window"))
    dots = [marks.layer({**RING, "color": colour("muted")}, data, x=where, y=high, opacity=fade)]
    chart = marks.chart("adaptation-scatter", dots, 230, "Headroom against accuracy, simulated", marks.TITLED)
    return Panels(panels=(Panel(label="Headroom in p95 against accuracy", sub="one dot a window", chart=chart),))


def said(book: Book) -> str:
    """Where the gain comes from or is lost."""
    found = book.found("score")
    told = (
        (finding.text for finding in found.findings if "score.gain_without_stalls" in finding.figures) if found else ()
    )
    return words.typeset(words.opened(next(iter(told), "").removeprefix("In simulation, ")))


# --- replays under the controller -----------------------------------------------------------------------------------


def measured(book: Book) -> Grid | None:
    """The plan as it is and under the controller, replayed in turn; the simulated runs beside them."""
    series = book.series("score.measured")
    if series is None:
        return None
    unit = series.units["value"]
    rows = []
    for row in each(series):
        low, high = (words.quantity(real(row[key]), unit) for key in ("lowest", "highest"))
        span = f"{low} to {high}" if row["replays"] != 1 else ""
        cells = (f"{words.opened(str(row['run']))}, {row['source']}", words.quantity(real(row["value"]), unit), span)
        late = Cell(text=words.percent(real(row["miss_rate"])))
        rows.append(Row(cells=(*(Cell(text=text) for text in cells), late)))
    columns = (
        Column(label="Adapting while serving"),
        Column(label="Primary metric", align="right"),
        Column(label="Replays"),
        Column(label="Late", align="right"),
    )
    return Grid(columns=columns, rows=tuple(rows))


# --- predictions ------------------------------------------------------------------------------------------------


def ledger(book: Book) -> Fold | None:
    """Errors of both predictions, by route kind and shape band."""
    series = book.series("score.ledger")
    if series is None:
        return None
    columns = (
        Column(label="Requests"),
        Column(label="", align="right"),
        Column(label="Bias at compile", align="right"),
        Column(label="p95 error", align="right"),
        Column(label="Bias at dispatch", align="right"),
        Column(label="p95 error", align="right"),
    )
    rows = []
    for row in each(series):
        cells = [Cell(text=str(row["group"])), Cell(text=words.number(real(row["n"])))]
        for name in ("compile", "dispatch"):
            off = real(row.get(f"{name}_p95"))
            cells.append(Cell(text=words.change(real(row.get(f"{name}_bias")))))
            cells.append(Cell(text=words.NOTHING if off is None else words.time(off)))
        rows.append(Row(cells=tuple(cells), total=row["by"] == "all"))
    return Fold(
        summary="Show how far predictions were off, by route and shape", grid=Grid(columns=columns, rows=tuple(rows))
    )
