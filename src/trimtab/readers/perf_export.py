"""The request export of perf_analyzer and GenAI-Perf (``--profile-export-file``, profile_export.json).

One experiment is one level of load. Several in one file are several runs: their requests together are traffic that
never was, so such a file is refused. At a level of concurrency a request is sent as another ends. A request without a
response has failed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.readers._file import whole
from trimtab.readers._format import Format
from trimtab.readers._json import document, opening
from trimtab.readers._requests import LATEST, requests
from trimtab.readers._spans import report

NAME = "perf_analyzer request export"
LARGEST = 512 << 20
NO_TIMES = "without a time"
BACKWARDS = "it ended before it started"
SENT = "a request starts when it is sent: how late the generator was is not told"


class _Load(msgspec.Struct, frozen=True, gc=False):
    mode: str = ""
    value: float | None = None


class _Request(msgspec.Struct, gc=False):
    timestamp: int | None = None
    response_timestamps: list[int] = []


class _Experiment(msgspec.Struct, gc=False):
    experiment: _Load = _Load()
    requests: list[_Request] = []


class _Export(msgspec.Struct, gc=False):
    experiments: list[_Experiment]


def read(path: Path, strict: bool) -> tuple[Imported, ReadReport]:
    """The requests of ``path``, and how they were read. DataError for several experiments, or what is no export."""
    one = _experiment(path)
    start = np.array([_time(request.timestamp) for request in one.requests], dtype=np.int64)
    end = np.array([max(map(_time, request.response_timestamps), default=NEVER) for request in one.requests])
    end = end.astype(np.int64)
    lost = np.array([not request.response_timestamps for request in one.requests], dtype=bool)
    known = (start != NEVER) & ((end != NEVER) | lost)
    keep = known & ((end >= start) | lost)
    dropped = Counter({NO_TIMES: int((~known).sum()), BACKWARDS: int((known & ~keep).sum())})
    told = report(
        path, NAME, rows=start.size, used=int(keep.sum()), unit="requests", dropped=dropped, strict=strict,
        notes=(f"load: {one.experiment.mode.replace('_', ' ')} {one.experiment.value or 0:g}", SENT),
    )  # fmt: skip
    error = np.where(lost, ERROR_KINDS.index("unfinished"), 0)[keep]
    return requests(told, start[keep], end[keep], error=error, paced=one.experiment.mode != "concurrency"), told


def _experiment(path: Path) -> _Experiment:
    found = document(path, whole(path, LARGEST), _Export, NAME, "export it again")
    if len(found.experiments) != 1:
        raise DataError(
            f"{path.name} holds {len(found.experiments)} levels of load: together they are traffic that never was",
            where=str(path), fix="export each level into a file of its own",
        )  # fmt: skip
    return found.experiments[0]


def _time(ns: int | None) -> int:
    return ns if ns is not None and 0 < ns < LATEST else NEVER


def holds(head: bytes) -> bool:
    """An object with experiments and the times of responses."""
    start = opening(head)
    return start.startswith(b"{") and b'"experiments"' in start and b'"response_timestamps"' in start


FORMAT = Format(NAME, holds, read)
