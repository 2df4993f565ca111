"""The slow requests one by one: where they stand in time and size, what the chosen ones owe, and each one's story."""

from __future__ import annotations

import json
from functools import partial

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.marks import Base
from trimtab.report.page import Block, Choice, Line, Panel, Panels, Section, Select, Spec, Split
from trimtab.report.palette import CAUSES, cause, cause_label, colour
from trimtab.report.sections import stories

Datum = dict[str, object]

LEAST = 0.005
"""A cause that owns less than this share of all slow requests has no bar of its own."""
RUG = 40
"""Pixels of a row of ticks, its room above included."""


def section(book: Book) -> Section | None:
    shown = book.series("requests.shown")
    if shown is None:
        return None
    points = _points(shown)
    told = stories.block(book)
    over_time = marks.stack((partial(_cloud, book, points),), _where_time(points), "time")
    over_size = _over_size(book, points)
    owed = _owed(book, shown)
    left: tuple[Block, ...] = (Panels(panels=over_time), *([over_size] if over_size else []))
    right: tuple[Block, ...] = tuple(block for block in (_choice(book, shown), owed) if block is not None)
    return Section(
        id="requests",
        nav="Slow requests",
        eyebrow="Attribute",
        heading=stories.heading(book) or "The slow requests, one by one.",
        lead="Choose a stream, a window or a shape band, or draw over a chart: single requests, what they owe, the "
        "queue and the workers follow, and the other charts over time or shapes show which part is chosen. A ringed "
        "dot tells its story below.",
        blocks=(*((Split(left=left, right=right),) if right else left), *([told] if told else [])),
        source=source(words.opened(shown.note), artifact=shown.artifact),
    )


def parted(book: Book) -> tuple[list[Datum], list[Datum]]:
    """The slow requests that are shown, and the others."""
    shown = book.series("requests.shown")
    return _parted(book, _points(shown) if shown else [])


def _parted(book: Book, points: list[Datum]) -> tuple[list[Datum], list[Datum]]:
    """Those that have a story say so."""
    told = set(stories.ids(book))
    slow = [{**point, "told": point["id"] if point["id"] in told else None} for point in points if point["slow"]]
    return slow, [point for point in points if not point["slow"]]


def _points(shown: Series) -> list[Datum]:
    """One row a request; slow ones last, so that they are drawn above the others."""
    out: list[Datum] = []
    for row in each(shown):
        t, latency = real(row.get("t")), real(row.get("latency"))
        if t is None or latency is None:
            continue
        point: Datum = {
            "id": row.get("request"),
            "t": round(t, 3),
            "ms": round(latency, 2),
            "stream": str(row.get("stream")),
            "slow": bool(row.get("tail")),
        }
        if point["slow"]:
            point["cause"] = cause(str(row.get("cause")))
        size = real(row.get("size"))
        out.append(point if size is None else {**point, "size": size})
    return sorted(out, key=lambda point: bool(point["slow"]))


def _where_time(points: list[Datum]) -> Spec:
    return marks.x("t", domain=(0.0, _most(points, "t") * 1.01), tickCount=8, title="s of the replay, as scheduled")


def _most(points: list[Datum], field: str) -> float:
    return max((number for point in points if isinstance(number := point.get(field), int | float)), default=0.0)


def _over_size(book: Book, points: list[Datum]) -> Panels | None:
    sized = [point for point in points if "size" in point]
    if len({point["size"] for point in sized}) < 2:
        return None
    names = book.record.study.dim_names
    name = names[0] if len(names) == 1 else "volume of the dims"
    title = f"{words.short(name, 40)} of the request"
    where = marks.x("size", domain=(0.0, _most(sized, "size") * 1.02), tickCount=8, title=title)
    return Panels(panels=marks.stack((partial(_cloud, book, sized),), where, "size"))


def _cloud(book: Book, points: list[Datum], base: Base) -> Panel | None:
    """Latency of every shown request; the slow ones in the colour of the cause that owns most of them."""
    bound = book.record.study.sla.bound_ms
    high = marks.y("ms", domain=(0.0, max(_most(points, "ms"), bound) * 1.06), title="ms")
    test = marks.inside(time="t", size="size", stream="stream")
    slow, rest = _parted(book, points)
    small: Spec = {"type": "point", "filled": True, "size": 10, "color": colour("static"), "clip": True}
    large: Spec = {"type": "point", "filled": True, "size": 44, "clip": True, "cursor": "pointer"}
    ring: Spec = {"condition": {"test": "datum.told !== null", "value": colour("ink")}, "value": "transparent"}
    thick: Spec = {"condition": {"test": "datum.told !== null && datum.told === told", "value": 3}, "value": 1}
    layers = [
        marks.layer(marks.bound(), [{"ms": bound}], y=high),
        marks.layer(small, rest, x=base.where, y=high, opacity=marks.faded(test)),
        marks.layer(
            large,
            slow,
            x=base.where,
            y=high,
            color=marks.hues("cause", (str(point["cause"]) for point in slow)),
            opacity=marks.faded(test),
            stroke=ring,
            strokeWidth=thick,
        ),
    ]
    place = "over time" if base.axis == "time" else "by shape"
    chart = marks.chart(
        f"requests-{base.axis}", layers, base.height(150), f"Latency of single requests {place}", base.room, base.axis
    )
    present = [name for name in CAUSES if any(point["cause"] == name for point in slow)]
    lines = tuple(Line(text=cause_label(name).lower(), swatch=f"cause-{name}") for name in present)
    limit = Line(text=f"bound {words.number(bound)} ms", swatch="line bound")
    others = (Line(text="not in the tail", swatch="dot static"), limit)
    return Panel(label="Latency", sub=place, chart=chart, lines=(*lines, *others) if base.axis == "time" else ())


def rug(book: Book, base: Base) -> Panel | None:
    """The slow requests as ticks over their sizes, in the colour of their cause, for a stack over sizes."""
    shown = book.series("requests.shown")
    slow = [point for point in _points(shown) if point["slow"] and "size" in point] if shown else []
    if not slow:
        return None
    test = marks.inside(time="t", size="size", stream="stream")
    tick: Spec = {"type": "rule", "strokeWidth": 1.5, "clip": True}
    layers = [
        marks.layer(
            tick,
            slow,
            x={**base.where, "field": "size"},
            color=marks.hues("cause", (str(point["cause"]) for point in slow)),
            opacity=marks.faded(test),
        )
    ]
    chart = marks.chart("shapes-slow", layers, base.height(RUG), "Slow requests by size", base.room, base.axis)
    return Panel(label="Slow requests", sub="each by its largest cause", chart=chart)


# --- what to choose -----------------------------------------------------------------------------------------------


def _choice(book: Book, shown: Series) -> Choice | None:
    """A list for each thing that has more than one value; none where nothing can be told apart."""
    streams = sorted({str(stream) for stream in shown.columns.get("stream", ())})
    selects = (
        Select(field="stream", label="Stream", options=tuple((name, name) for name in streams)),
        Select(field="time", label="Window", options=_windows(book, shown)),
        Select(field="size", label="Shapes", options=_bands(book)),
    )
    kept = tuple(select for select in selects if len(select.options) > 1)
    return Choice(selects=kept) if kept else None


def _windows(book: Book, shown: Series) -> tuple[tuple[str, str], ...]:
    """The windows of equal numbers of requests that the waits are stored by."""
    waits = book.series("queue.waits")
    starts = [start for start in map(real, waits.columns.get("start", ())) if start is not None] if waits else []
    last = max((t for t in map(real, shown.columns.get("t", ())) if t is not None), default=0.0)
    ends = [*starts[1:], last]
    return tuple(
        (f"{lo},{hi}", f"{words.number(lo)} to {words.number(hi)}{words.GAP}s")
        for lo, hi in zip(starts, ends, strict=True)
    )


def _bands(book: Book) -> tuple[tuple[str, str], ...]:
    series = book.series("tail.p95.by_band")
    names = dict.fromkeys(str(name) for name in series.columns.get("band", ())) if series else {}
    ends = {name: name.partition("–") for name in names}
    return tuple(
        (f"{lo},{hi or lo}", f"{lo} to {hi}" if hi else lo)
        for lo, _, hi in ends.values()
        if lo.isdecimal() and (hi or lo).isdecimal()
    )


# --- what the chosen ones owe -------------------------------------------------------------------------------------


def _owed(book: Book, shown: Series) -> Panels | None:
    """Mean ms that the chosen slow requests owe to each cause: own solid, inherited hatched."""
    parts = book.series("requests.parts")
    if parts is None:
        return None
    rows = {row.get("request"): row for row in each(shown) if row.get("tail")}
    order = _ranked(parts)
    wide: dict[object, Datum] = {}
    for row in each(parts):
        name = cause(str(row.get("cause")))
        if name not in order or row.get("request") not in rows:
            continue
        mine = wide.setdefault(row.get("request"), _about(rows[row.get("request")], order))
        mine[f"own_{name}"] = round(real(row.get("own")) or 0.0, 2)
        mine[f"inherited_{name}"] = round(real(row.get("inherited")) or 0.0, 2)
    return _bars(list(wide.values()), order) if wide and order else None


def _ranked(parts: Series) -> list[str]:
    """Causes by what all slow requests owe them, the largest first."""
    owed: dict[str, float] = {}
    for row in each(parts):
        name = cause(str(row.get("cause")))
        owed[name] = owed.get(name, 0.0) + (real(row.get("own")) or 0.0) + (real(row.get("inherited")) or 0.0)
    whole = sum(abs(total) for total in owed.values()) or 1.0
    known = (name for name, total in owed.items() if name in CAUSES and abs(total) >= LEAST * whole)
    return sorted(known, key=lambda name: -owed[name])


def _about(row: Values, order: list[str]) -> Datum:
    """A request with nothing owed yet: what is not stored is zero, and counts in the mean."""
    about: Datum = {"t": real(row.get("t")), "size": real(row.get("size")), "stream": str(row.get("stream"))}
    return about | {f"{how}_{name}": 0 for name in order for how in ("own", "inherited")}


def _bars(data: list[Datum], order: list[str]) -> Panels:
    names = [f"{how}_{name}" for name in order for how in ("own", "inherited")]
    labels = {name: cause_label(name) for name in order}
    inside = marks.inside(time="t", size="size", stream="stream")
    fold = [
        {"calculate": f"({inside}) ? 1 : 0", "as": "chosen"},
        {"fold": names, "as": ["part", "ms"]},
        {"calculate": "substring(datum.part, indexof(datum.part, '_') + 1)", "as": "cause"},
        {"calculate": "datum.chosen * datum.ms", "as": "owed"},
    ]
    place: Spec = {
        "field": "cause",
        "type": "nominal",
        "scale": {"domain": order},
        "axis": {"title": None, "labelExpr": f"{json.dumps(labels)}[datum.value]", "labelLimit": 110},
    }
    amount: Spec = {
        "field": "ms",
        "type": "quantitative",
        "axis": {"title": "mean ms a request", "tickCount": 4, "labelExpr": marks.TICK},
    }
    never_empty: Spec = {"domain": {"unionWith": [0, 1]}}  # where nothing is owed there is an axis all the same
    bar: Spec = {"type": "bar", "height": 14}
    shade: Spec = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": names, "range": [_shade(name) for name in names]},
    }
    sums_of = [{"op": "sum", "field": field, "as": field} for field in ("owed", "chosen")]
    by_part = [  # a mean over none is 0, not nothing: a scale needs something to stand on
        {"aggregate": sums_of, "groupby": ["part", "cause"]},
        {"calculate": "datum.owed / max(datum.chosen, 1)", "as": "ms"},
    ]
    sums = [
        *by_part,
        {"aggregate": [{"op": "sum", "field": "ms", "as": "ms"}], "groupby": ["cause"]},
        {"calculate": "format(datum.ms, '.3~r')", "as": "text"},
    ]
    values = {"values": data}
    layers: list[Spec] = [
        {
            "data": values,
            "transform": [*fold, *by_part],
            "mark": bar,
            "encoding": {"y": place, "x": {**amount, "stack": "zero", "scale": never_empty}, "color": shade},
        },
        {
            "data": values,
            "transform": [*fold, *sums],
            "mark": marks.words(dx=5),
            "encoding": {"y": place, "x": amount, "text": {"field": "text"}},
        },
    ]
    height = 26 * len(order) + marks.ROOM["top"] + marks.TITLED["bottom"]
    room = {**marks.TITLED, "left": 104, "right": 40}
    chart = marks.chart("requests-owed", layers, height, "What the chosen slow requests owe to each cause", room)
    return Panels(panels=(Panel(label="What the chosen ones owe", sub="hatched: inherited", chart=chart),))


def _shade(name: str) -> str:
    how, _, word = name.partition("_")
    return colour(word) if how == "own" else f"url(#hatch-{word})"
