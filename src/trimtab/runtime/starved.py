"""What is known of a process that ran out of memory: three ways in which it shows, and what each of them proves.

- The kernel killed it. It ended by SIGKILL, and a count of out-of-memory kills rose while it lived. If that of our own
  control group rose, a process of this group was the victim. If only that of the machine rose, the victim is not known
  by name (a worker may sit in a group of its own, or another process died meanwhile): the message says so.
- An allocation was refused: MemoryError, or a runtime's own words (``std::bad_alloc``). Behind it stands a limit of the
  address space (``ulimit -v``) or a size that nothing could give.
- It aborted with such words as its last line.

A SIGKILL without a count that rose is a crash: somebody else may have sent it.
"""

from __future__ import annotations

import signal
from typing import NamedTuple

from trimtab.runtime.cgroup import machine_oom_kills, oom_kills

WORDS = (
    "bad_alloc",
    "bad alloc",
    "cannot allocate memory",
    "failed to allocate memory",
    "out of memory",
    "memoryerror",
)
"""How runtimes say it; compared in lower case."""


class Kills(NamedTuple):
    """Out-of-memory kills counted so far: in our control group and on this machine; None = not counted here."""

    group: int | None
    machine: int | None


def kills() -> Kills:
    return Kills(oom_kills(), machine_oom_kills())


def refused(text: str) -> bool:
    """Whether an error's words say that memory could not be had."""
    said = text.lower()
    return any(word in said for word in WORDS)


def ran_out(error: BaseException) -> bool:
    """Whether an exception says that memory could not be had."""
    return isinstance(error, MemoryError) or refused(str(error))


def cause(code: int, last_words: str, before: Kills, after: Kills) -> str:
    """Why a process that ended with ``code`` was out of memory; an empty string: nothing says that it was."""
    if code == -signal.SIGKILL and _rose(before.group, after.group):
        return "killed by the kernel: the memory limit of its control group, or of the machine, was reached"
    if code == -signal.SIGKILL and _rose(before.machine, after.machine):
        return "killed by SIGKILL; while it lived, the kernel killed a process of this machine for memory"
    if code != 0 and refused(last_words):
        return "an allocation was refused"
    return ""


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
