"""The columns of a packet as DuckDB relations, for questions that nobody thought of when the packet was made."""

from __future__ import annotations

from pathlib import Path

import duckdb

from trimtab.errors import PacketError

PLACES = {
    "workload": "workload.parquet",
    "requests": "traces/*/requests.parquet",
    "batches": "traces/*/batches.parquet",
    "marks": "traces/*/marks.parquet",
    "samples": "traces/*/samples.parquet",
    "accounts": "accounts/*.parquet",
}


def tables(folder: Path) -> dict[str, Path]:
    """Every table of a packet: ``workload``, ``requests/<run>``, ``batches/<run>``, ..., ``accounts/<run>``."""
    found: dict[str, Path] = {}
    for kind, pattern in PLACES.items():
        for path in sorted(folder.glob(pattern)):
            owner = path.stem if kind == "accounts" else path.parent.name
            found[kind if kind == "workload" else f"{kind}/{owner}"] = path
    return found


def relation(folder: Path, name: str, database: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
    """The table ``name`` of a packet, read when it is asked. Codes come as their words.

    ``database`` is the connection to ask with (None: one of its own, without extensions or network). Raises PacketError
    for a table that is not there.
    """
    known = tables(folder)
    if name not in known:
        raise PacketError(f"there is no table {name!r}", where=str(folder), fix=f"known: {', '.join(known)}")
    asked = database or duckdb.connect(config={"autoload_known_extensions": False})
    return asked.read_parquet(str(known[name]))
