"""Score: the primary metric, mapping accuracy and promise over windows on one axis, and where accuracy is lost."""

from __future__ import annotations

from trimtab.domain.figure import Figure, Series
from trimtab.report import marks, words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, length, real, source
from trimtab.report.page import (
    Block,
    Cell,
    Column,
    Grid,
    Mark,
    Panel,
    Panels,
    Prose,
    Row,
    Section,
    Spec,
    Split,
    Strip,
)
from trimtab.report.palette import cause, cause_label, cause_look, colour
from trimtab.report.sections import adaptation, trend
from trimtab.report.sections import windows as over_windows

FEWEST = 3
"""Windows below which a trend is not drawn."""

Datum = dict[str, float]


def section(book: Book) -> Section | None:
    mapping = book.figure("score.mapping_accuracy")
    windows = book.series("score.windows")
    if mapping is None and windows is None:
        return None
    panels = over_windows.panels(book, windows) if windows and length(windows) >= FEWEST else ()
    primary, told = trend.panels(book), adaptation.said(book)
    drawn = tuple(Panels(panels=stack) for stack in (adaptation.panels(book), panels) if stack)
    below = (Prose(paragraphs=(("In simulation:", told),)) if told else None, adaptation.ledger(book))
    left: tuple[Block, ...] = tuple(block for block in (primary, *drawn, *below) if block is not None)
    beside = (
        _scatter(book, windows) or adaptation.scatter(book),
        _loss(book),
        adaptation.measured(book),
        _figures(book),
    )
    right = tuple(block for block in beside if block is not None)
    return Section(
        id="score",
        nav="Accuracy and gain",
        eyebrow="Score",
        heading=_heading(book, mapping),
        lead=_lead(book),
        blocks=(Split(left=left, right=right),) if left and right else (*left, *right),
        source=source(*_scope(mapping, windows), artifact=mapping.artifact if mapping else ""),
    )


def _heading(book: Book, mapping: Figure | None) -> str:
    promise = book.figure("score.promise_accuracy_warm")
    if mapping is None:
        return "Accuracy over windows."
    kept = f"; warm batches keep {words.figure(promise)} of the promise" if promise else ""
    return f"The mapping reaches {words.figure(mapping)} of the best known service time{kept}."


def _lead(book: Book) -> str:
    gain, capture = book.figure("score.gain"), book.figure("score.capture")
    headline = book.headline("score")
    parts = [words.ended(headline)] if headline else []
    if gain is not None and not headline:
        parts.append(f"Adaptation gain {words.figure(gain)} {words.spread(gain.interval, gain.unit)}".strip() + ".")
    if capture is not None:
        parts.append(f"It captures {words.figure(capture)} of the headroom, both simulated.")
    return " ".join(parts)


def _scope(mapping: Figure | None, windows: Series | None) -> tuple[str, ...]:
    said = [f"Scope: {mapping.scope}, {words.count(mapping.samples)} batches"] if mapping else []
    if windows:
        said.append(f"{words.opened(words.many(length(windows), 'window'))} of equal numbers of requests")
    return tuple(said)


def _scatter(book: Book, windows: Series | None) -> Panels | None:
    """Gain against accuracy, one dot a window: does the gain rise as accuracy falls?"""
    if windows is None:
        return None
    pairs = [(real(row.get("mapping_accuracy")), real(row.get("gain_p95"))) for row in each(windows)]
    data = [{"x": a, "y": g, "window": at + 1} for at, (a, g) in enumerate(pairs) if a is not None and g is not None]
    if len(data) < FEWEST:
        return None
    xs, ys = scale([row["x"] for row in data], zero=False), scale([row["y"] for row in data])
    where = marks.shares(marks.x("x", domain=(xs.lo, xs.hi), tickCount=4, title="mapping accuracy"))
    high = marks.shares(marks.y("y", domain=(ys.lo, ys.hi)))
    dot: Spec = {"type": "point", "filled": True, "size": 34, "opacity": 1, "color": colour("ink")}
    chart = marks.chart(
        "score-scatter",
        [marks.layer(dot, data, x=where, y=high, opacity=marks.faded(marks.inside(window="window")))],
        230,
        "Gain against accuracy",
        marks.TITLED,
    )
    return Panels(panels=(Panel(label="Gain in p95 against accuracy", sub="one dot a window", chart=chart),))


# --- beside them --------------------------------------------------------------------------------------------------


def _loss(book: Book) -> Grid | None:
    series = book.series("score.loss")
    if series is None:
        return None
    rows = [row for row in each(series) if (real(row["share"]) or 0.0) != 0.0]
    if not rows:
        return None
    to = scale([real(row.get(key)) for row in rows for key in ("share", "lo", "hi")])
    columns = (Column(label="What accuracy loses"), Column(label="of run time", align="right"), Column(label=""))
    return Grid(columns=columns, rows=tuple(_loss_row(row, to) for row in rows))


def _loss_row(row: Values, to: Scale) -> Row:
    share, lo, hi = (real(row.get(key)) for key in ("share", "lo", "hi"))
    name, end = str(row["cause"]), share or 0.0
    look, zero = cause_look(name), to.at(0.0)
    marks_ = [Mark(form="bar", x=min(zero, to.at(end)), x2=max(zero, to.at(end)), look=look, cause=cause(name))]
    if lo is not None and hi is not None:
        marks_.append(Mark(form="line", x=to.at(lo), x2=to.at(hi)))
    text = words.percent(share, None if lo is None or hi is None else (hi - lo) / 2)
    return Row(cells=(Cell(text=cause_label(name)), Cell(text=text), Cell(strip=Strip(marks=tuple(marks_), alt=text))))


def _figures(book: Book) -> Grid | None:
    named = (
        ("score.mapping_accuracy", "Mapping accuracy"),
        ("score.promise_accuracy_warm", "Promise, without first runs"),
        ("score.promise_accuracy", "Promise, all runs"),
        ("score.bias_warm", "Run time above the promise"),
        ("score.coverage", "Requests on compiled routes"),
        ("score.fit", "Useful of executed work"),
        ("score.measured_gain", "Adaptation gain, measured"),
        ("score.measured_floor", "Replays of one arm differ by"),
        ("score.gain", "Adaptation gain, simulated"),
        ("score.gain_without_stalls", "The same if compiling took no time"),
        ("score.headroom", "Headroom, simulated"),
        ("score.capture", "Captured of the headroom"),
    )
    rows = []
    for id_, label in named:
        item = book.figure(id_)
        if item is not None:
            interval = words.spread(item.interval, item.unit)
            rows.append(Row(cells=(Cell(text=label), Cell(text=words.figure(item)), Cell(text=interval, look="muted"))))
    columns = (Column(label="Figure"), Column(label="Value", align="right"), Column(label="95 % interval"))
    return Grid(columns=columns, rows=tuple(rows)) if rows else None
