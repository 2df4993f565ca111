"""The row log: whatever kills the process, whole rows come back, and only a torn end is lost."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import MachineError, PacketError
from trimtab.store.telemetry import TelemetrySink, recover

ROWS = [(1, 2**62, -1, 0.5, "entry", True), (2, 0, -1, float("inf"), "", False)]


def test_rows_come_back_in_the_order_they_were_logged(tmp_path: Path) -> None:
    with TelemetrySink(tmp_path / "run.rows") as sink:
        sink.extend(ROWS)
        sink.append(("marks", 9, None))
        sink.extend([])
    assert recover(tmp_path / "run.rows") == ([*ROWS, ("marks", 9, None)], 0)


def test_rows_are_there_before_the_log_is_closed(tmp_path: Path) -> None:
    sink = TelemetrySink(tmp_path / "run.rows")
    sink.extend(ROWS)
    assert recover(tmp_path / "run.rows").rows == ROWS
    sink.close()
    sink.close()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 200))
def test_a_log_cut_anywhere_keeps_every_whole_frame(tmp_path_factory: pytest.TempPathFactory, keep: int) -> None:
    path = tmp_path_factory.mktemp("log") / "run.rows"
    ends = [0]
    with TelemetrySink(path) as sink:
        for number in range(6):
            sink.append((number, "x" * number))
            ends.append(path.stat().st_size)
    cut = path.read_bytes()[:keep]
    path.write_bytes(cut)
    whole = max(k for k, end in enumerate(ends) if end <= len(cut))
    found = recover(path)
    assert found.rows == [(n, "x" * n) for n in range(whole)]
    assert found.torn_bytes == len(cut) - ends[whole]


def test_an_altered_frame_ends_the_log(tmp_path: Path) -> None:
    path = tmp_path / "run.rows"
    with TelemetrySink(path) as sink:
        sink.append((1,))
        first = path.stat().st_size
        sink.append((2,))
        sink.append((3,))
    data = bytearray(path.read_bytes())
    data[first + 9] ^= 1
    path.write_bytes(data)
    assert recover(path) == ([(1,)], len(data) - first)


@pytest.mark.parametrize("tail", [b"\0" * 64, b"\xff" * 64, b"\x01\0\0\0\0\0\0\0\x90"])
def test_garbage_after_the_last_row_is_left_out(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "run.rows"
    with TelemetrySink(path) as sink:
        sink.extend(ROWS)
    path.write_bytes(path.read_bytes() + tail)
    assert recover(path) == (ROWS, len(tail))


def test_a_killed_process_leaves_all_that_it_logged(tmp_path: Path) -> None:
    path = tmp_path / "run.rows"
    code = (
        "import sys, os, signal; from pathlib import Path; from trimtab.store.telemetry import TelemetrySink\n"
        "sink = TelemetrySink(Path(sys.argv[1]))\n"
        "for n in range(100): sink.append((n,))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert recover(path).rows == [(n,) for n in range(100)]


def test_a_full_disk_is_told_and_what_was_logged_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.rows"
    sink = TelemetrySink(path)
    sink.extend(ROWS)

    class Full:
        """Takes half of a frame, then has no space."""

        closed = False

        def __init__(self, file) -> None:
            self.file = file
            self.writes = 0

        def write(self, data: bytes) -> int:
            self.writes += 1
            if self.writes > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(bytes(data[: len(data) // 2]))

        def close(self) -> None:
            self.closed = True
            self.file.close()

    monkeypatch.setattr(sink, "_file", Full(sink._file))
    with pytest.raises(MachineError, match="disk is full"):
        sink.append((3,))
    found = recover(path)
    assert found.rows == ROWS
    assert found.torn_bytes > 0


def test_no_log_is_a_packet_error(tmp_path: Path) -> None:
    with pytest.raises(PacketError, match="cannot read the telemetry"):
        recover(tmp_path / "none.rows")
