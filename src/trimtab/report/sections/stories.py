"""The stories of the slowest requests: the life of each on one scale of ms, and whoever was in front meanwhile."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import words
from trimtab.report.arms import Scale
from trimtab.report.book import Book, Values, each, real
from trimtab.report.page import Cell, Column, Grid, Key, Mark, Row, Stories, Strip, Told
from trimtab.report.palette import cause, cause_label, cause_look

ALONE = ("useful", "padding", "premium", "interference", "cold", "off-core", "unprofiled")
"""What a request's own run is made of, in the order in which it is drawn: nothing records the order within a run."""


def ids(book: Book) -> tuple[object, ...]:
    """The requests whose story is stored."""
    series = book.series("requests.stories")
    return series.columns.get("request", ()) if series else ()


def heading(book: Book) -> str:
    """What happened to the slowest request of all."""
    series = book.series("requests.stories")
    first = next(each(series), None) if series else None
    latency, waited = (real(first.get(key)) for key in ("latency", "waited")) if first else (None, None)
    if first is None or latency is None:
        return ""
    count = int(real(first.get("blockers")) or 0)
    said = f"The slowest request took {words.time(latency)}"
    if not waited or not count:
        return f"{said}; nothing ran in front of it."
    return f"{said}: for {words.time(waited)} of it {words.many(count, 'batch', 'batches')} ran in front."


def block(book: Book) -> Stories | None:
    """One story a request, the slowest first."""
    series, front, parts = (book.series(f"requests.{name}") for name in ("stories", "front", "parts"))
    if series is None:
        return None
    told = tuple(
        Told(
            key=str(row.get("request")),
            title=_title(row),
            sentence=f"{row.get('sentence', '')} {_fewer(row, front)}".strip(),
            grid=_grid(row, _of(front, row), _of(parts, row)),
        )
        for row in each(series)
    )
    return Stories(label="Story of request", told=told)


def _of(series: Series | None, row: Values) -> list[Values]:
    """The rows of the same request."""
    return [other for other in each(series) if other.get("request") == row.get("request")] if series else []


def _title(row: Values) -> str:
    latency = real(row.get("latency")) or 0.0
    dims = str(row.get("dims", "")).replace("x", " × ")
    return f"{row.get('request')}: {words.time(latency)}, {row.get('stream')}{f', {dims}' if dims else ''}"


def _fewer(row: Values, front: Series | None) -> str:
    shown = len({other.get("batch") for other in _of(front, row)})
    count = int(real(row.get("blockers")) or 0)
    return f"Shown are the {shown} that cost it most." if 0 < shown < count else ""


COLUMNS = (
    Column(label="In front"),
    Column(label="Worker", align="right"),
    Column(label="Entry"),
    Column(label="Cost it, ms", align="right"),
    Column(label="Most of it"),
)


def _grid(row: Values, front: list[Values], parts: list[Values]) -> Grid:
    """Who was in front, in the order in which they ran, and the request itself at the end."""
    batches = list(dict.fromkeys(other.get("batch") for other in front))
    mine = [[other for other in front if other.get("batch") == batch] for batch in batches]
    begin = min([real(rows[0].get("start")) or 0.0 for rows in mine] + [0.0])
    done = real(row.get("done")) or 1.0
    to = Scale(lo=begin, hi=done + (done - begin) * 0.02)
    ticks = ((to.at(0.0), "scheduled"), (to.at(done), words.time(done)))
    columns = (COLUMNS[0], Column(label="", ticks=ticks, wide=True), *COLUMNS[1:])
    rows = (*(_blocker(rows, to) for rows in mine), _itself(row, parts, to))
    present = [cause(str(other.get("cause"))) for other in (*front, *parts)]
    legend = tuple(
        Key(swatch=f"m-bar {cause_look(name)}", text=cause_label(name).lower(), cause=name)
        for name in dict.fromkeys(present)
        if name in {"dispatch", "completion", *ALONE}
    )
    waiting = Key(swatch="hatched", text="waiting")
    return Grid(columns=columns, rows=rows, legend=(*legend, waiting))


def _blocker(rows: list[Values], to: Scale) -> Row:
    first = rows[0]
    start, end = (real(first.get(key)) or 0.0 for key in ("start", "end"))
    largest = max(rows, key=lambda row: real(row.get("part")) or 0.0)
    members = int(real(first.get("members")) or 1)
    several = f" × {members}" if members > 1 else ""
    strip = Strip(
        marks=(Mark(form="tick", x=to.at(0.0)), *_segments(rows, "part", start, to)),
        alt=f"ran from {words.time(start)} to {words.time(end)}",
    )
    return Row(
        cells=(
            Cell(text=f"Batch {first.get('batch')}"),
            Cell(strip=strip),
            Cell(text=str(first.get("worker"))),
            Cell(text=f"{first.get('entry')}{several}", look="muted"),
            Cell(text=words.number(real(first.get("charged")), 0.1)),
            Cell(text=f"{cause_label(str(largest.get('cause')))}, {words.time(real(largest.get('part')) or 0.0)}"),
        )
    )


def _segments(rows: list[Values], field: str, start: float, to: Scale) -> list[Mark]:
    """Parts end to end from ``start`` on."""
    known = {cause(str(row.get("cause"))): real(row.get(field)) or 0.0 for row in rows}
    out: list[Mark] = []
    at = start
    for name in sorted(known, key=_place):
        if known[name] <= 0:
            continue
        look = f"{cause_look(name)} gap"
        out.append(Mark(form="bar", x=to.at(at), x2=to.at(at + known[name]), look=look, cause=name))
        at += known[name]
    return out


def _place(name: str) -> int:
    """Dispatch comes before the run; within the run the order is that of ALONE."""
    return ALONE.index(name) if name in ALONE else -1


def _itself(row: Values, parts: list[Values], to: Scale) -> Row:
    started = real(row.get("started")) or 0.0
    sent = real(row.get("dispatched")) or 0.0
    own = [part for part in parts if cause(str(part.get("cause"))) in ALONE]
    waiting = Mark(form="bar", x=to.at(0.0), x2=to.at(sent), look="hatched")
    dispatch = Mark(form="bar", x=to.at(sent), x2=to.at(started), look="cause-dispatch gap", cause="dispatch")
    strip = Strip(
        marks=(Mark(form="tick", x=to.at(0.0)), waiting, dispatch, *_segments(own, "own", started, to)),
        alt=f"waited {words.time(sent)}, ran from {words.time(started)} to {words.time(real(row.get('ended')) or 0.0)}",
    )
    run = (real(row.get("ended")) or 0.0) - started
    said = "first run of its shape" if row.get("first") else "a shape run before"
    return Row(
        cells=(
            Cell(text=f"Request {row.get('request')}"),
            Cell(strip=strip),
            Cell(text=str(row.get("worker"))),
            Cell(text=str(row.get("entry")), look="muted"),
            Cell(text=f"{words.number(run, 0.1)} to run"),
            Cell(text=said),
        ),
        strong=True,
    )
