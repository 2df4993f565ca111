"""Shapes: what the profile promised for each shape against what the replay measured, above the traffic and entries."""

from __future__ import annotations

from functools import partial

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.marks import Base, Maker
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Line, Panel, Panels, Row, Section, Spec
from trimtab.report.palette import colour
from trimtab.report.sections import entries, padding, requests

SHOWN = 8
"""Rows of the open table; the rest folds."""

Datum = dict[str, float | str]


def section(book: Book) -> Section | None:
    series = book.series("score.shapes")
    if series is None:
        return None
    points = [point for point in map(_point, each(series)) if point is not None]
    blocks: list[Block] = []
    panels = _panels(book, series, points)
    if panels:
        blocks.append(Panels(panels=panels))
    rows = [_row(row) for row in each(series)]
    blocks.append(Grid(columns=COLUMNS, rows=tuple(rows[:SHOWN]), title="Predicted against measured"))
    if len(rows) > SHOWN:
        rest = words.many(len(rows) - SHOWN, "more shape")
        blocks.append(Fold(summary=f"Show {rest}", grid=Grid(columns=COLUMNS, rows=tuple(rows[SHOWN:]))))
    return Section(
        id="shapes",
        nav="Shapes",
        eyebrow="Workload, plan",
        heading=_heading(book),
        lead=book.headline("workload"),
        blocks=tuple(blocks),
        source=source("Warm runs only; first runs are counted apart", _left(series), artifact=series.artifact),
    )


def _left(series: Series) -> str:
    return f"Not stored: {series.note}" if series.note else ""


def _heading(book: Book) -> str:
    warm, bias = book.figure("score.promise_accuracy_warm"), book.figure("score.bias_warm")
    if warm is None:
        return "What the profile promised, and what the replay measured."
    side = ""
    if bias is not None and bias.value:
        side = f"; batches ran {words.percent(abs(bias.value))} {'longer' if bias.value > 0 else 'shorter'} in sum"
    return f"Warm batches keep {words.figure(warm)} of what the profile promised{side}."


COLUMNS = (
    Column(label="Executed, batch × dims"),
    Column(label="Entry"),
    Column(label="True size"),
    Column(label="Predicted, ms", align="right"),
    Column(label="Measured median, ms", align="right"),
    Column(label="p95, ms", align="right"),
    Column(label="Error of median", align="right"),
    Column(label="Warm runs", align="right"),
    Column(label="First runs", align="right"),
)


def _row(row: Values) -> Row:
    def ms(key: str) -> str:
        return words.number(real(row.get(key)))

    error = real(row.get("error"))
    return Row(
        cells=(
            Cell(text=_times(str(row["executed"]))),
            Cell(text=str(row["entry"])),
            Cell(text=_range(str(row.get("true", ""))), look="muted"),
            Cell(text=ms("promised") if row.get("promised") is not None else "no promise"),
            Cell(text=ms("measured")),
            Cell(text=ms("measured_p95")),
            Cell(text=words.change(error)),
            Cell(text=ms("n")),
            Cell(text=ms("first_runs")),
        )
    )


def _range(true: str) -> str:
    lo, _, hi = true.partition("..")
    return lo if lo == hi else f"{lo} to {hi}"


def _times(executed: str) -> str:
    return executed.replace("x", " × ")


def _size(executed: str) -> float | None:
    """Where a shape stands on the axis: the product of its executed dims, batch included."""
    sizes = executed.split("x")
    if not all(size.isdecimal() for size in sizes):
        return None
    product = 1
    for size in sizes:
        product *= int(size)
    return float(product)


def _point(row: Values) -> Datum | None:
    at = _size(str(row["executed"]))
    measured = real(row.get("measured"))
    if at is None or measured is None:
        return None
    point: Datum = {"x": at, "measured": measured}
    for key in ("promised", "measured_p95", "n", "first_runs"):
        number = real(row.get(key))
        if number is not None:
            point[key] = number
    return point


def _panels(book: Book, series: Series, points: list[Datum]) -> tuple[Panel, ...]:
    if not points:
        return ()
    points = sorted(points, key=lambda point: point["x"])
    name = book.record.study.dim_names[0] if len(book.record.study.dim_names) == 1 else "executed volume"
    histogram = book.series(f"workload.{name}")
    far = max([float(point["x"]) for point in points] + _ends(book)) * 1.02
    where = marks.x("x", domain=(0.0, far), tickCount=8, title=words.short(name, 40))
    makers: list[Maker] = [partial(_traffic, histogram)] if histogram else []
    costs = book.series("compile.shapes")
    makers.append(partial(entries.panel, book, far))
    alone = all(str(executed).startswith("1x") for executed in series.columns["executed"])
    true_sizes = alone and len(book.record.study.dim_names) == 1  # then a request stands where its batch does
    makers += [partial(padding.panel, book)] if true_sizes else []
    makers.append(partial(_first, points, histogram))
    makers += [partial(_first_cost, book, costs, far)] if costs else []
    makers.append(partial(_service, points))
    makers += [partial(requests.rug, book)] if true_sizes else []
    return marks.stack(makers, where, "size" if true_sizes else "")


def _ends(book: Book) -> list[float]:
    """Where the padded and static entries of both plans end; only where shapes have one dim."""
    plans = [book.baseline, *([book.candidate] if book.candidate else [])]
    fixed = [entry for plan in plans for entry in plan.compile.entries if entry.kind != "dynamic"]
    return [float(entry.hi[0]) for entry in fixed] if len(book.record.study.dim_names) == 1 else []


def _service(points: list[Datum], base: Base) -> Panel:
    top = max(float(point.get("measured_p95", point["measured"])) for point in points) * 1.08
    high = marks.y("measured", domain=(0.0, top), title="ms", tickCount=4)
    promised = [point for point in points if "promised" in point]
    whiskers = [point for point in points if "measured_p95" in point]
    layers = [
        marks.layer(
            {"type": "rule", "color": colour("ink"), "strokeWidth": 1, "opacity": 0.5},
            whiskers, x=base.where, y=high, y2=marks.to("measured_p95"),
        ),
        marks.layer(
            {"type": "line", "color": colour("static"), "strokeWidth": 1.75, "interpolate": "linear"},
            promised, x=base.where, y={**high, "field": "promised"},
        ),
        marks.layer(
            {"type": "point", "filled": True, "size": 22, "opacity": 1, "color": colour("ink")},
            points, x=base.where, y=high,
        ),
    ]  # fmt: skip
    chart = marks.chart(
        "shapes-service",
        layers,
        base.height(190),
        "Service time predicted and measured, by shape",
        base.room,
        base.axis,
    )
    lines = (
        Line(text="predicted at compile", swatch="line static"),
        Line(text="measured median, line up to p95", strong=True, swatch="dot"),
    )
    return Panel(label="Service time", sub="warm runs", chart=chart, lines=lines)


def _first(points: list[Datum], histogram: Series | None, base: Base) -> Panel | None:
    """First runs of the stored shapes, counted over the bars of the traffic above."""
    cold = [(float(point["x"]), float(point["first_runs"])) for point in points if point.get("first_runs")]
    if not cold:
        return None
    edges = entries.bars(histogram, "requests") if histogram else [{"x": x, "end": x + 1} for x, _ in cold]
    data = [
        {"x": bar["x"], "end": bar["end"], "base": 0.0, "n": sum(n for x, n in cold if bar["x"] <= x < bar["end"])}
        for bar in edges
    ]
    counted = [bar for bar in data if bar["n"]]
    if not counted:
        return None
    most = max(bar["n"] for bar in counted)
    high = marks.y("n", domain=(0.0, most * 1.1), tickMinStep=1, format="d")
    rect: Spec = {"type": "rect", "color": colour("cold"), "clip": True, "stroke": colour("ground"), "strokeWidth": 1}
    bars = marks.layer(rect, counted, x=base.where, x2=marks.to("end"), y=high, y2=marks.to("base"))
    chart = marks.chart(
        "shapes-first", [marks.named("cold", bars)], base.height(78), "First runs, by shape", base.room, base.axis
    )
    lines = (Line(text="of the shapes that are stored"),)
    return Panel(label="Cold first runs", sub="count", chart=chart, lines=lines)


def _first_cost(book: Book, series: Series, far: float, base: Base) -> Panel | None:
    """What the profile says of a first run: the warm time, and what the first run of the shape adds to it."""
    data = []
    for row in each(series):
        at, warm, first = _size(str(row["executed"])), real(row.get("warm")), real(row.get("first"))
        if (
            row.get("plan") == book.baseline.id
            and at is not None
            and at <= far
            and warm is not None
            and first is not None
        ):
            data.append({"x": at, "warm": warm, "first": max(first, warm)})
    if not data:
        return None
    high = marks.y("warm", domain=(0.0, max(row["first"] for row in data) * 1.08), title="ms")
    rule: Spec = {"type": "rule", "color": colour("cold"), "strokeWidth": 1.75}
    dot: Spec = {"type": "point", "filled": True, "size": 18, "opacity": 1, "color": colour("static")}
    layers = [
        marks.layer(rule, data, x=base.where, y=high, y2=marks.to("first")),
        marks.layer(dot, data, x=base.where, y=high),
    ]
    chart = marks.chart(
        "shapes-cost", layers, base.height(110), "Warm time and first run, by profiled shape", base.room, base.axis
    )
    lines = (Line(text="warm, as profiled", swatch="dot static"), Line(text="up to the first run", swatch="cause-cold"))
    return Panel(label="First run costs", sub="profile", chart=chart, lines=lines)


def _traffic(series: Series, base: Base) -> Panel | None:
    """The histogram of live shapes, as the workload stage stored it."""
    share = "share" in series.columns
    data = entries.bars(series, "share" if share else "requests")
    if not data:
        return None
    high = marks.y("n", domain=(0.0, max(row["n"] for row in data) * 1.1))
    high = marks.shares(high) if share else high
    bar: Spec = {"type": "rect", "color": colour("useful"), "clip": True, "stroke": colour("ground"), "strokeWidth": 1}
    layers = [marks.layer(bar, data, x=base.where, x2=marks.to("end"), y=high, y2=marks.to("base"))]
    chart = marks.chart("shapes-traffic", layers, base.height(96), "Requests by shape", base.room, base.axis)
    return Panel(label="Traffic", sub="share of requests" if share else "requests", chart=chart)
