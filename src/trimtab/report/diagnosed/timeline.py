"""A timeline drawn: what the device waited for, launches and kernels, runs, compiles, and ranks side by side."""

from __future__ import annotations

import math

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import each, real
from trimtab.report.diagnosed.leaf import Leaf, bar_strip, grid
from trimtab.report.page import Block, Cell, Column, Grid, Line, Mark, Panel, Panels, Row, Section, Spec, Strip
from trimtab.report.palette import colour
from trimtab.report.sections.latency import tail_axis

LAYERS = {
    "busy": ("The device works", "cause-useful", colour("useful")),
    "long calls": ("Long driver calls", "cause-cold", colour("cold")),
    "launching": ("A launch on its way", "cause-dispatch", colour("dispatch")),
    "pending": ("Launched, waits for another", "cause-capacity", colour("capacity")),
    "operators": ("Operators between launches", "hatched", "url(#hatch-ink)"),
    "driver": ("Other driver calls", "cause-slip", colour("slip")),
    "": ("Nothing recorded", "cause-unprofiled", "transparent"),
}
"""Layer -> what a reader calls it, its palette class, and its colour in charts."""
GAPS = {
    "from launch to start": colour("ink"),
    "the launch call": colour("dispatch"),
    "the kernel": colour("static"),
    "idle between work": colour("capacity"),
}
TIMES = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~g') + ' s' : datum.value >= 1e3 ? "
    "format(datum.value / 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' µs'"
)
KINDS = {
    "first": colour("static"),
    "again": colour("ink"),
    "again, for a size": colour("cold"),
    "no program": colour("premium"),
}


# --- the device ---------------------------------------------------------------------------------------------------


def device(leaf: Leaf) -> Section | None:
    """What every moment of the window belongs to."""
    shares = leaf.group("timeline.device")
    known = {one.id.rpartition(".")[2]: one for one in shares if one.unit == "share"}
    if not known:
        return None
    named = {name or "elsewhere": value for name, value in LAYERS.items()}
    to = Scale(lo=0.0, hi=1.0)
    rows = []
    for name, one in known.items():
        said, look, _ = named[name]
        value = real(one.value) or 0.0
        strip = bar_strip(to, value, f"{said} {words.percent(value)}", look)
        rows.append(Row(cells=(Cell(text=said), Cell(text=words.percent(value)), Cell(strip=strip),
                               Cell(text=one.note, look="muted"))))  # fmt: skip
    columns = (Column(label="The window"), Column(label="Share", align="right"), Column(label="", wide=True),
               Column(label=""))  # fmt: skip
    idle = max((name for name in known if name != "busy"), key=lambda name: known[name].value or 0.0)
    heading = f"The device works for {words.figure(known['busy'])} of the window"
    heading += f"; most of the rest: {named[idle][0][0].lower()}{named[idle][0][1:]}, {words.figure(known[idle])}."
    table = Grid(columns=columns, rows=tuple(rows))
    streams = grid(leaf.series("timeline.streams"), bar="ran, ms", title="Streams")
    window = leaf.series("timeline.window")
    picture = Panels(panels=(_window(leaf, window),)) if window is not None else None
    return leaf.section("device", "Device", "Device", heading, (picture, table, streams))


def _window(leaf: Leaf, series: Series) -> Panel:
    """Twenty pieces of the window, each stacked to one."""
    rows = marks.rows(series, x="start", end="end", layer="layer", lo="lo", hi="hi")
    far = max(row["end"] for row in rows)
    where = marks.x("x", domain=(0.0, far), tickCount=8, title="ms of the window")
    high = marks.shares(marks.y("lo", domain=(0.0, 1.0)))
    rect: Spec = {"type": "rect", "stroke": colour("ground"), "strokeWidth": 1, "clip": True}
    layers = [
        marks.layer({**rect, "color": fill}, own, x=where, x2=marks.to("end"), y=high, y2=marks.to("hi"))
        for name, (_, _, fill) in LAYERS.items()
        if (own := [row for row in rows if row["layer"] == name])
    ]
    chart = marks.chart(
        leaf.chart_id("window"), layers, 190, "What the device waited for, over the window", marks.TITLED
    )
    present = {row["layer"] for row in rows}
    lines = tuple(Line(text=said, swatch=look) for name, (said, look, _) in LAYERS.items() if name in present)
    return Panel(label="The window", sub="in equal pieces", chart=chart, lines=lines)


def launches(leaf: Leaf) -> Section | None:
    """How long launches, kernels and the gaps between them last."""
    series = leaf.series("timeline.gaps")
    if series is None:
        return None
    rows = [row for row in marks.rows(series, what="what", tail="tail", us="took") if row["us"] is not None]
    where = tail_axis(max(row["tail"] for row in rows) or 1.0)
    most = max(row["us"] for row in rows)
    high = marks.y("us", labelExpr=TIMES)
    _by_decades(high, most)
    curves = [
        marks.layer({"type": "line", "color": ink, "strokeWidth": 1.75, "clip": True}, own, x=where, y=high)
        for what, ink in GAPS.items()
        if (own := [row for row in rows if row["what"] == what])
    ]
    present = {row["what"] for row in rows}
    chart = marks.chart(leaf.chart_id("gaps"), curves, 240, "Launches, kernels and gaps by quantile, logarithmic")
    looks = {"from launch to start": "ink", "the launch call": "cause-dispatch", "the kernel": "static",
             "idle between work": "cause-capacity"}  # fmt: skip
    lines = tuple(Line(text=what, swatch=looks[what]) for what in GAPS if what in present)
    panels = Panels(panels=(Panel(label="Launches and kernels", sub="by quantile", chart=chart, lines=lines),))
    known = {one.id.rpartition(".")[2]: one for one in leaf.group("timeline.launches")}
    heading = words.figure(known["kernels"]) if "kernels" in known else "Launches and kernels"
    if "start_p50" in known:
        heading += f"; half of them start within {words.figure(known['start_p50'])} of their launch"
    return leaf.section("launches", "Launches", "Device", f"{heading}.", (panels,))


def _by_decades(position: Spec, most: float) -> None:
    """Make the axis logarithmic from 1 on, with a tick a decade, and linear below."""
    position["scale"] = {"type": "symlog", "constant": 1, "domain": [0, most * 1.2 or 1.0]}
    position["axis"]["labelOverlap"] = False
    position["axis"]["values"] = [10.0**k for k in range(int(math.log10(max(most, 1.0))) + 1)]


# --- where time went ----------------------------------------------------------------------------------------------


def names(leaf: Leaf) -> Section | None:
    """The names that took most of the time, and the types in which operators compute."""
    found = next(
        ((kind, series) for kind in ("kernels", "operators", "spans", "annotations")
         if (series := leaf.series(f"timeline.{kind}")) is not None), None)  # fmt: skip
    types = leaf.group("timeline.precision")
    if found is None and not types:
        return None
    blocks: list[Block | None] = [grid(found[1], bar="own time, ms")] if found is not None else []
    blocks.append(_types([(one.id.rpartition(".")[2], real(one.value) or 0.0) for one in types]))
    heading = "The types in which operators compute."
    if found is not None:
        first = next(each(found[1]))
        took = words.time(real(first["own time, ms"]) or 0.0)
        heading = f"{words.short(str(first[found[0]]), 60)} takes most: {took}."
    return leaf.section("names", "Where time went", "Operators", heading, blocks)


def _types(shares: list[tuple[str, float]]) -> Grid | None:
    if not shares:
        return None
    to = Scale(lo=0.0, hi=1.0)
    rows = tuple(
        Row(cells=(Cell(text=name), Cell(text=words.percent(share)), Cell(strip=bar_strip(to, share, name))))
        for name, share in shares
    )
    columns = (Column(label="Type"), Column(label="Share of time", align="right"), Column(label="", wide=True))
    return Grid(columns=columns, rows=rows, title="Types, of the time whose type is recorded")


# --- runs ---------------------------------------------------------------------------------------------------------


def runs(leaf: Leaf) -> Section | None:
    """Runs of the network over time, and the first run of each shape against its later ones."""
    series, shapes = leaf.series("timeline.runs"), leaf.series("timeline.shapes")
    if series is None:
        return None
    rows = marks.rows(series, x="t", ms="took", first="first")
    firsts = sum(bool(row["first"]) for row in rows)
    panels = Panels(panels=(_run_cloud(leaf, rows),)) if len(rows) > 1 else None
    heading = f"{words.opened(words.many(len(rows), 'run'))} of the network shown"
    heading += f", {words.amount(firsts)} of them the first of their shape." if firsts else "."
    return leaf.section("runs", "Runs", "Runs", heading, (panels, _first_runs(shapes)))


def _run_cloud(leaf: Leaf, rows: list[marks.Datum]) -> Panel:
    top = max(row["ms"] for row in rows)
    far = max(row["x"] for row in rows)
    where = marks.x("x", domain=(0.0, far * 1.01 or 1.0), tickCount=8, title="s of the recording")
    high = marks.y("ms", domain=(0.0, top * 1.08 or 1.0), title="ms", tickCount=4)
    dot: Spec = {"type": "point", "filled": True, "clip": True, "opacity": 1}
    layers = [
        marks.layer({**dot, "size": 16, "color": colour("static")}, [row for row in rows if not row["first"]],
                    x=where, y=high),
        marks.named("cold", marks.layer({**dot, "size": 40, "color": colour("cold")},
                                        [row for row in rows if row["first"]], x=where, y=high)),
    ]  # fmt: skip
    chart = marks.chart(leaf.chart_id("runs"), layers, 200, "Run time of the network over time", marks.TITLED)
    lines = (Line(text="first of its shape", swatch="cause-cold"), Line(text="later runs", swatch="dot static"))
    return Panel(label="Run time", sub="by start", chart=chart, lines=lines)


def _first_runs(shapes: Series | None) -> Grid | None:
    if shapes is None:
        return None
    rows = list(each(shapes))
    to = scale([real(row[key]) for row in rows for key in ("first, ms", "median of later, ms")])
    columns = (
        Column(label="Shape"),
        Column(label="Runs", align="right"),
        Column(label="First, ms", align="right"),
        Column(label="Median of later, ms", align="right"),
        Column(label="Later to first", ticks=((to.at(0.0), "0"), (100.0, words.time(to.hi))), wide=True),
    )
    made = []
    for row in rows:
        first, later = real(row["first, ms"]), real(row["median of later, ms"])
        line = [Mark(form="line", x=to.at(later), x2=to.at(first), look="static")] if None not in (first, later) else []  # type: ignore[arg-type]
        dots = [
            Mark(form="dot", x=to.at(at), look=look) for at, look in ((later, "open"), (first, "")) if at is not None
        ]
        strip = Strip(marks=(*line, *dots), alt=f"first {words.number(first)}, later {words.number(later)} ms")
        cells = (Cell(text=str(row["shape"])), Cell(text=words.count(real(row["runs"]) or 0)),
                 Cell(text=words.number(first)), Cell(text=words.number(later)), Cell(strip=strip))  # fmt: skip
        made.append(Row(cells=cells))
    return Grid(columns=columns, rows=tuple(made), title="The first run of a shape against its later ones")


# --- compiles -----------------------------------------------------------------------------------------------------


def compiles(leaf: Leaf) -> Section | None:
    """When compiles ran and how long, why again, and where graphs end early."""
    series, all_ = leaf.series("timeline.compiled"), leaf.figure("timeline.compiles.all")
    if all_ is None:
        return None
    rows = marks.rows(series, x="t", ms="took", kind="kind") if series is not None else []
    panels = Panels(panels=(_compile_chart(leaf, rows),)) if len(rows) > 1 else None
    again = leaf.figure("timeline.compiles.again")
    heading = f"{words.opened(words.many(round(all_.value or 0), 'compile'))}; {all_.note}"
    heading += f", {words.figure(again)} together." if again is not None else "."
    tables = (
        grid(leaf.series("timeline.compiles"), bar="took, ms", title="Compiles, the longest first"),
        grid(leaf.series("timeline.reasons"), bar="recompiles", title="Why code was compiled again"),
        grid(leaf.series("timeline.breaks"), bar="times", title="Where graphs end early"),
    )
    return leaf.section("compiles", "Compiles", "Compile", heading, (panels, *tables))


def _compile_chart(leaf: Leaf, rows: list[marks.Datum]) -> Panel:
    data = [{**row, "end": row["x"] + row["ms"] / 1e3, "base": 0.0} for row in rows]
    far = max(row["end"] for row in data)
    where = marks.x("x", domain=(0.0, far * 1.01 or 1.0), tickCount=8, title="s from the first compile")
    high = marks.y("ms", title="ms", tickCount=4)
    _by_decades(high, max(row["ms"] for row in data))
    layers = []
    for kind, ink in KINDS.items():
        own = [row for row in data if row["kind"] == kind]
        if own:
            rule: Spec = {"type": "rule", "color": ink, "strokeWidth": 2, "clip": True}
            dot: Spec = {"type": "point", "filled": True, "size": 30, "opacity": 1, "color": ink, "clip": True}
            layers += [marks.layer(rule, own, x=where, y=high, y2=marks.to("base")),
                       marks.layer(dot, own, x=where, y=high)]  # fmt: skip
    looks = dict(zip(KINDS, ("static", "ink", "cause-cold", "cause-premium"), strict=True))
    chart = marks.chart(
        leaf.chart_id("compiles"), layers, 200, "Compiles over time, by how long they took", marks.TITLED
    )
    lines = tuple(Line(text=kind, swatch=looks[kind]) for kind in KINDS if any(row["kind"] == kind for row in data))
    return Panel(label="Compiles", sub="logarithmic", chart=chart, lines=lines)


# --- ranks --------------------------------------------------------------------------------------------------------


def ranks(leaf: Leaf) -> Section | None:
    """Own work of every rank, step by step."""
    table = grid(leaf.series("timeline.ranks"), bar="own work p50, ms", title="Ranks")
    series = leaf.series("timeline.ranks_by_step")
    panels = Panels(panels=(_by_step(leaf, series),)) if series is not None else None
    unequal = leaf.figure("timeline.ranks.unequal")
    heading = "Ranks side by side."
    if unequal is not None:
        heading = f"Own work of the ranks differs by {words.figure(unequal)} of the time of their steps."
    return leaf.section("ranks", "Ranks", "Ranks", heading, (panels, table))


def _by_step(leaf: Leaf, series: Series) -> Panel:
    rows = marks.rows(series, x="step", ms="own", rank="rank")
    names_ = list(dict.fromkeys(str(row["rank"]) for row in rows))
    where = marks.x("x", domain=(0.0, max(row["x"] for row in rows) or 1.0), tickCount=8, title="step", format="d")
    high = marks.y("ms", domain=(0.0, max(row["ms"] for row in rows) * 1.06 or 1.0), title="ms", tickCount=4)
    longest = max(names_, key=lambda name: sum(row["ms"] for row in rows if row["rank"] == name))
    layers = [
        marks.layer(marks.line("ink" if name == longest else "static"), own, x=where, y=high)
        for name in sorted(names_, key=lambda name: name == longest)
        if (own := [row for row in rows if row["rank"] == name])
    ]
    chart = marks.chart(leaf.chart_id("steps"), layers, 200, "Own work of each rank by step", marks.TITLED)
    others = words.listed([name for name in names_ if name != longest][:8])
    lines = (
        Line(text=f"{longest}, which works longest", strong=True, swatch="line"),
        Line(text=others, swatch="line static"),
    )
    return Panel(label="Own work", sub="step less communication", chart=chart, lines=lines)
