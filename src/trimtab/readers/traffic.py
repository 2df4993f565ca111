"""Recorded traffic into a Workload: arrivals, shapes and clients from one table, or from two joined row by row."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.study import SliceSpec, Study
from trimtab.domain.workload import Provenance, Slice, SourceFile, Workload
from trimtab.errors import DataError
from trimtab.readers._file import file_digest, near
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._table import peek, read_table
from trimtab.readers._values import Names, Place, Sizes, Times
from trimtab.readers.payload import assign, open_bank, random_ids

__all__ = ["peek", "read_workload", "require_streams"]

_ARRIVALS, _SHAPES = "workload.arrivals", "workload.shapes"
_ONE_STREAM = ("all",)
_LONGEST = 1 << 60


class _Shapes(msgspec.Struct, frozen=True):
    dims: NDArray[np.int64]
    stream: NDArray[np.int32]
    streams: tuple[str, ...]


def read_workload(study: Study, folder: Path) -> Workload:
    """The traffic of a study; ``folder`` is the study's, which file names are relative to.

    ``skip`` and ``limit`` count rows of the arrivals' file; a second file with shapes is used from its own start, and
    again from there when it is shorter. Only the rows that are used are checked. Slices are ``tune``, ``held-out`` and
    the declared ones, cut by time.

    Raises DataError, with the line and the column, for times that are missing, negative, not sorted or not numbers, for
    sizes that are no positive integers or outside ``dims``, for files that are missing, empty, broken or lack a column,
    for shapes without a payload, and for empty slices.
    """
    times, shapes, files = _read(study, folder)
    if not times.size:
        path = folder / study.workload.arrivals.file
        raise DataError(
            f"{path.name} has no rows to use", where=f"{path}; {_ARRIVALS}", fix="check workload.skip and the file"
        )
    scheduled, scale = _scheduled(study, times)
    shapes, joined = _joined(study, shapes, len(times))
    payload, bank = _payload(study, folder, shapes.dims)
    workload = Workload(
        id=study.name,
        dim_names=study.dim_names,
        scheduled=scheduled,
        dims=shapes.dims,
        stream=shapes.stream,
        streams=shapes.streams,
        payload=payload,
        payload_kind=study.workload.payload.kind,
        deadline=_deadlines(study, shapes),
        provenance=Provenance(
            files=(*files, *bank),
            time_scale=scale,
            joined=joined,
            seeds={"payload": study.seeds.payload},
        ),
    )
    return msgspec.structs.replace(workload, slices=_slices(study, workload))


def _read(study: Study, folder: Path) -> tuple[NDArray[np.int64], _Shapes, tuple[SourceFile, ...]]:
    spec = study.workload
    path = folder / spec.arrivals.file
    times = Times(Place(path, spec.arrivals.time, f"{_ARRIVALS}.time"), spec.arrivals.unit)
    keys = {spec.arrivals.time: f"{_ARRIVALS}.time"}
    if not spec.shapes.file:
        table = _ShapeTable(study, path)
        want = Want({**keys, **table.keys}, spec.skip, spec.limit)

        def accept(chunk: Chunk) -> None:
            times.add(chunk.unit, chunk.places, chunk.columns[spec.arrivals.time])
            table.add(chunk)

        rows = read_table(path, want, f"{_ARRIVALS}.file", accept)
        found = times.values()
        return found, table.shapes(len(found)), (_source(path, rows, len(found), spec.arrivals.licence),)

    def accept_times(chunk: Chunk) -> None:
        times.add(chunk.unit, chunk.places, chunk.columns[spec.arrivals.time])

    rows = read_table(path, Want(keys, spec.skip, spec.limit), f"{_ARRIVALS}.file", accept_times)
    found = times.values()
    second = folder / spec.shapes.file
    table = _ShapeTable(study, second)
    shape_rows = read_table(second, Want(table.keys, 0, max(len(found), 1)), f"{_SHAPES}.file", table.add)
    used = min(shape_rows, len(found))
    files = (
        _source(path, rows, len(found), spec.arrivals.licence),
        _source(second, shape_rows, used, spec.shapes.licence),
    )
    return found, table.shapes(used), files


class _ShapeTable:
    """The columns of sizes and of the client, from whichever file they are in."""

    def __init__(self, study: Study, path: Path) -> None:
        spec = study.workload.shapes
        self._columns = {name: spec.dims[name] for name in study.dim_names}
        self._sizes = {
            name: Sizes(Place(path, column, f"{_SHAPES}.dims.{name}"), study.dims[name].lo, study.dims[name].hi)
            for name, column in self._columns.items()
        }
        self._stream = spec.stream
        self._names = Names(Place(path, spec.stream, f"{_SHAPES}.stream"))
        self.keys = {column: f"{_SHAPES}.dims.{name}" for name, column in self._columns.items()}
        if spec.stream:
            self.keys[spec.stream] = f"{_SHAPES}.stream"

    def add(self, chunk: Chunk) -> None:
        for name, column in self._columns.items():
            self._sizes[name].add(chunk.unit, chunk.places, chunk.columns[column])
        if self._stream:
            self._names.add(chunk.unit, chunk.places, chunk.columns[self._stream])

    def shapes(self, count: int) -> _Shapes:
        dims = np.stack([sizes.values() for sizes in self._sizes.values()], axis=1)
        if not self._stream:
            return _Shapes(dims, np.zeros(count, dtype=np.int32), _ONE_STREAM)
        return _Shapes(dims, *self._names.values())


def _source(path: Path, rows: int, used: int, licence: str) -> SourceFile:
    dropped = {"outside skip and limit": rows - used} if rows > used else {}
    return SourceFile(name=path.name, sha256=file_digest(path), rows=rows, used=used, dropped=dropped, licence=licence)


def _scheduled(study: Study, times: NDArray[np.int64]) -> tuple[NDArray[np.int64], float]:
    """ns from the first arrival, and by how much recorded time was stretched to reach the study's rate."""
    ahead = times - times[0]
    span = int(ahead[-1])
    rate = study.workload.rate
    if rate is None:
        return ahead, 1.0
    if len(times) < 2 or span == 0:
        raise DataError(
            "all arrivals are at one time, so they have no rate that could be changed",
            where=f"{study.workload.arrivals.file}; workload.rate",
            fix="remove workload.rate, or use more rows",
        )
    scale = (len(times) - 1) / rate * 1e9 / span
    if span * scale >= _LONGEST:
        raise DataError(
            f"at {rate} requests/s these arrivals would last for more than 36 years",
            where="workload.rate",
            fix="raise workload.rate, or set workload.limit",
        )
    return np.rint(ahead * scale).astype(np.int64), scale


def _joined(study: Study, shapes: _Shapes, count: int) -> tuple[_Shapes, str]:
    """Shapes for ``count`` requests: row by row, from the start again where there are fewer."""
    spec = study.workload
    if not spec.shapes.file:
        return shapes, ""
    rows = len(shapes.dims)
    if rows == 0:
        raise DataError(f"{spec.shapes.file} has no rows", where=f"{_SHAPES}.file", fix="give a file that holds rows")
    again = f"; its {rows} rows were used {count / rows:.2f} times over" if rows < count else ""
    text = f"arrivals of {spec.arrivals.file} and shapes of {spec.shapes.file} are two sources joined row by row{again}"
    at = np.arange(count) % rows
    return _Shapes(shapes.dims[at], shapes.stream[at], shapes.streams), text


def _deadlines(study: Study, shapes: _Shapes) -> NDArray[np.int64]:
    """ns that each request may take: its stream's own deadline, else that of the SLA; NEVER = none."""
    own, usual = study.workload.deadlines_ms, study.sla.deadline_ms
    given = [own.get(name, usual) for name in shapes.streams]
    by_stream = np.array([NEVER if ms is None else round(ms * 1e6) for ms in given], dtype=np.int64)
    return by_stream[shapes.stream]


def require_streams(study: Study, workload: Workload) -> None:
    """DataError where the study gives a deadline to a stream that ``workload`` does not have."""
    for name in study.workload.deadlines_ms:
        if name not in workload.streams:
            fix = near(name, workload.streams)
            raise DataError(f"there is no stream {name!r}", where="workload.deadlines_ms", fix=fix)


def _payload(study: Study, folder: Path, dims: NDArray[np.int64]) -> tuple[NDArray[np.int32], tuple[SourceFile, ...]]:
    spec = study.workload.payload
    if spec.kind == "random":
        return random_ids(len(dims)), ()
    bank = open_bank(study, folder)
    ids = assign(bank, dims, study.seeds.payload)
    path = folder / spec.bank
    return ids, (_source(path, len(bank.keys), len(np.unique(ids)), ""),)


def _slices(study: Study, workload: Workload) -> tuple[Slice, ...]:
    share = study.workload.tune_share
    declared = (
        SliceSpec(name="tune", start=0.0, stop=share),
        SliceSpec(name="held-out", start=share, stop=1.0),
        *study.workload.slices,
    )
    return tuple(_slice(spec, workload) for spec in declared)


def _slice(spec: SliceSpec, workload: Workload) -> Slice:
    """``start <= time < stop`` in shares of the span; the last arrival belongs to a slice that stops at 1."""
    for name in spec.streams:
        if name not in workload.streams:
            raise DataError(
                f"there is no stream {name!r}", where=f"slice {spec.name!r}", fix=near(name, workload.streams)
            )
    lo, hi = (
        np.searchsorted(workload.scheduled, share * workload.span, side="left") for share in (spec.start, spec.stop)
    )
    part = Slice(
        name=spec.name,
        start=int(lo),
        stop=len(workload) if spec.stop == 1.0 else int(hi),
        streams=spec.streams,
        band=spec.band,
    )
    if not workload.index(part).size:
        raise DataError(
            f"the slice {spec.name!r} is empty: none of {len(workload)} requests is in it",
            where="workload.tune_share" if spec.name in ("tune", "held-out") else "workload.slices",
            fix="widen it, or read more rows",
        )
    return part
