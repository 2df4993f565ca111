"""A worker's process from its first order to its last: what it reads from the pipe, and who may write to it."""

from __future__ import annotations

import contextlib
import gc
import pickle
import threading
from multiprocessing.connection import Connection

from trimtab.errors import said
from trimtab.runtime import wire
from trimtab.runtime.beside import Beside
from trimtab.runtime.counters import Counters
from trimtab.runtime.worker import Job, Worker


def serve(fd: int) -> None:
    """Read the job, say hello, then answer orders until told to stop or until the driver is gone."""
    pipe, counters = Connection(fd), Counters()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the driver is gone
        job = Job(*pickle.loads(pipe.recv_bytes()))  # noqa: S301 - from the driver that started this process
        post = _Post(pipe)
        worker = _start(job, counters, post)
        if worker is not None:
            _attend(worker, Beside(worker, counters, post), pipe, post)
    gc.unfreeze()  # what lies in a cycle goes before the end, or a runtime calls it leaked


class _Post:
    """Sends replies, for whichever thread has one."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._lock = pipe, threading.Lock()

    def __call__(self, reply: wire.Reply) -> None:
        with self._lock:
            self._pipe.send_bytes(wire.encode(reply))


def _attend(worker: Worker, beside: Beside, pipe: Connection, post: _Post) -> None:
    """Answer orders in turn; what is compiled beside them is answered when it is done."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while not isinstance(order := wire.decode_order(pipe.recv_bytes()), wire.Stop):
            beside.settle()
            if isinstance(order, wire.CompileBeside):
                beside.start(order)
            elif (reply := worker.handle(order)) is not None:
                post(reply)
    beside.leave()


def _start(job: Job, counters: Counters, post: _Post) -> Worker | None:
    try:
        worker = Worker(job.backend(), job, counters)
        hello: wire.Reply = worker.hello()
    except Exception as error:
        post(wire.Broken(said(error)))
        return None
    post(hello)
    return worker
