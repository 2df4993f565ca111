"""Drafts, signatures and reports of a packet, from the command line as an owner uses it. Nothing is measured here."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from signed_kit import key, sealed, study_text, write_key

from trimtab.cli.app import main
from trimtab.domain.verdict import ROLES
from trimtab.store.packet import build_manifest, verify

OK, USAGE, PACKET, SIGNATURE, SIGN_OFF, DOCUMENT = 0, 2, 8, 10, 11, 12


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed(tmp_path_factory.mktemp("sealed"))


@pytest.fixture
def packet(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "packet"))


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    return {role: str(write_key(tmp_path / role, key(f"{role}-person"))) for role in ROLES}


def sign_all(packet: Path, keys: dict[str, str]) -> None:
    for role in ROLES:
        assert main(["sign", str(packet), "--role", role, "--key", keys[role]]) == OK


def test_three_owners_sign_and_anybody_verifies(
    packet: Path, keys: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(packet)]) == SIGN_OFF
    assert "nobody has signed" in capsys.readouterr().out
    sign_all(packet, keys)
    assert main(["verify", str(packet)]) == OK
    out = capsys.readouterr().out
    assert "signed by the runtime lead (runtime-person)" in out
    assert "the keys are those of the packet's own study" in out
    assert main(["verify", str(packet), "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert (told["intact"], told["problems"]) == (True, [])
    assert [one["role"] for one in told["signatures"]["signed"]] == ["compiler", "observability", "runtime"]


def test_the_keys_of_a_study_of_ones_own_count_more(packet: Path, keys: dict[str, str], tmp_path: Path) -> None:
    sign_all(packet, keys)
    (tmp_path / "ours.toml").write_text(study_text())
    (tmp_path / "theirs.toml").write_text(study_text({role: f"{role}-other" for role in ROLES}))
    assert main(["verify", str(packet), "--study", str(tmp_path / "ours.toml")]) == OK
    assert main(["verify", str(packet), "--study", str(tmp_path / "theirs.toml")]) == SIGNATURE


def test_a_locked_key_takes_its_passphrase_from_the_environment(
    packet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locked = str(write_key(tmp_path / "locked", key("runtime-person"), b"open sesame"))
    asked = ["sign", str(packet), "--role", "runtime", "--key", locked]
    monkeypatch.delenv("TRIMTAB_PASSPHRASE", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(asked) == USAGE
    monkeypatch.setenv("TRIMTAB_PASSPHRASE", "open barley")
    assert main(asked) == SIGNATURE
    said = "".join(capsys.readouterr())
    assert "the passphrase does not open this private key" in said
    assert "open barley" not in said
    monkeypatch.setenv("TRIMTAB_PASSPHRASE", "open sesame")
    assert main(asked) == OK


def test_what_may_not_be_signed(packet: Path, keys: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sign", str(packet), "--role", "compiler", "--key", keys["compiler"]]
    document = packet / "documents" / "compiler.md"
    text = document.read_text()
    document.write_text(text.replace("76.6", "99.9"))
    assert main(asked) == DOCUMENT
    assert "line 3: validate.primary is" in capsys.readouterr().err
    document.unlink()
    assert main(asked) == DOCUMENT
    assert "trimtab draft" in capsys.readouterr().err
    document.write_text(text)
    (packet / "report.html").write_text("<p>nicer</p>")
    assert main(asked) == PACKET
    build_manifest(packet, "views", "0.1")
    (packet / "verdict.json").write_bytes((packet / "verdict.json").read_bytes() + b" ")
    assert main(asked) == PACKET
    assert not (packet / "signatures").exists()


def test_an_owner_signs_the_document_as_edited(packet: Path, keys: dict[str, str]) -> None:
    document = packet / "documents" / "compiler.md"
    document.write_text(document.read_text() + "\nWe accept 5 %<!-- own --> more memory for it.\n")
    assert [problem.path for problem in verify(packet, "views")] == ["documents/compiler.md"]
    assert main(["sign", str(packet), "--role", "compiler", "--key", keys["compiler"]]) == OK
    assert verify(packet, "views") == []


def test_a_dissent_has_a_reason_and_a_signature(
    packet: Path, keys: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign = ["sign", str(packet), "--key", keys["runtime"], "--role", "runtime"]
    assert main([*sign, "--dissent", "p99 is\nthin"]) == USAGE
    assert main([*sign, "--dissent", "p99 is thin", "--expires", "soon"]) == USAGE
    assert main([*sign, "--dissent", "p99 is thin", "--expires", "12h"]) == OK
    assert main(["verify", str(packet)]) == SIGN_OFF
    assert "the runtime lead signed against it: p99 is thin" in capsys.readouterr().out


def test_drafts_never_replace_an_owners_text(packet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = packet / "documents" / "runtime.md"
    mine.write_text("# Mine\n\nIt falls by {{validate.primary}}.\n")
    (packet / "documents" / "compiler.md").unlink()
    kept = (packet / "documents" / "observability.md").read_bytes()
    assert main(["draft", str(packet), "--json"]) == OK
    assert json.loads(capsys.readouterr().out) == {
        "documents/compiler.md": "written",
        "documents/runtime.md": "filled in",
        "documents/observability.md": "kept",
    }
    assert mine.read_text() == "# Mine\n\nIt falls by −76.6 % [−84.8, −67.3]<!-- validate.primary -->.\n"
    assert (packet / "documents" / "observability.md").read_bytes() == kept
    assert verify(packet, "views") == []
    assert main(["verify", str(packet)]) == SIGN_OFF


def test_a_document_that_says_something_else_has_an_exit_code_of_its_own(
    packet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (packet / "documents" / "runtime.md").write_text("p95 falls by 80 %.\n")
    build_manifest(packet, "views", "0.1")
    assert main(["verify", str(packet)]) == DOCUMENT
    assert "documents/runtime.md: line 1: 80 % is not quoted" in capsys.readouterr().out


def test_a_report_says_first_that_its_packet_was_altered(packet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(packet)]) == OK
    assert 'class="warning"' not in (packet / "report.html").read_text()
    capsys.readouterr()
    told = packet / "verdict.json"
    told.write_text(told.read_text().replace("Ship: warm 8", "Ship: warm 9"))
    assert main(["report", str(packet)]) == PACKET
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("! This packet is not what was sealed: verdict.json: was altered")
    page = (packet / "report.html").read_text()
    assert page.index('class="warning"') < page.index("<h1")


def test_a_report_without_a_manifest_says_that_nothing_can_be_checked(
    packet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (packet / "manifest.json").unlink()
    assert main(["report", str(packet)]) == PACKET
    assert "has a verdict and no manifest.json" in capsys.readouterr().out


def test_a_report_shows_nothing_of_a_packet_with_links(packet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (packet / "study.json").unlink()
    (packet / "study.json").symlink_to("/etc/hostname")
    before = (packet / "report.html").read_bytes()
    assert main(["report", str(packet)]) == PACKET
    assert "this packet is not shown: study.json: is a link" in capsys.readouterr().err
    assert (packet / "report.html").read_bytes() == before


def test_a_report_names_who_signed_and_drops_what_does_not_hold(
    packet: Path, keys: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    sign_all(packet, keys)
    assert main(["report", str(packet)]) == OK
    page = (packet / "report.html").read_text()
    assert "Signed by the compiler lead, observability engineer and runtime lead." in page
    assert "Ship, once the" not in page
    capsys.readouterr()
    document = packet / "documents" / "runtime.md"
    document.write_text(document.read_text() + "more\n")
    assert main(["report", str(packet)]) == PACKET
    out = capsys.readouterr().out
    assert (
        "A signature does not hold: signatures/runtime.json: documents/runtime.md was edited after it was signed" in out
    )
    assert "Ship, once the runtime lead signs." in out


def test_code_that_a_packet_names_runs_only_if_it_is_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        study_text()
        .replace('path = "net.onnx"', 'torch = "net.py:make"')
        .replace('backend = "null"', 'backend = "torch"')
    )
    packet = sealed(tmp_path / "packet", text)
    asked = ["reproduce", str(packet), "--inputs", str(tmp_path), "--out", str(tmp_path / "again")]
    assert main(asked) == USAGE
    assert "would run code that its study names: net.py:make" in capsys.readouterr().err
    assert main([*asked, "--trust"]) == PACKET
    assert "no complete replays to compare with" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_a_study_that_is_not_what_its_text_says_is_not_run(packet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = packet / "study.toml"
    told.write_text(told.read_text().replace("bound_ms = 150", "bound_ms = 151"))
    build_manifest(packet, "evidence", "0.1")
    assert main(["reproduce", str(packet)]) == PACKET
    assert "study.json is not what study.toml says" in capsys.readouterr().err
