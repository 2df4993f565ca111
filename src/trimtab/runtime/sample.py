"""Samples of the envelope while a run goes on: what the machine was doing around our batches.

One row for the whole machine (core NEVER) and one for each core, every half second or so, each about the interval since
the sample before. A reading takes some 200 us, so the driver takes it in a gap between arrivals. What this machine does
not tell keeps the default of its column; nothing is guessed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from trimtab.domain.noun import NEVER, Ns
from trimtab.runtime.cgroup import Group, Throttle, own_group, quota_of, throttle

PERIOD: Ns = 500_000_000
NAN = float("nan")


class Ticks(NamedTuple):
    """Clock ticks of one core since boot."""

    busy: int
    stolen: int
    total: int


class Sample(NamedTuple):
    """In the order of the recorder's arguments, behind the time."""

    core: int
    busy: float
    stolen: float
    mhz: float
    throttled: int
    throttled_ns: Ns
    celsius: float
    rss_bytes: int


def parse_stat(text: str) -> dict[int, Ticks]:
    """The cpu lines of /proc/stat by core; NEVER = all of them together. Guest time is inside user time already."""
    ticks = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break
        name, *fields = line.split()
        user, nice, system, idle, iowait, irq, softirq, stolen = (int(f) for f in fields[:8])
        busy = user + nice + system + irq + softirq
        ticks[int(name[3:]) if name != "cpu" else NEVER] = Ticks(busy, stolen, busy + idle + iowait + stolen)
    return ticks


def shares(before: Ticks, after: Ticks) -> tuple[float, float]:
    """(busy, stolen) share of the interval; nan where no tick has passed."""
    total = after.total - before.total
    if total <= 0:
        return NAN, NAN
    return (after.busy - before.busy) / total, (after.stolen - before.stolen) / total


class Quotas:
    """What CPU quotas have taken since a process was first seen: of our own group and of those of ``pids``, the most.

    A worker may sit in a group of its own: a quota there stops it while the driver runs on.
    """

    def __init__(self, pids: Callable[[], Iterable[int]], root: Path = Path("/")) -> None:
        self._pids = pids
        self._root = root
        self._start: dict[Group, Throttle] = {}
        self._seen: set[int] = set()
        self._watch(own_group("cpu", root))

    def read(self) -> Throttle:
        """Periods and ns; NEVER where no quota can be read."""
        for pid in self._pids():
            if pid not in self._seen:
                self._seen.add(pid)
                self._watch(own_group("cpu", self._root, pid))
        taken = [self._taken(group, start) for group, start in self._start.items()]
        return max((one for one in taken if one is not None), default=Throttle(NEVER, NEVER))

    def _watch(self, group: Group | None) -> None:
        if group is None or group in self._start or quota_of(group, self._root) is None:
            return
        start = throttle(group, self._root)
        if start is not None:
            self._start[group] = start

    def _taken(self, group: Group, start: Throttle) -> Throttle | None:
        now = throttle(group, self._root)
        return None if now is None else Throttle(now.periods - start.periods, now.ns - start.ns)


class Sampler:
    """Reads the envelope of ``cores`` and the memory of our processes (``pids``, asked for at each sample)."""

    def __init__(self, cores: Iterable[int], pids: Callable[[], Iterable[int]], root: Path = Path("/")) -> None:
        self._cores = sorted(set(cores))
        self._pids = pids
        self._root = root
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._quotas = Quotas(pids, root)
        self._zones = sorted((root / "sys/class/thermal").glob("thermal_zone*/temp"))
        cpu = root / "sys/devices/system/cpu"
        clocks = {core: cpu / f"cpu{core}/cpufreq/scaling_cur_freq" for core in self._cores}
        self._clocks = {core: path for core, path in clocks.items() if path.exists()}
        self._before = self._ticks()

    def read(self) -> list[Sample]:
        """The machine first, then core by core."""
        before, self._before = self._before, self._ticks()
        throttled = self._quotas.read()
        celsius, rss = self._celsius(), self._rss()
        rows = []
        for core in (NEVER, *self._cores):
            if core not in before or core not in self._before:
                continue
            busy, stolen = shares(before[core], self._before[core])
            whole = core == NEVER
            rows.append(
                Sample(
                    core=core,
                    busy=busy,
                    stolen=stolen,
                    mhz=self._mhz(core),
                    throttled=throttled.periods if whole else NEVER,
                    throttled_ns=throttled.ns if whole else NEVER,
                    celsius=celsius if whole else NAN,
                    rss_bytes=rss if whole else NEVER,
                )
            )
        return rows

    def _ticks(self) -> dict[int, Ticks]:
        return parse_stat((self._root / "proc/stat").read_text())

    def _mhz(self, core: int) -> float:
        """The governor's current clock. /proc/cpuinfo is no source: in a virtual machine it repeats the nominal one."""
        path = self._clocks.get(core)
        return int(path.read_text()) / 1000 if path is not None else NAN

    def _celsius(self) -> float:
        """The hottest thermal zone."""
        readings = []
        for zone in self._zones:
            try:
                readings.append(int(zone.read_text()) / 1000)
            except (OSError, ValueError):  # a zone may be switched off
                continue
        return max(readings, default=NAN)

    def _rss(self) -> int:
        total = 0
        for pid in (os.getpid(), *self._pids()):
            try:
                total += int((self._root / f"proc/{pid}/statm").read_text().split()[1]) * self._page
            except OSError:  # it has just ended
                continue
        return total
