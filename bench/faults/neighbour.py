"""A disturbing process: `python -m faults.neighbour KIND CORE NICE PARENT`. It dies with its parent, whatever happens.

KIND ``spin``: arithmetic in the caches. KIND ``stream``: copies 128 MiB through memory again and again. NICE ``idle``:
the core is taken only while nobody else wants it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
STREAM_BYTES = 128 * 2**20


def tie_to(parent: int) -> bool:
    """Be killed when ``parent`` dies; False if it is dead already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent


def main(kind: str, core: str, nice: str, parent: str) -> None:
    """Settle on the core, say "on" once it hurts, and go on for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the bench's to handle: it ends its neighbours
    if not tie_to(int(parent)):
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
