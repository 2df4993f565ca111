"""CSV: UTF-8, a header line, and the delimiter (comma, semicolon, tab or bar) that the header holds most of.

Most tables are written by machines: no quotes, one number of fields in every line. Such lines are cut into columns
block by block, where they lie; a block that is any different is read row by row.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trimtab.errors import DataError
from trimtab.readers._file import Lines, open_bytes
from trimtab.readers._packed import Cut, Ints
from trimtab.readers._rows import Accept, Gather, Want, require_columns

_DELIMITERS = (",", ";", "\t", "|")


class _Shape(NamedTuple):
    """How lines are cut: delimiter, fields of a line, and which of these are wanted."""

    delimiter: str
    fields: int
    positions: list[int]


def columns(path: Path) -> list[str]:
    """The names in the header."""
    with open_bytes(path) as file:
        return _header(path, Lines(path, file))[1]


def read(path: Path, want: Want, accept: Accept) -> int:
    """Hand on the wanted rows; return how many the file has. Blank lines are no rows."""
    with open_bytes(path) as file:
        lines = Lines(path, file)
        delimiter, names = _header(path, lines)
        require_columns(path, want, names)
        shape = _Shape(delimiter, len(names), [names.index(name) for name in want.keys])
        gather = Gather("line", want, accept)
        if want.whole:
            _by_block(path, lines, shape, gather)
        else:
            _by_row(path, lines, shape, gather, lines.number, math.inf)
        gather.flush()
        return gather.rows


def _by_block(path: Path, lines: Lines, shape: _Shape, gather: Gather) -> None:
    before = lines.number
    while data := lines.block():
        cut, count = _columns(data, shape), lines.number - before
        if cut is not None:
            gather.add_all(range(before + 1, before + 1 + count), cut)
        else:
            block = (line + b"\n" for line in data.removesuffix(b"\n").split(b"\n"))
            _by_row(path, chain(block, lines), shape, gather, before, count)
        before = lines.number


def _by_row(path: Path, lines: Iterator[bytes], shape: _Shape, gather: Gather, before: int, count: float) -> None:
    """Hand on the rows of the next ``count`` lines, the last of them with whatever lines its quotes reach into;
    ``before`` lines were read before."""
    for place, row in _rows(path, lines, shape.delimiter, before, count):
        if gather.due():
            values = [row[k].strip() or None if k < len(row) else None for k in shape.positions]
            gather.add(place, values)


def _columns(data: bytes, shape: _Shape) -> list[Cut] | None:
    """The wanted columns of a block of lines; None where one of them is quoted, blank, or of other fields."""
    if b'"' in data or not _is_text(data):
        return None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    cuts = None if b"\r" in data else _cuts(data, shape)
    if cuts is None:
        return None
    before = np.concatenate((np.full(1, -1), cuts[:-1, -1]))
    begins = [before if k == 0 else cuts[:, k - 1] for k in shape.positions]
    return [_cut(data, begin + 1, cuts[:, k]) for begin, k in zip(begins, shape.positions, strict=True)]


def _is_text(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _cut(data: bytes, begin: Ints, end: Ints) -> Cut:
    return Cut(data, begin, end, begin == end)


def _cuts(data: bytes, shape: _Shape) -> Ints | None:
    """int64[lines, fields]: where each field ends; None where a line is blank or has another number of fields."""
    signs = np.frombuffer(data, dtype=np.uint8)
    ends = signs == ord("\n")
    cuts = np.flatnonzero(ends | (signs == ord(shape.delimiter)))
    if cuts.size % shape.fields or (shape.fields == 1 and (data.startswith(b"\n") or b"\n\n" in data)):
        return None
    by_line = ends[cuts].reshape(-1, shape.fields)
    even = bool(by_line[:, -1].all()) and not by_line[:, :-1].any()
    return cuts.reshape(-1, shape.fields) if even else None


def _rows(
    path: Path, lines: Iterator[bytes], delimiter: str, before: int, count: float
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(_texts(path, lines, before), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num + before, row
            if reader.line_num >= count:
                return
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num + before} is not valid CSV: {error}", where=str(path), fix="check its quotes"
        ) from error


def _header(path: Path, lines: Lines) -> tuple[str, list[str]]:
    first = next(_texts(path, lines), "")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        names = next(csv.reader([first], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"line 1 is not valid CSV: {error}", where=str(path), fix="check its quotes") from error
    return delimiter, [name.strip() for name in names]


def _texts(path: Path, lines: Iterator[bytes], before: int = 0) -> Iterator[str]:
    """Lines as text; ``before`` = lines of the file that were read before."""
    for number, line in enumerate(lines, start=before + 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {number} is not UTF-8 text", where=str(path), fix="convert the file with iconv -t UTF-8"
            ) from error
