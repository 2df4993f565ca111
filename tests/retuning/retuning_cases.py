"""A small study and a recorded-looking predictor that the tests of this room share."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from parts import run_info
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.study import Study
from trimtab.domain.trace import BATCH_COLUMNS, MARK_COLUMNS, SAMPLE_COLUMNS, Table, Trace, empty

MS = 1_000_000

STUDY: dict[str, Any] = {
    "name": "lines",
    "model": {
        "path": "lines.onnx",
        "revision": "1",
        "inputs": [{"name": "x", "shape": ["batch", 3, 48, "width"]}],
        "outputs": [{"name": "y"}],
    },
    "dims": {"width": {"lo": 16, "hi": 1640}},
    "workload": {"arrivals": {"file": "a.csv", "time": "t"}, "shapes": {"dims": {"width": "w"}}},
    "sla": {"metric": "p95", "bound_ms": 60.0},
    "envelope": {},
    "baseline": {
        "id": "today",
        "compile": {
            "backend": "openvino",
            "entries": [{"id": "any", "kind": "dynamic", "lo": [16], "hi": [1640], "batch": [1, 8]}],
            "fallback": "any",
            "options": {"hint": "latency"},
        },
    },
}


def study(**changes: Any) -> Study:
    return msgspec.convert({**STUDY, **changes}, Study)


class Recorded:
    """Warm time = width / 100 ms, and 15 ms more the first time; nothing is known of entry ``new``."""

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        return 0 if entry == "new" else executed[0] * executed[1] * MS // 100

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        warm = self.warm(entry, executed)
        return warm + 15 * MS if warm and first_seen else warm


def from_times(scheduled: Any, started: Any, done: Any, error: Any = 0, *, plan: str = "today") -> Trace:
    """A run of one batch a request: dispatched and started at ``started``, ended and done at ``done``, all in ns."""
    n = len(scheduled)
    requests = Table({"scheduled": scheduled, "done": done, "error": np.broadcast_to(error, n).astype(np.int8)})
    batches = empty({**BATCH_COLUMNS, "exec.width": "int64"}, n)
    batches["dispatched"][:], batches["started"][:] = started, started
    batches["ended"][:], batches["done"][:] = done, done
    batches["executed_size"][:], batches["entry"][:], batches["exec.width"][:] = 1, 0, 100
    return Trace(
        run=run_info(plan=plan, slice="tune", start_state="fresh"),
        dim_names=("width",), streams=("s",), entries=("any",), details=(),
        requests=requests, batches=batches, marks=empty(MARK_COLUMNS), samples=empty(SAMPLE_COLUMNS),
    )  # fmt: skip


def trace(latency_ms: Any, *, plan: str = "today") -> Trace:
    """A run of one request every 10 ms with these latencies; inf = failed."""
    latency = np.asarray(latency_ms, dtype=np.float64)
    failed = np.isinf(latency)
    scheduled = np.arange(latency.size, dtype=np.int64) * 10 * MS
    done = scheduled + (np.where(failed, 0.0, latency) * MS).astype(np.int64)
    return from_times(scheduled, scheduled, done, failed, plan=plan)


def noisy(seed: int, n: int, scale: float) -> Any:
    """Independent latencies, seconds: a fixed shape of tail times ``scale``, with 1 % of noise of their own."""
    base = np.random.default_rng(99).gamma(2.0, 0.010, n)
    return base * scale * np.random.default_rng(seed).normal(1.0, 0.01, n)
