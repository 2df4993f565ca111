"""Compile: what each entry cost, what the runtime made of it, and the precision it really computes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtab.domain.figure import Interval, Series
from trimtab.report import words
from trimtab.report.book import Book, Values, each, real, source
from trimtab.report.page import Block, Cell, Column, Fold, Grid, Prose, Row, Section

KERNELS = 2
"""How many kernels a row names: those with most of the profiled time."""

LEVELS = 15
"""About how many rows of fusion levels are open: those of whole entries."""

HELD = {"workspace": "Workspace", "scratch": "Scratch"}
"""What one run holds, by the name of its column: shown where it is known."""

Name = tuple[str, str]
"""(plan, entry)."""


def section(book: Book) -> Section | None:
    entries, failures = book.series("compile.entries"), book.series("compile.failures")
    if entries is None and failures is None:
        return None
    found = book.found("compile")
    told = found.findings[1:] if found else ()
    return Section(
        id="compile",
        nav="Compile",
        eyebrow="Compile",
        heading=words.ended(book.headline("compile")) or "What compiling gave.",
        lead=" ".join(finding.text for finding in told[:3]),
        blocks=tuple(_blocks(book, entries, failures)),
        source=source(
            "Precision and kernels by share of profiled time, at the one shape that was inspected",
            "Excess of a first run: median over the profiled shapes",
            artifact="profiles/",
        ),
    )


def _blocks(book: Book, entries: Series | None, failures: Series | None) -> Iterable[Block]:
    """The two plans that matter are open; whatever else was compiled folds."""
    if entries is not None:
        rows = list(each(entries))
        mine = [book.baseline.id, *([book.candidate.id] if book.candidate else [])]
        near = [row for row in rows if row["plan"] in mine]
        rest = [row for row in rows if row["plan"] not in mine]
        if near:
            yield Grid(columns=COLUMNS, rows=_rows(book, near))
        if rest:
            said = f"Show {words.many(len(rest), 'entry', 'entries')} of other candidates"
            yield Fold(summary=said, grid=Grid(columns=COLUMNS, rows=_rows(book, rest)))
    yield from _fusion(book)
    if failures is not None:
        columns = (Column(label="Did not compile"), Column(label="Why"), Column(label="Message"))
        yield Grid(columns=columns, rows=tuple(_failed(row) for row in each(failures)))


COLUMNS = (
    Column(label="Entry"),
    Column(label="Compile", align="right"),
    Column(label="Memory", align="right"),
    Column(label="Peak", align="right"),
    Column(label="Operators", align="right"),
    Column(label="Fusions", align="right"),
    Column(label="Warm", align="right"),
    Column(label="First run adds", align="right"),
    Column(label="Declared"),
    Column(label="Runs in"),
    Column(label="Kernels with most time"),
)


def _rows(book: Book, rows: list[Values]) -> tuple[Row, ...]:
    mixed = len({row.get("backend") for row in rows}) > 1
    return tuple(_row(book, row, mixed) for row in rows)


def _row(book: Book, row: Values, mixed: bool) -> Row:
    """``mixed``: more than one backend compiled, so each row names its own."""
    name = (str(row["plan"]), str(row["entry"]))
    time = real(row.get("time"))
    before, after = real(row.get("operators_before")), real(row.get("operators"))
    return Row(
        cells=(
            Cell(text=name[1], sub=f"{name[0]}, {row.get('backend', '')}" if mixed else name[0]),
            Cell(text=_ms(time)),
            Cell(text=_mib(row.get("memory"))),
            Cell(text=_mib(row.get("peak")), sub=_one_run(row)),
            Cell(text=_operators(before, after)),
            Cell(text=words.number(real(row.get("fusions")))),
            Cell(text=_ms(real(row.get("warm")))),
            Cell(text=_ms(real(row.get("first_excess")))),
            Cell(text=str(row.get("declared") or "")),
            Cell(text=_precision(book, name)),
            Cell(text=_kernels(book, name), look="muted"),
        )
    )


def _fusion(book: Book) -> Iterable[Block]:
    """Fusion levels of each entry: time never without memory, and the tail where a level was a candidate: first what
    each candidate trades, in words. Entries that do not fit fold."""
    series = book.series("retune.fusion", "compile.fusion")
    if series is None:
        return
    rows = list(each(series))
    trades = [str(row["trade"]).partition(": ") for row in rows if row.get("trade")]
    if trades:
        yield Prose(paragraphs=tuple((f"{level}:", words.typeset(rest)) for level, _, rest in trades))
    counted = [name for name in HELD if any(real(row.get(name)) is not None for row in rows)]
    tail = f"{book.record.study.sla.metric} against today"
    columns = (
        Column(label="Graph-optimisation level"),
        Column(label="Operators", align="right"),
        Column(label="Fused", align="right"),
        Column(label="Warm", align="right"),
        *(Column(label=HELD[name], sub="one run", align="right") for name in counted),
        Column(label="Peak", align="right"),
        Column(label="Compile", align="right"),
        *((Column(label=tail, align="right"),) if "change" in series.columns else ()),
    )
    measured = _measured(book)
    levels = [(row["entry"], _level(row, counted, measured.get(str(row["plan"]), {}))) for row in rows]
    entries = list(dict.fromkeys(row["entry"] for row in rows))
    open_ = entries[: max(LEVELS * len(entries) // len(rows), 1)]
    near, rest = (tuple(row for entry, row in levels if (entry in open_) is inside) for inside in (True, False))
    yield Grid(columns=columns, rows=near, title="Fusion against memory")
    if rest:
        more = words.many(len(entries) - len(open_), "more entry", "more entries")
        yield Fold(summary=f"Show {more}", grid=Grid(columns=columns, rows=rest))


def _measured(book: Book) -> dict[str, Values]:
    """The candidates that were replayed, by plan."""
    series = book.series("retune.candidates")
    rows = each(series) if series else ()
    return {str(row["plan"]): row for row in rows if real(row.get("measured")) is not None}


def _level(row: Values, counted: Sequence[str], measured: Values) -> Row:
    shape = f"at {row['shape']}" if row.get("shape") else ""
    cells = [
        Cell(text=str(row["level"]), sub=f"{row['plan']}, {row['entry']}"),
        Cell(text=_operators(real(row.get("operators_before")), real(row.get("operators")))),
        Cell(text=words.number(real(row.get("fused")))),
        Cell(text=_ms(real(row.get("warm"))), sub=" ".join(filter(None, (_between(row, "warm_", "ms"), shape)))),
        *(Cell(text=_mib(row.get(name))) for name in counted),
        Cell(text=_mib(row.get("peak"))),
        Cell(text=_ms(real(row.get("compile")))),
    ]
    if "change" in row:
        cells.append(_tail(row, measured))
    return Row(cells=tuple(cells))


def _tail(row: Values, measured: Values) -> Cell:
    """What replays found, where the level was replayed; else what the simulation says."""
    if measured:
        said, where, ends = real(measured["measured"]), "measured", _between(measured, "measured_", "change")
    else:
        said, where, ends = real(row["change"]), "simulated", _between(row, "", "change")
    return Cell(text=words.change(said), sub="" if said is None else f"{where} {ends}".strip())


def _between(row: Values, prefix: str, unit: str) -> str:
    lo, hi = real(row.get(f"{prefix}lo")), real(row.get(f"{prefix}hi"))
    return "" if lo is None or hi is None else words.spread(Interval(lo=lo, hi=hi), unit)


def _ms(value: float | None) -> str:
    return words.NOTHING if value is None else words.time(value)


def _mib(cell: object) -> str:
    value = real(cell)  # type: ignore[arg-type]
    return words.NOTHING if value is None or value < 0 else words.memory(value * 2**20)


def _one_run(row: Values) -> str:
    """What one run takes above what is held before it, and what the runtime's allocator holds in it: where known."""
    said = {"scratch": "a run", "workspace": "workspace"}
    return ", ".join(f"{_mib(row[name])} {word}" for name, word in said.items() if real(row.get(name)) is not None)


def _operators(before: float | None, after: float | None) -> str:
    if not after:
        return words.number(before) if before else "not known"
    return f"{words.number(before)} → {words.number(after)}"


def _precision(book: Book, name: Name) -> str:
    said = [f"{row['precision']} {words.percent(real(row['share']))}" for row in _of(book, "compile.precision", name)]
    return ", ".join(said) or "not known"


def _kernels(book: Book, name: Name) -> str:
    kernels = list(dict.fromkeys(str(row["kernel"]) for row in _of(book, "compile.kernels", name)))
    return ", ".join(words.short(kernel, 40) for kernel in kernels[:KERNELS]) or "not known"


def _of(book: Book, series_id: str, name: Name) -> list[Values]:
    series = book.series(series_id)
    return [row for row in each(series) if (row["plan"], row["entry"]) == name] if series else []


def _failed(row: Values) -> Row:
    return Row(
        cells=(
            Cell(text=str(row["entry"]), sub=str(row.get("plan") or "")),
            Cell(text=str(row["kind"]), glyph="fail", look="fail-ink"),
            Cell(text=words.short(str(row["message"]), 240), look="muted"),
        )
    )
