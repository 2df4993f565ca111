"""Requests that a tool recorded one by one, as columns: in order of their start, times from the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import STAGE_COLUMNS, Imported, ReadReport, imported_trace
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Table, empty
from trimtab.readers._spans import SINCE_1970

Ints = NDArray[np.int64]
MOST_REQUESTS = 2_000_000
"""What is read request by request holds about 500 bytes of each until all are known."""
LATEST = 1 << 61
"""ns. Sums and differences of times below it fit int64."""


def requests(
    read: ReadReport,
    start: Ints,
    done: Ints,
    *,
    issued: Ints | None = None,
    batch: Ints | None = None,
    error: Ints | None = None,
    stages: Mapping[str, Ints] | None = None,
    dims: Mapping[str, Ints] | None = None,
    stream: Ints | None = None,
    streams: tuple[str, ...] = ("all",),
    paced: bool = True,
) -> Imported:
    """Requests by their ``start``; times in ns on one clock, NEVER = not recorded. At least one row.

    ``stages`` are durations by their names in STAGE_COLUMNS, ``error`` codes into ERROR_KINDS.
    """
    order = np.argsort(start, kind="stable")
    first, count = int(start[order[0]]), order.size
    columns: dict[str, NDArray[Any]] = {"id": np.arange(count, dtype=np.int64), "scheduled": start[order] - first}
    for name, times in (("done", done), ("enqueued", issued)):
        if times is not None:
            columns[name] = np.where(times == NEVER, NEVER, times - first)[order]
    columns["error"] = np.zeros(count, dtype=np.int8) if error is None else error[order].astype(np.int8)
    for name, codes in (("batch", batch), ("stream", stream)):
        if codes is not None:
            columns[name] = codes[order].astype(np.int64 if name == "batch" else np.int32)
    held = empty(STAGE_COLUMNS, count).columns
    held |= {name: column[order].astype(STAGE_COLUMNS[name]) for name, column in (stages or {}).items()}
    trace = imported_trace(
        read, columns, {name: size[order] for name, size in (dims or {}).items()}, streams=streams
    )  # fmt: skip
    return Imported(trace=trace, stages=Table(held), origin=first if first > SINCE_1970 else None, paced=paced)
