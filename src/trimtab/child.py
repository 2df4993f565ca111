"""Processes that we start: fresh interpreters that find what we find, and end when we do.

Python only: no numeric library is loaded here, so that a process may be pinned before one is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import IO

PR_SET_PDEATHSIG = 1
LAST_BYTES = 4096


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs ``module``; its last argument is our process id, for :func:`tie_to`."""
    return [sys.executable, "-P", "-m", module, *arguments, str(os.getpid())]


def environment(**more: str) -> dict[str, str]:
    """Our environment and our module search path, and ``more``."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | more


def tie_to(parent: int) -> bool:
    """Be killed when ``parent``, who started this process, ends; False if it has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent


def last_words(words: IO[bytes]) -> str:
    """``; its last line: ...`` of what a process wrote into ``words``, ready to follow a sentence; empty for none."""
    words.seek(max(0, words.seek(0, os.SEEK_END) - LAST_BYTES))
    lines = words.read().decode(errors="replace").strip().splitlines()
    return f"; its last line: {lines[-1]}" if lines else ""
