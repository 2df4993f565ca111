"""A node of a Ray cluster, as the actor that stands on it: it lays files, starts the process of a trial, hands on what
that says, and ends it. It measures nothing and waits for nobody longer than ``WAIT_S``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from trimtab import __version__, child
from trimtab.errors import DataError
from trimtab.loop.trials import crossing
from trimtab.runtime.affinity import pinned

WAIT_S = 0.25
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Node:
    """``begin`` and ``poll`` return messages of the trial's process, encoded; after its end the last one is Lost."""

    def __init__(self) -> None:
        self._said: SimpleQueue[bytes] = SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._aside = contextlib.ExitStack()

    def hello(self) -> tuple[str, str, str]:
        """The kernel's id of this machine, its name, and the version of trimtab on it."""
        return BOOT_ID.read_text().strip(), socket.gethostname(), __version__

    @cached_property
    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="trimtab-"))

    def folder(self) -> str:
        """Where files lie as long as this node is leased. One that dies leaves them in its temporary folder."""
        return str(self._folder)

    def lay(self, sha256: str, name: str, data: bytes) -> str:
        """Put a file down under its digest; returns its path. DataError if it is not what was sent."""
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise DataError(
                f"{name} arrived altered: its SHA-256 is {found}",
                where=socket.gethostname(),
                fix="run the command again",
            )
        path = self._folder / sha256 / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def begin(self, order: bytes, core: int) -> list[bytes]:
        """Start a process that carries out ``order``, in place of the one before. Our own threads keep to ``core``."""
        self.stop()
        ours, theirs = socket.socketpair()
        words = tempfile.TemporaryFile()  # noqa: SIM115 - the reader closes it
        self._said = SimpleQueue()
        self._process = subprocess.Popen(
            child.command("trimtab.loop.trials.trial_process", str(theirs.fileno())),
            env=child.environment(),
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            process_group=0,
        )
        theirs.close()
        pipe = Connection(ours.detach())
        threading.Thread(target=_read, args=(pipe, self._process, words, self._said), daemon=True).start()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its end is told by the reader
            pipe.send_bytes(order)
        if core in os.sched_getaffinity(0):
            self._aside.enter_context(pinned({core}))
        return []

    def poll(self) -> list[bytes]:
        """What was said since the last call; waits a moment if that is nothing."""
        found: list[bytes] = []
        with contextlib.suppress(Empty):
            found.append(self._said.get(timeout=WAIT_S))
            while True:
                found.append(self._said.get_nowait())
        return found

    def interrupt(self) -> None:
        """Ctrl-C for the trial: it ends in good order and says so."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """End the trial's process, whatever it does."""
        self._aside.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def leave(self) -> None:
        """End the process and remove the files."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _read(pipe: Connection, process: subprocess.Popen[bytes], words: IO[bytes], said: SimpleQueue[bytes]) -> None:
    """Take messages at once, so that a trial never waits for whoever polls; at the end say how the process went."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            said.put(pipe.recv_bytes())
    code = process.wait()
    with words:
        last = child.last_words(words)
    said.put(crossing.encode(crossing.Lost(f"its process ended with code {code}{last}")))
    pipe.close()
