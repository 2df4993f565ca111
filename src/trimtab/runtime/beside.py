"""Compiling beside serving: in the worker's process, in a thread on another core, while the main thread runs batches.

What keeps the two apart:

- the thread, every thread that the runtime starts in it, and those that it may use again (:mod:`.own_threads`) keep to
  the cores of the order. Once the entry is whole, all but the first move to the worker's own cores, to run its batches;
- batches see the entry from one moment to the next, and the driver hears of it after that;
- the counters of a batch leave the thread out (:meth:`~trimtab.runtime.counters.Counters.set_aside`);
- a process compiles one entry at a time.

What they share, and what therefore shows in the batches' own times: memory bandwidth, caches, the memory of the
process, and Python's lock, where a runtime keeps it while it compiles. None of it is taken off anything.

A compile cannot be stopped. A worker that is told to stop in the middle of one ends without waiting for it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from trimtab.domain.ports import BackendInfo
from trimtab.domain.profile import CompileFailure
from trimtab.runtime import wire
from trimtab.runtime.affinity import move, threads
from trimtab.runtime.counters import Counters

if TYPE_CHECKING:
    from trimtab.runtime.worker import Worker

ABILITY = "compile beside serving"
"""What a backend says of itself where its compiling may run in a thread while other entries serve."""


def unable(info: BackendInfo) -> str:
    """Why the backend must not compile beside serving; empty where it may."""
    said = next((ability for ability in info.abilities if ability.name == ABILITY), None)
    if said is None:
        return f"{info.name} does not say that it can {ABILITY}"
    return "" if said.ok else f"{info.name} cannot {ABILITY}: {said.why}"


class Beside:
    """The thread beside the batches of ``worker``. All but the thread itself belongs to the main thread.

    ``post`` sends a reply; it may be called by both threads at once.
    """

    def __init__(self, worker: Worker, counters: Counters, post: Callable[[wire.Reply], None]) -> None:
        self._worker, self._counters, self._post = worker, counters, post
        self._thread: threading.Thread | None = None
        self._whole = threading.Event()

    def start(self, order: wire.CompileBeside) -> None:
        """Compile in a new thread; the thread before it is over, because its answer was awaited."""
        self._whole.clear()
        self._counters.set_aside(self._worker.threads.idle)
        self._thread = threading.Thread(target=self._run, args=(order,), name="compile", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Between two batches: let the threads of a finished entry count again."""
        if self._thread is not None and self._whole.is_set():
            self._counters.take_back(self._thread.native_id or 0)
            self._thread = None

    def leave(self) -> None:
        """End the process at once if a compile is under way."""
        self.settle()
        if self._thread is not None:
            os._exit(0)

    def _run(self, order: wire.CompileBeside) -> None:
        serving, before, idle = os.sched_getaffinity(os.getpid()), set(threads()), set(self._worker.threads.idle)
        try:
            for tid in (threading.get_native_id(), *idle):
                move(tid, set(order.cores))
            reply = self._worker.compile_beside(order.order)
        except OSError as error:
            message = f"its cores {order.cores} cannot be had: {error.strerror}"
            reply = wire.Refused(CompileFailure(entry=order.order.entry.id, kind="unsupported", message=message))
        for tid in (set(threads()) - before) | idle:
            move(tid, serving)
        self._whole.set()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the driver is gone, as the main thread sees
            self._post(wire.Beside(reply))
