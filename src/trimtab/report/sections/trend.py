"""The primary metric window by window, both plans, measured on the traffic that the verdict rests on."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import bounds, marks, words
from trimtab.report.book import Book, each, length, real
from trimtab.report.page import Line, Panel, Panels, Spec
from trimtab.report.palette import colour

FEWEST = 3
"""Windows below which a trend is not drawn."""
HEIGHT = 186

LOOKS = {"baseline": "static", "candidate": "adapted"}
"""Arm, as stored -> the ink of its plan."""

Datum = dict[str, float]


def panels(book: Book) -> Panels | None:
    """Both plans with the range over their replays, and the bound."""
    series, candidate = book.series("decide.trend"), book.candidate
    if series is None or candidate is None or length(series) < FEWEST:
        return None
    metric = series.note.partition(" ")[0]
    plans = {"baseline": book.baseline.id, "candidate": candidate.id}
    alt = f"{metric} by window, {words.listed(list(plans.values()))}"
    lines = (
        Line(text=words.short(plans["baseline"], 32), swatch="line static"),
        Line(text=words.short(plans["candidate"], 32), strong=True, swatch="line"),
        Line(text="band: lowest to highest replay", swatch="neutral"),
        *_said(book, metric),
    )
    chart = marks.chart("trend", _layers(book, series), HEIGHT, alt, marks.TITLED)
    return Panels(panels=(Panel(label=metric, sub=f"by window, {series.scope}, measured", chart=chart, lines=lines),))


def _said(book: Book, metric: str) -> tuple[Line, ...]:
    """In how many windows the proposed plan was better, as the decide stage says it."""
    found = book.found("decide")
    told = (
        (finding.text for finding in found.findings if finding.text.startswith(f"{metric} was better in"))
        if found
        else ()
    )
    return tuple(Line(text=text.removeprefix(f"{metric} was ")) for text in told)


def _layers(book: Book, series: Series) -> list[Spec]:
    curves = {arm: _curve(series, arm) for arm in LOOKS}
    share = series.units.get("baseline") == "share"
    sla = book.record.study.sla
    limit = sla.goodput if share else sla.bound_ms
    top = max([row["hi"] for curve in curves.values() for row in curve] + [limit]) * 1.1
    count = length(series)
    title = f"window of about {words.count(1 + (real(series.columns['last'][0]) or 0.0))} requests"
    where = marks.x(
        "window", domain=(1 - 0.4, count + 0.4), tickMinStep=1, tickCount=min(count, 12), format="d", title=title
    )
    high = marks.y("value", domain=(0.0, top), title="" if share else "ms", tickCount=4)
    high = marks.shares(high) if share else high
    layers: list[Spec] = []
    for arm, look in LOOKS.items():
        band = {"x": where, "y": {**high, "field": "lo"}, "y2": marks.to("hi")}
        layers.append(marks.layer(marks.band(), curves[arm], **band))
        layers.append(marks.layer({**marks.line(look), "point": _dot(look)}, curves[arm], x=where, y=high))
    said = words.percent(limit) if share else f"{words.number(limit)} ms"
    drawn = [[(row["window"], row["value"]) for row in curve] for curve in curves.values()]
    return [*layers, *bounds.named(where, high, limit, f"bound {said}", drawn)]


def _dot(look: str) -> Spec:
    return {"filled": True, "size": 26, "opacity": 1, "color": colour("ink" if look == "adapted" else "static")}


def _curve(series: Series, arm: str) -> list[Datum]:
    """The windows whose figure is a number: those that fall among the failed have none."""
    rows = (
        {"window": at + 1.0, "value": real(row[arm]), "lo": real(row[f"{arm}_lo"]), "hi": real(row[f"{arm}_hi"])}
        for at, row in enumerate(each(series))
    )
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows if None not in row.values()]
