"""What a tool has added up, drawn: operating points, their stages, layers of a network."""

from __future__ import annotations

import re

from trimtab.domain.figure import Series
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Values, each, real
from trimtab.report.diagnosed.leaf import Leaf, bar_strip, grid, said
from trimtab.report.page import Cell, Column, Facts, Grid, Key, Mark, Row, Section, Strip

_PERCENTILE = re.compile(r"(p\d+(?:\.\d+)?), ms")
TONES = ("cause-capacity", "cause-useful", "ink", "static", "cause-unmodelled", "cause-slip")
"""Stages are no causes: the greys of the palette, in turn."""


def points(leaf: Leaf) -> Section | None:
    """Operating points on one scale, and the mean stages of each."""
    table = leaf.series("summary.points")
    load = tuple((words.opened(one.id.rpartition(".")[2]), words.figure(one)) for one in leaf.group("summary.load"))
    heading = "One operating point."
    if table is not None:
        count = len(table.columns["point"])
        heading = f"{words.opened(words.many(count, 'operating point'))}; percentiles of several are never combined."
    blocks = (Facts(pairs=load) if load else None, _points(table), _stages(leaf.series("summary.stages")))
    return leaf.section("points", "Load", "Load", heading, blocks)


def _points(table: Series | None) -> Grid | None:
    if table is None:
        return None
    names = [name for name in table.columns if _PERCENTILE.fullmatch(name)]
    rates = [name for name in table.columns if name.endswith("1/s") or name == "requests"]
    rows = list(each(table))
    to = scale([real(row[name]) for row in rows for name in names])
    columns = [Column(label="Point"), *(Column(label=name, align="right") for name in (*rates, *names))]
    if names:
        label = f"{names[0].partition(',')[0]} to {names[-1].partition(',')[0]}"
        columns.append(Column(label=label, ticks=((to.at(0.0), "0"), (100.0, words.time(to.hi))), wide=True))
    made = []
    for row in rows:
        cells = [Cell(text=str(row["point"])), *(Cell(text=said(row[name])) for name in (*rates, *names))]
        made.append(Row(cells=(*cells, *([Cell(strip=_dots(to, row, names))] if names else []))))
    note = f"Operating points ({table.note})" if table.note else "Operating points"
    return Grid(columns=tuple(columns), rows=tuple(made), title=note)


def _dots(to: Scale, row: Values, names: list[str]) -> Strip:
    """A dot a percentile, the highest one filled."""
    known = [value for name in names if (value := real(row[name])) is not None]
    if not known:
        return Strip(marks=(), alt="no percentile")
    line = Mark(form="line", x=to.at(known[0]), x2=to.at(known[-1]), look="static")
    dots = [Mark(form="dot", x=to.at(value), look="open") for value in known[:-1]]
    return Strip(marks=(line, *dots, Mark(form="dot", x=to.at(known[-1]))), alt=f"up to {words.time(known[-1])}")


def _stages(table: Series | None) -> Grid | None:
    """The mean stages of each point, stacked on one scale."""
    if table is None:
        return None
    names = [name for name in table.columns if name != "point"]
    rows = list(each(table))
    sums = [sum(real(row[name]) or 0.0 for name in names) for row in rows]
    to = Scale(lo=0.0, hi=max(sums, default=1.0) or 1.0)
    made = []
    for row, total in zip(rows, sums, strict=True):
        at, bars = 0.0, []
        for k, name in enumerate(names):
            value = real(row[name]) or 0.0
            bars.append(Mark(form="bar", x=to.at(at), x2=to.at(at + value), look=f"{TONES[k % len(TONES)]} gap"))
            at += value
        strip = Strip(marks=tuple(bars), alt=f"stages of {row['point']}: {words.time(total)}")
        made.append(Row(cells=(Cell(text=str(row["point"])), Cell(text=words.number(total)), Cell(strip=strip))))
    legend = tuple(
        Key(swatch=_swatch(TONES[k % len(TONES)]), text=name.removesuffix(", ms")) for k, name in enumerate(names)
    )
    ticks = ((0.0, "0"), (100.0, words.time(to.hi)))
    columns = (Column(label="Point"), Column(label="Mean, ms", align="right"), Column(label="", ticks=ticks, wide=True))
    return Grid(columns=columns, rows=tuple(made), legend=legend, title="Mean stages: a mean is no tail")


def _swatch(look: str) -> str:
    return f"m-bar {look}"


def layers(leaf: Leaf) -> Section | None:
    """Layers by time, and the types in which they compute."""
    table = leaf.series("summary.layers")
    if table is None:
        return None
    types = leaf.group("summary.precision")
    timed = "a run, ms" in table.columns
    heading = f"{words.opened(words.many(len(table.columns['layer']), 'layer'))} of the network."
    if timed:
        first = next(each(table))
        took = words.time(real(first["a run, ms"]) or 0.0)
        heading = f"{words.short(str(first['layer']), 60)} takes most: {took} a run."
    to = Scale(lo=0.0, hi=1.0)
    rows = [
        Row(cells=(Cell(text=one.id.rpartition(".")[2]), Cell(text=words.figure(one)),
                   Cell(strip=bar_strip(to, real(one.value), one.id))))
        for one in types
    ]  # fmt: skip
    columns = (Column(label="Type"), Column(label="Share of time", align="right"), Column(label="", wide=True))
    shares = Grid(columns=columns, rows=tuple(rows), title="Types in which layers compute") if rows else None
    return leaf.section(
        "layers", "Layers", "Layers", heading, (shares, grid(table, bar="a run, ms" if timed else "", title="Layers"))
    )
