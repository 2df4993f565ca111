"""CSV: UTF-8, a header line, and the delimiter (comma, semicolon, tab or bar) that the header holds most of."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._rows import Accept, Gather, Want, require_columns

_DELIMITERS = (",", ";", "\t", "|")


def columns(path: Path) -> list[str]:
    """The names in the header."""
    with open_bytes(path) as file:
        return _header(path, _lines(path, file))[1]


def read(path: Path, want: Want, accept: Accept) -> int:
    """Hand on the wanted rows; return how many the file has. Blank lines are no rows."""
    with open_bytes(path) as file:
        lines = _lines(path, file)
        delimiter, names = _header(path, lines)
        require_columns(path, want, names)
        positions = [names.index(name) for name in want.keys]
        gather = Gather("line", want, accept)
        for place, row in _rows(path, lines, delimiter):
            if gather.due():
                gather.add(place, [row[k].strip() or None if k < len(row) else None for k in positions])
        gather.flush()
        return gather.rows


def _rows(path: Path, lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num + 1, row
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num + 1} is not valid CSV: {error}", where=str(path), fix="check its quotes"
        ) from error


def _header(path: Path, lines: Iterator[str]) -> tuple[str, list[str]]:
    first = next(lines, "")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        names = next(csv.reader([first], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"line 1 is not valid CSV: {error}", where=str(path), fix="check its quotes") from error
    return delimiter, [name.strip() for name in names]


def _lines(path: Path, file: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(byte_lines(path, file), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {number} is not UTF-8 text", where=str(path), fix="convert the file with iconv -t UTF-8"
            ) from error
