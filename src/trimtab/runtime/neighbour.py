"""A disturbing process, to see how a plan stands it: `python -m trimtab.runtime.neighbour KIND CORE NICE PARENT`.

KIND ``spin``: arithmetic in the caches. KIND ``stream``: copies 128 MiB through memory again and again. NICE ``idle``:
the core is taken only while nobody else wants it. A neighbour dies with the process that started it, whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from trimtab import child
from trimtab.errors import MachineError

STREAM_BYTES = 128 * 2**20
SETTLE_S = 0.3
GIVE_UP_S = 5.0

Start = Callable[..., "subprocess.Popen[str]"]


@contextlib.contextmanager
def neighbours(kind: str, core: int, nice: str, count: int = 1, *, start: Start = subprocess.Popen) -> Iterator[str]:
    """``count`` processes of ``kind`` (spin, stream) on ``core``; says what is there, in words."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            processes.append(started("trimtab.runtime.neighbour", kind, str(core), nice, start=start))
        time.sleep(SETTLE_S)
        yield f"{count} x {kind} on core {core}" + (f", nice {nice}" if nice != "0" else "")
    finally:
        for process in processes:
            ended(process)


def started(module: str, *arguments: str, start: Start = subprocess.Popen) -> subprocess.Popen[str]:
    """A helper process that runs ``module`` and has said "on"; it gets our process id as its last argument."""
    process = start(
        child.command(module, *arguments),
        env=child.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdout is None or process.stdout.readline().strip() != "on":
        ended(process)
        raise MachineError(
            f"{module} did not start", where=" ".join(arguments), fix="check that this core may be used by us"
        )
    return process


def ended(process: subprocess.Popen[str]) -> None:
    """Ask, then kill; it is gone when this returns."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(GIVE_UP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def main(kind: str, core: str, nice: str, parent: str) -> None:
    """Settle on the core, say "on" once it hurts, and go on for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our parent's to handle: it ends its neighbours
    if not child.tie_to(int(parent)):
        return
    os.sched_setaffinity(0, {int(core)})
    if nice == "idle":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, 0, int(nice))
    print("on", flush=True)
    {"spin": _spin, "stream": _stream}[kind]()


def _spin() -> None:
    value = 1
    while True:
        value = value * 6364136223846793005 + 1 & 0xFFFFFFFF


def _stream() -> None:
    import numpy as np

    source, target = np.ones(STREAM_BYTES // 8), np.empty(STREAM_BYTES // 8)
    while True:
        np.copyto(target, source)


if __name__ == "__main__":
    main(*sys.argv[1:])
