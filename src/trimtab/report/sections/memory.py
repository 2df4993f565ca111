"""Memory: what each plan holds at most against the limit, and how it grows with the shapes that it meets."""

from __future__ import annotations

from trimtab.domain.figure import Series
from trimtab.report import marks, words
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Block, Cell, Chart, Column, Fold, Grid, Line, Panel, Panels, Row, Section, Spec
from trimtab.report.palette import colour

MIB = 2**20
COLUMNS = (
    Column(label="Plan"),
    Column(label="Entries", align="right"),
    Column(label="Workers", align="right"),
    Column(label="Entries take", align="right"),
    Column(label="One run adds", align="right"),
    Column(label="Peak", align="right"),
    Column(label="Of the limit", align="right"),
    Column(label="Growth by shapes", align="right"),
    Column(label="Second half", align="right"),
)


def section(book: Book) -> Section | None:
    series = book.series("compile.memory")
    if series is None:
        return None
    rows = list(each(series))
    mine = [book.baseline.id, *([book.candidate.id] if book.candidate else [])]
    near, rest = ([row for row in rows if (row["plan"] in mine) is inside] for inside in (True, False))
    blocks: list[Block] = [Grid(columns=COLUMNS, rows=tuple(_row(row) for row in near))] if near else []
    curves = _curves(book, mine)
    if curves is not None:
        blocks.append(curves)
    if rest:
        said = f"Show {words.many(len(rest), 'other plan')}"
        blocks.append(Fold(summary=said, grid=Grid(columns=COLUMNS, rows=tuple(_row(row) for row in rest))))
    return Section(
        id="memory",
        nav="Memory",
        eyebrow="Compile",
        heading=_heading(rows),
        blocks=tuple(blocks),
        source=source(words.opened(series.note), artifact=series.artifact),
    )


def _heading(rows: list[Values]) -> str:
    limit = next((most for row in rows if (most := real(row.get("limit"))) is not None), None)
    if limit is None:
        return "No limit of memory is known."
    above = [str(row["plan"]) for row in rows if (real(row.get("share")) or 0.0) > 1]
    said = words.memory(limit * MIB)
    if above:
        return f"Above the limit of {said}: {words.listed(above)}."
    return f"Every plan stays below the limit of {said}."


def _row(row: Values) -> Row:
    share = real(row.get("share"))
    over = share is not None and share > 1
    return Row(
        cells=(
            Cell(text=str(row["plan"])),
            *(Cell(text=words.number(real(row.get(name)))) for name in ("entries", "workers")),
            Cell(text=_mib(row, "memory")),
            Cell(text=_mib(row, "scratch"), sub=_workspace(row)),
            Cell(text=_mib(row, "peak")),
            Cell(text=words.percent(share), glyph="fail" if over else "", look="fail-ink" if over else ""),
            Cell(text=_grown(row, "growth"), sub=_shapes(row)),
            Cell(text=_grown(row, "growth_late")),
        )
    )


def _mib(row: Values, name: str) -> str:
    number = real(row.get(name))
    return words.NOTHING if number is None else words.memory(number * MIB)


def _workspace(row: Values) -> str:
    """What the runtime's own allocator holds in a run, where it counts."""
    return "" if real(row.get("workspace")) is None else f"{_mib(row, 'workspace')} workspace"


def _grown(row: Values, name: str) -> str:
    number = real(row.get(name))
    return words.NOTHING if number is None else f"{words.signed(number)}{words.GAP}MiB"


def _shapes(row: Values) -> str:
    number = real(row.get("shapes"))
    return "" if number is None else f"over {words.count(number)}"


def _curves(book: Book, plans: list[str]) -> Panels | None:
    """The curve of each dynamic entry of the two plans; None where neither has one."""
    series = book.series("compile.growth")
    rows = [row for row in each(series) if row["plan"] in plans] if series else []
    if series is None or not rows:
        return None
    names = list(dict.fromkeys((str(row["plan"]), str(row["entry"])) for row in rows))
    lines = tuple(
        _line(plan, entry, [r for r in rows if (r["plan"], r["entry"]) == (plan, entry)]) for plan, entry in names
    )
    panel = Panel(label="Held", sub="MiB by distinct shapes run", chart=_chart(book, series, plans), lines=lines)
    return Panels(panels=(panel,))


def _line(plan: str, entry: str, rows: list[Values]) -> Line:
    first, last = rows[0], rows[-1]
    said = f"{_mib(first, 'resident')} after {words.count(real(first['shapes']) or 0)} shapes"
    return Line(
        text=f"{words.short(plan)}, {words.short(entry)}: {said}, {_mib(last, 'resident')} after "
        f"{words.count(real(last['shapes']) or 0)}"
    )


def _chart(book: Book, series: Series, plans: list[str]) -> Chart:
    rows = [row for row in marks.rows(series) if row["plan"] in plans]
    most = max(float(row["shapes"]) for row in rows)
    high = max(float(row["resident"]) for row in rows)
    where = marks.x("shapes", title="distinct shapes", domain=(0.0, most), tickCount=6)
    up = marks.y("resident", domain=(0.0, high * 1.08))
    layers: list[Spec] = []
    for plan, entry in dict.fromkeys((row["plan"], row["entry"]) for row in rows):
        ink = "static" if plan == book.baseline.id else "ink"
        mine = [row for row in rows if (row["plan"], row["entry"]) == (plan, entry)]
        layers.append(marks.layer(marks.line("static" if ink == "static" else "adapted"), mine, x=where, y=up))
        dot: Spec = {"type": "point", "filled": True, "size": 18, "opacity": 1, "color": colour(ink)}
        layers.append(marks.layer(dot, mine, x=where, y=up))
    return marks.chart("memory-growth", layers, 130, "Memory held by distinct shapes run", marks.TITLED)
