"""What a server's own trace lets us say: which of its policies owns the tail. Recorded times, no server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trimtab.domain.noun import NEVER
from trimtab.domain.remote import Counters, Inside, Server
from trimtab.domain.study import Sla
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
from trimtab.errors import DataError
from trimtab.evidence import remote
from trimtab.readers import triton_trace

MS = 1_000_000
COUNT = 1_500
SLA = Sla(metric="p95", bound_ms=30.0)


def served(rate: float, run_ms: float, hold_ms: float, size: int, instances: int) -> tuple[Trace, Table, Inside]:
    """One model under Poisson arrivals: a batch starts when it is full, or its oldest request has waited ``hold_ms``,
    and an instance is free. 2 ms of network and parsing come on top."""
    arrivals = np.cumsum(np.random.default_rng(5).exponential(1e3 / rate, COUNT))
    free, queue, batch, number, at = [0.0] * instances, np.zeros(COUNT), np.zeros(COUNT, dtype=np.int64), 0, 0
    while at < COUNT:
        first = min(range(instances), key=free.__getitem__)
        full = arrivals[at + size - 1] if at + size <= COUNT else np.inf
        start = max(free[first], min(full, arrivals[at] + hold_ms))
        stop = min(at + size, int(np.searchsorted(arrivals, start, side="right")))
        queue[at:stop], batch[at:stop] = start - arrivals[at:stop], number
        free[first], number, at = start + run_ms, number + 1, stop
    latency = queue + run_ms + 2.0
    req = empty(REQUEST_COLUMNS, COUNT).columns
    scheduled = (arrivals * MS).astype(np.int64)
    req |= {
        "id": np.arange(COUNT), "stream": np.zeros(COUNT, dtype=np.int32), "scheduled": scheduled,
        "enqueued": scheduled + 1_000, "done": scheduled + (latency * MS).astype(np.int64),
        "error": np.zeros(COUNT, dtype=np.int8),
    }  # fmt: skip
    run = RunInfo(
        id="run", plan="server", slice="tune", source="driven", workload_sha256="", envelope_sha256="", seed=0,
        start_state="as found", workers=instances, cores=(), driver_core=0,
    )  # fmt: skip
    trace = Trace(
        run=run, dim_names=(), streams=("all",), entries=(), details=(), requests=Table(req),
        batches=empty(BATCH_COLUMNS), marks=empty(MARK_COLUMNS), samples=empty(SAMPLE_COLUMNS),
    )  # fmt: skip
    compute = np.full(COUNT, int(run_ms * MS))
    told = remote.stages((queue * MS).astype(np.int64), compute, batch)
    server = Server(name="triton", version="1", instances=instances, max_batch=size)
    return trace, told, Inside(run="run", server=server, traced=COUNT)


def leading(found: tuple[Trace, Table, Inside], *, told: bool = True) -> str:
    trace, stages, inside = found
    reading = remote.diagnosed(trace, inside, stages if told else None, SLA, 1)
    return reading.diagnosis.classes[0].id


def test_holding_too_long_is_the_batch_policy() -> None:
    assert leading(served(rate=60, run_ms=5.0, hold_ms=100.0, size=8, instances=1)) == "batch-policy"


def test_one_instance_too_few_is_capacity() -> None:
    assert leading(served(rate=80, run_ms=10.0, hold_ms=0.0, size=1, instances=1)) == "capacity-queueing"


def test_enough_instances_and_no_hold_are_healthy() -> None:
    assert leading(served(rate=80, run_ms=10.0, hold_ms=0.0, size=1, instances=3)) == "healthy"


def test_without_the_servers_stages_neither_is_named() -> None:
    found = served(rate=80, run_ms=10.0, hold_ms=0.0, size=1, instances=1)
    assert leading(found, told=False) == "insufficient-evidence"
    trace, _, inside = found
    untold = Inside(run="run", server=inside.server)
    said = remote.explained(remote.diagnosed(trace, untold, None, SLA, 1), "there", untold, COUNT)
    assert f"Missing: {remote.UNSPLIT}." in [finding.text for finding in said.findings]


def test_what_others_sent_is_told() -> None:
    counters = Counters(requests=120, executions=60, failed=0, queued=120, queue_ns=1, computed=120, compute_ns=1)
    inside = Inside(run="r", server=Server(name="s", version="1"), counters=counters)
    assert remote.foreign(inside, 120) == ""
    assert remote.foreign(inside, 100) == "Run r: the server counted 120 requests of this model and 100 were ours"


def stamp(number: int, name: str | None, *times: tuple[str, int]) -> list[dict[str, object]]:
    """One request as Triton writes it: who it is, then its points one by one."""
    head: dict[str, object] = {"id": number, "model_name": "net"}
    if name is not None:
        head["request_id"] = name
    return [head, *({"id": number, "timestamps": [{"name": point, "ns": ns}]} for point, ns in times)]


def test_a_trace_is_joined_by_the_numbers_of_the_requests(tmp_path: Path) -> None:
    one, two = tmp_path / "t.json.0", tmp_path / "t.json.1"
    span = (("QUEUE_START", 100), ("COMPUTE_START", 250), ("COMPUTE_END", 400))
    one.write_text(json.dumps([*stamp(1, "a/0", *span), *stamp(2, "a/2", ("QUEUE_START", 120), *span[1:])]))
    two.write_text(json.dumps([*stamp(1, "b/1", *span), *stamp(2, None, *span), *stamp(3, "a/9", *span)]))
    found = triton_trace.numbered([one, two], "a/", 4)
    assert found.queue.tolist() == [150, NEVER, 130, NEVER]
    assert found.compute.tolist() == [150, NEVER, 150, NEVER]
    assert found.batch[0] == found.batch[2] != NEVER
    assert found.batch[1] == NEVER
    assert found.found == 2


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("no trace")
    with pytest.raises(DataError):
        triton_trace.numbered([path], "a/", 4)
