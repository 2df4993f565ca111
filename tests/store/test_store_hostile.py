"""A packet from a stranger: nothing outside it is read, nothing in it is run, nothing absurd is swallowed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from signed_kit import NOW, signed
from store_examples import STUDY

from trimtab.domain.packet import Manifest
from trimtab.store.codec import from_json
from trimtab.store.manifest import build_manifest, renew_view
from trimtab.store.verification import examine

Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signed(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "packet"))


def replaced(name: str, make: Callable[[Path], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return spoil


def listing(**entry: object) -> Spoil:
    def spoil(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["files"].append({"path": "x", "sha256": "0" * 64, "bytes": 1} | entry)
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return spoil


def sparse(folder: Path) -> None:
    with (folder / "study.json").open("r+b") as file:
        file.truncate(1 << 40)


CASES: dict[str, tuple[Spoil, str, str]] = {
    "a link for a file": (replaced("study.json", lambda p: p.symlink_to("/etc/passwd")), "study.json", "link"),
    "a link for the manifest": (
        replaced("manifest.json", lambda p: p.symlink_to("/dev/zero")),
        "manifest.json",
        "link",
    ),
    "a link for the other manifest": (
        replaced("manifest-views.json", lambda p: p.symlink_to("/dev/zero")),
        "manifest-views.json",
        "link",
    ),
    "a pipe for a file": (replaced("verdict.json", os.mkfifo), "verdict.json", "irregular"),
    "a pipe for a view": (replaced("report.html", os.mkfifo), "report.html", "irregular"),
    "a pipe for the manifest": (replaced("manifest.json", os.mkfifo), "manifest.json", "manifest"),
    "a pipe that is not listed": (lambda f: os.mkfifo(f / "extra"), "extra", "irregular"),
    "a link that is not listed": (lambda f: (f / "extra").symlink_to("/"), "extra", "link"),
    "a file of a terabyte": (sparse, "study.json", "size"),
    "a list of terabytes": (listing(bytes=1 << 45), "manifest.json", "size"),
    "a path upwards": (listing(path="../secret"), "'../secret'", "escape"),
    "an absolute path": (listing(path="/etc/passwd"), "'/etc/passwd'", "escape"),
    "a manifest without end": (
        lambda f: (f / "manifest.json").write_bytes(b"[" * 2_000_000),
        "manifest.json",
        "manifest",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_before_anything_else_is_read(folder: Path, name: str) -> None:
    spoil, path, kind = CASES[name]
    spoil(folder)
    found = examine(folder, NOW)
    assert (path, kind) in [(problem.path, problem.kind) for problem in found.problems]
    assert found.exit_code == 8


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("verdict.json", b"{}"),
        ("verdict.json", b"[" * 500_000),
        ("study.json", b'{"name": 3}'),
        ("study.toml", b"name = 3"),
        ("study.toml", b"\xff"),
        ("study.toml", STUDY.replace("150", "950").encode()),
        ("choice.json", b"{}"),
        ("diagnosis.json", b'{"classes": 1e999}'),
        ("workload.parquet", b"PAR0" * 10),
        ("traces/today-1/run.json", b"{}"),
        ("validate.json", b'{"stage": "validate", "headline": "x", "figures": [{"id": "a"}]}'),
    ],
)
def test_evidence_that_hashes_well_and_is_not_what_its_name_says(folder: Path, path: str, data: bytes) -> None:
    (folder / path).write_bytes(data)
    build_manifest(folder, "evidence", "0.1")
    found = examine(folder, NOW)
    assert "schema" in {problem.kind for problem in found.problems}
    assert found.exit_code == 8


def test_a_link_for_a_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    for name in ("signatures", "documents", "plans"):
        shutil.move(folder / name, tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
        found = examine(folder, NOW)
        assert "link" in {problem.kind for problem in found.problems}
        assert found.exit_code == 8
        (folder / name).unlink()
        shutil.move(tmp_path / name, folder / name)
    assert examine(folder, NOW).exit_code == 0


def test_names_stay_names(folder: Path) -> None:
    """Markup and control sequences in a name are text, wherever they end up."""
    (folder / "plans" / "<img src=x onerror=alert(1)>.json").write_bytes(b"{}")
    found = examine(folder, NOW)
    assert {problem.kind for problem in found.problems if "img" in problem.path} == {"extra", "schema"}


def test_a_view_that_changed_is_renewed_alone(folder: Path) -> None:
    (folder / "documents" / "runtime.md").write_text("# new\n")
    (folder / "report.html").write_text("<p>other</p>")
    renew_view(folder, "documents/runtime.md")
    manifest = from_json((folder / "manifest-views.json").read_bytes(), Manifest)
    assert [file.path for file in manifest.files] == [
        "documents/compiler.md",
        "documents/observability.md",
        "documents/runtime.md",
        "report.html",
    ]
    assert [problem.path for problem in examine(folder, NOW).problems] == ["report.html", "signatures/runtime.json"]
