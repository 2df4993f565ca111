"""A packet: what is written can be read back, and whatever is altered afterwards is found."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import STUDY, same_table, trace, workload

from parts import envelope
from trimtab.domain.envelope import EnvelopeCheck
from trimtab.domain.figure import Figure, Findings
from trimtab.domain.profile import CompileFailure, CompileOptions, CompileProfile, Inspection
from trimtab.errors import PacketError
from trimtab.store.packet import Packet, build_manifest, load_record, verify
from trimtab.store.study import parse_study

ENVELOPE = envelope(host="h", cpu_flags=("avx2",), virtualisation="kvm", versions={"null": "1"})
CHECK = EnvelopeCheck(name="cores", assumed="2", probed="2", status="agrees")
PROFILE = CompileProfile(
    plan="today", entry="any", backend="null", versions={}, options=CompileOptions(), compile_ns=1, memory_bytes=2,
    peak_bytes=3, inspection=Inspection(executed=(1, 16), operators=(), operators_before=0), timings=(),
)  # fmt: skip
FAILURE = CompileFailure(entry="wide", kind="unsupported", message="no", plan="today")
FOUND = Findings(
    stage="replay",
    headline="A tail.",
    figures=(Figure(id="p99", value=math.inf, unit="ms", samples=5, scope="tune", artifact="traces"),),
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packet")
    packet = Packet(folder)
    study = parse_study(STUDY)
    packet.write_study(STUDY.encode(), study)
    packet.write_envelope(ENVELOPE, [CHECK])
    packet.write_plan(study.baseline)
    packet.write_profiles("today", [PROFILE, FAILURE])
    packet.write_findings(FOUND)
    packet.write_workload(workload())
    packet.write_trace(trace())
    packet.write_account("today-1", trace().batches)
    (folder / "report.html").write_text("<p>view</p>")
    build_manifest(folder, "evidence", "0.1", created="2030-01-01T00:00:00+00:00")
    build_manifest(folder, "views", "0.1")
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "packet", symlinks=True))


def problems(folder: Path) -> list[tuple[str, str]]:
    return [(problem.path, problem.kind) for problem in verify(folder)]


def test_the_record_holds_all_that_was_written(original: Path) -> None:
    record = load_record(original)
    assert record.study == parse_study(STUDY)
    assert record.envelope == ENVELOPE
    assert record.checks == (CHECK,)
    assert record.plans == (record.study.baseline,)
    assert (record.profiles, record.failures) == ((PROFILE,), (FAILURE,))
    assert record.findings == {"replay": FOUND}
    assert [run.id for run in record.runs] == ["today-1"]
    assert (record.proposal, record.verdict) == (None, None)
    assert record.manifest is not None
    assert Packet(original).read_profiles("today") == (PROFILE, FAILURE)
    assert Packet(original).read_envelope() == (ENVELOPE, (CHECK,))
    assert same_table(Packet(original).read_account("today-1"), trace().batches)


def test_the_manifest_lists_evidence_and_the_other_one_views(original: Path) -> None:
    listed = [file["path"] for file in json.loads((original / "manifest.json").read_text())["files"]]
    assert listed == [
        "accounts/today-1.parquet",
        "envelope.json",
        "plans/today.json",
        "profiles/today.json",
        "replay.json",
        "study.json",
        "study.toml",
        "traces/today-1/batches.parquet",
        "traces/today-1/marks.parquet",
        "traces/today-1/requests.parquet",
        "traces/today-1/run.json",
        "traces/today-1/samples.parquet",
        "workload.parquet",
    ]
    views = json.loads((original / "manifest-views.json").read_text())["files"]
    assert [file["path"] for file in views] == ["report.html"]


def test_an_intact_packet_has_no_problems_wherever_it_lies(folder: Path) -> None:
    assert verify(folder) == []
    assert verify(folder, "views") == []


def test_progress_signatures_and_leftovers_are_not_evidence(folder: Path) -> None:
    for name in (".progress/replay.json", "signatures/ann.json", "plans/today.json.17.part"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    assert verify(folder) == []


def test_missing_altered_and_extra_files_are_found(folder: Path) -> None:
    (folder / "envelope.json").unlink()
    (folder / "study.toml").write_text(STUDY.replace("150", "950"))
    (folder / "traces" / "today-2").mkdir()
    (folder / "traces" / "today-2" / "run.json").write_text("{}")
    assert problems(folder) == [
        ("envelope.json", "missing"),
        ("study.toml", "altered"),
        ("traces/today-2/run.json", "extra"),
    ]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_one_altered_byte_anywhere_is_found(original: Path, data: st.DataObject) -> None:
    files = sorted(p for p in original.rglob("*") if p.is_file() and "manifest" not in p.name and p.suffix != ".html")
    path = data.draw(st.sampled_from(files))
    before = path.read_bytes()
    at = data.draw(st.integers(0, len(before) - 1))
    path.write_bytes(before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :])
    try:
        assert problems(original) == [(path.relative_to(original).as_posix(), "altered")]
    finally:
        path.write_bytes(before)


def test_links_are_reported_and_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes((folder / "study.toml").read_bytes())
    (folder / "study.toml").unlink()
    (folder / "study.toml").symlink_to(secret)
    shutil.move(folder / "plans", tmp_path / "plans")
    (folder / "plans").symlink_to(tmp_path / "plans")
    assert problems(folder) == [("plans/today.json", "link"), ("study.toml", "link"), ("plans", "link")]


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "./study.toml", "a\\..\\b", "", ".", "a\0"]
)
def test_a_path_that_leaves_the_packet_is_not_read(folder: Path, path: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"] = ""  # as written before manifests held their own digest
    manifest["files"].append({"path": path, "sha256": "0" * 64, "bytes": 1})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert [problem.kind for problem in verify(folder)] == ["escape"]


def test_a_path_that_no_system_can_open_is_a_problem(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"] = ""  # as written before manifests held their own digest
    manifest["files"].append({"path": "a" * 5000, "sha256": "0" * 64, "bytes": 1})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert [(problem.kind, problem.text) for problem in verify(folder)] == [
        ("altered", "cannot be read: File name too long")
    ]


def test_a_file_listed_twice_is_a_problem(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"] = ""  # as written before manifests held their own digest
    manifest["files"].append(manifest["files"][0])
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert problems(folder) == [("accounts/today-1.parquet", "manifest")]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"kind": "evidence"}', '{"kind":"views","trimtab":"0","created":"","files":[]}']
)
def test_a_broken_manifest_is_a_problem(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert problems(folder) == [("manifest.json", "manifest")]


def test_a_manifest_of_another_version_is_a_problem(folder: Path) -> None:
    text = (folder / "manifest.json").read_text().replace('"packet_schema": 1', '"packet_schema": 2')
    (folder / "manifest.json").write_text(text)
    assert problems(folder) == [("manifest.json", "manifest")]


def test_a_link_cannot_become_evidence(folder: Path) -> None:
    (folder / "plans" / "other.json").symlink_to(folder / "plans" / "today.json")
    with pytest.raises(PacketError, match="a link or a device cannot be part of a packet"):
        build_manifest(folder, "evidence", "0.1")


def test_a_folder_without_a_study_is_no_packet(tmp_path: Path) -> None:
    with pytest.raises(PacketError, match="there is no packet here"):
        load_record(tmp_path)
    with pytest.raises(PacketError, match="there is no packet here"):
        verify(tmp_path / "none")
