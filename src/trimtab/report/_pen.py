"""How a document is drafted: lines that quote the packet, and no line for what the packet does not hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from trimtab.domain import quote
from trimtab.domain.figure import Cell, Series
from trimtab.domain.packet import Record


class Pen:
    """Writes Markdown from one record. ``{{key}}`` in a line becomes a quotation."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._quotes = quote.Quotes(record)
        self._series = {series.id: series for found in record.findings.values() for series in found.series}
        self._lines: list[str] = []

    def text(self) -> str:
        """The document so far."""
        return "\n".join(self._lines).rstrip() + "\n"

    def head(self, text: str, level: int = 2) -> None:
        """A heading."""
        self._lines += [f"{'#' * level} {text}", ""]

    def say(self, *lines: str) -> None:
        """A paragraph of those lines whose quotations the packet bears out; none if there are none."""
        kept = self._kept(lines)
        self._lines += [*kept, ""] if kept else []

    def points(self, lines: Iterable[str]) -> None:
        """A list, by the same rule."""
        kept = [f"- {line}" for line in self._kept(lines)]
        self._lines += [*kept, ""] if kept else []

    def code(self, *lines: str) -> None:
        """Commands."""
        self._lines += ["```", *lines, "```", ""]

    def own(self, title: str, ask: str) -> None:
        """A part that only the owner can write."""
        self.head(title)
        self._lines += [f"_{ask}_", ""]

    def table(self, id_: str, columns: Mapping[str, str], where: Mapping[str, Collection[Cell]] | None = None) -> None:
        """The rows of a stored series: texts as they are, numbers as quotations. ``columns``: name -> heading;
        ``where``: column -> the values that rows may have there."""
        series = self._series.get(id_)
        names = [name for name in columns if series is not None and name in series.columns]
        if series is None or not names:
            return
        rows = [row for row in range(_length(series)) if _fits(series, row, where or {})]
        if not rows:
            return
        self._lines += [_row(columns[name] for name in names), _row("---" for _ in names)]
        self._lines += [_row(self._cell(series, row, name) for name in names) for row in rows]
        self._lines.append("")

    def _cell(self, series: Series, row: int, name: str) -> str:
        value = series.columns[name][row]
        if value is None:
            return ""
        if isinstance(value, str) and not quote.measured(value):
            return quote.escaped(value)
        return self._quotes.quote(f"{series.id}[{row}].{name}")

    def _kept(self, lines: Iterable[str]) -> list[str]:
        filled = [quote.fill(line, self._quotes) for line in lines]
        return [line for line in filled if "{{" not in line]


def _length(series: Series) -> int:
    return len(next(iter(series.columns.values()), ()))


def _fits(series: Series, row: int, where: Mapping[str, Collection[Cell]]) -> bool:
    return all(series.columns[name][row] in values for name, values in where.items())


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
