"""The panels of the queue section, on one axis of seconds: backlog, what each worker ran, and p95 by window.

Where a stream or a band of shapes is chosen, all of them step back, and the part of the chosen ones stands before them
in ink: of p95, for which there would be too few, the single requests that are shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from trimtab.domain.figure import Series
from trimtab.report import bounds, marks, words
from trimtab.report.book import Book, Values, each, real
from trimtab.report.marks import Base, Maker
from trimtab.report.page import Line, Panel, Spec
from trimtab.report.palette import CAUSES, cause, cause_label, cause_look, colour
from trimtab.report.sections import requests

Datum = dict[str, float]

SEAMLESS = 1.04
"""Bins reach a little into the next one, so that no seam shows between them."""

ORDER = ("useful", "capacity", "co-batching", "padding", "premium", "interference", "off-core", "cold", "dispatch")
"""From below to above in a worker's strip; anything else stands on top."""
STEPPED_BACK = 0.3
FINE = 4
"""Decimals of a busy share: a ten-thousandth of a strip is no pixel."""


def panels(book: Book) -> tuple[Panel, ...]:
    """The panels that have data, from above to below."""
    waiting, cores = book.series("queue.waiting"), book.series("cores.timeline")
    over_time = book.series("replay.over_time")
    ends = [(waiting, "t"), (cores, "t"), (over_time, "start")]
    times = [
        number for series, column in ends if series for number in map(real, series.columns.get(column, ())) if number
    ]
    if not times:
        return ()
    where = marks.x("t", domain=(0.0, max(times)), tickCount=8, title="s of one replay")
    served = _served(book)
    makers: list[Maker] = [partial(_waiting, book, waiting, served)] if waiting else []
    makers += _workers(book, cores, served) if cores else []
    if over_time:
        makers.append(partial(_p95, book, mine(book, over_time)))
    return marks.stack(makers, where, "time")


def mine(book: Book, series: Series) -> list[Values]:
    """The rows of the baseline's runs, or all of them where no plan is named."""
    rows = list(each(series))
    return [row for row in rows if row.get("plan") == book.baseline.id] or rows


def first_run(rows: list[Values]) -> list[Values]:
    """The rows of the run that is named first."""
    name = rows[0].get("run") if rows else None
    return [row for row in rows if row.get("run") == name]


def _waiting(book: Book, series: Series, served: list[Values], base: Base) -> Panel | None:
    data = [
        {"t": t, "n": n}
        for row in each(series)
        if (t := real(row.get("t"))) is not None and (n := real(row.get("waiting"))) is not None
    ]
    if not data:
        return None
    most = max(row["n"] for row in data)
    high = marks.y("n", domain=(0.0, max(most, 1.0) * 1.1), tickMinStep=1, format="d")
    area: Spec = {"type": "area", "color": colour("useful"), "interpolate": "step-after", "clip": True}
    layers = [marks.layer(area, data, x=base.where, y=high, opacity=_back(served))]
    layers += _theirs(served, "waiting", "true", base, high)
    chart = marks.chart("queue-waiting", layers, base.height(110), "Requests waiting over time", base.room, base.axis)
    lines = [Line(text=f"at most {words.number(most)} waiting")]
    if served:
        lines.append(Line(text="ink: the chosen stream or shapes, on average", swatch="ink"))
    return Panel(label="Waiting", sub=f"requests, {words.short(book.baseline.id)}", chart=chart, lines=tuple(lines))


def _served(book: Book) -> list[Values]:
    """For whom the workers ran and who waited: one row a bin of time, worker, stream and size."""
    series = book.series("requests.served")
    return list(each(series)) if series else []


def _back(theirs: Sequence[object]) -> Spec:
    """The opacity of what steps back for ``theirs``, the part of the chosen ones; nothing does where it is unknown."""
    return marks.faded(marks.EVERYBODY, STEPPED_BACK if theirs else 1)


def _theirs(served: list[Values], field: str, which: str, base: Base, high: Spec) -> list[Spec]:
    """The part of the chosen stream and shapes in ink, from the bottom up; nothing as long as none are chosen."""
    if not served:
        return []
    chosen = f"!({marks.EVERYBODY}) && {marks.inside(size='size', stream='stream')} && {which}"
    total = {"aggregate": [{"op": "sum", "field": field, "as": "part"}], "groupby": ["t", "end"]}
    bar: Spec = {"type": "rect", "color": colour("ink"), "clip": True}
    place = {"x": base.where, "x2": marks.to("end"), "y": {**high, "field": "part"}, "y2": {"datum": 0}}
    return [{**marks.layer(bar, served, **place), "transform": [{"filter": chosen}, total]}]


def _workers(book: Book, series: Series, served: list[Values]) -> list[Maker]:
    rows = list(each(series))
    times = sorted({t for t in (real(row.get("t")) for row in rows) if t is not None})
    width = min((b - a for a, b in pairwise(times)), default=1.0)
    workers = sorted({str(row["worker"]) for row in rows}, key=lambda name: (len(name), name))
    return [
        partial(_worker, book, name, [row for row in rows if str(row["worker"]) == name], width, served)
        for name in workers
    ]


def _worker(book: Book, name: str, rows: list[Values], width: float, served: list[Values], base: Base) -> Panel | None:
    """Stacked by cause; the height is the share of each bin that the worker was busy."""
    present = sorted({cause(str(row["cause"])) for row in rows}, key=lambda word: (_level(word), word))
    bins: dict[float, dict[str, float]] = {}
    for row in rows:
        t, busy = real(row.get("t")), real(row.get("busy"))
        if t is not None and busy is not None:
            here = bins.setdefault(t, {})
            here[cause(str(row["cause"]))] = here.get(cause(str(row["cause"])), 0.0) + busy
    high = marks.shares(marks.y("lo", domain=(0.0, 1.0), values=[0, 1]))
    layers = []
    for word in present:
        data = [
            {
                "t": t,
                "end": round(t + width, FINE),
                "lo": round(_below(parts, present, word), FINE),
                "hi": round(_below(parts, present, word) + parts[word], FINE),
            }
            for t, parts in bins.items()
            if word in parts
        ]
        mark: Spec = {"type": "rect", "color": colour(word if word in CAUSES else "unprofiled"), "clip": True}
        place = {"x": base.where, "x2": marks.to("end"), "y": high, "y2": marks.to("hi")}
        rects = marks.layer(mark, data, **place, opacity=_back(served))
        layers.append(marks.named(word, rects))
    layers += _theirs(served, "busy", f"datum.worker === {json.dumps(rows[0]['worker'])}", base, high)
    chart = marks.chart(
        f"worker-{name}", layers, base.height(62), f"What worker {name} ran over time", base.room, base.axis
    )
    lines = tuple(Line(text=cause_label(word).lower(), swatch=cause_look(word)) for word in present[:6])
    return Panel(label=f"Worker {name}", sub=f"busy, {words.short(book.baseline.id)}", chart=chart, lines=lines)


def _level(word: str) -> int:
    return ORDER.index(word) if word in ORDER else len(ORDER)


def _below(parts: dict[str, float], present: list[str], word: str) -> float:
    return sum(parts.get(other, 0.0) for other in present[: present.index(word)])


def _p95(book: Book, rows: list[Values], base: Base) -> Panel | None:
    """One line a replay; all of one plan, so all in one ink."""
    runs: dict[str, list[Datum]] = {}
    for row in rows:
        t, p95 = real(row.get("start")), real(row.get("p95"))
        if t is not None and p95 is not None:
            runs.setdefault(str(row.get("run")), []).append({"t": t, "p95": p95})
    if not runs:
        return None
    end = base.where["scale"]["domain"][1]
    steps = [[*points, {**points[-1], "t": end}] for points in runs.values()]
    single = [points for points in requests.parted(book) if points]
    layers = _p95_layers(steps, single, book.record.study.sla.bound_ms, base)
    chart = marks.chart("queue-p95", layers, base.height(120), "p95 over time, one line a replay", base.room, base.axis)
    lines = [Line(text=f"{words.many(len(runs), 'replay')}, a line each", swatch="line static")]
    lines += [Line(text="ink: single requests of the chosen stream or shapes", swatch="dot")] if single else []
    return Panel(label="p95", sub="by window", chart=chart, lines=tuple(lines))


def _p95_layers(steps: list[list[Datum]], single: list[list[requests.Datum]], bound: float, base: Base) -> list[Spec]:
    """The lines and the bound; once a stream or shapes are chosen the single requests of those before them, and the
    axis reaches up to the slowest."""
    top = max([point["p95"] for points in steps for point in points] + [bound]) * 1.08
    most = max([top, *(float(str(point["ms"])) * 1.04 for points in single for point in points)])
    high = marks.y("p95", title="ms", domain=(0.0, top))
    high["scale"]["domain"] = [0.0, {"expr": f"{marks.EVERYBODY} ? {top} : {most}"}]
    mark: Spec = {**marks.line("static"), "strokeWidth": 1.25, "interpolate": "step-after"}
    back = _back(single)
    dot: Spec = {"type": "point", "filled": True, "size": 12, "opacity": 1, "color": colour("ink"), "clip": True}
    chosen = [{"filter": f"!({marks.EVERYBODY}) && {marks.inside(size='size', stream='stream')}"}]
    dots = (marks.layer(dot, points, x=base.where, y={**high, "field": "ms"}) for points in single)
    stairs = [
        [place for a, b in pairwise(points) for place in ((a["t"], a["p95"]), (b["t"], a["p95"]))] for points in steps
    ]
    return [
        *(marks.layer(mark, points, x=base.where, y=high, opacity=back) for points in steps),
        *({**layer, "transform": chosen} for layer in dots),
        *bounds.named(base.where, high, bound, f"bound {words.number(bound)} ms", stairs, (0.0, top)),
    ]
