"""The events of a Chrome trace as spans: whole ones (X), and pairs of begin and end (B, E) on one thread.

Begins and ends are matched in the order of the file, as the format asks of each thread. Flows, instants, counters and
asynchronous events are no work on a lane; they are counted and not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Ns
from trimtab.errors import DataError
from trimtab.readers._events import Events
from trimtab.readers._spans import Codes, Gather, us_to_ns

NONE = float("nan")
DEEPEST = 10_000
_PHASES = {
    "s": "flows", "t": "flows", "f": "flows", "i": "instants", "I": "instants", "R": "instants", "C": "counters",
    "b": "asynchronous", "n": "asynchronous", "e": "asynchronous", "S": "asynchronous", "T": "asynchronous",
    "p": "asynchronous", "F": "asynchronous", "N": "objects", "O": "objects", "D": "objects", "M": "names of lanes",
    "v": "memory dumps", "V": "memory dumps", "c": "clock marks",
}  # fmt: skip
NO_BEGIN = "an end without its begin"
NO_END = "a begin without its end"

Id = int | float | str | None


class Event(msgspec.Struct, gc=False):
    """What all events share; a format adds its ``args``. Times in microseconds."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: float = NONE
    dur: float = NONE
    pid: Id = None
    tid: Id = None


E = TypeVar("E", bound=Event)
More = Callable[[list[E]], Mapping[str, NDArray[Any]]]


class Walk(Generic[E]):
    """Reads one file. ``more`` gives further columns of some events, ``skip`` = categories that are not read,
    ``label`` is told of every M event.

    Afterwards: ``columns`` (start, end, name, cat, lane and those of ``more``), ``first`` = the time that became 0, ns.
    """

    def __init__(
        self,
        path: Path,
        kind: type[E],
        more: More[E],
        skip: Mapping[str, str] | None = None,
        label: Callable[[E], None] | None = None,
    ) -> None:
        self.events = Events(path, kind)
        self.names: Codes[str] = Codes()
        self.cats: Codes[str] = Codes()
        self.lanes: Codes[tuple[Id, Id]] = Codes()
        self.columns: dict[str, NDArray[Any]] = {}
        self.first: Ns = 0
        self._path, self._more, self._skip, self._label = path, more, skip or {}, label
        self._gather = Gather(path)
        self._passed: Counter[str] = Counter()
        self._open: dict[tuple[Id, Id], list[E]] = {}
        self._unmatched: Counter[str] = Counter()

    def read(self) -> None:
        """Read the whole file."""
        for piece in self.events.pieces():
            whole = [event for event in piece if event.ph == "X" and event.cat not in self._skip]
            if len(whole) < len(piece):
                whole += self._others(event for event in piece if event.ph != "X" or event.cat in self._skip)
            if whole:
                self._add(whole)
        left = sum(map(len, self._open.values()))
        if left:
            self._unmatched[NO_END] = left
        self.columns, self.first = self._gather.columns()

    @property
    def rows(self) -> int:
        """Spans that were read."""
        return self._gather.rows

    @property
    def dropped(self) -> Counter[str]:
        """Reason -> events that are broken."""
        return self.events.dropped + self._gather.dropped + self._unmatched

    @property
    def ignored(self) -> tuple[str, ...]:
        """What is no span, or says again what others say."""
        return tuple(f"{count} {what}" for what, count in sorted(self._passed.items()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the file itself."""
        out = []
        if not self.events.complete:
            out.append("the file ends before its list of events does: the recording may have been cut short")
        if self.events.behind:
            out.append("something follows the list of events that is no part of it; it was not read")
        if self.events.mended:
            out.append(f"{self.events.mended} events are no valid JSON (NaN, stray bytes); read without these")
        over = self.names.over + self.lanes.over + self.cats.over
        if over:
            out.append(f"too many different names: {over} spans share one")
        return tuple(out)

    def _others(self, events: Iterable[E]) -> list[E]:
        """Count what is no span; the spans that end here."""
        ended: list[E] = []
        for event in events:
            if event.ph == "B":
                self._begin(event)
            elif event.ph == "E":
                begun = self._open.get((event.pid, event.tid))
                if begun:
                    ended.append(_closed(begun.pop(), event))
                else:
                    self._unmatched[NO_BEGIN] += 1
            elif event.ph == "X":
                self._passed[self._skip[event.cat]] += 1
            else:
                self._passed[_PHASES.get(event.ph, "of no known phase")] += 1
                if event.ph == "M" and self._label is not None:
                    self._label(event)
        return [event for event in ended if event.cat not in self._skip]

    def _begin(self, event: E) -> None:
        begun = self._open.setdefault((event.pid, event.tid), [])
        begun.append(event)
        if len(begun) > DEEPEST or len(self._open) > DEEPEST:
            raise DataError(
                f"more than {DEEPEST} spans are open at once",
                where=f"{self._path}, event {self.events.seen}",
                fix="are the ends (E) of its spans in the file?",
            )

    def _add(self, events: list[E]) -> None:
        start, known = us_to_ns([event.ts for event in events])
        took, sane = us_to_ns([event.dur for event in events])
        columns = {
            "name": _codes([self.names[event.name] for event in events]),
            "cat": _codes([self.cats[event.cat] for event in events]),
            "lane": _codes([self.lanes[event.pid, event.tid] for event in events]),
        }
        self._gather.add(start, start + took, known & sane, {**columns, **self._more(events)})


def _closed(begin: E, end: Event) -> E:
    begin.dur = end.ts - begin.ts
    return begin


def _codes(values: list[int]) -> NDArray[np.int32]:
    return np.array(values, dtype=np.int32)
