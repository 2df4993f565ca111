"""Control groups, version 1 and 2: quota, memory limit, throttling and out-of-memory kills of our own group.

A limit may sit on our group or on any group above it, and the tightest one holds; so every reading walks from our own
group up to the root of the mounted hierarchy. On a machine with both versions a controller lives in one of them: the
version 1 hierarchy if there is one that carries it, else version 2. The parsers are pure; ``root`` lets tests read a
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

T = TypeVar("T")

UNLIMITED_V1 = 2**60
"""Version 1 writes "no limit" as the largest page-aligned int64."""


class Group(NamedTuple):
    """Where one controller keeps our files: our own group's folder first, then its parents up to the mount point."""

    version: int
    folders: tuple[PurePosixPath, ...]


class Throttle(NamedTuple):
    """Periods in which the quota stopped us, and for how long (ns), since the group began."""

    periods: int
    ns: int


# --- pure ---------------------------------------------------------------------------------------------------


def locate(controller: str, cgroup: str, mountinfo: str) -> Group | None:
    """From the texts of /proc/self/cgroup and /proc/self/mountinfo; None if the controller is mounted nowhere."""
    paths = dict(_memberships(cgroup))
    for version, names, mount_root, mount in _mounts(mountinfo):
        if version == 1 and controller in names and controller in paths:
            return Group(1, _chain(paths[controller], mount_root, mount))
    for version, _, mount_root, mount in _mounts(mountinfo):
        if version == 2 and "" in paths:
            return Group(2, _chain(paths[""], mount_root, mount))
    return None


def parse_quota_v1(quota_us: str, period_us: str) -> float | None:
    """cpu.cfs_quota_us and cpu.cfs_period_us -> cores; None = no quota."""
    quota, period = int(quota_us), int(period_us)
    return quota / period if quota > 0 and period > 0 else None


def parse_quota_v2(cpu_max: str) -> float | None:
    """cpu.max, such as ``150000 100000`` or ``max 100000`` -> cores; None = no quota."""
    quota, period = cpu_max.split()
    return None if quota == "max" else int(quota) / int(period)


def parse_memory(text: str) -> int | None:
    """memory.limit_in_bytes (v1) or memory.max (v2) -> bytes; None = no limit."""
    word = text.strip()
    return None if word == "max" or int(word) >= UNLIMITED_V1 else int(word)


def parse_throttle(cpu_stat: str) -> Throttle | None:
    """cpu.stat of either version; None where the group counts no periods at all."""
    fields = flat(cpu_stat)
    if "nr_throttled" not in fields:
        return None
    ns = fields["throttled_time"] if "throttled_time" in fields else fields.get("throttled_usec", 0) * 1000
    return Throttle(fields["nr_throttled"], ns)


def flat(text: str) -> dict[str, int]:
    """A file of ``key number`` lines."""
    return {key: int(value) for key, value in (line.split()[:2] for line in text.splitlines() if line.strip())}


def _memberships(cgroup: str) -> Iterator[tuple[str, str]]:
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):  # version 2 has no name: ""
            yield name, path


def _mounts(mountinfo: str) -> Iterator[tuple[int, set[str], str, str]]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, *_, options = after.split()
        if kind in ("cgroup", "cgroup2"):
            mount_root, mount = before.split()[3:5]
            yield (2 if kind == "cgroup2" else 1), set(options.split(",")), mount_root, mount


def _chain(path: str, mount_root: str, mount: str) -> tuple[PurePosixPath, ...]:
    """A container sees its own group as the root of the mount: then the path inside the mount is what lies below it."""
    own, top = PurePosixPath(path), PurePosixPath(mount_root)
    inside = own.relative_to(top) if own.is_relative_to(top) else PurePosixPath()
    leaf = PurePosixPath(mount, inside)
    return (leaf, *(p for p in leaf.parents if p.is_relative_to(mount)))


# --- reading ------------------------------------------------------------------------------------------------


def own_group(controller: str, root: Path = Path("/"), pid: int | None = None) -> Group | None:
    """Our own group for ``controller``, or that of process ``pid``; None where control groups cannot be read."""
    try:
        cgroup = (root / "proc" / ("self" if pid is None else str(pid)) / "cgroup").read_text()
        mountinfo = (root / "proc/self/mountinfo").read_text()
    except OSError:
        return None
    return locate(controller, cgroup, mountinfo)


def quota_cores(root: Path = Path("/")) -> float | None:
    """The tightest CPU quota over our group and its parents, in cores; None = none set (or none readable)."""
    return quota_of(own_group("cpu", root), root)


def quota_of(group: Group | None, root: Path = Path("/")) -> float | None:
    """The tightest CPU quota over a group and its parents, in cores; None = none set (or none readable)."""
    return None if group is None else min(_each(group, root, _quota_of), default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """The tightest memory limit over our group and its parents, bytes; None = none set."""
    group = own_group("memory", root)
    if group is None:
        return None
    name = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    return min(_each(group, root, lambda folder, _: parse_memory((folder / name).read_text())), default=None)


def throttle(group: Group | None, root: Path = Path("/")) -> Throttle | None:
    """The most throttling over a cpu group and its parents (a parent's periods hold ours); None = nothing to read."""
    if group is None:
        return None
    return max(_each(group, root, lambda folder, _: parse_throttle((folder / "cpu.stat").read_text())), default=None)


def oom_kills(root: Path = Path("/")) -> int | None:
    """Processes of our own group that the kernel killed for memory so far; None = not counted here."""
    group = own_group("memory", root)
    if group is None:
        return None
    name = "memory.oom_control" if group.version == 1 else "memory.events"
    try:
        return flat((root / str(group.folders[0]).lstrip("/") / name).read_text()).get("oom_kill")
    except (OSError, ValueError):
        return None


def machine_oom_kills(root: Path = Path("/")) -> int | None:
    """Processes of this machine that the kernel killed for memory since it started; None = not counted here."""
    try:
        return flat((root / "proc/vmstat").read_text()).get("oom_kill")
    except (OSError, ValueError):
        return None


def _quota_of(folder: Path, version: int) -> float | None:
    if version == 2:
        return parse_quota_v2((folder / "cpu.max").read_text())
    return parse_quota_v1((folder / "cpu.cfs_quota_us").read_text(), (folder / "cpu.cfs_period_us").read_text())


def _each(group: Group, root: Path, read: Callable[[Path, int], T | None]) -> Iterator[T]:
    for folder in group.folders:
        try:
            value = read(root / str(folder).lstrip("/"), group.version)
        except (OSError, ValueError):  # the root group has no limit files; a controller may not be enabled there
            continue
        if value is not None:
            yield value
