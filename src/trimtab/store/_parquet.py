"""Columns as Parquet, through DuckDB.

Integers and booleans come back exactly, as the dtype they had. A nan is written as NULL and comes back as nan. A code
column is written as the words it stands for, so that any tool can read the file, and comes back as codes; -1 (none)
is NULL. One thread and no clock: the same columns give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.trace import Table
from trimtab.errors import MachineError, PacketError
from trimtab.store._write import replace_file

_META = "trimtab"
Words = Mapping[str, Sequence[str]]
"""Code columns: name -> the words that its codes 0, 1, 2, ... stand for."""


class _Meta(msgspec.Struct):
    rows: int
    dtypes: dict[str, str]
    words: dict[str, list[str]]
    notes: dict[str, str]


def write_columns(path: Path, table: Table, words: Words, notes: Mapping[str, str]) -> None:
    """Write ``table`` to ``path``, whole or not at all. ``notes`` are small texts kept in the file's metadata.

    Raises MachineError if the disk is full, ValueError if a code has no word or a column cannot be stored.
    """
    if len({name.lower() for name in table.columns}) != len(table.columns):
        raise ValueError("two columns have one name, capitals apart")
    if not all(name.isprintable() for name in table.columns):
        raise ValueError("a column's name is not printable")
    lists = {name: list(values) for name, values in words.items() if name in table}
    for name, values in lists.items():
        _check_codes(name, table[name], values)
    dtypes = {name: column.dtype.name for name, column in table.columns.items()}
    meta = msgspec.json.encode(_Meta(len(table), dtypes, lists, dict(notes))).decode()
    replace_file(path, lambda temporary: _copy_out(temporary, table, lists, meta))


def read_columns(path: Path) -> tuple[Table, dict[str, str]]:
    """The table of ``path`` and its notes. PacketError if the file is missing, broken or not ours."""
    try:
        with _connect() as database:
            return _copy_in(database, path)
    except (duckdb.Error, msgspec.DecodeError, ValueError, KeyError) as error:
        raise PacketError(
            f"cannot read {path.name}: {str(error).splitlines()[0]}",
            where=str(path),
            fix="copy the packet again, or run the stage that wrote it",
        ) from error


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})


def _copy_out(path: Path, table: Table, words: dict[str, list[str]], meta: str) -> None:
    with _connect() as database:
        database.register("source", {"no columns": np.zeros(0)} if not table.columns else table.columns)
        chosen = [_word_of(name) if name in words else _quote(name) for name in table.columns] or ['"no columns"']
        values = [words[name] for name in table.columns if name in words]
        try:
            database.execute(f"CREATE TEMP TABLE columns AS SELECT {', '.join(chosen)} FROM source", values)
            options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{_META}: {_text(meta)}}}"
            database.execute(f"COPY columns TO {_text(str(path))} ({options})")
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            raise MachineError(
                f"cannot write {path.name}: {str(error).splitlines()[0]}",
                where=str(path.parent),
                fix="free some space, or choose another folder with --out, and run the same command again: it resumes",
            ) from error


def _copy_in(database: duckdb.DuckDBPyConnection, path: Path) -> tuple[Table, dict[str, str]]:
    found = database.execute("SELECT key, value FROM parquet_kv_metadata(?)", [str(path)]).fetchall()
    raw = next((value for key, value in found if key == _META.encode()), None)
    if raw is None:
        raise ValueError("it was not written by trimtab")
    meta = msgspec.json.decode(raw, type=_Meta)
    if not meta.dtypes:
        return Table({}), meta.notes
    chosen = [_code_of(name) if name in meta.words else _quote(name) for name in meta.dtypes]
    values = [meta.words[name] for name in meta.dtypes if name in meta.words]
    columns = database.execute(f"SELECT {', '.join(chosen)} FROM read_parquet({_text(str(path))})", values).fetchnumpy()
    table = Table({name: _as(columns[name], dtype) for name, dtype in meta.dtypes.items()})
    if len(table) != meta.rows:
        raise ValueError(f"{len(table)} rows where {meta.rows} were written")
    return table, meta.notes


def _as(column: Any, dtype: str) -> NDArray[Any]:
    if not isinstance(column, np.ma.MaskedArray):
        return np.asarray(column).astype(dtype, copy=False)
    if np.dtype(dtype).kind != "f":
        raise ValueError("an integer column has gaps")
    return np.asarray(np.ma.filled(column.astype(dtype), np.nan))


def _check_codes(name: str, column: NDArray[Any], values: list[str]) -> None:
    if len(set(values)) != len(values):
        raise ValueError(f"column {name}: its words are not unique")
    if len(column) and (int(column.min()) < -1 or int(column.max()) >= len(values)):
        raise ValueError(f"column {name}: a code has no word")


def _word_of(name: str) -> str:
    return f"list_extract(?::VARCHAR[], {_quote(name)}::BIGINT + 1) AS {_quote(name)}"


def _code_of(name: str) -> str:
    return f"(coalesce(list_position(?::VARCHAR[], {_quote(name)}), 0) - 1) AS {_quote(name)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
