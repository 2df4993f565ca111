"""Which cores a process may use, and keeping to some of them for a while."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from trimtab.errors import MachineError, StudyError


def check_cores(workers: Sequence[int], driver: int, may_share: bool) -> None:
    """Every core exists and is ours to use, and the driver's is its own."""
    allowed = os.sched_getaffinity(0)
    for core in (*workers, driver):
        if core not in allowed:
            raise MachineError(
                f"core {core} does not exist here or may not be used; allowed: {', '.join(map(str, sorted(allowed)))}",
                where="envelope.cores",
                fix="name cores that exist, or widen the affinity mask or cpuset of this process",
            )
    if driver in workers and not may_share:
        raise StudyError(
            f"core {driver} is the driver's, and a worker's too: each would slow the other",
            where="envelope.driver_core",
            fix="give the driver a core of its own",
        )


@contextlib.contextmanager
def pinned(cores: set[int]) -> Iterator[None]:
    """Every thread of this process keeps to ``cores``, so that none of them runs on a worker's."""
    before = dict(filter(None, map(_where, threads())))
    for tid in before:
        move(tid, cores)
    try:
        yield
    finally:
        for tid in threads():
            move(tid, before.get(tid, before[os.getpid()]))


def aside(core: int) -> set[int]:
    """The cores that are left to us when ``core`` belongs to a worker; that core itself, if it is the only one."""
    allowed = os.sched_getaffinity(0)
    return allowed - {core} or allowed


def threads() -> list[int]:
    """The threads of this process."""
    return [int(name) for name in os.listdir("/proc/self/task")]  # noqa: PTH208 - names, not paths


def _where(tid: int) -> tuple[int, set[int]] | None:
    """A thread and its cores; None if it has ended since it was listed."""
    try:
        return tid, os.sched_getaffinity(tid)
    except ProcessLookupError:
        return None


def move(tid: int, cores: set[int]) -> None:
    """Keep a thread to ``cores``; nothing if it has ended."""
    with contextlib.suppress(ProcessLookupError):  # the thread has just ended
        os.sched_setaffinity(tid, cores)
