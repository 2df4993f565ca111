"""The score's panels over windows: share of late requests, accuracies, gain (or first runs), on one window axis."""

from __future__ import annotations

from functools import partial

from trimtab.domain.figure import Series
from trimtab.report import bounds, marks, words
from trimtab.report.arms import PERCENTILES
from trimtab.report.book import Book, each, real
from trimtab.report.marks import Base
from trimtab.report.page import Chart, Line, Panel, Spec
from trimtab.report.palette import colour

LATE = 110
"""Pixels of the plot of late requests."""

Datum = dict[str, float]


def panels(book: Book, windows: Series) -> tuple[Panel, ...]:
    """The panels that have data, from above to below."""
    data = [
        {key: number for key, number in ((key, real(value)) for key, value in row.items()) if number is not None}
        for row in each(windows)
    ]
    for at, row in enumerate(data):
        row["window"] = at + 1.0
    where = marks.x(
        "window",
        domain=(0.5, len(data) + 0.5),
        tickMinStep=1,
        tickCount=8,
        format="d",
        title="window of equal requests",
    )
    makers = (partial(_missed, book, data), partial(_accuracy, data), partial(_gain, book, data))
    return marks.stack(makers, where, "window")


def _missed(book: Book, data: list[Datum], base: Base) -> Panel | None:
    chart = late(book, data, "miss_rate", "score-missed", base)
    if chart is None:
        return None
    lines = (Line(text=book.baseline.id, swatch="line static"),)
    return Panel(label="Late requests", sub=slower(book), chart=chart, lines=lines)


def slower(book: Book) -> str:
    return f"slower than {words.number(book.record.study.sla.bound_ms)} ms"


def late(book: Book, data: list[Datum], field: str, id_: str, base: Base) -> Chart | None:
    """Share of requests above the bound: p95 <= bound is the same as at most 5 % above it, and exact in a window."""
    points = [row for row in data if field in row]
    if not points:
        return None
    sla = book.record.study.sla
    allowed = 1 - (sla.goodput if sla.metric == "goodput" else PERCENTILES[sla.metric])
    top = max([row[field] for row in points] + [allowed]) * 1.15
    high = marks.shares(marks.y(field, domain=(0.0, top)))
    curve = [(row["window"], row[field]) for row in points]
    layers = [
        marks.layer(marks.line("static"), points, x=base.where, y=high),
        *bounds.named(base.where, high, allowed, f"allowed {words.percent(allowed)}", [curve]),
    ]
    alt = "Share of requests slower than the bound, by window"
    return marks.chart(id_, layers, base.height(LATE), alt, base.room, base.axis)


def _accuracy(data: list[Datum], base: Base) -> Panel | None:
    shown = [key for key in ("mapping_accuracy", "promise_accuracy") if any(key in row for row in data)]
    if not shown:
        return None
    values = [row[key] for row in data for key in shown if key in row]
    high = marks.shares(marks.y("mapping_accuracy", domain=(min(0.0, *values), max(1.0, *values))))
    layers = []
    if "promise_accuracy" in shown:
        dashed: Spec = {"type": "line", "color": colour("static"), "strokeWidth": 1.5, "strokeDash": [3, 2]}
        layers.append(marks.layer(dashed, data, x=base.where, y={**high, "field": "promise_accuracy"}))
    if "mapping_accuracy" in shown:
        layers.append(marks.layer(marks.line("adapted"), data, x=base.where, y=high))
    chart = marks.chart(
        "score-accuracy", layers, base.height(132), "Mapping and promise accuracy, by window", base.room, base.axis
    )
    lines = (
        Line(text="mapping accuracy", strong=True, swatch="line"),
        Line(text="promise, without first runs", swatch="line dashed"),
    )
    return Panel(label="Accuracy", sub="best known time by time taken", chart=chart, lines=lines)


def _gain(book: Book, data: list[Datum], base: Base) -> Panel | None:
    points = [row for row in data if "gain_p95" in row]
    if not points:
        return _first_runs(data, base)
    floor = book.figure("replay.floor.p95")
    edge = floor.value if floor and floor.value is not None else 0.0
    values = [row["gain_p95"] for row in points]
    high = marks.shares(marks.y("gain_p95", domain=(min(-edge * 1.2, *values, 0.0), max(edge * 1.2, *values) * 1.08)))
    width = {"window": 0.5, "end": len(data) + 0.5, "gain_p95": -edge, "top": edge}
    outside = [row for row in points if abs(row["gain_p95"]) > edge]
    inside = [row for row in points if abs(row["gain_p95"]) <= edge]
    layers = [
        marks.layer(marks.floor_band(), [width], x=base.where, x2=marks.to("end"), y=high, y2=marks.to("top")),
        marks.layer(
            {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": colour("ink")},
            outside,
            x=base.where,
            y=high,
        ),
        marks.layer(
            {"type": "point", "size": 30, "opacity": 1, "color": colour("static")}, inside, x=base.where, y=high
        ),
    ]
    chart = marks.chart(
        "score-gain", layers, base.height(132), "Adaptation gain in p95, by window", base.room, base.axis
    )
    lines = (
        Line(text="measured", strong=True, swatch="dot"),
        Line(text=f"A/A floor ±{words.percent(edge)}; hollow: inside it", swatch="m-band"),
    )
    return Panel(label="Adaptation gain", sub="p95", chart=chart, lines=lines)


def _first_runs(data: list[Datum], base: Base) -> Panel | None:
    points = [row for row in data if row.get("first_runs")]
    if not points:
        return None
    high = marks.y(
        "first_runs", domain=(0.0, max(row["first_runs"] for row in points) * 1.1), tickMinStep=1, format="d"
    )
    bar: Spec = {"type": "bar", "color": colour("cold"), "size": 10, "clip": True}
    chart = marks.chart(
        "score-first",
        [marks.layer(bar, points, x=base.where, y=high)],
        base.height(110),
        "First runs, by window",
        base.room,
        base.axis,
    )
    return Panel(label="First runs", sub="batches whose shape the worker had not run", chart=chart)
