"""Parquet, read by DuckDB; a .gz is unpacked into a temporary file first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb

from trimtab.errors import DataError
from trimtab.readers._file import open_bytes
from trimtab.readers._rows import CHUNK, Accept, Gather, Want, require_columns

_BLOCK = 1 << 20
_LARGEST = 8 << 30


class _Open(NamedTuple):
    database: duckdb.DuckDBPyConnection
    source: str
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
        chosen = ", ".join(f'CAST("{name.replace(chr(34), chr(34) * 2)}" AS VARCHAR)' for name in want.keys)
        stop = table.rows if want.limit is None else min(table.rows, want.skip + want.limit)
        query = f"SELECT {chosen} FROM read_parquet(?) LIMIT {max(stop - want.skip, 0)} OFFSET {want.skip}"
        gather = Gather("row", want, accept)
        cursor = table.database.execute(query, [table.source])
        place = want.skip + 1
        while rows := cursor.fetchmany(CHUNK):
            gather.add_all(range(place, place + len(rows)), [list(column) for column in zip(*rows, strict=True)])
            place += len(rows)
        return table.rows


@contextmanager
def _open(path: Path) -> Iterator[_Open]:
    try:
        with (
            _plain(path) as source,
            duckdb.connect(config={"threads": 1, "autoload_known_extensions": False}) as database,
        ):
            described = database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [source]).fetchall()
            ((rows,),) = database.execute("SELECT count(*) FROM read_parquet(?)", [source]).fetchall()
            yield _Open(database, source, [str(row[0]) for row in described], int(rows))
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
