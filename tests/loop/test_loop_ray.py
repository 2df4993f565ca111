"""Under Ray: a real cluster of two nodes on this machine makes the same kind of packet as this machine alone."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from loop_kit import STUDY, need_two_cores, trimtab, write_study

from trimtab.domain.packet import STAGES
from trimtab.loop.trials.ray_node import BOOT_ID
from trimtab.store.codec import digest
from trimtab.store.packet import Packet, load_record, verify

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'trimtab[ray]'"
    ),
]

NULL = 'options = { base_us = "300", per_unit_us = "5", first_us = "4000" }\n'
ORT = STUDY.replace('"null"', '"onnxruntime"').replace(NULL, "")


@pytest.fixture(autouse=True)
def _two_cores() -> None:
    need_two_cores()


def tiny_study(folder: Path, text: str = ORT) -> Path:
    """A study of y = x + x on ONNX Runtime."""
    from onnx import TensorProto, helper, save

    path = write_study(folder, text)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "width"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "tiny", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "network.bin")
    return path


@contextmanager
def two_nodes(count: int = 2) -> Iterator[tuple[Any, list[Any]]]:
    """A head without CPUs, as for a machine that only gives commands, and ``count`` nodes with two each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        try:
            yield cluster, [cluster.add_node(num_cpus=2) for _ in range(count)]
        finally:
            cluster.shutdown()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with two_nodes() as (cluster, _):
        yield cluster.address


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory, address: str) -> tuple[Path, Path]:
    """The same study, made by this machine and by the cluster."""
    folder = tmp_path_factory.mktemp("ray")
    study = tiny_study(folder)
    for name, executor in (("local", "local"), ("ray", f"ray:{address}")):
        done = trimtab("run", study, "--executor", executor, "--out", folder / name)
        assert done.returncode == 0, done.stderr
    return folder / "local", folder / "ray"


def files(packet: Path) -> set[str]:
    """Every file of a packet but those of the replays that cells asked for afterwards, as many as noise makes them."""
    paths = (path.relative_to(packet).as_posix() for path in packet.rglob("*") if path.is_file())
    return {path for path in paths if not path.startswith((".progress/", "traces/held-out-", "traces/confirm-"))}


def test_both_packets_have_the_same_stages_and_verify(packets: tuple[Path, Path]) -> None:
    for packet in packets:
        assert verify(packet) == []
        assert trimtab("verify", packet).returncode == 0
        assert [stage for stage in STAGES if stage in load_record(packet).findings] == list(STAGES[:-2])
        assert load_record(packet).verdict is not None


def test_both_packets_have_the_same_kinds_of_files(packets: tuple[Path, Path]) -> None:
    local, ray = map(files, packets)
    # what retune proposes decides which plans are answered and accounted for; everything else is fixed by the study
    assert {path for path in local ^ ray if not path.startswith(("quality/", "accounts/"))} == set()


def test_every_replay_was_measured_under_the_envelope_that_it_names(packets: tuple[Path, Path]) -> None:
    packet = Packet(packets[1])
    home, _ = packet.read_envelope()
    runs = load_record(packets[1]).runs
    assert {run.envelope_sha256 for run in runs} == {digest(home)}, "two nodes of one machine are one machine"
    assert {run.source for run in runs} == {"measured"}
    for run in runs:
        requests = packet.read_trace(run.id).requests
        assert (requests["error"] == 0).all()
        assert (requests["done"] >= requests["scheduled"]).all()
    assert all(packet.profiled_on(path.stem) == digest(home) for path in (packets[1] / "profiles").glob("*.json"))


def test_the_packet_says_which_machine_made_it(packets: tuple[Path, Path]) -> None:
    told = [finding.text for finding in Packet(packets[1]).read_findings("plan").findings]
    assert any(text.startswith("Trials were made under Ray, at home on ") for text in told)


def test_a_second_run_under_ray_repeats_nothing(packets: tuple[Path, Path], address: str) -> None:
    study = packets[1].parent / "study.toml"
    again = trimtab("run", study, "--executor", f"ray:{address}", "--out", packets[1], "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["ran"] == []


def test_a_node_that_dies_in_a_replay_costs_that_replay_and_nothing_else(tmp_path: Path) -> None:
    study, out = tiny_study(tmp_path, ORT.replace("replay_s = 1.2", "replay_s = 3.0")), tmp_path / "packet"
    with two_nodes() as (cluster, nodes), (tmp_path / "said").open("w") as said:
        run = _replaying(study, out, f"ray:{cluster.address}", said)
        used = {node.node_id: node for node in nodes}
        lost = next(node for id, node in used.items() if _makes_trials(node))  # noqa: A001 - the word of Ray
        cluster.remove_node(lost, allow_graceful=False)
        assert run.wait(240) == 0, (tmp_path / "said").read_text()
    assert "is gone" in (tmp_path / "said").read_text()
    assert verify(out) == []
    record = load_record(out)
    assert record.verdict is not None
    assert [stage for stage in STAGES if stage in record.findings] == list(STAGES[:-2])
    assert list((out / "traces").glob("*.cut1")), "the rows that the lost node had sent are kept"


def test_ctrl_c_under_ray_keeps_the_trace_so_far_and_leaves_nothing_running(tmp_path: Path) -> None:
    study, out = tiny_study(tmp_path, ORT.replace("replay_s = 1.2", "replay_s = 3.0")), tmp_path / "packet"
    with (tmp_path / "said").open("w") as said:
        run = _replaying(study, out, "ray", said)  # a cluster of its own
        below = psutil.Process(run.pid).children(recursive=True)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all that belong to the command
        assert run.wait(60) == 130, (tmp_path / "said").read_text()
    assert below, "the cluster's processes hang below the command"
    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []
    cut = [path for path in (out / "traces").iterdir() if ".cut" in path.name]
    assert len(cut) == 1
    trace = Packet(out).read_trace(cut[0].name)
    assert not trace.run.complete
    assert (trace.requests["error"] == 0).any()


def _replaying(study: Path, out: Path, executor: str, said: Any) -> subprocess.Popen[bytes]:
    """A run that has just logged the first rows of a replay."""
    run = subprocess.Popen(
        [sys.executable, "-m", "trimtab", "run", str(study), "--executor", executor, "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    while not any(log.stat().st_size for log in out.glob(".progress/*.rows")):
        assert run.poll() is None, "the run ended before a replay had logged anything"
        time.sleep(0.02)
    return run


def _makes_trials(node: Any) -> bool:
    """Whether the process of a trial runs below this node."""
    (raylet,) = node.all_processes["raylet"]
    below = psutil.Process(raylet.process.pid).children(recursive=True)
    return any("trimtab.loop.trials.trial_process" in process.cmdline() for process in below)


def test_two_machines_share_the_profiles_of_one_packet_and_each_is_named(tmp_path: Path) -> None:
    study, out = tiny_study(tmp_path), tmp_path / "packet"
    with two_nodes(count=1) as (cluster, _), another_machine(cluster, tmp_path):
        done = trimtab("compile", study, "--executor", f"ray:{cluster.address}", "--out", out)
    assert done.returncode == 0, done.stderr
    packet = Packet(out)
    told = " ".join(finding.text for finding in packet.read_findings("plan").findings)
    if "pace of core" in told:
        pytest.skip(f"this machine is not steady enough to pass for two that are alike: {told}")
    machines = {digest(envelope): envelope.host for envelope in packet.read_machines()}
    assert sorted(machines.values()) == sorted({"other-machine", os.uname().nodename})
    made = {packet.profiled_on(path.stem) for path in (out / "profiles").glob("*.json")}
    assert made == machines.keys(), "profiles are shared out"


@contextmanager
def another_machine(cluster: Any, folder: Path) -> Iterator[None]:
    """A node of ``cluster`` with a name and a boot id of its own: this machine, passing for another one."""
    boot = folder / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    script = f"hostname other-machine && mount --bind {boot} {BOOT_ID} && exec {sys.executable} -m ray.scripts.scripts "
    script += f"start --address={cluster.address} --num-cpus=2 --block --disable-usage-stats"
    with (folder / "other").open("w") as said:
        node = subprocess.Popen(["unshare", "--mount", "--uts", "sh", "-c", script], stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + 60
        while sum(each["Alive"] for each in cluster.global_state.node_table()) < 3:
            if node.poll() is not None and "Operation not permitted" in (folder / "other").read_text():
                pytest.skip("a second machine needs the right to unshare namespaces")
            assert node.poll() is None, (folder / "other").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield
    finally:
        node.terminate()
        node.wait(30)
