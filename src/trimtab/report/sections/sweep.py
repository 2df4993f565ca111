"""How many entries are worth their start: the cost of a request by their number, and where it is least."""

from __future__ import annotations

from trimtab.domain.noun import Noun
from trimtab.report import marks, words
from trimtab.report.book import Book, Values, each, real
from trimtab.report.page import Line, Panel, Panels, Spec
from trimtab.report.palette import colour

HEIGHT = 210
FITTED = "refit"
"""The kind of move whose entries are fitted as those of the sweep are."""


class Point(Noun, frozen=True, kw_only=True):
    """One number of entries: ms a request to run, and in all; whether it fits into memory, and is the best of those."""

    count: float
    run: float
    total: float
    fits: bool
    best: bool


def panels(book: Book) -> Panels | None:
    """Cost by number of entries, its least value, where memory ends, and the number that was chosen."""
    series = book.series("retune.sweep")
    points = [point for point in map(_point, each(series)) if point is not None] if series else []
    if series is None or len(points) < 2:
        return None
    lines = [
        Line(text="in all, with its part of the start", strong=True, swatch="line"),
        Line(text="to run", swatch="line static"),
    ]
    if not points[-1].fits:
        lines.append(Line(text="does not fit into memory", swatch="line dashed"))
    best = next((point for point in points if point.best), None)
    least = f", least with {words.count(best.count)}" if best else ""
    chart = marks.chart("sweep", _layers(book, points), HEIGHT, f"Cost by number of entries{least}", marks.TITLED)
    return Panels(
        panels=(
            Panel(
                label="How many entries",
                sub="ms a request, by profile",
                chart=chart,
                lines=(*lines, Line(text=words.opened(series.note))),
            ),
        )
    )


def _point(row: Values) -> Point | None:
    count, run, total = (real(row.get(name)) for name in ("count", "run_ms", "total_ms"))
    if count is None or run is None or total is None:
        return None
    return Point(count=count, run=run, total=total, fits=bool(row.get("fits")), best=bool(row.get("best")))


def _layers(book: Book, points: list[Point]) -> list[Spec]:
    most = max(point.count for point in points)
    top = max(max(point.total, point.run) for point in points) * 1.08
    where = marks.x("count", domain=(0.0, most * 1.02), tickMinStep=1, tickCount=8, format="d", title="fitted entries")
    high = marks.y("total", domain=(0.0, top), title="ms", tickCount=4)
    rows = [{"count": point.count, "run": point.run, "total": point.total} for point in points]
    inside = [row for row, point in zip(rows, points, strict=True) if point.fits]
    beyond = rows[max(len(inside) - 1, 0) :] if len(inside) < len(rows) else []
    dashed: Spec = {**marks.line("static"), "strokeDash": [3, 2]}
    layers = [
        marks.layer(marks.line("static"), inside, x=where, y={**high, "field": "run"}),
        marks.layer(marks.line("adapted"), inside, x=where, y=high),
        marks.layer(dashed, beyond, x=where, y=high),
    ]
    return [*layers, *_limit(points, top, where, high), *_named(book, points, where, high)]


def _limit(points: list[Point], top: float, where: Spec, high: Spec) -> list[Spec]:
    """The line between the last number that fits into memory and the first that does not."""
    first = next((point for point in points if not point.fits), None)
    if first is None:
        return []
    edge = {"count": first.count - 0.5, "total": top, "text": "memory limit"}
    label = marks.words(dx=6, dy=6, color=colour("fail"))
    return [
        marks.layer(marks.bound(), [edge], x=where),
        marks.layer(label, [edge], x=where, y=high, text=marks.to("text")),
    ]


def _named(book: Book, points: list[Point], where: Spec, high: Spec) -> list[Spec]:
    """Dots with a name: the least cost, and the number of the proposed plan where its entries are fitted ones."""
    proposal, chosen = book.record.proposal, 0
    if proposal is not None and book.candidate is not None and proposal.move.kind == FITTED:
        chosen = sum(entry.kind == "bucket" for entry in book.candidate.compile.entries)
    layers: list[Spec] = []
    for point in points:
        if not point.best and point.count != chosen:
            continue
        least = f"least: {words.count(point.count)} entries, {words.number(point.total)} ms" if point.best else ""
        mine = f"proposed: {words.short(book.candidate.id)}" if book.candidate and point.count == chosen else ""
        row = {"count": point.count, "total": point.total, "text": ", ".join(filter(None, (mine, least)))}
        ring: Spec = {"type": "point", "filled": True, "size": 52, "opacity": 1, "strokeWidth": 1.75}
        fill = {"fill": colour("ink" if point.best else "ground"), "stroke": colour("ink")}
        right = point.count > points[-1].count / 3  # then it ends at its dot, and crosses no limit beyond it
        side: Spec = {"align": "right" if right else "left", "dy": 16 if point.best else -14}
        text = marks.words(**side, color=colour("ink"), fontWeight=600 if point.best else 400)
        layers.append(marks.layer({**ring, **fill}, [row], x=where, y=high))
        layers.append(marks.layer(text, [row], x=where, y=high, text=marks.to("text")))
    return layers
