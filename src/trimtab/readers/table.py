"""A table of requests from any system: one row a request, understood by its headers. See docs/diagnose.md.

What is missing stays missing: a stage that a row does not have is NEVER, and no batch, worker or issue time is made up.
A row without a time or without a latency cannot be used; it is left out and counted, or refused when reading strictly.
A failed request needs no latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import NUMBERS, STAGE_COLUMNS, TEXTS, Imported, ReadReport, imported_trace, unknown
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import REQUEST_COLUMNS, Table, Trace
from trimtab.errors import DataError
from trimtab.readers._cells import (
    Cells,
    Codes,
    TooManyNames,
    commonest,
    number_cells,
    ok_cells,
    route_cells,
    size_cells,
    stream_cells,
    time_cells,
)
from trimtab.readers._file import file_digest
from trimtab.readers._roles import EXECUTED, SHAPE, Role, assign, misspelt, require
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._spans import SINCE_1970
from trimtab.readers._table import column_names, read_table
from trimtab.readers._values import Place

_KEY = "the table of requests"
_FATAL = ("ok", "route")
_Columns = dict[str, NDArray[Any]]


def read_requests(path: Path, mapped: Mapping[str, str], *, strict: bool = False) -> tuple[Imported, ReadReport]:
    """The requests of ``path`` in order of their start, and how they were read. ``mapped`` = role -> header.

    DataError, with the line and the column, for what is no table of requests, for words of ``ok`` and ``route`` that
    mean nothing, for averages, and where no row can be used. ``strict`` refuses every row and value that would else be
    left out, and every header that is nearly a known one.
    """
    headers = column_names(path, _KEY)
    roles, ignored = assign(path, headers, mapped)
    require(path, roles, ignored)
    meant = misspelt(ignored)
    if strict and meant:
        header, role = next(iter(meant.items()))
        raise DataError(f"nothing is read from {header!r}", where=str(path), fix=f"did you mean `{role}`?")
    cells = {name: _cells(path, role) for name, role in roles.items()}
    rows, unit, places = _read(path, roles, cells)
    for name, column in cells.items():
        _refuse(column, always=strict or name in _FATAL)
    values = {name: column.values() for name, column in cells.items()}
    notes = [f"`{header}` is not read; `{role}` would be" for header, role in meant.items()]
    _count_from_issue(values, notes)
    words = {name: column for name, column in cells.items() if name in TEXTS and isinstance(column, Codes)}
    texts = {name: commonest(values[name], column.names) for name, column in words.items()}
    keep, dropped = _usable(path, values, rows, unit, places, strict)
    order = _in_order(values["start"], keep, notes)
    if order is not None:
        for name in values:
            values[name] = values[name][order]
    report = ReadReport(
        file=path.name,
        sha256=file_digest(path),
        rows=rows,
        used=len(values["start"]),
        columns={name: role.header for name, role in roles.items()},
        ignored=tuple(ignored),
        dropped=dropped,
        unreadable={name: c.bad for name, c in cells.items() if c.bad and name not in ("start", "latency", "end")},
        notes=tuple(notes),
    )
    first = int(values["start"][0])
    trace, origin = _trace(report, values, cells), first if first > SINCE_1970 else None
    return Imported(trace=trace, stages=_stages(values), texts=texts, origin=origin), report


def _cells(path: Path, role: Role) -> Cells:
    place = Place(path, role.header, _KEY)
    if role.unit:
        return time_cells(place, role.unit)
    if role.name.startswith((SHAPE, EXECUTED)) or role.name == "size":
        return size_cells(place)
    if role.name in NUMBERS:
        return number_cells(place)
    if role.name in ("ok", "route"):
        return ok_cells(place) if role.name == "ok" else route_cells(place)
    return stream_cells(place) if role.name == "stream" else Codes(place)


def _read(path: Path, roles: Mapping[str, Role], cells: Mapping[str, Cells]) -> tuple[int, str, list[Sequence[int]]]:
    """Fill ``cells``; how many rows there are, what a place is called, and the places of the rows by chunk."""
    places: list[Sequence[int]] = []
    unit = "row"

    def accept(chunk: Chunk) -> None:
        nonlocal unit
        unit = chunk.unit
        places.append(chunk.places)
        for name, role in roles.items():
            _add(cells[name], chunk, role)

    want = Want({role.header: _KEY for role in roles.values()})
    return read_table(path, want, _KEY, accept), unit, places


def _add(cells: Cells, chunk: Chunk, role: Role) -> None:
    try:
        cells.add(chunk.unit, chunk.places, chunk.columns[role.header])
    except TooManyNames as error:
        raise DataError(
            f"{role.header!r} has thousands of different values; this looks like an id of requests, not of streams",
            where=f"{cells.place.path}, column {role.header!r}",
            fix="map another column: --column stream=<header>",
        ) from error


def _refuse(cells: Cells, *, always: bool) -> None:
    if cells.bad_first is None or not always:
        return
    unit, place, text, reason = cells.bad_first
    raise cells.place.refuse(unit, place, text, reason, "correct or remove this value, or map another column")


def _count_from_issue(values: _Columns, notes: list[str]) -> None:
    """Latencies that are shorter than their own issue delay were counted from the issue: move them to the schedule."""
    if "issued" not in values or "latency" not in values:
        return
    start, issued, latency = values["start"], values["issued"], values["latency"]
    known = (start != NEVER) & (issued != NEVER) & (latency != NEVER)
    delay = np.where(known, issued - start, 0)
    if not np.any(known & (latency < delay)):
        return
    values["latency"] = np.where(known, latency + np.maximum(delay, 0), latency)
    notes.append("some latencies are shorter than the delay of their issue: all were counted from the issue, "
                 "and that delay was added")  # fmt: skip


def _in_order(start: NDArray[np.int64], keep: NDArray[np.bool_], notes: list[str]) -> NDArray[np.int64] | None:
    """The rows that are kept, by their start; None where that is all rows as they are."""
    whole = bool(keep.all())
    kept = start if whole else start[keep]
    if np.any(kept[1:] < kept[:-1]):
        notes.append("the rows were not in order of their start; they were sorted")
        return np.flatnonzero(keep)[np.argsort(kept, kind="stable")]
    return None if whole else np.flatnonzero(keep)


def _usable(
    path: Path, values: _Columns, rows: int, unit: str, places: Sequence[Sequence[int]], strict: bool
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """Which rows can be used, and how many were left out for which reason."""
    if "latency" not in values:
        known = (values["start"] != NEVER) & (values["end"] != NEVER)
        values["latency"] = np.where(known, values["end"] - values["start"], NEVER)
    failed = values["ok"] > 0 if "ok" in values else np.zeros(rows, dtype=bool)
    reasons = {
        "no start": values["start"] == NEVER,
        "no latency, and not marked as failed": (values["latency"] == NEVER) & ~failed,
        "it ended before it started": (values["latency"] < NEVER) & ~failed,
    }
    keep = np.ones(rows, dtype=bool)
    dropped = {}
    for reason, wrong in reasons.items():
        wrong = wrong & keep
        if not wrong.any():
            continue
        first = next(islice(chain.from_iterable(places), int(np.argmax(wrong)), None))
        if strict:
            raise DataError(f"a row cannot be used: {reason}", where=f"{path}, {unit} {first}", fix="correct it")
        dropped[f"{reason} (first in {unit} {first})"] = int(wrong.sum())
        keep &= ~wrong
    if not keep.any():
        why = "; ".join(f"{reason}: {count} rows" for reason, count in dropped.items()) or "it has no rows"
        raise DataError(f"{path.name} has no usable row: {why}", where=str(path), fix="check its columns and units")
    return keep, dropped


def _trace(report: ReadReport, values: _Columns, cells: Mapping[str, Cells]) -> Trace:
    n, start = report.used, values["start"]
    due = start - start[0]
    stream, streams = _streams(values, cells)
    error = np.maximum(values["ok"], 0).astype(np.int8) if "ok" in values else np.zeros(n, np.int8)
    well = (error == 0) & (values["latency"] != NEVER)
    req = {"id": np.arange(n, dtype=np.int64), "scheduled": due, "stream": stream, "error": error}
    req["done"] = np.where(well, due + values["latency"], NEVER)
    if "issued" in values:
        req["enqueued"] = np.where(values["issued"] == NEVER, NEVER, values["issued"] - start[0])
    for name in ("batch", "route"):
        if name in values:
            req[name] = values[name].astype(REQUEST_COLUMNS[name], copy=False)
    dims = {name.removeprefix(SHAPE): values[name] for name in values if name.startswith(SHAPE)}
    return imported_trace(report, req, dims, streams=streams, workers=_workers(values))


def _streams(values: _Columns, cells: Mapping[str, Cells]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Code of each row's stream, and the names; rows that name none share one."""
    column, n = cells.get("stream"), len(values["start"])
    if not isinstance(column, Codes):
        return np.zeros(n, dtype=np.int32), ("all",)
    unnamed = values["stream"] == NEVER
    codes = np.where(unnamed, len(column.names), values["stream"]).astype(np.int32)
    return codes, (*column.names, *(("(not named)",) if unnamed.any() else ()))


def _workers(values: _Columns) -> int:
    worker = values.get("worker")
    return 0 if worker is None else len(np.unique(worker[worker != NEVER]))


def _stages(values: _Columns) -> Table:
    known = {
        name: values[name].astype(STAGE_COLUMNS[name], copy=False) for name in STAGE_COLUMNS if name in values
    }  # fmt: skip
    executed = {f"exec.{name.removeprefix(EXECUTED)}": v for name, v in values.items() if name.startswith(EXECUTED)}
    numbers = {name: values[name] for name in NUMBERS if name in values}
    return Table(unknown(STAGE_COLUMNS, len(values["start"])) | known | executed | numbers)
