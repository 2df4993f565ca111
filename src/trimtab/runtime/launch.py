"""The first lines of a worker process: pin it and tie it to its driver before anything heavy is imported.

A worker is a fresh interpreter (executed, never forked from a driver that already holds locks and threads). The main
program of the driver is not imported again, so no program needs a guard, and the thread settings are in the environment
before the first numeric library loads. The driver talks to it over the inherited socket ``fd``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from trimtab import child

FIRST_VICTIM = "1000"
"""When memory runs out the kernel ends a worker, which is an event of the run, and not the driver, which is its end."""


def command(fd: int, cores: Sequence[int]) -> list[str]:
    """The command line of a worker that is pinned to ``cores`` and talks over ``fd``."""
    listed = ",".join(map(str, cores))
    return child.command("trimtab.runtime.launch", str(fd), listed)


def environment(threads: int) -> dict[str, str]:
    """The driver's environment, its module search path, and the plan's threads.

    numpy itself stays at one thread: in a worker it only assembles batches and runs the pace kernel.
    """
    return child.environment(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS="1")


def main(argv: Sequence[str]) -> None:
    """Pin, tie to the driver's life, then become the worker."""
    fd, cores, parent = int(argv[0]), {int(core) for core in argv[1].split(",")}, int(argv[2])
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle: it stops its workers
    if not child.tie_to(parent):
        return
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - nothing heavy yet
        file.write(FIRST_VICTIM)
    from trimtab.runtime.process import serve

    serve(fd)


if __name__ == "__main__":
    main(sys.argv[1:])
