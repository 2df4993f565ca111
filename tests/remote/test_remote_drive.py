"""Driving a server over KServe v2: results, statistics, and everything that can go wrong with a request."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from kserve_kit import NETWORK, KServe, Served, serving, write_network
from remote_kit import Quiet

from parts import run_info, workload_of
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.noun import NEVER
from trimtab.domain.ports import Arrays
from trimtab.domain.remote import parse_target
from trimtab.domain.study import InputSpec, ModelSpec, OutputSpec
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.errors import ModelError, RunError
from trimtab.runtime.kserve import Connection
from trimtab.runtime.remote import RemoteRequest, drive

CORE = min(os.sched_getaffinity(0))
SPEC = ModelSpec(revision="1", inputs=(InputSpec(name="x", shape=("batch", "width")),), outputs=(OutputSpec(name="y"),))
MS = 1_000_000


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_network(tmp_path_factory.mktemp("network"))


class Numbers:
    """Payload i of width w: w different numbers."""

    def request(self, payload: int, dims: tuple[int, ...]) -> Arrays:
        return {"x": np.arange(dims[0], dtype=np.float32).reshape(1, -1) + payload}


def even(count: int, gap_ns: int = 2 * MS) -> Workload:
    return workload_of(np.arange(count) * gap_ns, 20 + np.arange(count) % 3)


def driven(served: Served, load: Workload, wait_s: float = 10.0) -> Trace:
    run = run_info(plan="server", slice="tune", source="driven", start_state="as found", workers=0, driver_core=CORE)
    target = parse_target(served.target)
    assert target is not None
    request = RemoteRequest(
        workload=load, model=SPEC, payloads=Numbers(), driver_core=CORE, run=run, wait_s=wait_s, name="run/"
    )
    with Connection(target) as connection:
        return drive(request, connection, "replay", Quiet())


def errors(trace: Trace) -> dict[int, str]:
    """Request number -> how it failed."""
    codes = trace.requests["error"].tolist()
    return {number: ERROR_KINDS[code] for number, code in enumerate(codes) if code}


def test_every_request_ends_once_and_counts_from_its_scheduled_time(network: Path) -> None:
    with serving(KServe(network)) as served:
        trace = driven(served, even(40))
    req = trace.requests
    assert errors(trace) == {}
    assert req["scheduled"].tolist() == [number * 2 * MS for number in range(40)]
    assert (req["enqueued"] >= req["scheduled"]).all()
    assert (req["done"] >= req["enqueued"]).all()
    assert sorted(int(name.removeprefix("run/")) for name in served.service.requests) == list(range(40))
    assert (trace.run.source, trace.run.complete, len(trace.batches)) == ("driven", True, 0)
    assert set(req["batch"].tolist()) == {NEVER}


def test_many_requests_are_outstanding_while_the_server_is_slow(network: Path) -> None:
    """Open loop: what is sent does not depend on what was answered."""
    together = threading.Barrier(20)
    service = KServe(network)
    service.answered = lambda number: together.wait(10)  # nobody is answered before all were sent
    with serving(service, threads=20) as served:
        trace = driven(served, even(20, gap_ns=MS), wait_s=30.0)
    assert errors(trace) == {}


def test_each_way_to_fail_has_its_kind(network: Path) -> None:
    faults = {
        1: "INTERNAL", 3: "UNAVAILABLE", 5: "RESOURCE_EXHAUSTED", 7: "slow", 9: "nan", 11: "empty", 13: "other name",
        15: "short", 17: "zero rows", 19: "not raw",
    }  # fmt: skip
    with serving(KServe(network, faults=faults)) as served:
        trace = driven(served, even(22), wait_s=0.25)
    assert errors(trace) == {
        1: "backend-error", 3: "unavailable", 5: "rejected", 7: "timeout", 9: "bad-output", 11: "bad-output",
        13: "bad-output", 15: "bad-output", 17: "bad-output",
    }  # fmt: skip
    assert np.isinf(trace.latency[[1, 3, 5, 7, 9]]).all()
    assert trace.run.complete
    assert "backend-error: INTERNAL: told to fail 1" in trace.run.note
    assert "bad-output: output 'y' holds nan" in trace.run.note


def test_a_connection_that_drops_fails_what_is_sent_and_ends_the_run(network: Path) -> None:
    service = KServe(network)
    with serving(service) as served:
        service.answered = lambda number: number == 10 and served.stop_soon()
        trace = driven(served, even(40, gap_ns=10 * MS), wait_s=1.0)
    lost = errors(trace)
    assert set(lost.values()) <= {"unavailable", "timeout"}
    assert {0, 1, 2} & lost.keys() == set()
    assert {37, 38, 39} <= lost.keys()
    assert trace.run.complete


def test_the_server_says_what_it_is_and_what_it_counted(network: Path, tmp_path: Path) -> None:
    with serving(KServe(network, trace=tmp_path / "trace.json")) as served:
        target = parse_target(served.target)
        assert target is not None
        with Connection(target) as connection:
            said, before = connection.server(), connection.counters()
            driven(served, even(12))
            after = connection.counters()
    assert (said.name, said.version, said.platform, said.instances) == ("kit", "1.2.3", "onnxruntime_onnx", 1)
    assert before is not None
    assert after is not None
    grown = after.since(before)
    assert grown is not None
    assert (grown.requests, grown.executions, grown.failed, grown.queued) == (12, 12, 0, 12)
    assert grown.compute_ns > 0
    assert before.since(after) is None


def test_a_server_without_extensions_is_told_so(network: Path) -> None:
    with serving(KServe(network)) as served:
        target = parse_target(served.target)
        assert target is not None
        with Connection(target) as connection:
            said = connection.server()
            assert connection.counters() is None
            with pytest.raises(RunError, match="the server cannot be told to trace: UNIMPLEMENTED"):
                connection.trace()
    assert (said.instances, said.max_batch, said.extensions) == (None, None, ())


@pytest.mark.parametrize(
    ("item", "output", "said", "fix"),
    [
        (InputSpec(name="xs", shape=("batch", "width")), "y", "has no input 'xs'", "did you mean 'x'?"),
        (InputSpec(name="x", shape=("batch", "width")), "out", "has no output 'out'", "it has y"),
        (InputSpec(name="x", shape=("batch", 3, "width")), "y", "input 'x' has the shape [-1, -1] at the server", "-1"),
        (InputSpec(name="x", shape=("batch", "width"), dtype="i64"), "y", "'x' is FP32 at the server, i64", '"f32"'),
    ],
)
def test_what_the_server_does_not_take_is_refused(
    network: Path, item: InputSpec, output: str, said: str, fix: str
) -> None:
    spec = ModelSpec(revision="1", inputs=(item,), outputs=(OutputSpec(name=output),))
    with serving(KServe(network)) as served:
        target = parse_target(served.target)
        assert target is not None
        with Connection(target) as connection, pytest.raises(ModelError) as refused:
            connection.check(spec)
    assert said in refused.value.what
    assert fix in refused.value.fix


def test_a_server_that_is_not_there(network: Path) -> None:
    with serving(KServe(network)) as served:
        gone = served.target
    target = parse_target(gone)
    assert target is not None
    with Connection(target) as connection, pytest.raises(RunError, match="does not answer ServerMetadata: UNAVAILABLE"):
        connection.server()


def test_a_model_that_is_not_there(network: Path) -> None:
    with serving(KServe(network)) as served:
        target = parse_target(served.target.replace(NETWORK, "thrice"))
        assert target is not None
        with Connection(target) as connection, pytest.raises(RunError, match="'thrice' is not ready"):
            connection.server()
