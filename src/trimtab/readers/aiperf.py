"""The record export of AIPerf (``profile_export.jsonl``): one request a line, with its times and token counts.

A request starts when it is sent; when it was due is not in the file. What was cancelled or answered with an error has
failed, whatever its times say. Lines of the warm-up phase are not read.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.domain.events import ERROR_KINDS, ErrorKind
from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._format import Format
from trimtab.readers._json import BROKEN, opening
from trimtab.readers._requests import LATEST, MOST_REQUESTS, requests
from trimtab.readers._spans import report

NAME = "AIPerf record export"
NO_RECORD = "no record of a request"
NO_TIMES = "without its times"
BACKWARDS = "it ended before it started"
SENT = "a request starts when it is sent: how late the generator was, and whether it waited for answers, is not told"
_DIMS = {"input_tokens": ("input_sequence_length", "error_isl"), "output_tokens": ("output_sequence_length",)}
_BY_CODE: dict[int, ErrorKind] = {429: "rejected", 503: "rejected", 408: "unfinished", 499: "unfinished",
                                  504: "unfinished"}  # fmt: skip


class _Meta(msgspec.Struct, gc=False):
    request_start_ns: int
    request_end_ns: int | None = None
    benchmark_phase: str | None = None
    was_cancelled: bool = False


class _Metric(msgspec.Struct, gc=False):
    value: msgspec.Raw = msgspec.Raw(b"null")


class _Fault(msgspec.Struct, gc=False):
    code: int | None = None


class _Record(msgspec.Struct, gc=False):
    metadata: _Meta
    metrics: dict[str, _Metric] = {}
    error: _Fault | None = None


class _Request(NamedTuple):
    """What is kept of a record: a line may hold the time of every token."""

    start: int
    end: int
    error: int
    sizes: tuple[int, ...]


def read(path: Path, strict: bool) -> tuple[Imported, ReadReport]:
    """The requests of ``path``, and how they were read. DataError for what is no such export."""
    found, dropped, warm = _records(path)
    good = []
    for one in found:
        timed = 0 < one.start < LATEST and one.end < LATEST and (one.end != NEVER or one.error > 0)
        if not timed:
            dropped[NO_TIMES] += 1
        elif one.end < one.start and not one.error:
            dropped[BACKWARDS] += 1
        else:
            good.append(one)
    told = report(
        path, NAME, rows=len(found) + dropped[NO_RECORD], used=len(good), unit="records", dropped=dropped,
        strict=strict, ignored=(f"{warm} records of the warm-up",) if warm else (), notes=(SENT,),
    )  # fmt: skip
    start = np.array([one.start for one in good], dtype=np.int64)
    error = np.array([one.error for one in good], dtype=np.int64)
    done = np.array([NEVER if one.error else one.end for one in good], dtype=np.int64)
    dims = {name: np.array([one.sizes[k] for one in good], dtype=np.int64) for k, name in enumerate(_DIMS)}
    dims = {name: sizes for name, sizes in dims.items() if np.any(sizes != NEVER)}
    return requests(told, start, done, error=error, dims=dims), told


def _records(path: Path) -> tuple[list[_Request], Counter[str], int]:
    """The requests of the measured phase; lines that are none; how many belong to the warm-up."""
    decoder = msgspec.json.Decoder(_Record)
    found: list[_Request] = []
    dropped, warm = Counter[str](), 0
    with open_bytes(path) as file:
        for line in byte_lines(path, file):
            if not line.strip():
                continue
            try:
                record = decoder.decode(line)
            except BROKEN:
                dropped[NO_RECORD] += 1
                continue
            if record.metadata.benchmark_phase == "warmup":
                warm += 1
                continue
            if len(found) == MOST_REQUESTS:
                raise DataError(
                    f"{path.name} holds more than {MOST_REQUESTS} records", where=str(path),
                    fix="give a shorter stretch of it",
                )  # fmt: skip
            found.append(_kept(record))
    return found, dropped, warm


def _kept(record: _Record) -> _Request:
    told = record.metadata
    end = NEVER if told.request_end_ns is None else told.request_end_ns
    sizes = tuple(_size(record, names) for names in _DIMS.values())
    return _Request(told.request_start_ns, end, ERROR_KINDS.index(_kind(record)), sizes)


def _kind(record: _Record) -> ErrorKind:
    if record.error is None:
        return "unfinished" if record.metadata.was_cancelled else "none"
    return _BY_CODE.get(record.error.code or 0, "backend-error")


def _size(record: _Record, names: tuple[str, ...]) -> int:
    """The first of ``names`` that is a positive whole number; NEVER if none is."""
    for name in names:
        metric = record.metrics.get(name)
        try:
            size = msgspec.json.decode(metric.value, type=int) if metric is not None else NEVER
        except BROKEN:
            continue
        if 0 < size < LATEST:
            return size
    return NEVER


def holds(head: bytes) -> bool:
    """A line with the times of a request among its metadata."""
    first = opening(head).split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"metadata"' in first and b'"request_start_ns"' in first


FORMAT = Format(NAME, holds, read)
