"""CSV: UTF-8, a header line, and the delimiter (comma, semicolon, tab or bar) that the header holds most of.

Most tables are written by machines: no quotes, one number of fields in every line. Such a file is cut into columns
block by block, where it lies; from the first block on that is any different, the rest is read row by row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, line_blocks, open_bytes
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
        return _header(path, _lines(path, byte_lines(path, file)))[1]


def read(path: Path, want: Want, accept: Accept) -> int:
    """Hand on the wanted rows; return how many the file has. Blank lines are no rows."""
    with open_bytes(path) as file:
        delimiter, names = _header(path, _lines(path, byte_lines(path, file)))
        require_columns(path, want, names)
        shape = _Shape(delimiter, len(names), [names.index(name) for name in want.keys])
        gather = Gather("line", want, accept)
        done, rest = _blocks(path, file, shape, gather) if want.whole else (1, [])
        lines = _lines(path, chain(rest, byte_lines(path, file, done + len(rest))), done)
        for place, row in _rows(path, lines, delimiter, done):
            if gather.due():
                values = [row[k].strip() or None if k < len(row) else None for k in shape.positions]
                gather.add(place, values)
        gather.flush()
        return gather.rows


def _blocks(path: Path, file: BinaryIO, shape: _Shape, gather: Gather) -> tuple[int, list[bytes]]:
    """Hand on blocks as long as they are plain; how many lines these were, header included, and the lines of the first
    block that is not."""
    lines = 1
    for data in line_blocks(path, file, lines):
        cut = _columns(data, shape)
        if cut is None:
            return lines, [line + b"\n" for line in data.removesuffix(b"\n").split(b"\n")]
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        gather.add_all(range(lines + 1, lines + 1 + count), cut)
        lines += count
    return lines, []


def _columns(data: bytes, shape: _Shape) -> list[Cut] | None:
    """The wanted columns of a block of lines; None where one of them is quoted, blank, or of other fields."""
    if b'"' in data or not data.isascii():
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


def _rows(path: Path, lines: Iterator[str], delimiter: str, before: int) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num + before, row
    except csv.Error as error:
        raise DataError(
            f"line {reader.line_num + before} is not valid CSV: {error}", where=str(path), fix="check its quotes"
        ) from error


def _header(path: Path, lines: Iterator[str]) -> tuple[str, list[str]]:
    first = next(lines, "")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        names = next(csv.reader([first], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise DataError(f"line 1 is not valid CSV: {error}", where=str(path), fix="check its quotes") from error
    return delimiter, [name.strip() for name in names]


def _lines(path: Path, lines: Iterable[bytes], before: int = 0) -> Iterator[str]:
    """Lines as text; ``before`` = lines of the file that were read before."""
    for number, line in enumerate(lines, start=before + 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"line {number} is not UTF-8 text", where=str(path), fix="convert the file with iconv -t UTF-8"
            ) from error
