"""Traffic without a study: when requests arrived, how large they were, and whose they are, from one table.

Public traces are known by their columns; of any other table the roles of a table of requests count (start, shape.<dim>,
stream), and no latency is asked for. A row without a time or a size cannot be used; it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.workload import Provenance, SourceFile, Workload
from trimtab.errors import DataError
from trimtab.readers._cells import Cells, Codes, TooManyNames, size_cells, stream_cells, time_cells
from trimtab.readers._file import require_file
from trimtab.readers._roles import SHAPE, assign
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._spans import report
from trimtab.readers._table import column_names, read_table
from trimtab.readers._values import Place

NAME = "table of arrivals"
_KEY = "the table of arrivals"
NO_TIME, NO_SIZE = "no time", "no size above 0"
SORTED = "the rows were not in order of their time; they were sorted"


class Columns(NamedTuple):
    """Which header says what: ``time`` in ``unit``, sizes by dim, the client ("" = not said)."""

    name: str
    time: str
    unit: str
    dims: Mapping[str, str]
    stream: str = ""


def _same(*names: str) -> dict[str, str]:
    return dict(zip(names, names, strict=True))


KNOWN = (
    Columns("Mooncake trace", "timestamp", "ms", _same("input_length", "output_length")),
    Columns("Azure LLM inference trace", "TIMESTAMP", "iso", _same("ContextTokens", "GeneratedTokens")),
    Columns("ServeGen requests", "t_s", "s", _same("image_count", "image_tokens", "text_tokens"), "client"),
    Columns("ServeGen requests", "t_s", "s", _same("input_tokens", "output_tokens"), "client"),
)
"""Public traces, by their columns; the ones with more columns first."""
_SIZES = {"window_start_s", "value", "probability"}
"""Columns of ServeGen's sizes, from which requests are drawn."""


def read_arrivals(path: Path, mapped: Mapping[str, str], *, strict: bool = False) -> tuple[Workload, ReadReport]:
    """The requests of ``path`` in order of arrival, and how they were read. ``mapped`` = role -> header.

    DataError for a table without times or sizes, for one that traffic is drawn from, and where no row can be used.
    """
    headers = headers_of(path)
    found = _columns(path, headers, mapped)
    times = time_cells(Place(path, found.time, _KEY), found.unit)
    sizes = {dim: size_cells(Place(path, header, _KEY)) for dim, header in found.dims.items()}
    stream = stream_cells(Place(path, found.stream, _KEY)) if found.stream else None
    cells = {found.time: times, **{found.dims[dim]: one for dim, one in sizes.items()}}
    if stream is not None:
        cells[found.stream] = stream
    rows = _fill(path, cells)
    start = times.values()
    dims = np.stack([one.values() for one in sizes.values()], axis=1)
    untimed, unsized = start == NEVER, (dims == NEVER).any(axis=1)
    keep = np.flatnonzero(~untimed & ~unsized)
    order = keep[np.argsort(start[keep], kind="stable")]
    ignored = tuple(header for header in headers if header not in cells)
    told = report(
        path, found.name, rows=rows, used=order.size, unit="rows", strict=strict, ignored=ignored,
        dropped={NO_TIME: int(untimed.sum()), NO_SIZE: int((unsized & ~untimed).sum())},
        notes=(SORTED,) if np.any(np.diff(start[keep]) < 0) else (),
    )  # fmt: skip
    return _workload(path, told, found, start[order], dims[order], stream, order), told


def headers_of(path: Path) -> list[str]:
    """The columns of a table. DataError for what is none."""
    require_file(path, _KEY)
    return column_names(path, _KEY)


def _columns(path: Path, headers: list[str], mapped: Mapping[str, str]) -> Columns:
    there = set(headers)
    if there >= _SIZES:
        raise DataError(
            f"{path.name} holds how often clients send which size, not requests", where=str(path),
            fix="give the rates of the same clients, or requests drawn from both",
        )  # fmt: skip
    if not mapped:
        for known in KNOWN:
            if {known.time, *known.dims.values(), *filter(None, (known.stream,))} <= there:
                return known
    roles, _ = assign(path, headers, mapped)
    start = roles.get("start")
    dims = {name.removeprefix(SHAPE): role.header for name, role in roles.items() if name.startswith(SHAPE)}
    if start is None or not dims:
        lacking = "a time of arrival" if start is None else "a size"
        raise DataError(
            f"{path.name} has no column for {lacking}", where=str(path),
            fix="map it: --column start_s=<header> --column shape.<dim>=<header>; "
            f"found there: {', '.join(headers[:20])}",
        )  # fmt: skip
    stream = roles["stream"].header if "stream" in roles else ""
    return Columns(NAME, start.header, start.unit, dims, stream)


def _fill(path: Path, cells: Mapping[str, Cells]) -> int:
    """Read the columns; how many rows there are."""

    def accept(chunk: Chunk) -> None:
        for header, one in cells.items():
            try:
                one.add(chunk.unit, chunk.places, chunk.columns[header])
            except TooManyNames as error:
                raise DataError(
                    f"{header!r} has thousands of different values; this looks like an id of requests, not of clients",
                    where=f"{path}, column {header!r}", fix="map another column: --column stream=<header>",
                ) from error  # fmt: skip

    return read_table(path, Want(dict.fromkeys(cells, _KEY)), _KEY, accept)


def _workload(
    path: Path, told: ReadReport, found: Columns, start: NDArray[np.int64], dims: NDArray[np.int64],
    stream: Codes | None, order: NDArray[np.int64],
) -> Workload:  # fmt: skip
    count = start.size
    codes, names = np.zeros(count, dtype=np.int32), ("all",)
    if stream is not None:
        given = stream.values()[order]
        names = (*stream.names, *(("(not named)",) if np.any(given == NEVER) else ()))
        codes = np.where(given == NEVER, len(stream.names), given).astype(np.int32)
    source = SourceFile(name=path.name, sha256=told.sha256, rows=told.rows, used=told.used, dropped=told.dropped)
    return Workload(
        id=path.name,
        dim_names=tuple(found.dims),
        scheduled=start - start[0],
        dims=dims,
        stream=codes,
        streams=names,
        payload=np.zeros(count, dtype=np.int32),
        payload_kind="random",
        deadline=np.full(count, NEVER, dtype=np.int64),
        provenance=Provenance(files=(source,), time_scale=1.0),
    )
