"""Readers that leave early, terminals without our signs, disks that are full: an exit code, and never a traceback."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from trimtab.cli.streams import NOBODY_READS

TRIMTAB = [sys.executable, "-m", "trimtab"]
ROWS = "".join(f"{k / 10},{100 + k % 7}\n" for k in range(300))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "größe 1.csv"
    path.write_text(f"start_s,shape.width\n{ROWS}")
    return path


def into_nothing(*arguments: str, stream: str) -> tuple[int, str]:
    """The exit code of a command whose ``stream`` nobody reads any more, and what it said on the other one."""
    read, write = os.pipe()
    os.close(read)
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    try:
        done = subprocess.run([*TRIMTAB, *arguments], **{stream: write, other: subprocess.PIPE}, check=False)
    finally:
        os.close(write)
    return done.returncode, getattr(done, other).decode()


@pytest.mark.parametrize("verb", [["schema"], ["workload", "{table}"], ["workload", "{table}", "--json"]])
def test_a_reader_that_has_had_enough_ends_the_command_quietly(verb: list[str], table: Path) -> None:
    assert into_nothing(*(word.format(table=table) for word in verb), stream="stdout") == (NOBODY_READS, "")


def test_the_same_where_errors_are_not_read() -> None:
    assert into_nothing("workload", "nothing.csv", stream="stderr") == (NOBODY_READS, "")


@pytest.mark.parametrize("verb", [["schema"], ["workload", "{table}"]])
def test_a_full_disk_behind_standard_output_is_told(verb: list[str], table: Path) -> None:
    with Path("/dev/full").open("w") as full:
        arguments = [word.format(table=table) for word in verb]
        done = subprocess.run([*TRIMTAB, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 7
    assert done.stderr.startswith("error: No space left on device")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_without_our_signs_gets_the_nearest(encoding: str, table: Path) -> None:
    env = os.environ | {"PYTHONIOENCODING": encoding, "NO_COLOR": "1"}
    done = subprocess.run([*TRIMTAB, "workload", str(table)], capture_output=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode(encoding)
    assert "arrivals" in said
    assert "####" in said, "bars are still bars"
    missing = subprocess.run([*TRIMTAB, "workload", "où−.csv"], capture_output=True, env=env, check=False)
    assert missing.returncode == 4
    assert "-.csv" in missing.stderr.decode(encoding), "a minus stays one"


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}])
def test_a_locale_without_a_language_still_reads_any_path(locale: dict[str, str], table: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    done = subprocess.run(
        [*TRIMTAB, "workload", str(table), "--json"], capture_output=True, env=env | locale, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "größe 1.csv" in done.stdout.decode()


@pytest.mark.parametrize("columns", ["40", "60"])
def test_a_narrow_terminal_loses_no_figure(columns: str, table: Path) -> None:
    env = os.environ | {"COLUMNS": columns, "NO_COLOR": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm"}
    done = subprocess.run([*TRIMTAB, "workload", str(table)], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "300 requests" in " ".join(done.stdout.split())
    assert "…" not in done.stdout
    assert not re.search(r"\x1b\[(\d+;)*(3[0-8]|9[0-7])[;m]", done.stdout), "no colour was asked for"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_were_closed_before_it_began_change_no_exit_code(closed: str, table: Path) -> None:
    command = " ".join(map(shlex.quote, [*TRIMTAB, "workload"]))
    for path, code in ((str(table), 0), ("nothing.csv", 4)):
        done = subprocess.run(f"{command} {shlex.quote(path)} {closed}", shell=True, capture_output=True, check=False)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr
