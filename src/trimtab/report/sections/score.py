"""Score: the primary metric, mapping accuracy and promise over windows on one axis, and where accuracy is lost."""

from __future__ import annotations

from trimtab.domain.figure import Figure, Series
from trimtab.report import marks, words
from trimtab.report.arms import PERCENTILES, Scale, scale
from trimtab.report.book import Book, Values, each, length, real, source
from trimtab.report.page import (
    Block,
    Cell,
    Column,
    Grid,
    Line,
    Mark,
    Panel,
    Panels,
    Row,
    Section,
    Spec,
    Split,
    Strip,
)
from trimtab.report.palette import cause, cause_label, cause_look, colour

FEWEST = 3
"""Windows below which a trend is not drawn."""

Datum = dict[str, float]


def section(book: Book) -> Section | None:
    mapping = book.figure("score.mapping_accuracy")
    windows = book.series("score.windows")
    if mapping is None and windows is None:
        return None
    panels = _panels(book, windows) if windows and length(windows) >= FEWEST else ()
    left: tuple[Block, ...] = (Panels(panels=panels),) if panels else ()
    right = tuple(block for block in (_scatter(book, windows), _loss(book), _figures(book)) if block is not None)
    return Section(
        id="score",
        nav="Accuracy and gain",
        eyebrow="Score",
        heading=_heading(book, mapping),
        lead=_lead(book),
        blocks=(Split(left=left, right=right),) if left and right else (*left, *right),
        source=source(*_scope(mapping, windows), artifact=mapping.artifact if mapping else ""),
    )


def _heading(book: Book, mapping: Figure | None) -> str:
    headline = book.headline("score")
    if headline:
        return words.ended(headline)
    return f"Mapping accuracy is {words.figure(mapping)}." if mapping else "Accuracy over windows."


def _lead(book: Book) -> str:
    gain, capture = book.figure("score.gain"), book.figure("score.capture")
    parts = []
    if gain is not None:
        parts.append(f"Adaptation gain {words.figure(gain)} {words.spread(gain.interval, gain.unit)}".strip() + ".")
    if capture is not None:
        parts.append(f"It captures {words.figure(capture)} of the headroom, both simulated.")
    return " ".join(parts)


def _scope(mapping: Figure | None, windows: Series | None) -> tuple[str, ...]:
    said = [f"Scope: {mapping.scope}, {words.count(mapping.samples)} batches"] if mapping else []
    if windows:
        said.append(f"{words.opened(words.many(length(windows), 'window'))} of equal numbers of requests")
    return tuple(said)


# --- three panels on the window axis ------------------------------------------------------------------------------


def _panels(book: Book, windows: Series) -> tuple[Panel, ...]:
    data = [
        {key: number for key, number in ((key, real(value)) for key, value in row.items()) if number is not None}
        for row in each(windows)
    ]
    for at, row in enumerate(data):
        row["window"] = at + 1.0
    where = marks.x("window", domain=(0.5, len(data) + 0.5), tickMinStep=1, tickCount=8, format="d")
    last = marks.x("window", domain=(0.5, len(data) + 0.5), tickMinStep=1, tickCount=8, format="d", title="window")
    made = [_missed(book, data, where), _accuracy(data, where), _gain(book, data, last)]
    return tuple(panel for panel in made if panel is not None)


def _missed(book: Book, data: list[Datum], where: Spec) -> Panel | None:
    """Share of requests above the bound: p95 <= bound is the same as at most 5 % above it, and exact in a window."""
    points = [row for row in data if "miss_rate" in row]
    if not points:
        return None
    sla = book.record.study.sla
    allowed = 1 - (sla.goodput if sla.metric == "goodput" else PERCENTILES[sla.metric])
    top = max([row["miss_rate"] for row in points] + [allowed]) * 1.15
    high = marks.y("miss_rate", domain=(0.0, top), format=".0%")
    label = {"window": 0.5, "miss_rate": allowed, "text": f"allowed {words.percent(allowed)}"}
    layers = [
        marks.layer(marks.bound(), [{"miss_rate": allowed}], y=high),
        marks.layer(marks.words(dx=4, dy=-8, color=colour("fail")), [label], x=where, y=high, text=marks.to("text")),
        marks.layer(marks.line("static"), points, x=where, y=high),
    ]
    chart = marks.chart("score-missed", layers, 128, "Share of requests slower than the bound, by window")
    lines = (Line(text=book.baseline.id, swatch="line static"),)
    return Panel(label=sla.metric, sub=f"slower than {words.number(sla.bound_ms)} ms", chart=chart, lines=lines)


def _accuracy(data: list[Datum], where: Spec) -> Panel | None:
    shown = [key for key in ("mapping_accuracy", "promise_accuracy") if any(key in row for row in data)]
    if not shown:
        return None
    values = [row[key] for row in data for key in shown if key in row]
    high = marks.y("mapping_accuracy", domain=(min(0.0, *values), max(1.0, *values)), format=".0%")
    layers = []
    if "promise_accuracy" in shown:
        dashed: Spec = {"type": "line", "color": colour("static"), "strokeWidth": 1.5, "strokeDash": [3, 2]}
        layers.append(marks.layer(dashed, data, x=where, y={**high, "field": "promise_accuracy"}))
    if "mapping_accuracy" in shown:
        layers.append(marks.layer(marks.line("adapted"), data, x=where, y=high))
    chart = marks.chart("score-accuracy", layers, 128, "Mapping and promise accuracy, by window")
    lines = (
        Line(text="mapping accuracy", strong=True, swatch="line"),
        Line(text="promise, without first runs", swatch="line dashed"),
    )
    return Panel(label="Accuracy", sub="best known time by time taken", chart=chart, lines=lines)


def _gain(book: Book, data: list[Datum], where: Spec) -> Panel | None:
    points = [row for row in data if "gain_p95" in row]
    if not points:
        return _first_runs(data, where)
    floor = book.figure("replay.floor.p95")
    edge = floor.value if floor and floor.value is not None else 0.0
    values = [row["gain_p95"] for row in points]
    high = marks.y("gain_p95", domain=(min(-edge * 1.2, *values, 0.0), max(edge * 1.2, *values) * 1.08), format=".0%")
    width = {"window": 0.5, "end": len(data) + 0.5, "gain_p95": -edge, "top": edge}
    outside = [row for row in points if abs(row["gain_p95"]) > edge]
    inside = [row for row in points if abs(row["gain_p95"]) <= edge]
    layers = [
        marks.layer(marks.floor_band(), [width], x=where, x2=marks.to("end"), y=high, y2=marks.to("top")),
        marks.layer(
            {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": colour("ink")},
            outside,
            x=where,
            y=high,
        ),
        marks.layer({"type": "point", "size": 30, "opacity": 1, "color": colour("static")}, inside, x=where, y=high),
    ]
    chart = marks.chart("score-gain", layers, 140, "Adaptation gain in p95, by window", {"bottom": 34})
    lines = (
        Line(text="measured", strong=True, swatch="dot"),
        Line(text=f"A/A floor ±{words.percent(edge)}; hollow: inside it", swatch="m-band"),
    )
    return Panel(label="Adaptation gain", sub="p95", chart=chart, lines=lines)


def _first_runs(data: list[Datum], where: Spec) -> Panel | None:
    points = [row for row in data if row.get("first_runs")]
    if not points:
        return None
    high = marks.y(
        "first_runs", domain=(0.0, max(row["first_runs"] for row in points) * 1.1), tickMinStep=1, format="d"
    )
    bar: Spec = {"type": "bar", "color": colour("cold"), "size": 10, "clip": True}
    chart = marks.chart(
        "score-first", [marks.layer(bar, points, x=where, y=high)], 110, "First runs, by window", {"bottom": 34}
    )
    return Panel(label="First runs", sub="batches whose shape the worker had not run", chart=chart)


def _scatter(book: Book, windows: Series | None) -> Panels | None:
    """Gain against accuracy, one dot a window: does the gain rise as accuracy falls?"""
    if windows is None:
        return None
    pairs = [(real(row.get("mapping_accuracy")), real(row.get("gain_p95"))) for row in each(windows)]
    data = [{"x": a, "y": g} for a, g in pairs if a is not None and g is not None]
    if len(data) < FEWEST:
        return None
    xs, ys = scale([row["x"] for row in data], zero=False), scale([row["y"] for row in data])
    where = marks.x("x", domain=(xs.lo, xs.hi), format=".0%", tickCount=4, title="mapping accuracy")
    high = marks.y("y", domain=(ys.lo, ys.hi), format=".0%")
    dot: Spec = {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": colour("ink")}
    chart = marks.chart(
        "score-scatter", [marks.layer(dot, data, x=where, y=high)], 200, "Gain against accuracy", {"bottom": 36}
    )
    return Panels(panels=(Panel(label="Gain in p95 against accuracy", sub="one dot a window", chart=chart),))


# --- beside them --------------------------------------------------------------------------------------------------


def _loss(book: Book) -> Grid | None:
    series = book.series("score.loss")
    if series is None:
        return None
    rows = [row for row in each(series) if (real(row["share"]) or 0.0) != 0.0]
    if not rows:
        return None
    to = scale([real(row.get(key)) for row in rows for key in ("share", "lo", "hi")])
    columns = (Column(label="What accuracy loses"), Column(label="of run time", align="right"), Column(label=""))
    return Grid(columns=columns, rows=tuple(_loss_row(row, to) for row in rows))


def _loss_row(row: Values, to: Scale) -> Row:
    share, lo, hi = (real(row.get(key)) for key in ("share", "lo", "hi"))
    name, end = str(row["cause"]), share or 0.0
    look, zero = cause_look(name), to.at(0.0)
    marks_ = [Mark(form="bar", x=min(zero, to.at(end)), x2=max(zero, to.at(end)), look=look, cause=cause(name))]
    if lo is not None and hi is not None:
        marks_.append(Mark(form="line", x=to.at(lo), x2=to.at(hi)))
    text = words.percent(share, None if lo is None or hi is None else (hi - lo) / 2)
    return Row(cells=(Cell(text=cause_label(name)), Cell(text=text), Cell(strip=Strip(marks=tuple(marks_), alt=text))))


def _figures(book: Book) -> Grid | None:
    named = (
        ("score.mapping_accuracy", "Mapping accuracy", ""),
        ("score.promise_accuracy_warm", "Promise accuracy", "without first runs"),
        ("score.promise_accuracy", "Promise accuracy", "all runs"),
        ("score.bias_warm", "Promise bias", "above 0: slower than promised"),
        ("score.coverage", "Coverage", "requests on compiled routes"),
        ("score.fit", "Fit", "useful of executed work"),
        ("score.regret", "Regret", "time above the best known"),
    )
    rows = []
    for id_, label, sub in named:
        item = book.figure(id_)
        if item is not None:
            interval = words.spread(item.interval, item.unit)
            rows.append(
                Row(cells=(Cell(text=label, sub=sub), Cell(text=words.figure(item)), Cell(text=interval, look="muted")))
            )
    columns = (Column(label="Figure"), Column(label="Value", align="right"), Column(label="95 % interval"))
    return Grid(columns=columns, rows=tuple(rows)) if rows else None
