"""A Trace: every request, batch, mark and envelope sample of one run, as columns.

The columns are the neutral form on which all evidence works, whether the run was measured, simulated or imported.
Times are int64 ns on the run's clock (0 = the first scheduled arrival), NEVER where a thing did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import EntryId, Noun

Source = Literal["measured", "driven", "simulated", "resimulated", "imported"]
"""``driven``: our arrivals, sent in real time to a server that is not ours; nothing of its queue and its batches is in
the trace."""
REAL_TIME: tuple[Source, ...] = ("measured", "driven")
"""Sources whose requests were served in real time."""

REQUEST_COLUMNS: dict[str, str] = {
    "id": "int64",  # index in the workload
    "stream": "int32",  # into Trace.streams
    "scheduled": "int64",
    "enqueued": "int64",
    "batched": "int64",  # when the batch policy called it ready to run
    "dispatched": "int64",
    "started": "int64",
    "ended": "int64",
    "done": "int64",  # when the driver knew; latency = done - scheduled
    "batch": "int64",  # into the batch table by id; NEVER if it never ran
    "route": "int8",  # into ROUTE_KINDS
    "predicted_at_compile": "int64",  # ns the profile promised for its batch; 0 = no promise
    "predicted_at_dispatch": "int64",
    "error": "int8",  # into ERROR_KINDS; 0 = ok
}
"""Plus one int64 column ``dim.<name>`` for each dynamic dim: the request's true dims."""

BATCH_COLUMNS: dict[str, str] = {
    "id": "int64",
    "worker": "int32",
    "core": "int32",  # NEVER = not pinned
    "entry": "int32",  # into Trace.entries
    "size": "int32",  # members
    "executed_size": "int32",  # rows really run, batch padding included
    "route": "int8",
    "first_seen": "bool",
    "changed": "bool",
    "outside": "bool",
    "compile_events": "int32",
    "dispatched": "int64",
    "started": "int64",
    "ended": "int64",
    "done": "int64",
    "promised": "int64",
    "expected": "int64",
    "on_cpu": "int64",
    "runqueue": "int64",  # kernel run-queue delay, ns
    "minor_faults": "int64",
    "major_faults": "int64",
    "migrations": "int64",
    "peak_bytes": "int64",
    "error": "int8",
}
"""Plus one int64 column ``exec.<name>`` for each dynamic dim: the executed dims."""

SAMPLE_COLUMNS: dict[str, str] = {
    "t": "int64",
    "core": "int32",  # NEVER = the whole machine
    "busy": "float64",  # share of the interval since the sample before
    "stolen": "float64",
    "mhz": "float64",  # nan = not readable
    "throttled": "int64",  # cgroup periods throttled since start; NEVER = no quota to read
    "throttled_ns": "int64",
    "celsius": "float64",
    "rss_bytes": "int64",  # our processes together
}

MARK_KINDS = (
    "worker-up",
    "worker-down",
    "entry-ready",
    "entry-failed",
    "pace",
    "warm-up",
    "stopped",
    "compile",
    "recompile",
    "eager",
    "prepare",
    "remap",
    "roll-back",
    "entry-dropped",
)
"""``compile``, ``recompile``, ``eager``: somewhere between ``t`` and ``end``, which are those of the batch.
``prepare``: an entry was compiled beside serving. The last three: the plan changed."""
MARK_COLUMNS: dict[str, str] = {
    "t": "int64",
    "end": "int64",
    "kind": "int8",  # into MARK_KINDS
    "worker": "int32",
    "value": "float64",  # pace: compute pace ns; compile events: what it took, ns; else nan
    "value2": "float64",  # pace: stream pace ns; compile events: the batch in which it was; else nan
    "detail": "int32",  # into Trace.details (entry id, message, reason); NEVER = none
}


class Table(msgspec.Struct, frozen=True):
    """Equal-length numpy columns by name. Cheap to slice, trivial to hand to numpy, DuckDB or Arrow."""

    columns: dict[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def take(self, rows: NDArray[Any]) -> Table:
        """Rows by boolean mask or by position."""
        return Table({name: column[rows] for name, column in self.columns.items()})

    def dims(self, prefix: Literal["dim", "exec"], names: tuple[str, ...]) -> NDArray[np.int64]:
        """int64[n, k]: the true (``dim``) or executed (``exec``) dims."""
        return np.stack([self.columns[f"{prefix}.{name}"] for name in names], axis=1)


def empty(schema: Mapping[str, str], length: int = 0) -> Table:
    """A table of ``schema``: integers NEVER, floats nan, booleans False."""
    fill: dict[str, float | int | bool] = {"f": np.nan, "i": -1, "b": False}
    return Table({name: np.full(length, fill[np.dtype(kind).kind], dtype=kind) for name, kind in schema.items()})


class RunInfo(Noun, frozen=True, kw_only=True):
    """What one run was: enough to refuse a comparison that would be wrong. ``target`` = the server that was driven;
    empty: a queue and workers of our own."""

    id: str
    plan: str
    slice: str
    source: Source
    workload_sha256: str
    envelope_sha256: str
    start_state: str
    seed: int
    workers: int
    cores: tuple[int, ...]
    driver_core: int
    versions: dict[str, str] = {}
    driver_cpu_share: float = float("nan")
    complete: bool = True
    note: str = ""
    target: str = ""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``batches`` is sorted by dispatch, ``requests`` by scheduled time."""

    run: RunInfo
    dim_names: tuple[str, ...]
    streams: tuple[str, ...]
    entries: tuple[EntryId, ...]
    details: tuple[str, ...]
    requests: Table
    batches: Table
    marks: Table
    samples: Table

    @property
    def latency(self) -> NDArray[np.float64]:
        """Seconds from the SCHEDULED time to done, over all scheduled requests; failed ones are +inf."""
        req = self.requests
        value = (req["done"] - req["scheduled"]) / 1e9
        return np.where((req["error"] == 0) & (req["done"] >= 0), value, np.inf)
