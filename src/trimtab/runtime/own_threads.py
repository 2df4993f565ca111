"""Which threads of a process a runtime keeps for which entry.

A runtime may start threads while it compiles an entry and run the entry on them. Where the entry is closed they stay,
idle, and OpenVINO compiles the next entry with them: a quarter of the compile was seen to run there. So whoever
compiles on other cores has to take the idle ones along, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trimtab.domain.noun import EntryId
from trimtab.runtime.affinity import threads
from trimtab.runtime.counters import thread_ns


class OwnThreads:
    """``idle``: threads of entries that are closed, and that have not been used since."""

    def __init__(self) -> None:
        self._of: dict[EntryId, set[int]] = {}
        self.idle: set[int] = set()

    @contextmanager
    def noted(self, entry: EntryId) -> Iterator[None]:
        """While ``entry`` is compiled: what starts, or was idle and works, is its own."""
        before, spent = set(threads()), {tid: thread_ns(tid) for tid in tuple(self.idle)}
        yield
        woken = {tid for tid, ns in spent.items() if thread_ns(tid) > ns}
        self._of[entry] = (set(threads()) - before) | woken
        self.idle -= woken

    def closed(self, entry: EntryId) -> None:
        """``entry`` runs no more; its threads may stay."""
        self.idle |= self._of.pop(entry, set())
