"""A quota for machines without control groups: `python -m faults.limiter SHARE PERIOD_MS FOLDER PARENT`.

Every process whose id is the name of a file in FOLDER runs for SHARE of each period and is stopped for the rest. It is
not what a kernel quota does (nothing counts as throttled), so rows that used it say so. Whatever is stopped is let go
when the limiter is told to end; it dies with its parent, and so do the workers that it stops.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from trimtab.child import tie_to


def main(share: str, period_ms: str, folder: str, parent: str) -> None:
    """Stop and let go until SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    if not tie_to(int(parent)):
        return
    period = float(period_ms) / 1e3
    print("on", flush=True)
    try:
        while not ended.wait(period * float(share)):
            signal_all(Path(folder), signal.SIGSTOP)
            ended.wait(period * (1 - float(share)))
            signal_all(Path(folder), signal.SIGCONT)
    finally:
        signal_all(Path(folder), signal.SIGCONT)


def signal_all(folder: Path, number: int) -> None:
    """Send it to every process that is listed; those that are gone do not matter."""
    for name in os.listdir(folder):  # noqa: PTH208 - names, not paths
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(name), number)


if __name__ == "__main__":
    main(*sys.argv[1:])
