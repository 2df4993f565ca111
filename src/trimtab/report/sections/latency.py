"""Latency: quantile curves on -log10(1-p), so that p99 gets as much room as p90, and the percentiles beside them."""

from __future__ import annotations

import math

from trimtab.domain.figure import Series
from trimtab.domain.noun import Noun
from trimtab.report import bounds, marks, words
from trimtab.report.arms import PERCENTILES, Arms, Scale, arms, change_cell, deciding_cell, scale
from trimtab.report.book import Book, each, real, source
from trimtab.report.page import Block, Cell, Chart, Column, Grid, Line, Panel, Panels, Prose, Row, Section, Spec, Split
from trimtab.report.palette import colour

METRICS = ("miss", "p50", "p95", "p99", "p99.9")
"""From below to above in the table."""

TICKS = {0.0: "p0", 0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99.9"}

ROOM_TO_THE_RIGHT, ROOM_BELOW = 0.6, 0.1
"""Up to which share of its axis a dot has room for its name on its right, and from which share on below it."""

Curve = list[dict[str, float]]


def section(book: Book) -> Section | None:
    rows = _rows(book)
    curves = book.series("validate.quantiles", "replay.quantiles")
    if not rows and curves is None:
        return None
    picture = _panel(book, curves) if curves else None
    right = tuple(part for part in (_table(book, rows) if rows else None, _failed(book)) if part is not None)
    blocks: tuple[Block, ...] = tuple(part for part in (picture, *right) if part is not None)
    return Section(
        id="latency",
        nav="Latency",
        eyebrow="Replay",
        heading=_heading(book, rows),
        lead=book.headline("replay"),
        blocks=(Split(left=(picture,), right=right),) if picture and right else blocks,
        source=source(
            "Latency counts from the scheduled time, over all scheduled requests",
            "From p90 on, each third of the axis holds a tenth of the requests before it" if curves else "",
            artifact=curves.artifact if curves else "",
        ),
    )


def _rows(book: Book) -> list[Arms]:
    """The metrics of the deciding slice; without a matrix those of the replays, never a mixture."""
    decided = [metric for metric in METRICS if deciding_cell(book, metric)]
    rows = [arms(book, metric) for metric in decided or METRICS]
    return [row for row in rows if row.static is not None or row.adapted is not None]


def _panel(book: Book, curves: Series) -> Panels:
    part = book.slice_of(curves)
    label = f"Replays on the {part} slice" if part else "Replays"
    return Panels(panels=(Panel(label=label, sub="", chart=_chart(book, curves), lines=_lines(book, curves)),))


def _heading(book: Book, rows: list[Arms]) -> str:
    changed = [row for row in rows if row.change is not None and row.metric in PERCENTILES]
    if len(changed) > 1:
        parts = [f"{row.metric} by {words.change(row.change, words.half(row.interval))}" for row in changed]
        return f"The change moves {words.listed(parts)}."
    sla = book.record.study.sla
    row = next((row for row in rows if row.metric == sla.metric), rows[0] if rows else None)
    if row is None or row.static is None:
        return "How long requests take."
    side = "within" if row.static <= sla.bound_ms else "above"
    said = words.quantity(row.static, row.unit, row.static_interval)
    bound = f", {side} its bound of {words.number(sla.bound_ms)} ms" if row.metric == sla.metric else ""
    return f"{row.metric} is {said}{bound}."


def _table(book: Book, rows: list[Arms]) -> Grid:
    pair = any(row.adapted is not None for row in rows)
    to = scale([v for row in rows for v in _reach(row)])
    columns = [Column(label=""), Column(label=words.short(book.baseline.id), align="right")]
    if pair and book.candidate:
        columns += [
            Column(label=words.short(book.candidate.id), align="right"),
            Column(label="Change"),
            Column(label="", align="right"),
        ]
    if not pair:
        columns += [Column(label="Interval"), Column(label="A/A floor", align="right")]
    primary = book.record.study.sla.metric
    part = book.primary.slice if book.primary and pair else ""
    title = f"Both plans on the {part} slice" if part else ""
    made = tuple(_row(book, row, to, pair, primary) for row in reversed(rows))
    return Grid(columns=tuple(columns), rows=made, title=title)


def _row(book: Book, row: Arms, to: Scale, pair: bool, primary: str) -> Row:
    late = f"> {words.number(book.record.study.sla.bound_ms)} ms"
    cells = [
        Cell(text=late if row.metric == "miss" else row.metric),
        Cell(text=words.quantity(row.static, row.unit, row.static_interval)),
    ]
    if pair:
        said = words.change(row.change, words.half(row.interval)) if row.change is not None else ""
        cells += [
            Cell(text=words.quantity(row.adapted, row.unit, row.adapted_interval)),
            change_cell(to, row),
            Cell(text=said),
        ]
    else:
        interval = words.spread(row.static_interval, row.unit) or "this run"
        floor = f"±{words.percent(row.floor)}" if row.floor is not None else words.NOTHING
        cells += [Cell(text=interval, look="muted"), Cell(text=floor, look="muted")]
    return Row(cells=tuple(cells), strong=row.metric == primary)


def _reach(row: Arms) -> list[float | None]:
    ends = [row.interval.lo, row.interval.hi] if row.interval else []
    far = max([abs(row.change or 0.0), *(abs(end) for end in ends)]) * 1.5
    floor = [min(row.floor, far), -min(row.floor, far)] if row.floor is not None else []
    return [row.change, *ends, *floor] if row.change is not None else []


def _failed(book: Book) -> Prose | None:
    failures = book.series("replay.failures")
    if failures is None:
        ran = book.found("replay") is not None
        return Prose(paragraphs=(("", "No request failed."),)) if ran else None
    said = [f"{words.count(real(row['requests']) or 0)} in {row['run']} ({row['kind']})" for row in each(failures)]
    return Prose(paragraphs=(("Failed:", f"{words.listed(said)}. They count as infinitely slow."),))


def _by_plan(series: Series) -> dict[str, dict[str, Curve]]:
    """Plan -> run -> points. A value among the failed ends the curve."""
    plans: dict[str, dict[str, Curve]] = {}
    for row in each(series):
        tail, latency = real(row["tail"]), real(row["latency"])
        if tail is not None and latency is not None:
            runs = plans.setdefault(str(row.get("plan", "")), {})
            runs.setdefault(str(row.get("run", "")), []).append({"tail": tail, "latency": latency})
    return plans


def _envelope(runs: dict[str, Curve]) -> list[dict[str, float]]:
    """For each point of the curve the lowest, middle and highest of the replays: stored values, picked, not made."""
    out = []
    for points in zip(*runs.values(), strict=False):
        ordered = sorted(point["latency"] for point in points)
        out.append(
            {"tail": points[0]["tail"], "lo": ordered[0], "mid": ordered[(len(ordered) - 1) // 2], "hi": ordered[-1]}
        )
    return out


def _chart(book: Book, series: Series) -> Chart:
    curves = {plan: _envelope(runs) for plan, runs in _by_plan(series).items()}
    points = [point for curve in curves.values() for point in curve]
    far = max((point["tail"] for point in points), default=1.0)
    bound = book.record.study.sla.bound_ms
    top = max([point["hi"] for point in points] + [bound]) * 1.04
    where = tail_axis(far)
    high = marks.y("mid", title="ms", domain=(0.0, top), tickCount=5)
    layers: list[Spec] = []
    for plan, curve in sorted(curves.items(), key=lambda item: book.arm(item[0]) != "static"):
        look = book.arm(plan)
        layers.append(marks.layer(marks.band(), curve, x=where, y={**high, "field": "lo"}, y2=marks.to("hi")))
        layers.append(marks.layer(marks.line(look), curve, x=where, y=high))
    dots = _primary_dots(book, curves, (far, top), held_out=series.id == "validate.quantiles")
    drawn = ([(point["tail"], point["mid"]) for point in curve] for curve in curves.values())
    in_the_way = [*drawn, *(dot.reach(far, top) for dot in dots)]
    layers += bounds.named(where, high, bound, f"bound {words.number(bound)} ms", in_the_way)
    layers += [layer for dot in dots for layer in dot.layers(where, high)]
    alt = f"Latency by quantile, tail stretched, for {words.listed(list(curves))}; bound {words.number(bound)} ms"
    return marks.chart("latency-quantiles", layers, 290, alt)


class Dot(Noun, frozen=True, kw_only=True):
    """A plan's primary percentile on its curve, and on which side of it its name stands."""

    tail: float
    value: float
    text: str
    adapted: bool
    right: bool
    above: bool

    def reach(self, far: float, top: float) -> bounds.Curve:
        """What the name takes of a chart that ends at ``far`` and ``top``."""
        width = min(bounds.SIGN * len(self.text), 1.0) * far * (1 if self.right else -1)
        level = self.value + bounds.RISE * top * (1 if self.above else -1)
        return sorted([(self.tail, level), (self.tail + width, level)])

    def layers(self, where: Spec, high: Spec) -> list[Spec]:
        """The dot, and its name."""
        row = {"tail": self.tail, "mid": self.value, "text": self.text}
        ink = colour("ink" if self.adapted else "static")
        dot: Spec = {"type": "point", "filled": True, "size": 52, "opacity": 1, "color": ink}
        side: Spec = {"align": "left", "dx": 8} if self.right else {"align": "right", "dx": -8}
        look: Spec = {"color": colour("ink" if self.adapted else "text"), "fontWeight": 600 if self.adapted else 400}
        name = marks.words(limit=180, dy=-9 if self.above else 11, **side, **look)
        return [
            marks.layer(dot, [row], x=where, y=high),
            marks.layer(name, [row], x=where, y=high, text=marks.to("text")),
        ]


def _primary_dots(book: Book, curves: dict[str, Curve], ends: tuple[float, float], *, held_out: bool) -> list[Dot]:
    """The primary percentile of each plan at its stored value, in a chart that ends at ``ends``; none where too few
    requests ran for it. The higher name stands above its dot and the lower one below, so that they never meet."""
    metric, (far, top) = book.record.study.sla.metric, ends
    if metric not in PERCENTILES or tail_of(PERCENTILES[metric]) > far:
        return []
    stored = {plan: _stored(book, plan, metric, held_out=held_out) for plan in curves}
    known = {plan: value for plan, value in stored.items() if value is not None and math.isfinite(value)}
    ranked = sorted(known, key=lambda plan: (known[plan], book.arm(plan) == "static"))
    at = tail_of(PERCENTILES[metric])
    return [
        Dot(
            tail=at,
            value=known[plan],
            text=f"{words.short(plan)} {words.number(known[plan])}",
            adapted=book.arm(plan) != "static",
            right=book.arm(plan) != "static" and at < far * ROOM_TO_THE_RIGHT,
            above=plan == ranked[-1] or known[plan] < top * ROOM_BELOW,
        )
        for plan in known
    ]


def _stored(book: Book, plan: str, metric: str, *, held_out: bool) -> float | None:
    """The figure that belongs to a curve: the matrix's for held-out curves, the replay stage's for its own."""
    if held_out:
        decided = arms(book, metric)
        return decided.static if plan == book.baseline.id else decided.adapted
    figure = book.figure(f"replay.{metric}" if plan == book.baseline.id else f"replay.{plan}.{metric}")
    return figure.value if figure else None


def tail_axis(far: float) -> Spec:
    """The horizontal axis -log10(1-p) of the field ``tail``, up to ``far``, ticked where percentiles have names."""
    ticks = [at for at in map(tail_of, TICKS) if at <= far + 1e-9]
    return marks.x("tail", domain=(0.0, far), values=ticks, labelExpr=_tick_words(), grid=True)


def tail_of(p: float) -> float:
    """Where a percentile stands on that axis."""
    return abs(-math.log10(1 - p))


def _tick_words() -> str:
    tests = [f"abs(datum.value-{tail_of(p):.6f})<0.001?'{name}':" for p, name in TICKS.items()]
    return "".join(tests) + "''"


def _lines(book: Book, series: Series) -> tuple[Line, ...]:
    lines = []
    for plan, runs in _by_plan(series).items():
        look = book.arm(plan)
        swatch = "line static" if look == "static" else "line"
        lines.append(Line(text=f"{plan}, {words.many(len(runs), 'replay')}", strong=look != "static", swatch=swatch))
    lines.append(Line(text="band: lowest to highest replay", swatch="neutral"))
    return tuple(lines)
