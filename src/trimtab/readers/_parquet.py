"""Parquet, read by DuckDB; a .gz is unpacked into a temporary file first.

Whole columns of numbers are taken as they are stored, one after the other; every other column is read as text, chunk by
chunk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from trimtab.errors import DataError
from trimtab.readers._file import HARMLESS, MOST_PACKED, open_bytes
from trimtab.readers._packed import Stored
from trimtab.readers._rows import CHUNK, Accept, Gather, Text, Want, require_columns

_BLOCK = 1 << 20
_LARGEST = 8 << 30
NUMBER = 8
"""Bytes of one value at least."""
_STORED = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "BIGINT"),
    "DOUBLE": "DOUBLE",
}
"""Types that are taken as numbers, and as which."""


class _Open(NamedTuple):
    database: duckdb.DuckDBPyConnection
    source: str
    kinds: dict[str, str]
    names: list[str]
    rows: int


def columns(path: Path) -> list[str]:
    """The names of the columns."""
    with _open(path) as table:
        return table.names


def read(path: Path, want: Want, accept: Accept) -> int:
    """Hand on the wanted rows; return how many the file has."""
    with _open(path) as table:
        require_columns(path, want, table.names)
        stop = table.rows if want.limit is None else min(table.rows, want.skip + want.limit)
        rows = max(stop - want.skip, 0)
        _refuse_bomb(path, NUMBER * rows * len(want.keys))
        part = f"FROM read_parquet(?) LIMIT {rows} OFFSET {want.skip}"
        stored = {name: _numbers(table, name, part) for name in want.keys if table.kinds[name] in _STORED}
        texts = [name for name in want.keys if name not in stored]
        gather = Gather("row", want, accept)
        done = 0
        for count, written in _written(table, texts, part, rows):
            columns = {name: column.part(done, done + count) for name, column in stored.items()} | written
            first = want.skip + done + 1
            gather.add_all(range(first, first + count), [columns[name] for name in want.keys])
            done += count
        return table.rows


def _refuse_bomb(path: Path, total: int) -> None:
    if total > HARMLESS and total > MOST_PACKED * path.stat().st_size:
        raise DataError(
            f"{path.name} would take more than {MOST_PACKED} times its size in memory",
            where=str(path),
            fix="write it as CSV if you trust it",
        )


def _numbers(table: _Open, name: str, part: str) -> Stored:
    query = f"SELECT CAST({_quoted(name)} AS {_STORED[table.kinds[name]]}) AS v {part}"
    found = table.database.execute(query, [table.source]).fetchnumpy()["v"]
    return Stored(np.ma.getdata(found), np.ma.getmaskarray(found))


def _written(table: _Open, names: list[str], part: str, count: int) -> Iterator[tuple[int, dict[str, Sequence[Text]]]]:
    """The number of rows of each chunk, and the columns that are read as text."""
    if not names:
        yield from ((min(CHUNK, count - begin), {}) for begin in range(0, count, CHUNK))
        return
    chosen = ", ".join(f"CAST({_quoted(name)} AS VARCHAR)" for name in names)
    cursor = table.database.execute(f"SELECT {chosen} {part}", [table.source])
    while rows := cursor.fetchmany(CHUNK):
        yield len(rows), dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _open(path: Path) -> Iterator[_Open]:
    try:
        with (
            _plain(path) as source,
            duckdb.connect(config={"threads": 1, "autoload_known_extensions": False}) as database,
        ):
            described = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [source]).fetchall()
            ((rows,),) = database.execute("SELECT count(*) FROM read_parquet(?)", [source]).fetchall()
            kinds = {str(row[0]): str(row[1]) for row in described}
            yield _Open(database, source, kinds, [str(row[0]) for row in described], int(rows))
    except duckdb.Error as error:
        raise DataError(
            f"not a readable Parquet file: {str(error).splitlines()[0]}", where=str(path), fix="write or copy it again"
        ) from error


@contextmanager
def _plain(path: Path) -> Iterator[str]:
    if path.suffix != ".gz":
        yield str(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder, "table.parquet")
        with open_bytes(path) as packed, unpacked.open("wb") as plain:
            while block := packed.read(_BLOCK):
                plain.write(block)
                if plain.tell() > _LARGEST:
                    raise DataError(
                        f"it unpacks to more than {_LARGEST >> 30} GiB", where=str(path), fix="unpack it yourself"
                    )
        yield str(unpacked)
