"""Writes happen whole or not at all, and a name from a study never leaves the packet."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.trace import Table
from trimtab.errors import MachineError, PacketError
from trimtab.store._write import is_safe
from trimtab.store.codec import write_table
from trimtab.store.packet import Packet, safe_name, write_bytes


def test_a_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "plans" / "today.json"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "the disk is full"), (errno.EACCES, "no permission"), (errno.EIO, "cannot write")],
)
def test_a_write_that_fails_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, said: str
) -> None:
    path = tmp_path / "verdict.json"
    write_bytes(path, b"before")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, step, fail)
    with pytest.raises(MachineError, match=said) as caught:
        write_bytes(path, b"after")
    assert caught.value.where == str(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_killed_in_mid_write_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "verdict.json"
    write_bytes(path, b"before")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_columns_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    write_table(path, Table({"a": np.arange(3)}))
    before = path.read_bytes()
    monkeypatch.setattr("trimtab.store._parquet._text", lambda text: "'/dev/full'" if "/" in text else f"'{text}'")
    with pytest.raises(MachineError, match="cannot write"):
        write_table(path, Table({"a": np.arange(100_000)}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "~",
    "-\x1b[2J",
    "Ä",
    "A",
    "x" * 97,
    ".hidden",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_everywhere(tmp_path: Path, name: str) -> None:
    packet = Packet(tmp_path)
    for use in (safe_name, packet.path, packet.trace_folder, packet.telemetry_path, packet.read_trace):
        with pytest.raises(PacketError, match="cannot be a file name"):
            use(name)


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii") | st.sampled_from("./\\~\0"), max_size=12))
def test_a_safe_name_is_one_plain_step_down(name: str) -> None:
    if is_safe(name):
        path = Path("/packet") / name
        assert path.parent == Path("/packet")
        assert os.path.normpath(path) == str(path)
        assert name.isprintable()
