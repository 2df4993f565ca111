"""Imported: a table of requests from any other system, as columns, and how it was read.

The trace holds what a run of ours would hold; the stages hold, per request, the durations that the other system
recorded. Nothing is filled in: a time that the table does not have is NEVER, a number nan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER, Noun, Ns
from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    RunInfo,
    Table,
    Trace,
    empty,
)

DURATIONS = ("queue", "hold", "compute", "compile", "on_core", "runqueue", "throttled")
"""Stages of a request: waiting for a worker, held for a batch, running, compiling, on a core, ready without a core,
stopped by a quota. ``compute`` is wall time; the last three lie inside it."""

STAGE_COLUMNS: dict[str, str] = {
    **dict.fromkeys(DURATIONS, "int64"),  # ns; NEVER = not recorded
    "worker": "int32",  # code of the worker; NEVER = not recorded
    "size": "int64",  # members of its batch; NEVER = not recorded
}
"""Plus one int64 column ``exec.<dim>`` for each executed dim, and one float64 column for each of NUMBERS that the table
has, nan where a row has none. Rows as in ``Trace.requests``."""

NUMBERS: dict[str, str] = {
    "threads": "compute threads of all workers together",
    "cores": "cores that they may use",
    "workers": "workers that can run a request at the same time",
    "quota_cores": "cores' worth of time that a quota allows",
    "throttled_share": "share of time during which a quota throttled the process, 0 to 1",
    "stolen": "share of the cores' time that the hypervisor took, 0 to 1",
    "pace": "time of a fixed computation over its time on the quiet machine",
    "stream_pace": "the same for a fixed run through memory",
    "peak_mb": "peak memory",
    "limit_mb": "memory limit",
    "executed_share": "share of run time that was executed in the declared precision, 0 to 1",
    "quality": "quality of the outputs, in the unit of quality_floor",
    "quality_floor": "least quality that is acceptable",
    "launches": "kernel launches of one run",
    "launch_us": "cost of one launch, microseconds",
    "ceiling": "share of the machine's ceiling that the best known entry reaches, 0 to 1",
    "max_batch": "largest batch that could be formed",
    "offered_rate": "requests a second that the load generator was asked for",
    "idle_cpu": "cores' worth of CPU that is busy while no request runs",
}
"""Numbers that a table may hold as a column, or that are given beside it."""

TEXTS: dict[str, str] = {"declared": "declared precision", "executed": "precision that was really executed"}
"""Words that a table may hold as a column, or that are given beside it."""


class ReadReport(Noun, frozen=True, kw_only=True):
    """How one file was read. ``format`` = what it is; it holds ``rows`` of its ``unit``, of which ``used`` were read.

    ``columns`` = role -> header; ``ignored`` = what means nothing here; ``dropped`` = reason -> rows left out;
    ``unreadable`` = role -> values of used rows that were no values and count as missing."""

    file: str
    sha256: str
    rows: int
    used: int
    columns: dict[str, str]
    ignored: tuple[str, ...] = ()
    dropped: dict[str, int] = {}
    unreadable: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    format: str = "table of requests"
    unit: str = "rows"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A trace of Source ``imported``, the stages of its requests, and words by name (the value of most rows).

    ``origin`` = the time of the first start, ns since 1970; None = a clock without a known zero. ``paced`` False = the
    tool says that it sent a request when the one before had ended, or all at once: no arrivals made this tail."""

    trace: Trace
    stages: Table
    texts: dict[str, str] = {}
    origin: Ns | None = None
    paced: bool = True


def unknown(schema: Mapping[str, str], length: int) -> dict[str, NDArray[Any]]:
    """The columns of ``schema`` where nothing is recorded: one value (as in :func:`empty`), seen ``length`` times.

    They take no memory and are read-only.
    """
    one = empty(schema, 1).columns
    return {name: np.broadcast_to(column, (length,)) for name, column in one.items()}


def imported_trace(
    read: ReadReport,
    requests: Mapping[str, NDArray[Any]],
    dims: Mapping[str, NDArray[Any]],
    *,
    streams: tuple[str, ...] = ("all",),
    workers: int = 0,
) -> Trace:
    """A trace that knows its requests only: columns of ``requests`` (what it does not have is NEVER) and true ``dims``.

    Without a column ``stream`` all are of the first of ``streams``. ``workers`` 0 = not known.
    """
    count = len(requests["id"])
    columns = unknown(REQUEST_COLUMNS, count) | {"stream": np.zeros(count, dtype=np.int32)} | dict(requests)
    info = RunInfo(
        id=read.file, plan="imported", slice="all", source="imported", workload_sha256=read.sha256,
        envelope_sha256="", start_state="unknown", seed=0, workers=workers, cores=(), driver_core=NEVER,
    )  # fmt: skip
    return Trace(
        run=info,
        dim_names=tuple(dims),
        streams=streams,
        entries=(),
        details=(),
        requests=Table(columns | {f"dim.{name}": column for name, column in dims.items()}),
        batches=empty(BATCH_COLUMNS),
        marks=empty(MARK_COLUMNS),
        samples=empty(SAMPLE_COLUMNS),
    )
