"""The core that serves nobody, as the driver sees it: entries are compiled there beside the workers, one at a time.

It is the driver's own core, where a worker's thread compiles while its main thread serves on the worker's core. An
order is sent as soon as no other is under way, whatever traffic does: a compile takes longer than most gaps between
arrivals, and the driver needs a few percent of the core. What the compile keeps from the driver shows as loader slip.
Orders that wait for a worker which goes down are forgotten with it.
"""

from __future__ import annotations

from collections import deque

from trimtab.domain.noun import NEVER, Ns
from trimtab.runtime import wire
from trimtab.runtime.link import Crew


class Spare:
    """``worker``: for whom an entry is compiled now, None = for nobody; its answer is overdue at ``deadline``.

    ``patience``: the longest that one compile may take, ns.
    """

    def __init__(self, crew: Crew, patience: Ns) -> None:
        self.worker: int | None = None
        self.deadline: Ns = NEVER
        self._crew, self._patience = crew, patience
        self._waiting: deque[tuple[int, wire.CompileBeside]] = deque()

    def ask(self, worker: int, order: wire.CompileBeside) -> None:
        """Compile for ``worker``, after whatever was asked for before."""
        self._waiting.append((worker, order))
        if self.worker is None:
            self._next()

    def answered(self) -> None:
        """The compile that was under way is over."""
        self.worker, self.deadline = None, NEVER
        self._next()

    def lost(self, worker: int) -> None:
        """``worker`` went down, and with it all that it was to get."""
        self._waiting = deque(asked for asked in self._waiting if asked[0] != worker)
        if self.worker == worker:
            self.answered()

    def overdue(self, now: Ns) -> int | None:
        """Whose compile takes too long, if any does."""
        return self.worker if NEVER != self.deadline <= now else None

    def _next(self) -> None:
        if self._waiting:
            self.worker, order = self._waiting.popleft()
            self._crew.send(self.worker, order)
            self.deadline = self._crew.now() + self._patience
