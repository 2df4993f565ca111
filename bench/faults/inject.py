"""What is done to the machine, and undone again: neighbours on a core, and a CPU quota for the worker.

Every injection is a context manager that yields what it did, in words, and the backend factory that the worker must be
started with (a worker joins its group by itself, before it loads anything). Neighbours die with this process even if it
is killed; a control group is removed on the way out, and one that a killed run left behind at the next start.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from trimtab import backends
from trimtab.domain.ports import Backend, BackendFactory
from trimtab.runtime import neighbour
from trimtab.runtime.cgroup import own_group
from trimtab.runtime.neighbour import GIVE_UP_S, Start

PERIOD_US = 100_000
GROUP = "trimtab-faults"


class Injected(NamedTuple):
    """What is in force: in words, and how a worker has to be started under it."""

    words: str
    factory: Callable[[str], BackendFactory]


Injection = Callable[[], AbstractContextManager[Injected]]


@contextlib.contextmanager
def nothing() -> Iterator[Injected]:
    """The machine as it is."""
    yield Injected("nothing", backends.factory)


@contextlib.contextmanager
def neighbours(
    kind: str, core: int, nice: str, count: int = 1, *, start: Start = subprocess.Popen
) -> Iterator[Injected]:
    """``count`` processes of ``kind`` (spin, stream) on ``core``."""
    with neighbour.neighbours(kind, core, nice, count, start=start) as words:
        yield Injected(words, backends.factory)


def quota(share: float) -> AbstractContextManager[Injected]:
    """The worker may use ``share`` of a core: by a control group where we may make one, else by stopping it in turns
    (the words say which)."""
    parent = group_parent()
    return grouped(share, *parent) if parent is not None else duty_cycle(share)


def group_parent(root: Path = Path("/")) -> tuple[Path, int] | None:
    """Folder and version of the control group in which a child with a quota can be made; None = not permitted."""
    own = own_group("cpu", root)
    if own is None:
        return None
    folder = root / str(own.folders[0]).lstrip("/")
    try:
        probe = Path(tempfile.mkdtemp(prefix=f"{GROUP}-", dir=folder))
    except OSError:
        return None
    name = "cpu.cfs_quota_us" if own.version == 1 else "cpu.max"
    able = (probe / name).exists()
    probe.rmdir()
    return (folder, own.version) if able else None


@contextlib.contextmanager
def grouped(share: float, parent: Path, version: int) -> Iterator[Injected]:
    """A child group of ``parent`` with the quota; removed at the end, when nobody is left in it."""
    sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{GROUP}-", dir=parent))
    try:
        for name, value in quota_files(share, version).items():
            (folder / name).write_text(value)
        words = f"cgroup v{version} quota of {share:g} core for the worker"
        yield Injected(words, lambda name: partial(in_group, str(folder / "cgroup.procs"), name))
    finally:
        remove(folder)


def quota_files(share: float, version: int) -> dict[str, str]:
    """The files that set a quota of ``share`` cores, and what to write."""
    quota_us = round(share * PERIOD_US)
    if version == 2:
        return {"cpu.max": f"{quota_us} {PERIOD_US}"}
    return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}


def remove(folder: Path, *, patience_s: float = GIVE_UP_S) -> None:
    """Remove a group; its last process may need a moment to be gone."""
    until = time.monotonic() + patience_s
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.05)
        else:
            return


def sweep(parent: Path) -> None:
    """Remove empty groups that a killed run left behind; one in use cannot be removed and stays."""
    for folder in parent.glob(f"{GROUP}-*"):
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def duty_cycle(share: float, *, start: Start = subprocess.Popen) -> Iterator[Injected]:
    """The worker is stopped for the rest of each period."""
    with tempfile.TemporaryDirectory(prefix=f"{GROUP}-") as folder:
        process = neighbour.started("faults.limiter", str(share), str(PERIOD_US / 1e3), folder, start=start)
        try:
            words = f"duty-cycle limiter at {share:g} core: no control group may be made here"
            yield Injected(words, lambda name: partial(listed, folder, name))
        finally:
            neighbour.ended(process)


def in_group(procs: str, name: str) -> Backend:
    """Called in the worker: join the group, then load the runtime."""
    Path(procs).write_text(str(os.getpid()))
    return backends.factory(name)()


def listed(folder: str, name: str) -> Backend:
    """Called in the worker: load the runtime, then let the limiter have us."""
    backend = backends.factory(name)()
    Path(folder, str(os.getpid())).touch()
    return backend
