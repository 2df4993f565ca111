"""Tables of any kind that trimtab reads: the file's name says which."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import cast

from trimtab.errors import DataError
from trimtab.readers import _csv, _jsonl, _parquet
from trimtab.readers._file import require_file
from trimtab.readers._rows import Accept, Chunk, Text, Want

_KINDS: dict[str, ModuleType] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
}


def read_table(path: Path, want: Want, key: str, accept: Accept) -> int:
    """Hand the wanted rows of ``path`` to ``accept``, chunk by chunk; return how many rows the file has.

    ``key`` is the study's key that names the file. DataError if the file is missing, empty, broken, of no known kind,
    or has no such column.
    """
    return cast(int, _format(path, key).read(path, want, accept))


def column_names(path: Path, key: str) -> list[str]:
    """Every column's name. DataError as in :func:`read_table`."""
    return cast(list[str], _format(path, key).columns(path))


def peek(path: Path, rows: int = 500) -> dict[str, list[Text]]:
    """Every column's name and first values, to tell what the columns are. DataError as in :func:`read_table`."""
    found: dict[str, list[Text]] = {name: [] for name in column_names(path, "the trace")}

    def accept(chunk: Chunk) -> None:
        for name, values in chunk.columns.items():
            found[name] += values

    read_table(path, Want(dict.fromkeys(found, "the trace"), limit=rows), "the trace", accept)
    return found


def is_table(path: Path) -> bool:
    """Whether the name of ``path`` says that it is a table."""
    return _kind(path) in _KINDS


def _kind(path: Path) -> str:
    return (Path(path.stem) if path.suffix == ".gz" else path).suffix.lower()


def _format(path: Path, key: str) -> ModuleType:
    require_file(path, key)
    kind = _kind(path)
    if kind in _KINDS:
        return _KINDS[kind]
    known = ", ".join(_KINDS)
    raise DataError(
        f"{path.name} is of no known kind", where=f"{path}; {key}", fix=f"name it {known}, each also with .gz"
    )
