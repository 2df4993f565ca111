"""What is done to the machine is undone: in good order, after an error, and after Ctrl-C. Fakes, no processes."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from faults import inject, limiter
from trimtab.errors import MachineError
from trimtab.runtime import neighbour


class FakeProcess:
    """A helper that says ``word``; ``deaf`` = it does not end when it is asked to."""

    def __init__(self, word: str = "on", deaf: bool = False) -> None:
        self.stdout = io.StringIO(word + "\n")
        self.deaf, self.alive = deaf, True

    def send_signal(self, number: int) -> None:
        assert number == signal.SIGTERM
        self.alive = self.deaf

    def wait(self, timeout: float | None = None) -> int:
        if self.alive:
            raise subprocess.TimeoutExpired("helper", timeout or 0)
        return 0

    def kill(self) -> None:
        self.alive = False


def starter(*processes: FakeProcess):  # type: ignore[no-untyped-def]
    """A stand-in for Popen that hands out ``processes`` and notes the command lines."""
    left, asked = list(processes), []

    def start(command: list[str], **_: object) -> FakeProcess:
        asked.append(command)
        return left.pop(0)

    start.asked = asked  # type: ignore[attr-defined]
    return start


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour.time, "sleep", lambda seconds: None)


def test_neighbours_are_started_on_their_core_and_ended() -> None:
    one, two = FakeProcess(), FakeProcess(deaf=True)
    start = starter(one, two)
    with inject.neighbours("spin", 1, "0", 2, start=start) as injected:
        assert injected.words == "2 x spin on core 1"
        assert one.alive
        assert two.alive
    assert not one.alive
    assert not two.alive
    assert start.asked[0][3:7] == ["trimtab.runtime.neighbour", "spin", "1", "0"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_no_neighbour_survives_an_error(error: type[BaseException]) -> None:
    one = FakeProcess()
    with pytest.raises(error), inject.neighbours("stream", 0, "idle", start=starter(one)):
        raise error
    assert not one.alive


def test_a_neighbour_that_does_not_start_takes_the_others_with_it() -> None:
    one, two = FakeProcess(), FakeProcess(word="")
    with (
        pytest.raises(MachineError, match="did not start"),
        inject.neighbours("spin", 1, "0", 2, start=starter(one, two)),
    ):
        pass
    assert not one.alive
    assert not two.alive


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "40000"}),
        (2, {"cpu.max": "40000 100000"}),
    ],
)
def test_the_files_of_a_quota(version: int, files: dict[str, str]) -> None:
    assert inject.quota_files(0.4, version) == files


class FakeGroups:
    """Control group files in a folder: a group's own files vanish with it, as the kernel's do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: int = 0) -> None:
        self.busy, real = busy, Path.rmdir

        def rmdir(folder: Path) -> None:
            if self.busy:
                self.busy -= 1
                raise OSError(16, "Device or resource busy")
            for file in folder.iterdir():
                file.unlink()
            real(folder)

        monkeypatch.setattr(Path, "rmdir", rmdir)


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_the_group_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | None
) -> None:
    FakeGroups(monkeypatch, busy=2)  # the last process takes a moment to be gone
    try:
        with inject.grouped(0.4, tmp_path, 1) as injected:
            (group,) = tmp_path.iterdir()
            assert (group / "cpu.cfs_quota_us").read_text() == "40000"
            assert injected.words == "cgroup v1 quota of 0.4 core for the worker"
            if error is not None:
                raise error
    except (RuntimeError, KeyboardInterrupt):
        pass
    assert list(tmp_path.iterdir()) == []


def test_groups_of_a_killed_run_are_swept_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "trimtab-faults-old").mkdir()
    (tmp_path / "trimtab-faults-used").mkdir()
    (tmp_path / "trimtab-faults-used" / "cgroup.procs").touch()
    (tmp_path / "somebody").mkdir()
    inject.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["somebody", "trimtab-faults-used"]


def test_a_worker_joins_its_group_before_it_loads_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    procs = tmp_path / "cgroup.procs"
    monkeypatch.setattr(inject.backends, "factory", lambda name: lambda: (name, procs.read_text()))
    monkeypatch.setattr(inject.os, "getpid", lambda: 4711)
    assert inject.in_group(str(procs), "null") == ("null", "4711")


def test_without_control_groups_the_words_say_so() -> None:
    process = FakeProcess()
    with inject.duty_cycle(0.4, start=starter(process)) as injected:
        assert injected.words == "duty-cycle limiter at 0.4 core: no control group may be made here"
    assert not process.alive


def test_the_limiter_stops_who_is_listed_and_minds_nobody_who_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        if pid == 12:
            raise ProcessLookupError
        sent.append((pid, number))

    monkeypatch.setattr(limiter.os, "kill", kill)
    for name in ("11", "12", "13"):
        (tmp_path / name).touch()
    limiter.signal_all(tmp_path, signal.SIGSTOP)
    assert sorted(sent) == [(11, signal.SIGSTOP), (13, signal.SIGSTOP)]
