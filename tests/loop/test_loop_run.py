"""The whole loop in fresh processes: complete, resumable, loses nothing when killed. Null backend: plumbing only."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from loop_kit import STUDY, need_two_cores, trimtab, write_study

import trimtab as trimtab_package
from trimtab.domain.packet import STAGES
from trimtab.errors import PacketError
from trimtab.store.packet import Packet, load_record, verify

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _two_cores() -> None:
    need_two_cores()


@pytest.fixture(scope="module")
def packet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    done = trimtab("run", write_study(folder), "--out", folder / "packet")
    assert done.returncode == 0, done.stderr
    assert "report:" in done.stdout
    return folder / "packet"


def test_a_run_leaves_a_complete_packet_whose_hashes_verify(packet: Path) -> None:
    record = load_record(packet)
    assert [stage for stage in STAGES if stage in record.findings] == list(STAGES[:-2])
    assert record.verdict is not None
    assert record.verdict.decision != "ship"
    assert "This proves plumbing only: the null backend computes no network." in record.verdict.sentence
    assert record.proposal is not None
    assert verify(packet) == []
    assert (packet / "report.html").stat().st_size > 100_000
    assert trimtab("verify", packet).returncode == 0


def test_every_request_ended_once_and_latency_counts_from_the_schedule(packet: Path) -> None:
    trace = Packet(packet).read_trace("tune-today-1")
    assert trace.run.source == "measured"
    assert (trace.requests["error"] == 0).all()
    assert (trace.requests["done"] >= trace.requests["scheduled"]).all()


def test_a_second_run_repeats_nothing(packet: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (packet / "traces").rglob("*.parquet")}
    again = trimtab("run", packet.parent / "study.toml", "--out", packet, "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert (told["ran"], told["reused"]) == ([], list(STAGES))
    assert {path: path.stat().st_mtime_ns for path in (packet / "traces").rglob("*.parquet")} == before


def test_what_an_earlier_study_left_is_set_aside_and_not_lost(tmp_path: Path) -> None:
    study, out = write_study(tmp_path, STUDY.replace("buckets = [2]", "buckets = [3]")), tmp_path / "packet"
    assert trimtab("compile", study, "--out", out).returncode == 0
    assert (out / "plans" / "refit-3.json").is_file()
    done = trimtab("run", write_study(tmp_path), "--out", out)
    assert done.returncode == 0, done.stderr
    assert not (out / "plans" / "refit-3.json").exists()
    assert (out / ".progress" / "stale" / "plans" / "refit-3.json").is_file()
    assert verify(out) == []


def test_one_altered_byte_is_found(packet: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", packet, copy], check=True)
    victim = copy / "verdict.json"
    victim.write_bytes(victim.read_bytes().replace(b"h", b"H", 1))
    told = trimtab("verify", copy)
    assert told.returncode == 8
    assert "verdict.json" in told.stdout


def test_a_verb_prints_its_stage_for_people_and_as_json(packet: Path) -> None:
    study = packet.parent / "study.toml"
    people = trimtab("score", study, "--out", packet)
    assert people.returncode == 0
    assert "score.mapping_accuracy" in people.stdout
    told = json.loads(trimtab("attribute", study, "--out", packet, "--json").stdout)
    assert list(told["findings"]) == ["attribute"]


BROKEN = """
[[candidates]]
id = "broken"

[candidates.compile]
backend = "null"
entries = [{ id = "any", kind = "dynamic", lo = [1], hi = [100], batch = [1, 4] }]
fallback = "any"
options = { fail_compile = "no kernel for this shape" }
"""


def test_a_candidate_that_does_not_compile_keeps_the_compilers_words(tmp_path: Path) -> None:
    told = trimtab("retune", write_study(tmp_path, STUDY + BROKEN), "--out", tmp_path / "packet", "--json")
    assert told.returncode == 0, told.stderr
    series = json.loads(told.stdout)["findings"]["retune"]["series"]
    table = next(each["columns"] for each in series if each["id"] == "retune.candidates")
    reasons = dict(zip(table["plan"], table["reason"], strict=True))
    assert reasons["broken"] == "entry any does not compile (compiler-error): no kernel for this shape"


def test_killed_at_three_random_moments_and_started_again_ends_complete(tmp_path: Path) -> None:
    study, out = write_study(tmp_path), tmp_path / "packet"
    moments = random.Random(11)
    for _ in range(3):
        run = subprocess.Popen(
            [sys.executable, "-m", "trimtab", "run", str(study), "--out", str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(2.0, 9.0))
        run.send_signal(signal.SIGKILL)
        run.wait()
    done = trimtab("run", study, "--out", out)
    assert done.returncode == 0, done.stderr
    record = load_record(out)
    assert record.verdict is not None
    assert verify(out) == []
    assert not list((out / ".progress").glob("*.rows")), "telemetry of a killed run was left unused"


def test_an_interrupt_keeps_the_trace_so_far(tmp_path: Path) -> None:
    study = write_study(tmp_path, STUDY.replace("replay_s = 1.2", "replay_s = 2.0"))
    out = tmp_path / "packet"
    run = subprocess.Popen(
        [sys.executable, "-m", "trimtab", "run", str(study), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not any(log.stat().st_size for log in out.glob(".progress/*.rows")):
        assert run.poll() is None, "the run ended before a replay had logged anything"
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    assert run.wait() == 130
    cut = [path for path in (out / "traces").iterdir() if ".cut" in path.name]
    assert len(cut) == 1
    trace = Packet(out).read_trace(cut[0].name)
    assert not trace.run.complete
    assert (trace.requests["error"] == 0).any()


def test_a_program_reads_figures_columns_and_relations_and_analyses_again(packet: Path) -> None:
    opened = trimtab_package.open_packet(packet)
    assert opened.problems() == []
    run = "tune-today-1"
    trace = opened.trace(run)
    asked = opened.relation(f"requests/{run}").aggregate("count(*), max(done - scheduled)").fetchall()
    longest = int((trace.requests["done"] - trace.requests["scheduled"]).max())
    assert asked == [(len(trace.requests), longest)]
    assert "workload" in opened.tables
    again = opened.analyse(run)
    whole = again.tail.figure("tail.p95.total")
    assert whole is not None
    assert whole.value is not None
    assert len(again.account.requests) == len(trace.requests)
    stored = next(name.removeprefix("accounts/") for name in opened.tables if name.startswith("accounts/"))
    worked_out = opened.analyse(stored)
    assert worked_out.tail.figure("tail.p95.total") == opened.figures["tail.p95.total"]
    assert opened.account(stored)["latency"].tolist() == worked_out.account.requests["latency"].tolist()
    assert opened.series["tail.p95.waterfall"].columns["cause"]


def test_what_is_not_in_a_packet_is_refused_with_what_is(packet: Path) -> None:
    opened = trimtab_package.open_packet(packet)
    for ask in (lambda: opened.trace("nobody"), lambda: opened.relation("nothing"), lambda: opened.analyse("nobody")):
        with pytest.raises(PacketError) as refused:
            ask()
        assert "tune-today-1" in refused.value.fix
