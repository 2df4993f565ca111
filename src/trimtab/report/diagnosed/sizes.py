"""Sizes, padding and streams: what they have to do with how long requests take."""

from __future__ import annotations

from functools import partial

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import each, real
from trimtab.report.diagnosed.leaf import Leaf
from trimtab.report.marks import Base, Maker
from trimtab.report.page import Cell, Column, Grid, Line, Mark, Panel, Panels, Row, Section, Spec, Strip
from trimtab.report.palette import colour


def sizes(leaf: Leaf) -> Section | None:
    """Run time and padding over the executed size."""
    runs, padding = leaf.series("diagnose.sizes"), leaf.series("diagnose.padding")
    if runs is None and padding is None:
        return None
    label = next(one.note for one in (runs, padding) if one is not None)
    far = max(
        [real(one) or 0.0 for one in (runs.columns["volume"] if runs else ())]
        + [real(one) or 0.0 for one in (padding.columns["hi"] if padding else ())]
    )
    title = "executed volume" if " x " in label or not label else f"{words.short(label, 40)}, executed"
    where = marks.x("x", domain=(0.0, far * 1.02 or 1.0), tickCount=8, title=title)
    makers: list[Maker] = [partial(_run_times, leaf, runs)] if runs is not None else []
    makers += [partial(_padding, leaf, padding)] if padding is not None else []
    panels = marks.stack(makers, where)
    return leaf.section(
        "sizes", "Shapes", "Shapes", _size_heading(runs, padding), (Panels(panels=panels),),
        source="Run time of batches; a first run is the first of its executed shape on its worker, one that compiled, "
        "or one outside of what was compiled.",
    )  # fmt: skip


def _size_heading(runs: Series | None, padding: Series | None) -> str:
    if padding is not None:
        worst = max((real(row["padding"]) or 0.0 for row in each(padding)), default=0.0)
        return f"Padding takes up to {words.percent(worst)} of what runs at one size."
    firsts = sum(bool(one) for one in runs.columns["first"]) if runs is not None else 0
    return f"Run time over size; {words.many(firsts, 'first run')} of a shape among the runs shown."


def _run_times(leaf: Leaf, series: Series, base: Base) -> Panel:
    rows = marks.rows(series, x="volume", ms="run", first="first")
    high = marks.y("ms", title="ms", domain=(0.0, max((row["ms"] or 0.0 for row in rows), default=1.0) * 1.06 or 1.0))
    small: Spec = {"type": "point", "filled": True, "size": 12, "color": colour("static"), "clip": True}
    large: Spec = {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": colour("cold"), "clip": True}
    layers = [
        marks.layer(small, [row for row in rows if not row["first"]], x=base.where, y=high),
        marks.named("cold", marks.layer(large, [row for row in rows if row["first"]], x=base.where, y=high)),
    ]
    chart = marks.chart(leaf.chart_id("sizes"), layers, base.height(190), "Run time by executed size", base.room)
    lines = (Line(text="first runs", swatch="cause-cold"), Line(text="other runs", swatch="dot static"))
    return Panel(label="Run time", sub="single runs", chart=chart, lines=lines)


def _padding(leaf: Leaf, series: Series, base: Base) -> Panel:
    data = [
        {"x": real(row["lo"]), "end": (real(row["hi"]) or 0.0) + 1, "share": real(row["padding"]), "base": 0.0}
        for row in each(series)
    ]
    high = marks.shares(marks.y("share", domain=(0.0, 1.0)))
    bar: Spec = {"type": "rect", "color": colour("padding"), "clip": True, "stroke": colour("ground"), "strokeWidth": 1}
    layer = marks.layer(bar, data, x=base.where, x2=marks.to("end"), y=high, y2=marks.to("base"))
    chart = marks.chart(
        leaf.chart_id("padding"), [marks.named("padding", layer)], base.height(96), "Padding by size", base.room
    )
    return Panel(
        label="Padding", sub="share of what ran", chart=chart, lines=(Line(text="padding", swatch="cause-padding"),)
    )


def streams(leaf: Leaf) -> Section | None:
    """Each stream's percentiles on one scale."""
    series = leaf.series("diagnose.streams")
    if series is None:
        return None
    rows = list(each(series))
    to = scale([real(row[key]) for row in rows for key in ("p50", "p95")])
    columns = (
        Column(label="Stream"),
        Column(label="Requests", align="right"),
        Column(label="p50, ms", align="right"),
        Column(label="p95, ms", align="right"),
        Column(label="p50 to p95", ticks=((to.at(0.0), "0"), (100.0, words.time(to.hi))), wide=True),
        Column(label="Failed", align="right"),
    )
    made = []
    for row in rows:
        p50, p95 = real(row["p50"]), real(row["p95"])
        cells = (
            Cell(text=str(row["stream"])),
            Cell(text=words.count(real(row["requests"]) or 0)),
            Cell(text=words.number(p50)),
            Cell(text=words.number(p95)),
            Cell(strip=_between(to, p50, p95)),
            Cell(text=words.count(real(row["failed"]) or 0), look="" if row["failed"] else "muted"),
        )
        made.append(Row(cells=cells))
    slowest = max(rows, key=lambda row: real(row["p95"]) or 0.0)
    known = real(slowest["p95"])
    heading = f"Slowest by p95: {slowest['stream']}, {words.time(known)}." if known else "Latency by stream."
    table = Grid(columns=columns, rows=tuple(made))
    return leaf.section("streams", "Streams", "Streams", heading, (table,),
                        source="A percentile stands where a stream has the requests that it needs.")  # fmt: skip


def _between(to: Scale, p50: float | None, p95: float | None) -> Strip:
    made = [Mark(form="line", x=to.at(p50), x2=to.at(p95))] if p50 is not None and p95 is not None else []
    made += [Mark(form="dot", x=to.at(p50), look="open")] if p50 is not None else []
    made += [Mark(form="dot", x=to.at(p95))] if p95 is not None else []
    return Strip(marks=tuple(made), alt=f"p50 {words.number(p50)}, p95 {words.number(p95)} ms")
