"""A release from end to end in fresh processes: run, draft, sign, verify, reproduce, compare. Null backend:
plumbing."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from loop_kit import STUDY, need_two_cores, trimtab, write_study
from signed_kit import key, public, write_key

from trimtab.domain.envelope import Envelope
from trimtab.domain.packet import Manifest
from trimtab.domain.verdict import ROLES
from trimtab.loop.verbs.comparing import replays_of
from trimtab.store.codec import read_json, write_json
from trimtab.store.packet import Packet, build_manifest, load_record

pytestmark = pytest.mark.slow

OWNED = STUDY.replace("replays = 2", "replays = 3") + "\n".join(
    ["", "[signoff.keys]", *(f'{role} = "{public(key(role))}"' for role in ROLES), ""]
)
OK, USAGE, MODEL, PACKET = 0, 2, 5, 8
DIFFER, NOT_DECIDED = 1, 2


@pytest.fixture(autouse=True)
def _two_cores() -> None:
    need_two_cores()


@pytest.fixture(scope="module")
def packet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    done = trimtab("run", write_study(folder, OWNED), "--out", folder / "packet")
    assert done.returncode == OK, done.stderr
    return folder / "packet"


@pytest.fixture
def copy(packet: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packet, tmp_path / "copy"))


def test_a_release_is_drafted_signed_and_verified(copy: Path, tmp_path: Path) -> None:
    assert trimtab("draft", copy).returncode == OK
    assert trimtab("verify", copy).returncode == OK  # a hold needs nobody
    for role in ROLES:
        signed = trimtab("sign", copy, "--role", role, "--key", write_key(tmp_path / role, key(role)))
        assert signed.returncode == OK, signed.stderr
    done = trimtab("verify", copy, "--study", copy / "study.toml")
    assert done.returncode == OK, done.stdout


def test_naming_keys_after_a_run_makes_only_the_decision_anew(packet: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(packet.parent, tmp_path / "all"))
    study = folder / "study.toml"
    study.write_text(OWNED.replace(public(key("runtime")), public(key("another"))))
    told = json.loads(trimtab("run", study, "--out", folder / "packet", "--json").stdout)
    assert told["ran"] == ["decide", "packet", "report"]


def test_it_comes_out_again_on_the_same_machine(packet: Path, tmp_path: Path) -> None:
    arguments = ("reproduce", packet, "--inputs", packet.parent, "--out", tmp_path / "again")
    done = trimtab(*arguments, "--json")
    told = json.loads(done.stdout)
    assert done.returncode in (OK, DIFFER, NOT_DECIDED)
    assert done.returncode == {"agree": OK, "differ": DIFFER, "inconclusive": NOT_DECIDED}[told["outcome"]]
    assert told["forbids"] == []
    assert told["rows"][0]["figure"] == "p95 of plan today"
    assert told["rows"][0]["ratio"] > 0
    runs = sorted(path.name for path in (tmp_path / "again" / "traces").iterdir())
    assert [name for name in runs if "today" in name] == ["again-today-1", "again-today-2", "again-today-3"]
    original = replays_of(packet, load_record(packet), "today")[0]
    again = Packet(tmp_path / "again").read_trace("again-today-1")
    assert (original.requests["scheduled"] == again.requests["scheduled"]).all()
    assert original.run.workload_sha256 == again.run.workload_sha256
    assert trimtab(*arguments).returncode == USAGE


def altered_machine(folder: Path, **changes: object) -> None:
    """The packet as if it had been measured on another machine, sealed anew."""
    envelope, checks = Packet(folder).read_envelope()
    fields = {name: getattr(envelope, name) for name in Envelope.__struct_fields__}
    Packet(folder).write_envelope(Envelope(**(fields | changes)), checks)
    build_manifest(folder, "evidence", "0.1")


def test_another_core_count_is_not_comparable_and_nothing_is_run(copy: Path, tmp_path: Path) -> None:
    altered_machine(copy, cores_allowed=tuple(range(64)))
    done = trimtab("reproduce", copy, "--inputs", tmp_path, "--out", tmp_path / "again")
    assert done.returncode == NOT_DECIDED
    assert "not comparable" in done.stdout
    assert "cores that may be used: 64 then" in done.stdout
    assert not (tmp_path / "again").exists()


def test_another_thread_count_is_not_comparable(copy: Path, tmp_path: Path) -> None:
    path = copy / "plans" / "today.json"
    path.write_text(path.read_text().replace('"threads": 1', '"threads": 2'))
    build_manifest(copy, "evidence", "0.1")
    done = trimtab("reproduce", copy, "--inputs", tmp_path, "--out", tmp_path / "again")
    assert done.returncode == NOT_DECIDED
    assert "threads of plan today: 2 then, 1 now" in done.stdout


def test_another_network_is_refused(packet: Path, tmp_path: Path) -> None:
    (tmp_path / "network.bin").write_bytes(b"another network")
    done = trimtab("reproduce", packet, "--inputs", tmp_path, "--out", tmp_path / "again")
    assert done.returncode == MODEL
    assert "not the one that the packet was measured with" in done.stderr


def test_an_altered_packet_is_neither_repeated_nor_compared(copy: Path, packet: Path) -> None:
    (copy / "proposal.json").write_bytes((copy / "proposal.json").read_bytes() + b"\n")
    assert trimtab("reproduce", copy).returncode == PACKET
    assert trimtab("compare", packet, copy, "--gate").returncode == PACKET


def test_the_gate_compares_two_packets_from_their_traces(packet: Path, copy: Path) -> None:
    done = trimtab("compare", packet, copy, "--gate")
    assert done.returncode in (OK, NOT_DECIDED)
    assert done.stdout.startswith("### trimtab gate: ")
    assert "| p95 (primary) |" in done.stdout
    assert len(done.stdout.splitlines()) < 30
    told = json.loads(trimtab("compare", packet, copy, "--json").stdout)
    assert [row["change"] for row in told["rows"]] == [0.0] * len(told["rows"])
    altered_machine(copy, quota_cores=0.5)
    done = trimtab("compare", packet, copy, "--gate")
    assert done.returncode == NOT_DECIDED
    assert "quota in cores" in done.stdout
    assert trimtab("compare", packet, copy).returncode == OK


def test_every_manifest_holds_its_own_digest(packet: Path) -> None:
    for name in ("manifest.json", "manifest-views.json"):
        manifest = read_json(packet / name, Manifest)
        assert len(manifest.sha256) == 64
        assert write_json(packet / name, manifest).read_bytes() == (packet / name).read_bytes()
