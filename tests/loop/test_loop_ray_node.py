"""A node without its cluster: it lays files by digest, makes trials in processes of their own, says how they went."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest
from loop_kit import need_two_cores, write_study

from parts import run_info, workload_of
from trimtab.domain.envelope import Envelope
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.errors import DataError
from trimtab.loop.trials import crossing
from trimtab.loop.trials.ray_node import Node
from trimtab.loop.trials.trial import Replay, Replayed
from trimtab.store.study import load_study, resolve_model

pytestmark = pytest.mark.slow


@pytest.fixture
def node() -> Iterator[Node]:
    need_two_cores()
    made = Node()
    yield made
    made.leave()


def heard(node: Node, until: type[crossing.Said]) -> list[crossing.Said]:
    """What the node says up to the first message of the type ``until``."""
    said: list[crossing.Said] = []
    deadline = time.monotonic() + 60
    while not any(isinstance(one, until) for one in said):
        assert time.monotonic() < deadline, said
        said += map(crossing.decode_said, node.poll())
    return said


def replay_of(folder: Path, seconds: float) -> bytes:
    """The order to replay ``seconds`` of traffic on the null backend."""
    study = load_study(write_study(folder))
    count = round(seconds * 100)
    load = workload_of(np.arange(count) * 10_000_000, 7, id="load", payload=np.zeros(count, np.int32))
    run = run_info(id="one", plan="today", slice="tune", source="measured", cores=(1,), driver_core=0)
    profile = CompileProfile(
        plan="today", entry="any", backend="null", versions={}, options=CompileOptions(), compile_ns=1, memory_bytes=1,
        peak_bytes=1, inspection=Inspection(executed=(1, 7), operators=(), operators_before=0),
        timings=(ShapeTiming(executed=(1, 7), first_ns=9, wall_ns=(8,), cpu_ns=(8,)),),
    )  # fmt: skip
    trial = Replay(
        stage="replay", note="one", plan=study.baseline, run=run, workload=load, profiles=(profile,), hang_s=10.0
    )
    return crossing.encode(crossing.Job(study, resolve_model(study, folder), trial))


def test_a_file_is_laid_under_its_digest_or_refused(node: Node) -> None:
    sha256 = hashlib.sha256(b"network").hexdigest()
    path = Path(node.lay(sha256, "net.onnx", b"network"))
    assert path.read_bytes() == b"network"
    assert path.parts[-2:] == (sha256, "net.onnx")
    with pytest.raises(DataError, match="arrived altered"):
        node.lay(sha256, "net.onnx", b"netwerk")
    node.leave()
    assert not path.exists()


def test_a_node_says_what_its_machine_is(node: Node) -> None:
    node.begin(crossing.encode(crossing.Look((1,), ("null",))), 0)
    seen = heard(node, crossing.Seen)[-1]
    assert isinstance(seen, crossing.Seen)
    assert isinstance(seen.envelope, Envelope)
    assert [pace.core for pace in seen.envelope.pace] == [1]
    assert node.hello()[1] == seen.envelope.host


def test_a_replay_is_made_there_with_its_rows_and_its_progress(node: Node, tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    node.begin(replay_of(tmp_path, 1.5), 0)
    assert os.sched_getaffinity(0) == {0}, "the node keeps off the worker's core"
    said = heard(node, crossing.Ended)
    node.stop()
    assert os.sched_getaffinity(0) == allowed
    ended = said[-1]
    assert isinstance(ended, crossing.Ended)
    assert isinstance(ended.result, Replayed)
    trace = ended.result.trace
    assert trace.run.complete
    assert (trace.requests["error"] == 0).all()
    assert trace.batches["core"].tolist() == [1] * len(trace.batches)
    rows = [row for one in said if isinstance(one, crossing.Rows) and one.table == "requests" for row in one.rows]
    assert sorted(row[0] for row in rows) == list(range(150))
    assert any(isinstance(one, crossing.Step) for one in said)


def test_ctrl_c_ends_a_replay_in_good_order(node: Node, tmp_path: Path) -> None:
    node.begin(replay_of(tmp_path, 60.0), 0)
    heard(node, crossing.Rows)
    node.interrupt()
    ended = heard(node, crossing.Ended)[-1]
    assert isinstance(ended, crossing.Ended)
    assert isinstance(ended.result, Replayed)
    assert not ended.result.trace.run.complete
    assert (ended.result.trace.requests["error"] == 0).any()


def test_a_process_that_is_killed_is_told_as_lost_and_takes_its_workers_along(node: Node, tmp_path: Path) -> None:
    node.begin(replay_of(tmp_path, 60.0), 0)
    heard(node, crossing.Rows)
    (trial,) = [
        child for child in psutil.Process().children() if "trimtab.loop.trials.trial_process" in child.cmdline()
    ]
    workers = trial.children()
    assert workers
    trial.kill()
    lost = heard(node, crossing.Lost)[-1]
    assert lost == crossing.Lost("its process ended with code -9")
    assert psutil.wait_procs(workers, timeout=10)[1] == []


def test_what_the_machine_refuses_comes_back_as_what_it_is(node: Node, tmp_path: Path) -> None:
    order = crossing.decode_order(replay_of(tmp_path, 1.0))
    assert isinstance(order, crossing.Job)
    assert isinstance(order.trial, Replay)
    run = msgspec.structs.replace(order.trial.run, cores=(777,))
    trial = msgspec.structs.replace(order.trial, run=run)
    node.begin(crossing.encode(msgspec.structs.replace(order, trial=trial)), 0)
    fault = heard(node, crossing.Fault)[-1]
    assert isinstance(fault, crossing.Fault)
    assert (fault.kind, fault.where) == ("MachineError", "envelope.cores")
    assert fault.what.startswith("core 777 does not exist here")
