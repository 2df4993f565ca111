"""Requests of another system, drawn: how late they are, when, over which stages, at which sizes, and whose."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import bounds, marks, words
from trimtab.report.arms import Scale
from trimtab.report.book import Values, each, real
from trimtab.report.diagnosed.leaf import Leaf
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
from trimtab.report.palette import CAUSES, cause, cause_label, cause_look, colour
from trimtab.report.sections.latency import tail_axis, tail_of

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
STAGES = {
    "slip": ("Sent late", "slip"),
    "hold": ("Held for a batch", "hold"),
    "queue": ("Waited for a worker", "capacity"),
    "run": ("Ran", "useful"),
    "compile": ("of it compiling", "cold"),
    "off_core": ("of it off core", "off-core"),
    "stall": ("of it stalled", "interference"),
    "remainder": ("In no recorded stage", "unmodelled"),
}
"""Stage -> what a reader calls it, and the palette's word."""
NO_PERCENTILE = "There are too few requests for any percentile of their tail."
CROSS = "M-.5,-.5L.5,.5M.5,-.5L-.5,.5"
COUNTED = (
    "Latency counts from the scheduled time, over all scheduled requests; failed ones are infinitely late. Each third "
    "of the axis holds a tenth of the requests before it."
)


# --- how late -----------------------------------------------------------------------------------------------------


def tail(leaf: Leaf) -> Section | None:
    """The latencies: their curve, their percentiles, and what the slowest are made of."""
    curves = leaf.series("diagnose.quantiles")
    if curves is None and leaf.source.found.stage != "summary":
        return None
    picture = _curves(leaf, curves) if curves else None
    table = _percentiles(leaf)
    blocks: tuple[Block | None, ...] = (picture, table)
    if picture is not None and table is not None:
        blocks = (Split(left=(picture,), right=(table,)),)
    return leaf.section(
        "tail", "Tail", "Latency", heading(leaf), (*blocks, _stages(leaf)),
        source=COUNTED if curves else "As the tool added them up.",
    )  # fmt: skip


def heading(leaf: Leaf) -> str:
    """The highest percentile that the file proves, against its bound, and the median."""
    known = leaf.percentiles()
    if not known:
        return NO_PERCENTILE
    held = leaf.source.sla
    name, figure = next(((n, f) for n, f in known if held is not None and n == held.metric), known[-1])
    text = f"{name} is {words.figure(figure)}"
    if held is not None and name == held.metric and figure.value is not None:
        side = "within" if figure.value <= held.bound_ms else "above"
        text += f", {side} its bound of {words.time(held.bound_ms)}"
    median = next((f for n, f in known if n == "p50" and n != name), None)
    return f"{text}; the median is {words.figure(median)}." if median is not None else f"{text}."


def _percentiles(leaf: Leaf) -> Grid | None:
    known = leaf.percentiles()
    if not known:
        return None
    rows = tuple(
        Row(
            cells=(Cell(text=name), Cell(text=words.figure(one)), Cell(text=one.note, look="muted")),
            strong=leaf.source.sla is not None and name == leaf.source.sla.metric,
        )
        for name, one in reversed(known)
    )
    samples = words.count(known[0][1].samples)
    title = f"Over {samples} requests"
    return Grid(columns=(Column(label=""), Column(label="Latency", align="right"), Column(label="")), rows=rows,
                title=title)  # fmt: skip


def _curves(leaf: Leaf, series: Series) -> Panels | None:
    by_run: dict[str, list[dict[str, float]]] = {}
    for row in each(series):
        at, latency = real(row["tail"]), real(row["latency"])
        if at is not None and latency is not None:
            by_run.setdefault(str(row["run"]), []).append({"tail": at, "ms": latency})
    points = [point for curve in by_run.values() for point in curve]
    if not points:
        return None
    held = leaf.source.sla
    bound = held.bound_ms if held is not None else 0.0
    where = tail_axis(max(point["tail"] for point in points) or 1.0)
    high = marks.y("ms", title="ms", domain=(0.0, max(*(point["ms"] for point in points), bound) * 1.04 or 1.0),
                   tickCount=5)  # fmt: skip
    names = list(by_run)
    layers = [
        marks.layer(marks.line("ink" if name == names[0] else "static"), by_run[name], x=where, y=high)
        for name in reversed(names)
    ]
    if held is not None:
        drawn = [[(point["tail"], point["ms"]) for point in curve] for curve in by_run.values()]
        layers += bounds.named(where, high, bound, f"bound {words.time(bound)}", drawn)
    layers += _dots(leaf, where, high)
    chart = marks.chart(leaf.chart_id("curve"), layers, 260, "Latency by quantile, the tail stretched")
    lines = tuple(
        Line(text=words.short(name, 40), strong=name == names[0], swatch="line" if name == names[0] else "line static")
        for name in names
    )
    return Panels(panels=(Panel(label="Latency by quantile", sub="", chart=chart, lines=lines),))


def _dots(leaf: Leaf, where: Spec, high: Spec) -> list[Spec]:
    """The stored percentiles on the curve."""
    known = [(name, real(one.value)) for name, one in leaf.percentiles() if name in SHARES]
    data = [{"tail": tail_of(SHARES[name]), "ms": value, "text": f"{name} {words.time(value)}"}
            for name, value in known if value is not None]  # fmt: skip
    dot: Spec = {"type": "point", "filled": True, "size": 44, "opacity": 1, "color": colour("ink")}
    text = marks.words(align="right", dx=-8, dy=-8, color=colour("text"))
    return [marks.layer(dot, data, x=where, y=high),
            marks.layer(text, data[-1:], x=where, y=high, text=marks.to("text"))]  # fmt: skip


def _stages(leaf: Leaf) -> Grid | None:
    """What the slowest are made of, as a waterfall beside typical requests on one scale."""
    series = leaf.series("diagnose.stages")
    if series is None:
        return None
    rows = [row for row in each(series) if str(row["stage"]) in STAGES and (real(row["slow"]) or real(row["typical"]))]
    whole = sum(real(row["slow"]) or 0.0 for row in rows if not row["inside"])
    usual = sum(real(row["typical"]) or 0.0 for row in rows if not row["inside"])
    if not rows or not whole:
        return None
    to = Scale(lo=0.0, hi=max(whole, usual))
    made, at, before = [], 0.0, 0.0
    for row in rows:
        slow, typical = real(row["slow"]) or 0.0, real(row["typical"]) or 0.0
        if row["inside"]:  # a part of the run, which stands before it
            made.append(_stage(row, to, (max(before - typical, 0.0), max(at - slow, 0.0)), whole))
            continue
        made.append(_stage(row, to, (before, at), whole))
        at, before = at + slow, before + typical
    columns = (
        Column(label="Stage"),
        Column(label="Slowest 5 %", ticks=_scale_ticks(to), wide=True),
        Column(label="ms", align="right"),
        Column(label="Share", align="right"),
        Column(label="Typical, same scale", ticks=_scale_ticks(to), wide=True),
        Column(label="ms", align="right"),
    )
    title = f"What the slowest requests are made of, means ({series.note}; typical: the middle half)"
    return Grid(columns=columns, rows=tuple(made), title=title)


def _scale_ticks(to: Scale) -> tuple[tuple[float, str], ...]:
    return ((0.0, "0"), (100.0, words.time(to.hi)))


def _stage(row: Values, to: Scale, start: tuple[float, float], whole: float) -> Row:
    name, word = STAGES[str(row["stage"])]
    before, at = start
    slow, typical = real(row["slow"]) or 0.0, real(row["typical"]) or 0.0
    fine = whole * 0.005
    return Row(
        cells=(
            Cell(text=name, look="muted" if row["inside"] else ""),
            Cell(strip=_span(to, at, slow, word, name)),
            Cell(text=words.number(slow, fine)),
            Cell(text=words.percent(slow / whole), look="muted"),
            Cell(strip=_span(to, before, typical, word, name)),
            Cell(text=words.number(typical, fine), look="muted"),
        )
    )


def _span(to: Scale, start: float, length: float, word: str, name: str) -> Strip:
    bar = Mark(form="bar", x=to.at(start), x2=to.at(start + length), look=cause_look(word), cause=cause(word))
    return Strip(marks=(bar,) if length else (), alt=f"{name}: {words.time(length)}")


# --- over time ----------------------------------------------------------------------------------------------------


def over_time(leaf: Leaf) -> Section | None:
    """Every shown request where it arrived; slow ones in the hue of the cause that would give back most."""
    shown = leaf.series("diagnose.shown")
    points = [point for point in map(_point, each(shown)) if point is not None] if shown else []
    if shown is None or len(points) < 2:
        return None
    slow = [point for point in points if point["slow"]]
    words_ = dict.fromkeys(str(point["cause"]) for point in slow)
    panels = Panels(panels=(_cloud(leaf, points, slow, list(words_)),))
    return leaf.section(
        "time", "Over time", "Requests", _when(slow, points), (panels,), source=f"{words.opened(shown.note)}.",
    )  # fmt: skip


def _when(slow: list[dict[str, object]], points: list[dict[str, object]]) -> str:
    counts = {name: sum(point["cause"] == name for point in slow) for name in {str(point["cause"]) for point in slow}}
    most = max(counts, key=lambda name: (counts[name], name), default="")
    if not most or most in ("useful", "unmodelled"):
        return f"{words.opened(words.many(len(slow), 'slow request'))} among {words.count(len(points))} shown."
    owed = f"{words.count(counts[most])} of {words.many(len(slow), 'slow request')}"
    return f"{owed} owe most to {cause_label(most).lower()}."


def _point(row: Values) -> dict[str, object] | None:
    t, latency = real(row["t"]), real(row["latency"])
    if t is None or latency is None:
        return None
    name = cause(str(row["cause"]))
    return {"t": round(t, 4), "ms": round(latency, 3), "slow": bool(row["slow"]), "cause": name}


def _cloud(leaf: Leaf, points: list[dict[str, object]], slow: list[dict[str, object]], causes: list[str]) -> Panel:
    failed = leaf.series("diagnose.failed")
    windows = leaf.series("diagnose.windows")
    top = max(_number(point["ms"]) for point in points) * 1.08
    where = marks.x(
        "t", domain=_ends([_number(point["t"]) for point in points]), tickCount=8, title="s of the recording"
    )
    high = marks.y("ms", domain=(0.0, top or 1.0), title="ms", tickCount=4)
    small: Spec = {"type": "point", "filled": True, "size": 10, "color": colour("static"), "clip": True}
    large: Spec = {"type": "point", "filled": True, "size": 40, "opacity": 1, "clip": True}
    layers = [marks.layer(small, [point for point in points if not point["slow"]], x=where, y=high)]
    if windows is not None:
        rows = marks.rows(windows, t="start", ms="p95")
        layers.append(marks.layer(marks.line("ink"), rows, x=where, y=high))
    layers.append(marks.layer(large, slow, x=where, y=high, color=marks.hues("cause", causes)))
    lines = [Line(text=cause_label(name).lower(), swatch=cause_look(name)) for name in CAUSES if name in causes]
    lines.append(Line(text="not among the slowest 5 %", swatch="dot static"))
    lines += [Line(text="p95 of windows of equal numbers", swatch="line")] if windows is not None else []
    if failed is not None:
        cross: Spec = {"type": "point", "shape": CROSS, "size": 60, "stroke": colour("fail"), "opacity": 1}
        crosses = [{"t": row["t"], "ms": top} for row in marks.rows(failed, t="t")]
        layers.append(marks.layer(cross, crosses, x=where, y=high))
        lines.append(Line(text="✕ failed"))
    if leaf.source.sla is not None and leaf.source.sla.bound_ms <= top:
        bound = leaf.source.sla.bound_ms
        layers.append(marks.layer(marks.bound(), [{"ms": bound}], y=high))
        lines.append(Line(text=f"bound {words.time(bound)}", swatch="line bound"))
    chart = marks.chart(leaf.chart_id("cloud"), layers, 240, "Latency of single requests over time", marks.TITLED)
    return Panel(label="Latency", sub="by arrival", chart=chart, lines=tuple(lines))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _ends(values: list[float]) -> tuple[float, float]:
    lo, hi = min(values), max(values)
    room = (hi - lo or 1.0) * 0.01
    return lo - room, hi + room
