"""The process on a node that makes one trial: ``python -m trimtab.loop.trials.trial_process FD PARENT``.

A trial is made in a fresh process, as on the machine that gives the command: a replay's driver shares its interpreter
with nobody's threads, takes Ctrl-C in its main thread, and is gone with its node. It talks over the inherited socket
``FD``: an order comes in, messages go out, and the last of them ends it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trimtab import child
from trimtab.loop.machine import backend_versions
from trimtab.loop.trials import crossing
from trimtab.loop.trials.trial import Live, perform
from trimtab.readers.payload import payloads_of
from trimtab.runtime import probe


class _Told:
    """Progress and rows, sent on."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        self._pipe.send_bytes(crossing.encode(crossing.Step(stage, done, total, note)))

    def rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._pipe.send_bytes(crossing.encode(crossing.Rows(table, [list(row) for row in rows])))


def main(fd: int, parent: int) -> None:
    """Do what is ordered and say how it ended."""
    if not child.tie_to(parent):
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # processes of Ray are started with it blocked
    pipe = Connection(fd)
    pipe.send_bytes(crossing.encode(_made(crossing.decode_order(pipe.recv_bytes()), _Told(pipe))))
    pipe.close()


def _made(order: crossing.Order, told: _Told) -> crossing.Said:
    try:
        if isinstance(order, crossing.Look):
            return crossing.Seen(probe.probe(order.cores, versions=backend_versions(order.runtimes)))
        payloads = payloads_of(order.study, Path("/"))
        return crossing.Ended(perform(order.trial, order.model, payloads, Live(told, told.rows)))
    except KeyboardInterrupt:
        return crossing.Stopped()
    except Exception as error:
        return crossing.fault(error)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
