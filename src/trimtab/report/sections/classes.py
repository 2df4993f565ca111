"""Which class explains the tail, what proves it, what was ruled out, and whose it is."""

from __future__ import annotations

from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, Values, each, real
from trimtab.report.page import Block, Cell, Column, Grid, Mark, Prose, Row, Strip
from trimtab.report.palette import cause, cause_look


def blocks(book: Book) -> tuple[Block, ...]:
    """What failed, then the stored classification, leading class first."""
    series = book.series("attribute.classes", "classify.classes")
    if series is None:
        return ()
    return of(list(each(series)), series.note)


def of(rows: list[Values], failures: str) -> tuple[Block, ...]:
    """The classes in ``rows``, of the columns of ``attribute.classes``, behind the sentence on what failed."""
    to = scale([real(row.get(key)) for row in rows for key in ("share", "lo", "hi")])
    columns = (
        Column(label="Class"),
        Column(label="Share of what all removals change", align="right"),
        Column(label=""),
        Column(label="Owner"),
        Column(label="What proves it"),
    )
    made = tuple(_row(row, to, strong=at == 0) for at, row in enumerate(rows))
    out = list(dict.fromkeys(str(row["ruled_out"]) for row in rows if row.get("ruled_out")))
    told: tuple[Block, ...] = (Prose(paragraphs=(("Ruled out:", words.ended("; ".join(out))),)),) if out else ()
    failed: tuple[Block, ...] = (Prose(paragraphs=(("", words.ended(failures)),)),) if failures else ()
    return (*failed, Grid(columns=columns, rows=made, title="Classification"), *told)


def _row(row: Values, to: Scale, *, strong: bool) -> Row:
    name = str(row["class"])
    share, lo, hi = (real(row.get(key)) for key in ("share", "lo", "hi"))
    width = None if lo is None or hi is None else (hi - lo) / 2
    said = words.percent(share, width) if share is not None else ""
    return Row(
        cells=(
            Cell(text=name),
            Cell(text=said),
            Cell(strip=_strip(to, name, share, lo, hi)) if share is not None else Cell(),
            Cell(text=words.opened(str(row.get("owner") or ""))),
            Cell(text=str(row.get("evidence") or "")),
        ),
        strong=strong,
    )


def _strip(to: Scale, name: str, share: float, lo: float | None, hi: float | None) -> Strip:
    marks = [Mark(form="bar", x=to.at(0.0), x2=max(to.at(share), to.at(0.0)), look=cause_look(name), cause=cause(name))]
    if lo is not None and hi is not None:
        marks.append(Mark(form="line", x=to.at(lo), x2=to.at(hi)))
    return Strip(marks=tuple(marks), alt=f"{name} {words.percent(share)}")
