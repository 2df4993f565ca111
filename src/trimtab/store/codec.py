"""How a packet's contents become files and come back exactly: nouns as JSON, columns as Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.noun import Noun
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.trace import MARK_KINDS, RunInfo, Table, Trace
from trimtab.domain.workload import PayloadKind, Provenance, Slice, Workload
from trimtab.errors import PacketError
from trimtab.store._json import digest, from_json, read_json, to_json, write_json
from trimtab.store._parquet import read_columns, write_columns

T = TypeVar("T")

TRACE_FILES = ("run.json", "requests.parquet", "batches.parquet", "marks.parquet", "samples.parquet")

__all__ = [
    "TRACE_FILES",
    "digest",
    "from_json",
    "read_json",
    "read_table",
    "read_trace",
    "read_workload",
    "to_json",
    "workload_digest",
    "write_json",
    "write_table",
    "write_trace",
    "write_workload",
]


class _TraceNote(Noun, frozen=True, kw_only=True):
    dim_names: tuple[str, ...]
    streams: tuple[str, ...]
    entries: tuple[str, ...]
    details: tuple[str, ...]


class _WorkloadNote(Noun, frozen=True, kw_only=True):
    id: str
    dim_names: tuple[str, ...]
    streams: tuple[str, ...]
    payload_kind: PayloadKind
    provenance: Provenance
    slices: tuple[Slice, ...]


def write_trace(folder: Path, trace: Trace) -> None:
    """One run as ``run.json`` and four Parquet files. ``run.json`` comes last: a folder without it is not a run."""
    errors: Mapping[str, tuple[str, ...]] = {"error": ERROR_KINDS, "route": ROUTE_KINDS}
    note = _TraceNote(dim_names=trace.dim_names, streams=trace.streams, entries=trace.entries, details=trace.details)
    notes = {"trace": to_json(note).decode()}
    write_columns(folder / "requests.parquet", trace.requests, {**errors, "stream": trace.streams}, notes)
    write_columns(folder / "batches.parquet", trace.batches, {**errors, "entry": trace.entries}, {})
    write_columns(folder / "marks.parquet", trace.marks, {"kind": MARK_KINDS, "detail": trace.details}, {})
    write_columns(folder / "samples.parquet", trace.samples, {}, {})
    write_json(folder / "run.json", trace.run)


def read_trace(folder: Path) -> Trace:
    """The run that :func:`write_trace` wrote. PacketError if a file is missing or broken."""
    run = read_json(folder / "run.json", RunInfo)
    requests, notes = read_columns(folder / "requests.parquet")
    note = _note(notes, "trace", _TraceNote, folder / "requests.parquet")
    return Trace(
        run=run,
        dim_names=note.dim_names,
        streams=note.streams,
        entries=note.entries,
        details=note.details,
        requests=requests,
        batches=read_columns(folder / "batches.parquet")[0],
        marks=read_columns(folder / "marks.parquet")[0],
        samples=read_columns(folder / "samples.parquet")[0],
    )


def write_workload(path: Path, workload: Workload) -> None:
    """A workload as one Parquet file; what is not a column is in the file's metadata."""
    write_columns(path, _workload_table(workload), {"stream": workload.streams}, _workload_notes(workload))


def read_workload(path: Path) -> Workload:
    """The workload that :func:`write_workload` wrote. PacketError if the file is missing or broken."""
    table, notes = read_columns(path)
    note = _note(notes, "workload", _WorkloadNote, path)
    dims = table.dims("dim", note.dim_names) if note.dim_names else np.zeros((len(table), 0), dtype=np.int64)
    return Workload(
        id=note.id,
        dim_names=note.dim_names,
        scheduled=table["scheduled"],
        dims=dims,
        stream=table["stream"],
        streams=note.streams,
        payload=table["payload"],
        payload_kind=note.payload_kind,
        deadline=table["deadline"],
        provenance=note.provenance,
        slices=note.slices,
    )


def workload_digest(workload: Workload) -> str:
    """SHA-256 over everything that a workload is: two runs may be compared only where it is the same."""
    hasher = hashlib.sha256(to_json(_workload_notes(workload)))
    for name, column in _workload_table(workload).columns.items():
        hasher.update(f"{name} {column.dtype.str} {len(column)}\n".encode())
        hasher.update(np.ascontiguousarray(column).data)
    return hasher.hexdigest()


def write_table(path: Path, table: Table, words: Mapping[str, tuple[str, ...]] | None = None) -> None:
    """Any columns as Parquet. ``words`` names the code columns and what their codes stand for."""
    write_columns(path, table, words or {}, {})


def read_table(path: Path) -> Table:
    """The columns that :func:`write_table` wrote, codes as codes. PacketError if the file is missing or broken."""
    return read_columns(path)[0]


def _workload_table(workload: Workload) -> Table:
    dims = {f"dim.{name}": np.ascontiguousarray(workload.dims[:, k]) for k, name in enumerate(workload.dim_names)}
    return Table(
        {
            "scheduled": workload.scheduled,
            "stream": workload.stream,
            **dims,
            "payload": workload.payload,
            "deadline": workload.deadline,
        }
    )


def _workload_notes(workload: Workload) -> dict[str, str]:
    names = _WorkloadNote.__struct_fields__
    note = _WorkloadNote(**{name: getattr(workload, name) for name in names})
    return {"workload": to_json(note).decode()}


def _note(notes: Mapping[str, str], name: str, kind: type[T], path: Path) -> T:
    if name not in notes:
        raise PacketError(f"{path.name} holds no {name}", where=str(path), fix="copy the packet again")
    return from_json(notes[name].encode(), kind, where=str(path))
