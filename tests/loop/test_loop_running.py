"""A shipped change that runs is judged on newer traffic: undone or kept, on a real runtime.

The plan today serves widths up to 50 and rejects wider ones, the plan that was shipped serves 40 and above. Which of
them loses requests is decided by the traffic alone, never by how fast this machine is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from loop_kit import need_two_cores, trimtab
from msgspec.structs import replace
from signed_kit import key, public, sealed, study_text, write_key

from trimtab.domain.figure import Figure
from trimtab.domain.plan import Entry
from trimtab.domain.verdict import ROLES, Move, Proposal, Trigger, Verdict
from trimtab.errors import ModelError, PacketError, StudyError, TrimtabError, UsageError
from trimtab.loop import running
from trimtab.loop.recorded import INPUTS, same_network
from trimtab.loop.verbs.comparing import compare_packets
from trimtab.store.codec import write_json
from trimtab.store.packet import Packet, build_manifest, file_digest, load_record
from trimtab.store.study import parse_study, resolve_model

STUDY = """
name = "line"

[model]
path = "net.onnx"
revision = "1"

[[model.inputs]]
name = "x"
shape = ["batch", "width"]

[[model.outputs]]
name = "y"
crop = [{ axis = 1, dim = "width" }]

[dims.width]
lo = 1
hi = 100

[workload]
rate = 300.0
tune_share = 0.4

[workload.arrivals]
file = "trace.csv"
time = "t"

[workload.shapes]
dims = { width = "width" }

[workload.payload]
kind = "real"
bank = "bank.npz"

[sla]
metric = "goodput"
bound_ms = 60000.0

[envelope]
cores = [0, 1]
driver_core = 0

[baseline]
id = "today"

[baseline.compile]
backend = "onnxruntime"
entries = [{ id = "to-50", kind = "bucket", lo = [1], hi = [50] }]

[[guards]]
metric = "goodput"
margin = 0.05

[quality]
metric = "max-error"
floor = 1e-5
samples = 4
samples_each = 2

[budget]
time = "1s"
replays = 1
profile_points = 3
profile_repeats = 3
replay_s = 0.8
"""
KEYS = "\n".join(["", "[signoff.keys]", *(f'{role} = "{public(key(role))}"' for role in ROLES), ""])
WIDE = Entry(id="to-100", kind="bucket", lo=(40,), hi=(100,))
PROMISE = Figure(id="validate.primary", value=1.0, unit="share", samples=900, scope="held-out", artifact="traces")
WATCHED = Trigger(
    cell="guard/normal/held-out/goodput", slice="held-out", metric="goodput", window=100, late_ms=60_000.0, bound=0.05,
    windows=60, false_alarms=0.0, false_alarms_interval=None, trials=(), back_to="today", owner="runtime",
    sentence="Go back to plan today when more than 5 % of requests are later than 60000 ms.",
)  # fmt: skip
OK = 0


def need_onnxruntime() -> None:
    for package in ("onnxruntime", "onnx"):
        if importlib.util.find_spec(package) is None and not os.environ.get("CI"):
            pytest.skip(f"{package} is not installed")


def write_inputs(folder: Path, lowest: int, highest: int, text: str) -> Path:
    """A network that doubles its input, a payload for every width, and traffic of widths ``lowest`` to ``highest``."""
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "width"]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"], name="y")], "net", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    rng = np.random.default_rng(7)
    np.savez(folder / "bank.npz", **{f"x/{w:03}": rng.normal(size=(1, w)).astype(np.float32) for w in range(1, 101)})
    times, widths = np.cumsum(rng.exponential(0.01, 1500)), rng.integers(lowest, highest + 1, 1500)
    rows = [f"{t:.6f},{w}" for t, w in zip(times, widths, strict=True)]
    (folder / "trace.csv").write_text("\n".join(["t,width", *rows]) + "\n")
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def shipped(folder: Path, text: str) -> Path:
    """A packet that shipped the wide entry, as far as a later run looks into it."""
    packet, study = Packet(folder / "shipped"), parse_study(text)
    plan = replace(study.baseline, id="wide", compile=replace(study.baseline.compile, entries=(WIDE,)))
    move = Move(kind="entries", sentence="Serve widths 40 to 100.", owner="runtime", plan=plan, size=301)
    packet.write_study(text.encode(), study)
    packet.write_proposal(
        Proposal(
            move=move, baseline="today", expected=PROMISE, measured=PROMISE, rollback=WATCHED.sentence, rejected=(),
            triggers=(WATCHED,),
        )
    )  # fmt: skip
    packet.write_verdict(
        Verdict(
            decision="ship", reason="", sentence="Ship: serve widths 40 to 100.", deciding=(), cells=(), scope=(),
            not_covered=(), risks=(),
        )
    )  # fmt: skip
    write_json(packet.path(INPUTS), {"model": file_digest(folder / "net.onnx"), "torch": ""})
    build_manifest(packet.folder, "evidence", "0.1")
    return packet.folder


@pytest.mark.slow
def test_what_loses_requests_on_newer_traffic_is_rolled_back_signed_and_verified(tmp_path: Path) -> None:
    need_two_cores()
    need_onnxruntime()
    study, out = write_inputs(tmp_path, 1, 45, STUDY + KEYS), tmp_path / "packet"
    before = shipped(tmp_path, STUDY + KEYS)
    done = trimtab("run", study, "--running", before, "--out", out)
    assert done.returncode == OK, done.stderr
    assert "Roll back to plan today" in done.stdout
    record = load_record(out)
    verdict, proposal = record.verdict, record.proposal
    assert verdict is not None
    assert proposal is not None
    assert verdict.decision == "rollback"
    assert "guard/quality/all-shapes" in verdict.deciding  # what is rejected has no answer
    assert verdict.sentence.startswith("Roll back to plan today: ")
    assert (
        "failed on what is running. The trigger on goodput of held-out fired in 1 of 1 replays, after 200 requests at "
        "the soonest. On held-out, goodput went from 100 % to 1"
    ) in verdict.sentence
    assert verdict.running is not None
    assert (verdict.running.plan, verdict.running.back_to) == ("wide", "today")
    assert verdict.running.packet == file_digest(before / "manifest.json")
    assert (proposal.move.plan.id, proposal.triggers) == ("wide", (WATCHED,))
    assert (proposal.expected.id, proposal.expected.value) == ("retune.shipped.wide", 1.0)
    assert trimtab("draft", out).returncode == OK
    assert trimtab("verify", out).returncode == OK  # a rollback waits for nobody
    for role in ROLES:
        signed = trimtab("sign", out, "--role", role, "--key", write_key(tmp_path / role, key(role)))
        assert signed.returncode == OK, signed.stderr
    told = json.loads(trimtab("verify", out, "--study", study, "--json").stdout)
    assert (told["problems"], len(told["signatures"]["signed"])) == ([], 3)
    again = json.loads(trimtab("run", study, "--running", before, "--out", out, "--json").stdout)
    assert again["ran"] == []
    gate = compare_packets(out, out)
    assert gate.rows[0].old == pytest.approx(verdict.cells[0].candidate)


@pytest.mark.slow
def test_what_one_replay_cannot_convict_keeps_running(tmp_path: Path) -> None:
    """It serves all, the plan before it one in ten; with one replay an arm there is no floor, so nothing passes."""
    need_two_cores()
    need_onnxruntime()
    study, out = write_inputs(tmp_path, 45, 100, STUDY), tmp_path / "packet"
    done = trimtab("run", study, "--running", shipped(tmp_path, STUDY), "--out", out)
    assert done.returncode == OK, done.stderr
    verdict = load_record(out).verdict
    assert verdict is not None
    assert (verdict.decision, verdict.reason) == ("hold", "inconclusive")
    assert "Plan wide keeps running. No trigger fired. On held-out, goodput went from 1" in verdict.sentence
    assert trimtab("verify", out).returncode == OK


def refused(kind: type[TrimtabError], packet: Path, text: str, out: Path) -> str:
    with pytest.raises(kind) as found:
        running.load(packet, parse_study(text), out)
    return found.value.what


def test_what_cannot_be_judged_as_running_is_refused(tmp_path: Path) -> None:
    ours, out = study_text(), tmp_path / "out"
    packet = sealed(tmp_path / "packet")
    assert running.load(packet, parse_study(ours), out).move.plan.id == "today"
    assert "stays as it is" in refused(UsageError, packet, ours, tmp_path / "packet")
    assert refused(StudyError, packet, ours.replace("bound_ms = 150", "bound_ms = 151"), out) == (
        "what runs is judged by what was promised; the packet's study has another sla"
    )
    remote = replace(parse_study(ours), workload=replace(parse_study(ours).workload, target="kserve-v2://host:1/m"))
    with pytest.raises(UsageError, match="serves no plan of ours"):
        running.load(packet, remote, out)
    held = sealed(tmp_path / "held", decision="hold")
    assert refused(PacketError, held, ours, out) == "this packet ships nothing that could run: its verdict is hold"
    (packet / "verdict.json").write_bytes((packet / "verdict.json").read_bytes() + b" ")
    assert "not what was sealed" in refused(PacketError, packet, ours, out)


def test_another_network_is_not_judged_by_the_promises_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"one")
    model = resolve_model(parse_study(STUDY), tmp_path)
    packet = shipped(tmp_path, STUDY)
    same_network(packet, model)
    with pytest.raises(ModelError, match="not the one that the packet was measured with"):
        same_network(packet, replace(model, sha256="0" * 64))
