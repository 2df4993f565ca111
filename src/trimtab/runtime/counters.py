"""What the kernel says about this process around one batch, read cheaply enough to be read around every batch.

Descriptors of ``/proc`` files stay open and are read with ``pread`` (under 1 us for schedstat, about 8 us for status
and 6 us for sched on the machine this was written on). Run-queue delay and migrations are per thread, so every thread
is read; a thread that appears or ends changes the link count of ``/proc/self/task``, which is the signal to look again.

- on-core time: CLOCK_PROCESS_CPUTIME_ID, all threads of the process together;
- run-queue delay: second field of ``schedstat``, ns runnable but not running; of all threads the LARGEST difference;
- migrations: ``se.nr_migrations`` of ``sched``, summed over threads (needs CONFIG_SCHED_DEBUG);
- faults: getrusage; peak memory: VmHWM, reset before the batch (``clear_refs`` 5), so that it is the batch's own peak.

While the process prepares something beside its batches (:meth:`Counters.set_aside`), only the threads that were there
before are a batch's: on-core time is then the sum of their own clocks. Faults are counted for the whole process, so
they are not readable then; peak memory is the process's, the compile's included.

A counter that cannot be read is NEVER, and :attr:`Counters.unread` says why.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Collection, Set
from pathlib import Path
from typing import NamedTuple

from trimtab.domain.events import BatchReport
from trimtab.domain.noun import NEVER, Ns

_PEAK_RESET = b"5"


class Reading(NamedTuple):
    """Totals since the process began. ``delays``: run-queue delay by thread id, None where it cannot be read. ``only``:
    the CPU clocks of the threads that count, None = all count."""

    cpu_ns: Ns
    delays: dict[int, Ns] | None
    minor: int
    major: int
    migrations: int
    only: dict[int, Ns] | None = None


class Counters:
    """The open descriptors of one process; ``begin`` before a batch, ``end`` after it."""

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc
        self.unread: dict[str, str] = {}
        self._tasks = self._open("task", "run-queue delay and migrations")
        self._status = self._open("status", "peak memory")
        self._reset = self._open("clear_refs", "peak memory by batch (it is the process's peak instead)", os.O_WRONLY)
        self._links = -1
        self._schedstat: dict[int, int] = {}
        self._sched: dict[int, int] = {}
        self._only: frozenset[int] | None = None
        self._leaving: set[int] = set()

    def set_aside(self, others: Set[int] = frozenset()) -> None:
        """``others`` and threads that start from now on are no batch's, until :meth:`take_back`."""
        self._only = frozenset(self._alive() - others) if self._tasks is not None else None

    def take_back(self, leaving: int) -> None:
        """Every thread counts again, except ``leaving``, which is about to end."""
        self._only = None
        self._leaving.add(leaving)
        self._links = -1

    def begin(self) -> Reading:
        """Read before a batch, and start its own peak of memory. On-core time comes last: reading must not count."""
        if self._reset is not None:
            os.write(self._reset, _PEAK_RESET)
        before = self._read(self._only)
        if self._only is not None:
            return before._replace(only={tid: thread_ns(tid) for tid in self._only})
        return before._replace(cpu_ns=time.process_time_ns())

    def end(self, before: Reading, assembly_ns: Ns = NEVER) -> BatchReport:
        """Read after a batch: the differences, of the threads that counted when it began."""
        cpu = _since(before)
        after = self._read(before.only)
        peak, resident = self._memory()
        return BatchReport(
            on_cpu_ns=cpu,
            runqueue_ns=_largest(before.delays, after.delays),
            minor_faults=_difference(before.minor, after.minor),
            major_faults=_difference(before.major, after.major),
            migrations=_difference(before.migrations, after.migrations),
            peak_bytes=peak,
            assembly_ns=assembly_ns,
            resident_bytes=resident,
        )

    def peak_bytes(self) -> int:
        """VmHWM, bytes: since the last ``begin`` where the peak can be reset, else since the process began."""
        return self._memory()[0]

    def resident_bytes(self) -> int:
        """VmRSS, bytes."""
        return self._memory()[1]

    def close(self) -> None:
        for fd in (self._tasks, self._status, self._reset, *self._schedstat.values(), *self._sched.values()):
            if fd is not None:
                os.close(fd)

    def _read(self, only: Collection[int] | None) -> Reading:
        self._follow_threads()
        minor = major = NEVER
        if only is None:
            usage = resource.getrusage(resource.RUSAGE_SELF)
            minor, major = usage.ru_minflt, usage.ru_majflt
        return Reading(0, self._delays(only), minor, major, self._migrations(only))

    def _delays(self, only: Collection[int] | None) -> dict[int, Ns] | None:
        if "runqueue" in self.unread or self._tasks is None:
            return None
        delays = {}
        for tid, fd in self._schedstat.items():
            if only is None or tid in only:
                with contextlib.suppress(ProcessLookupError):  # the thread has just ended
                    delays[tid] = int(os.pread(fd, 128, 0).split()[1])
        return delays

    def _migrations(self, only: Collection[int] | None) -> int:
        if "migrations" in self.unread or self._tasks is None:
            return NEVER
        total = 0
        for tid, fd in self._sched.items():
            if only is None or tid in only:
                with contextlib.suppress(ProcessLookupError):
                    total += _field(os.pread(fd, 4096, 0), b"nr_migrations")
        return total

    def _follow_threads(self) -> None:
        if self._tasks is None:
            return
        links = os.fstat(self._tasks).st_nlink
        if links == self._links:
            return
        self._links = links
        alive = self._alive()
        self._leaving &= alive
        alive -= self._leaving
        self._follow(self._schedstat, alive, "schedstat", "runqueue")
        self._follow(self._sched, alive, "sched", "migrations")

    def _alive(self) -> set[int]:
        return {int(name) for name in os.listdir(self._tasks)}  # noqa: PTH208 - a descriptor, not a path

    def _follow(self, open_files: dict[int, int], alive: set[int], file: str, counter: str) -> None:
        for tid in [t for t in open_files if t not in alive]:
            os.close(open_files.pop(tid))
        if counter in self.unread:
            return
        for tid in alive - open_files.keys():
            fd = self._open(f"task/{tid}/{file}", counter)
            if fd is not None:
                open_files[tid] = fd

    def _open(self, name: str, counter: str, mode: int = os.O_RDONLY) -> int | None:
        try:
            return os.open(self._proc / name, mode)
        except (FileNotFoundError, ProcessLookupError) as error:
            if name.startswith("task/") and not (self._proc / name).parent.exists():
                return None  # the thread has just ended; the counter itself is readable
            self.unread[counter] = f"{name}: {error.strerror}"
        except OSError as error:
            self.unread[counter] = f"{name}: {error.strerror}"
        return None

    def _memory(self) -> tuple[int, int]:
        """(peak, resident) bytes, from one reading."""
        if self._status is None:
            return NEVER, NEVER
        text = os.pread(self._status, 4096, 0)
        return status_bytes(text, b"VmHWM:"), status_bytes(text, b"VmRSS:")


def status_bytes(text: bytes, key: bytes) -> int:
    """A ``kB`` line of /proc/<pid>/status in bytes; NEVER if there is none."""
    at = text.find(key)
    return int(text[at + len(key) : text.index(b"kB", at)]) * 1024 if at >= 0 else NEVER


def _field(text: bytes, key: bytes) -> int:
    at = text.index(key)
    return int(text[text.index(b":", at) + 1 : text.index(b"\n", at)])


def _largest(before: dict[int, Ns] | None, after: dict[int, Ns] | None) -> Ns:
    """The largest difference over threads; one that was born inside the batch counts from zero."""
    if before is None or after is None:
        return NEVER
    return max((total - before.get(tid, 0) for tid, total in after.items()), default=NEVER)


def _difference(before: int, after: int) -> int:
    """Threads that end take their count along, so a difference below zero says nothing."""
    return after - before if before != NEVER and after >= before else NEVER


def _since(before: Reading) -> Ns:
    """CPU time of the process, or of those of its threads that count; a thread that has ended adds nothing."""
    if before.only is None:
        return time.process_time_ns() - before.cpu_ns
    return sum(max(thread_ns(tid) - ns, 0) for tid, ns in before.only.items())


def thread_ns(tid: int) -> Ns:
    """CPU time of one thread; 0 if it has ended.

    The kernel's clock of a thread is its number inverted, then the bits for scheduler time of one thread.
    """
    try:
        return time.clock_gettime_ns((~tid << 3) | 6)
    except OSError:
        return 0
