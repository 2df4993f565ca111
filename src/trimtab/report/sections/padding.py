"""Padding over sizes: which share of what was executed is padding, bar by bar and for each entry as a whole."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.book import Book, Values, each, real
from trimtab.report.marks import Base
from trimtab.report.page import Line, Panel, Spec
from trimtab.report.palette import colour

Datum = dict[str, float]


def panel(book: Book, base: Base) -> Panel | None:
    """The proposed plan's padding in its hue, today's as a grey line; the only one there is, in the hue. None where
    nothing is padded."""
    series = book.series("validate.padding", "replay.padding")
    rows = list(each(series)) if series else []
    most = max((real(row.get("padding")) or 0.0 for row in rows), default=0.0)
    if series is None or most <= 0.0:
        return None
    plans = list(dict.fromkeys(str(row["plan"]) for row in rows))
    shown = next((plan for plan in plans if plan != book.baseline.id), plans[0])
    high = marks.shares(marks.y("padding", domain=(0.0, most * 1.12)))
    layers = _layers(book, series, shown, {"x": {**base.where, "field": "lo"}, "x2": marks.to("end"), "y": high})
    chart = marks.chart("shapes-padding", layers, base.height(100), "Padding by size", base.room, base.axis)
    others = [plan for plan in plans if plan != shown]
    lines = [_line(book, series, plan, shown) for plan in (shown, *others)]
    whole = Line(text="of an entry as a whole", swatch="line")
    sub = f"share of executed positions, {series.scope}"
    return Panel(label="Padding", sub=sub, chart=chart, lines=(*lines, whole))


def _layers(book: Book, series: Series, shown: str, span: Spec) -> list[Spec]:
    rows = list(each(series))
    others = dict.fromkeys(str(row["plan"]) for row in rows if row["plan"] != shown)
    today = [span_ for plan in others for span_ in _spans(rows, plan)]
    bar: Spec = {"type": "rect", "color": colour("padding"), "clip": True}
    grey: Spec = {"type": "rule", "color": colour("static"), "strokeWidth": 1.75, "clip": True}
    ink: Spec = {"type": "rule", "color": colour("ink"), "strokeWidth": 1.5, "clip": True}
    return [
        marks.named("padding", marks.layer(bar, _spans(rows, shown), **span, y2=marks.to("base"))),
        marks.layer(grey, today, **span),
        marks.layer(ink, _whole(book, series, shown), **span),
    ]


def _spans(rows: list[Values], plan: str) -> list[Datum]:
    out = []
    for row in rows:
        lo, hi, padding = (real(row.get(name)) for name in ("lo", "hi", "padding"))
        if row.get("plan") == plan and lo is not None and hi is not None and padding is not None:
            out.append({"lo": lo, "end": hi + 1, "padding": padding, "base": 0.0})
    return out


def _whole(book: Book, series: Series, plan: str) -> list[Datum]:
    """One span an entry."""
    entries = book.series(f"{series.id}_by_entry")
    return _spans(list(each(entries)), plan) if entries else []


def _line(book: Book, series: Series, plan: str, shown: str) -> Line:
    stage = series.id.partition(".")[0]
    figure = book.figure(f"{stage}.padding.{plan}")
    said = f"{words.short(plan)}: {words.figure(figure)}" if figure else words.short(plan)
    strong = plan == shown
    return Line(text=said, strong=strong, swatch="cause-padding" if strong else "line static", told=True)
