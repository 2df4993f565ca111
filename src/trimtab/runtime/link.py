"""The driver's end of its workers: start, send, wait for replies, notice death, stop.

``Crew`` is what the driver sees; the tests put workers without processes behind the same methods. A worker that is gone
is reported as ``Gone`` among the replies, once. ``wait`` uses select (microsecond timeouts) and spins over the last
stretch before its deadline, because a wake-up from an idle core comes some 50 to 100 us late.
"""

from __future__ import annotations

import contextlib
import pickle
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import IO, NamedTuple, Protocol

from trimtab import child
from trimtab.domain.events import ErrorKind
from trimtab.domain.noun import Ns
from trimtab.errors import MachineError, UsageError
from trimtab.runtime import launch, starved, wire
from trimtab.runtime.worker import Job

SPIN: Ns = 150_000
"""How long before a deadline sleeping gives way to spinning, ns."""
NAP: Ns = 100_000_000
"""The longest sleep, so that Ctrl-C and a busy caller are never kept waiting."""
STOP_S = 2.0
"""How long a worker may take to stop by itself before it is killed."""


class Gone(NamedTuple):
    """A worker's process has ended without being told to. ``message`` says how, with its last words."""

    error: ErrorKind
    message: str


class Crew(Protocol):
    """Workers by number. All times are monotonic ns of one clock."""

    def now(self) -> Ns: ...

    def start(self, worker: int) -> None:
        """Start a fresh process for ``worker``; it says Hello when it is there."""
        ...

    def send(self, worker: int, order: wire.Order) -> None: ...

    def wait(self, until: Ns) -> list[tuple[int, wire.Reply | Gone]]:
        """Replies, as soon as there are any; else nothing, at ``until`` or earlier (then ask again)."""
        ...

    def kill(self, worker: int, error: ErrorKind) -> Gone:
        """End a worker that does not answer; it will not be reported again."""
        ...

    def stop(self) -> None:
        """Stop all; none is left when this returns."""
        ...


class _Link(NamedTuple):
    process: subprocess.Popen[bytes]
    pipe: Connection
    words: IO[bytes]  # its standard error
    kills: starved.Kills  # counted when it started


class ProcessCrew:
    """Workers as pinned processes. ``cores[w]`` lists the cores of worker ``w``."""

    def __init__(self, job: Job, cores: Sequence[tuple[int, ...]], threads: int) -> None:
        self._job = _portable(job)
        self._cores = tuple(cores)
        self._threads = threads
        self._links: dict[int, _Link] = {}
        self._by_fd: dict[int, int] = {}

    def now(self) -> Ns:
        return time.monotonic_ns()

    @property
    def pids(self) -> dict[int, int]:
        """Process id by worker, of those that live."""
        return {worker: link.process.pid for worker, link in self._links.items()}

    def start(self, worker: int) -> None:
        ours, theirs = socket.socketpair()
        words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the worker
        try:
            process = subprocess.Popen(
                launch.command(theirs.fileno(), self._cores[worker]),
                env=launch.environment(self._threads),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                process_group=0,
            )
        except OSError as error:
            ours.close()
            words.close()
            raise MachineError(
                f"a worker process cannot be started: {error.strerror}",
                where=f"worker {worker}",
                fix="check the limits on processes and memory (ulimit -u, free -h)",
            ) from error
        finally:
            theirs.close()
        link = _Link(process, Connection(ours.detach()), words, starved.kills())
        self._links[worker] = link
        self._by_fd[link.pipe.fileno()] = worker
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            link.pipe.send_bytes(self._job)

    def send(self, worker: int, order: wire.Order) -> None:
        link = self._links.get(worker)
        if link is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end is reported by the next wait
                link.pipe.send_bytes(wire.encode(order))

    def wait(self, until: Ns) -> list[tuple[int, wire.Reply | Gone]]:
        fds = list(self._by_fd)
        while True:
            left = until - time.monotonic_ns()
            nap = min(left - SPIN, NAP) / 1e9 if left > SPIN else 0.0
            ready, _, _ = select.select(fds, (), (), nap)
            if ready:
                return [(self._by_fd[fd], self._receive(self._by_fd[fd])) for fd in ready]
            if nap or left <= 0:
                return []

    def kill(self, worker: int, error: ErrorKind) -> Gone:
        link = self._links[worker]
        link.process.kill()
        return self._bury(worker, error)

    def stop(self) -> None:
        for link in self._links.values():
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                link.pipe.send_bytes(wire.encode(wire.Stop()))
            link.pipe.close()
        deadline = time.monotonic() + STOP_S
        for link in self._links.values():
            try:
                link.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                link.process.kill()
                link.process.wait()
            link.words.close()
        self._links.clear()
        self._by_fd.clear()

    def _receive(self, worker: int) -> wire.Reply | Gone:
        try:
            return wire.decode_reply(self._links[worker].pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            return self._bury(worker, "crash")

    def _bury(self, worker: int, error: ErrorKind) -> Gone:
        """Collect a process whose pipe has ended (or that was killed) and say how it went."""
        link = self._links.pop(worker)
        del self._by_fd[link.pipe.fileno()]
        link.pipe.close()
        try:
            code = link.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            link.process.kill()
            code = link.process.wait()
        last = child.last_words(link.words)
        link.words.close()
        why = starved.cause(code, last, link.kills, starved.kills()) if error == "crash" else ""
        return Gone("out-of-memory", why + last) if why else Gone(error, _ending(error, code) + last)


def _portable(job: Job) -> bytes:
    """The job, pickled. A worker does not import the driver's main program, so nothing may be defined there."""
    blob = pickle.dumps(tuple(job))
    if b"__main__" in blob:
        raise UsageError(
            "the backend or the payloads are defined in the main program, which a worker process does not import",
            where="replay and profile requests",
            fix="move the function or class into a module that can be imported",
        )
    return blob


def _ending(error: ErrorKind, code: int) -> str:
    if error == "hang":
        return "it did not answer and was killed"
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
