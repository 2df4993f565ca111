"""Rows of text: what every table format is read into.

Numbers stay the text they were, so that a time of 19 digits keeps each of them; only the column that needs a value
turns it into one. A missing value is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trimtab.errors import DataError
from trimtab.readers._file import near

Text = str | None
CHUNK = 1 << 15


class Want(NamedTuple):
    """Which columns and rows of a file are wanted. ``keys`` maps each column to the study's key that asks for it."""

    keys: dict[str, str]
    skip: int = 0
    limit: int | None = None

    @property
    def whole(self) -> bool:
        """Whether every row is wanted."""
        return self.skip == 0 and self.limit is None

    def holds(self, row: int) -> bool:
        """Whether row ``row``, counted from 0, is wanted."""
        return row >= self.skip and (self.limit is None or row < self.skip + self.limit)


class Chunk(NamedTuple):
    """Rows in file order. ``places`` are line numbers, or row numbers where a file has no lines, both from 1."""

    unit: str
    places: Sequence[int]
    columns: Mapping[str, Sequence[Text]]


Accept = Callable[[Chunk], None]


class Gather:
    """Collects rows into chunks and hands the full ones on."""

    def __init__(self, unit: str, want: Want, accept: Accept) -> None:
        self.rows = 0
        self._unit, self._want, self._accept = unit, want, accept
        self._clear()

    def due(self) -> bool:
        """Count one row of the file; whether it is wanted."""
        self.rows += 1
        return self._want.holds(self.rows - 1)

    def add(self, place: int, values: list[Text]) -> None:
        """One wanted row, its values in the order of ``want.keys``."""
        self._places.append(place)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        if len(self._places) == CHUNK:
            self.flush()

    def add_all(self, places: Sequence[int], columns: Sequence[Sequence[Text]]) -> None:
        """Rows that are all wanted, as columns in the order of ``want.keys``."""
        self.flush()
        self.rows += len(places)
        if len(places):
            self._accept(Chunk(self._unit, places, dict(zip(self._want.keys, columns, strict=True))))

    def flush(self) -> None:
        if self._places:
            self._accept(Chunk(self._unit, self._places, self._columns))
            self._clear()

    def _clear(self) -> None:
        self._places: list[int] = []
        self._columns: dict[str, list[Text]] = {name: [] for name in self._want.keys}


def require_columns(path: Path, want: Want, names: list[str]) -> None:
    """DataError for the first wanted column that is not among ``names``, or is there twice."""
    for name, key in want.keys.items():
        where = f"{path}; {key}"
        if name not in names:
            raise DataError(f"there is no column {name!r} in {path.name}", where=where, fix=near(name, names))
        if names.count(name) > 1:
            raise DataError(f"two columns of {path.name} are named {name!r}", where=where, fix="rename one of them")
