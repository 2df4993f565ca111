"""JSON lines: one object a line; only the wanted fields are decoded, numbers as the digits they are written with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._rows import Accept, Gather, Text, Want, require_columns

FIRST = 256
"""Objects that tell which fields there are."""
_BOM = b"\xef\xbb\xbf"
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def columns(path: Path) -> list[str]:
    """The names in the first objects, in the order of their first appearance: a row may lack a field that is null."""
    with open_bytes(path) as file:
        first = islice(_lines(path, file), FIRST)
        return list(dict.fromkeys(name for place, line in first for name in _names(path, place, line)))


def read(path: Path, want: Want, accept: Accept) -> int:
    """Hand on the wanted rows; return how many the file has. Blank lines are no rows."""
    require_columns(path, want, columns(path))
    fields = [f"f{k}" for k in range(len(want.keys))]
    decoder = _decoder(want, fields)
    gather = Gather("line", want, accept)
    with open_bytes(path) as file:
        for place, line in _lines(path, file):
            if gather.due():
                gather.add(place, _values(path, place, line, decoder, fields))
    gather.flush()
    return gather.rows


def _lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for place, line in enumerate(byte_lines(path, file), start=1):
        body = line.removeprefix(_BOM).strip()
        if body:
            yield place, body


def _decoder(want: Want, fields: list[str]) -> Any:
    missing = msgspec.Raw(b"null")
    columns_of = [(field, msgspec.Raw, missing) for field in fields]
    return msgspec.json.Decoder(
        msgspec.defstruct("Row", columns_of, rename=dict(zip(fields, want.keys, strict=True)), gc=False)
    )


def _values(path: Path, place: int, line: bytes, decoder: Any, fields: list[str]) -> list[Text]:
    try:
        row = decoder.decode(line)
        return [_text(bytes(getattr(row, field))) for field in fields]
    except _BROKEN as error:
        raise _refusal(path, place, error) from error


def _text(raw: bytes) -> Text:
    if raw == b"null":
        return None
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str).strip() or None
    return raw.decode()


def _names(path: Path, place: int, line: bytes) -> list[str]:
    try:
        return list(msgspec.json.decode(line, type=dict[str, Any]))
    except _BROKEN as error:
        raise _refusal(path, place, error) from error


def _refusal(path: Path, place: int, error: Exception) -> DataError:
    return DataError(f"line {place} is not a JSON object: {error}", where=str(path), fix="write one JSON object a line")
