"""The rows of a trace as they come: plain tuples in lists, which become columns once, at the end.

A sink gets the same tuples in portions, so that a run that is killed keeps what it has measured, and ``restore`` takes
them back. Texts (why an entry failed, what was compiled) and the ids of entries are kept once and named by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from trimtab.domain.noun import EntryId, Ns
from trimtab.domain.trace import BATCH_COLUMNS, MARK_COLUMNS, REQUEST_COLUMNS, SAMPLE_COLUMNS, Table

Row: TypeAlias = tuple[Any, ...]
Sink: TypeAlias = Callable[[str, Sequence[Row]], None]
"""``sink(table, rows)``; tables are ``requests``, ``batches``, ``marks``, ``samples`` (rows in the order of
:func:`schemas`), ``details`` and ``entries`` (rows ``(number, text)``)."""

_FLUSH_ROWS = 256
_FLUSH_NS: Ns = 1_000_000_000
"""The sink is fed after so many requests, and at the first event after so long, whichever comes first."""


def schemas(dim_names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Column name -> dtype of each table of a trace, in the order of its rows."""
    return {
        "requests": REQUEST_COLUMNS | {f"dim.{name}": "int64" for name in dim_names},
        "batches": BATCH_COLUMNS | {f"exec.{name}": "int64" for name in dim_names},
        "marks": MARK_COLUMNS,
        "samples": SAMPLE_COLUMNS,
    }


def columns(rows: Sequence[Row], schema: Mapping[str, str]) -> Table:
    """Rows as a table, column by column in the order of ``schema``."""
    if not rows:
        return Table({name: np.empty(0, dtype=kind) for name, kind in schema.items()})
    by_column = zip(*rows, strict=True)
    return Table({name: np.array(v, dtype=kind) for (name, kind), v in zip(schema.items(), by_column, strict=True)})


class Rows:
    """All rows of one run. ``entries``: the plan's; later ones join them."""

    def __init__(self, dim_names: Sequence[str], entries: Sequence[EntryId], sink: Sink | None) -> None:
        self.entries = {entry: number for number, entry in enumerate(entries)}
        self.details: dict[str, int] = {}
        self.schemas = schemas(dim_names)
        self.of: dict[str, list[Row]] = {name: [] for name in ("details", "entries", *self.schemas)}
        self._sink = sink
        self._sunk = dict.fromkeys(self.of, 0)
        self._flush_at: Ns | None = None

    def table(self, name: str) -> Table:
        """One of the tables, as columns."""
        return columns(self.of[name], self.schemas[name])

    def detail(self, text: str) -> int:
        """The number of a text."""
        return self._number(self.details, "details", text)

    def entry(self, entry: EntryId) -> int:
        """The number of an entry; one that came late joins the others."""
        return self._number(self.entries, "entries", entry)

    def flush_if_due(self, t: Ns) -> None:
        """Hand rows on if there are many, or if it is long ago."""
        if self._sink is None:
            return
        if self._flush_at is None:
            self._flush_at = t + _FLUSH_NS
        if t >= self._flush_at or len(self.of["requests"]) - self._sunk["requests"] >= _FLUSH_ROWS:
            self._flush_at = t + _FLUSH_NS
            self.flush()

    def flush(self) -> None:
        """Hand every row that the sink has not seen to it."""
        if self._sink is None:
            return
        for table, rows in self.of.items():
            fresh = rows[self._sunk[table] :]
            if fresh:
                self._sink(table, fresh)
                self._sunk[table] = len(rows)

    def restore(self, table: str, row: Row) -> None:
        """Take a row that a sink was given, as if it had come here. This sink does not get it again."""
        self.of[table].append(row)
        self._sunk[table] += 1
        if table in ("details", "entries"):
            number, text = row
            known = self.details if table == "details" else self.entries
            known[text] = number

    def _number(self, known: dict[str, int], table: str, text: str) -> int:
        number = known.get(text)
        if number is None:
            number = known[text] = len(known)
            self.of[table].append((number, text))
        return number
