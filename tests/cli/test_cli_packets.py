"""``trimtab report`` on packets that cannot be written to, were cut short, or come from another version."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from signed_kit import signed

from trimtab.cli.app import main
from trimtab.errors import MachineError
from trimtab.loop.verbs import reporting
from trimtab.store.manifest import build_manifest


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signed(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def packet(original: Path, tmp_path: Path) -> Path:
    """Without its signatures: those are of another day."""
    return Path(shutil.copytree(original, tmp_path / "packet", ignore=shutil.ignore_patterns("signatures")))


def test_a_packet_that_nobody_may_write_to_is_shown_first(
    packet: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, *_: object) -> None:
        raise MachineError("no permission to write here", where=str(path), fix="choose another folder with --out")

    monkeypatch.setattr(reporting, "write_bytes", refused)
    assert main(["report", str(packet)]) == 7
    shown = capfd.readouterr()
    assert "Envelope" in shown.out
    assert "copy the packet to where you may write" in shown.err
    assert main(["report", str(packet), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["study"]["name"]


def cut_short(packet: Path) -> None:
    path = packet / "verdict.json"
    path.write_bytes(path.read_bytes()[:40])


def of_another_version(packet: Path) -> None:
    """Sealed as it is: nothing was altered, this version only does not know the schema."""
    path = packet / "study.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 0'))
    build_manifest(packet, "evidence", "0.0.9")


@pytest.mark.parametrize(
    ("spoil", "what", "fix"),
    [
        (cut_short, "this packet is not what was sealed: not a valid Verdict", "`trimtab verify` lists everything"),
        (of_another_version, "error: not a valid Study: Invalid enum value 0", "with the version that wrote it"),
    ],
)
def test_a_packet_that_cannot_be_read_says_whether_it_was_altered_or_is_of_another_version(
    spoil: Callable[[Path], None], what: str, fix: str, packet: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(packet)
    assert main(["report", str(packet)]) == 8
    told = " ".join(capfd.readouterr().err.split())
    assert what in told
    assert fix in told
