"""Entries as strips over the sizes that they serve: for the shapes section, and small for the first screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trimtab.domain.figure import Series
from trimtab.domain.plan import Entry, Plan
from trimtab.report import marks, words
from trimtab.report.book import Book, each, real
from trimtab.report.marks import Base
from trimtab.report.page import Chart, Line, Panel, Spec
from trimtab.report.palette import colour

LETTER, BETWEEN = 6.5, 8.0
"""Pixels of one figure of a label, and of the room that it needs beside it."""
SMALL = 200
"""Pixels of the first screen's picture where the window is at its narrowest."""


def bars(series: Series, amount: str) -> list[dict[str, float]]:
    """The bars of a stored histogram; ``hi`` is the last size of a bar, so it reaches up to the next one."""
    out = []
    for row in each(series):
        lo, hi, n = real(row.get("lo")), real(row.get("hi")), real(row.get(amount))
        if lo is not None and hi is not None and n is not None:
            out.append({"x": lo, "end": hi + 1, "n": n, "base": 0.0})
    return out


def panel(book: Book, far: float, base: Base) -> Panel | None:
    """The entries of each plan as strips over the same axis; only where shapes have one dim."""
    if len(book.record.study.dims) != 1:
        return None
    plans = [book.baseline, *([book.candidate] if book.candidate else [])]
    pixels = marks.WIDTH - marks.ROOM["left"]
    data = [row for level, plan in enumerate(plans) for row in _spans(plan, level, far, pixels)]
    high = marks.silent(marks.y("row", domain=(len(plans), 0)))
    where = marks.silent(base.where)
    span = {"x": where, "x2": marks.to("end"), "y": high, "y2": marks.to("row2")}
    solid: Spec = {"type": "rect", "stroke": colour("ground"), "strokeWidth": 1, "clip": True}
    looks = (("static", colour("useful")), ("adapted", colour("ink")))
    layers = [
        marks.layer({**solid, "color": ink}, [r for r in data if r["look"] == look and not r["open"]], **span)
        for look, ink in looks
    ]
    dashed: Spec = {"type": "rect", "filled": False, "stroke": colour("static"), "strokeDash": [3, 2], "clip": True}
    layers.append(marks.layer(dashed, [row for row in data if row["open"]], **span))
    for look, ink in (("static", "text"), ("adapted", "ground")):
        text = [row for row in data if row["look"] == look and row["label"] and not row["open"]]
        weight = 600 if look == "adapted" else 400
        label = marks.words(align="right", dx=-5, color=colour(ink), fontWeight=weight, stroke=None)
        layers.append(_names(label, text, far, pixels, x={**where, "field": "end"}, y={**high, "field": "mid"}))
    least = (LETTER * len("dynamic") + BETWEEN) * far / pixels
    dynamic = [row for row in data if row["open"] and float(str(row["end"])) - float(str(row["x"])) > least]
    layers.append(marks.layer(marks.words(dx=6), dynamic, x=where, y={**high, "field": "mid"}, text=marks.to("label")))
    height = 22 * len(plans) + 14
    chart = marks.chart("shapes-entries", layers, height, "Entries by shape", {"top": 4, "bottom": 10}, base.axis)
    lines = tuple(
        Line(text=f"{words.short(plan.id)}: {words.many(len(plan.compile.entries), 'entry', 'entries')}", strong=k > 0)
        for k, plan in enumerate(plans)
    )
    return Panel(label="Entries", sub="padded up to; dashed: dynamic", chart=chart, lines=lines)


def _spans(plan: Plan, level: int, far: float, pixels: float) -> list[dict[str, object]]:
    """Which part of the axis each entry serves: padded entries end to end, a dynamic one over its range; labelled where
    ``pixels`` leave room."""
    fixed = sorted((e for e in plan.compile.entries if e.kind != "dynamic"), key=lambda entry: entry.hi[0])
    dynamic = [entry for entry in plan.compile.entries if entry.kind == "dynamic"]
    begin, out = 0.0, []
    for entry in fixed:
        out.append(_span(entry, max(begin, float(entry.lo[0])), min(float(entry.hi[0]), far), level))
        begin = float(entry.hi[0])
    out += [_span(entry, max(begin, float(entry.lo[0])), min(float(entry.hi[0]), far), level) for entry in dynamic]
    seen = [span for span in out if float(str(span["end"])) > float(str(span["x"]))]
    return [
        *_readable([span for span in seen if not span["open"]], far, pixels),
        *(span for span in seen if span["open"]),
    ]


def _readable(spans: list[dict[str, object]], far: float, pixels: float) -> list[dict[str, object]]:
    """The same spans with only those labels that run into no other one, on an axis of ``pixels`` up to ``far``. A label
    ends where its span does; the last one stays, then whatever has room, from right to left."""
    free, out = math.inf, []
    for span in sorted(spans, key=lambda span: float(str(span["end"])), reverse=True):
        end, label = float(str(span["end"])) / far * pixels, str(span["label"])
        begin = end - LETTER * len(label)
        fits = end <= free and begin >= 0
        out.append({**span, "label": label if fits else ""})
        free = begin - BETWEEN if fits else free
    return out[::-1]


def _names(label: Spec, rows: Sequence[Mapping[str, object]], far: float, pixels: float, **place: Spec) -> Spec:
    """The labels of ``rows`` on an axis of ``pixels`` and more; on a narrower one those that fit into their spans."""
    room = f"(datum.end - datum.x) / {far} * width >= {LETTER} * length(datum.label) + {BETWEEN}"
    return {
        **marks.layer(label, rows, **place, text=marks.to("label")),
        "transform": [{"filter": f"width >= {pixels} || {room}"}],
    }


def _span(entry: Entry, begin: float, end: float, level: int) -> dict[str, object]:
    return {
        "x": begin,
        "end": end,
        "hi": entry.hi[0],
        "row": level + 0.12,
        "row2": level + 0.88,
        "mid": level + 0.5,
        "look": "static" if level == 0 else "adapted",
        "open": entry.kind == "dynamic",
        "label": words.count(entry.hi[0]) if entry.kind != "dynamic" else "dynamic",
    }


def miniature(book: Book) -> Chart | None:
    """The change in one small picture: live traffic above the entries of the proposed plan, new ones in ink."""
    plan, names = book.candidate, book.record.study.dim_names
    series = book.series(f"workload.{names[0]}") if len(names) == 1 else None
    if plan is None or series is None or not any(entry.kind != "dynamic" for entry in plan.compile.entries):
        return None
    found = bars(series, "requests")
    if not found:
        return None
    far, most = max(bar["end"] for bar in found), max(bar["n"] for bar in found)
    where, up = marks.silent(marks.x("x", domain=(0.0, far))), marks.silent(marks.y("n", domain=(-0.62, 1.05)))
    tops = [{"x": (bar["x"] + bar["end"]) / 2, "n": bar["n"] / most, "base": 0.0} for bar in found]
    area: Spec = {"type": "area", "color": colour("useful"), "interpolate": "monotone", "opacity": 0.8}
    layers = [marks.layer(area, tops, x=where, y=up, y2=marks.to("base"))]
    old = {(entry.kind, entry.hi) for entry in book.baseline.compile.entries}
    solid: Spec = {"type": "rect", "stroke": colour("ground"), "strokeWidth": 1, "clip": True}
    for fresh in (False, True):
        spans = [
            {"x": span["x"], "end": span["end"], "n": -0.06, "base": -0.26, "low": -0.48, "label": span["label"]}
            for span in _spans(plan, 0, far, SMALL)
            if not span["open"]
            and (("bucket", (span["hi"],)) not in old and ("static", (span["hi"],)) not in old) == fresh
        ]
        ink = colour("ink" if fresh else "static")
        mark = {**solid, "color": ink}
        label = marks.words(align="right", color=ink, fontWeight=600 if fresh else 400)
        named = [span for span in spans if span["label"]]
        layers.append(marks.layer(mark, spans, x=where, x2=marks.to("end"), y=up, y2=marks.to("base")))
        layers.append(_names(label, named, far, SMALL, x={**where, "field": "end"}, y={**up, "field": "low"}))
    room = {"left": 0, "right": 2, "top": 2, "bottom": 2}
    return marks.chart("change", layers, 66, f"Traffic by {names[0]} above the entries of {plan.id}", room)
