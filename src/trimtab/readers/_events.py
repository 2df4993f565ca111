"""A JSON array of objects in a file of any size, piece by piece: a block and what is left of the one before are held.

Theory
------
A piece that begins at an event is cut behind a closing brace and put into brackets of its own. The cut is right if and
only if that is valid JSON: what JSON can follow depends on the bytes before alone, so text that closes completely at
the cut cannot lie inside a string or inside an event. Hence a cut may be guessed (where the next event begins as the
ones before did) and the decoder itself proves it, at no cost. A wrong guess, or an event that does not decode, sends
that one piece to :mod:`._brackets`, which tells every event apart from the others; what is none is counted.

The format lets a file end anywhere: a missing bracket is no fault, a torn last event is counted. An event with a quote
too few seems never to end; reading goes on where the next one seems to begin, at most 16 times.

Limits: an event longer than 4 MiB, or 16 MiB before or behind the array, is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from trimtab.errors import DataError
from trimtab.readers._brackets import BETWEEN, scan
from trimtab.readers._file import LONGEST_LINE, blocks, open_bytes
from trimtab.readers._json import BROKEN

T = TypeVar("T")

MOST_BESIDE = 16 << 20
MOST_TRIES = 8
TOGETHER = 64
MOST_LOST = 16
_BOM = b"\xef\xbb\xbf"
_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]{0,40}+"')
_NO_NUMBER = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|-?\b(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_VISIBLE = bytes(max(sign, 32) for sign in range(256))

NO_OBJECT = "no JSON object"
NO_EVENT = "no event of this format"
TORN = "the file ends inside it"


class Events(Generic[T]):
    """The events of one file, each decoded as ``T``. The counts are complete when :meth:`pieces` has ended.

    ``dropped`` = reason -> events left out; ``mended`` = events whose numbers were none (NaN); ``beside`` = the object
    around the array, its events left out; ``complete`` = whether the array was closed; ``behind`` = whether something
    that is no part of it follows.
    """

    def __init__(self, path: Path, kind: type[T]) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        self.seen = 0
        self.mended = 0
        self.complete = False
        self.behind = False
        self.beside: dict[str, msgspec.Raw] = {}
        self._list = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        self._begin = b""
        self._head = b""
        self._lost = 0

    def pieces(self) -> Iterator[list[T]]:
        """The events in the order of the file. DataError where there is no such array."""
        with open_bytes(self.path) as file:
            source = blocks(self.path, file)
            rest = self._open(source)
            for block in source:
                rest += block
                events, rest = self._cut(rest)
                yield events
                if self.complete:
                    break
                if len(rest) > LONGEST_LINE:
                    rest = self._past(rest)
            while not self.complete:
                events, rest = self._scan(rest)
                yield events
                if self._next(rest) < 0:
                    break
                rest = self._past(rest)
            self._close(rest, source)

    def _open(self, source: Iterator[bytes]) -> bytes:
        """Read up to the array; what has been read of it."""
        head = b""
        for block in source:
            head = (head + block).removeprefix(_BOM) if not head else head + block
            first = head.lstrip()[:1]
            if first == b"[":
                return head[head.index(b"[") + 1 :]
            if first not in (b"{", b""):
                break
            found = self._array(head)
            if found is not None:
                self._head = head[:found]
                return head[found:]
            if len(head) > MOST_BESIDE:
                break
        raise DataError(
            f"{self.path.name} has no list of events",
            where=str(self.path),
            fix='a trace is a JSON array of events, or an object with "traceEvents"',
        )

    def _array(self, head: bytes) -> int | None:
        """Position behind the bracket of ``traceEvents``, a key of the outermost object."""
        for tried, found in enumerate(_KEY.finditer(head)):
            if tried == MOST_TRIES:
                return None
            if _object(head[: found.end()] + b"]}") is not None:
                return found.end()
        return None

    def _cut(self, data: bytes) -> tuple[list[T], bytes]:
        """The whole events that ``data`` begins with, and the rest."""
        at = data.rfind(self._begin) if self._begin else -1
        if at < 0:
            return self._scan(data)
        try:
            events = self._list.decode(b"[" + data[: at + 1].lstrip(BETWEEN) + b"]")
        except BROKEN:
            return self._scan(data)
        self.seen += len(events)
        return events, data[at + 1 :]

    def _scan(self, data: bytes) -> tuple[list[T], bytes]:
        """The same, event by event, up to the end of the array if it is there."""
        found = scan(data)
        bounds = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
        texts = [data[start:end] for start, end in bounds if data.startswith(b"{", start)]
        self.complete = found.closed
        self.seen += len(texts)
        self._drop(NO_OBJECT, len(bounds) - len(texts) + found.foreign)
        if len(bounds) > 1:
            self._learn(data, bounds[-2][1], bounds[-1][0])
        return self._decode(texts), data[found.done :]

    def _learn(self, data: bytes, end: int, start: int) -> None:
        """How an event begins behind the one before: what lies between ``end`` and ``start``, and its first key."""
        found = _FIRST_KEY.match(data, start)
        if found and start - end < 256:
            self._begin = data[end - 1 : found.end()]

    def _past(self, rest: bytes) -> bytes:
        """What follows an event that never ends: a quote is missing in it, and hides where the others begin."""
        at = self._next(rest)
        if at < 0:
            raise DataError(
                f"one event is longer than {LONGEST_LINE >> 20} MiB",
                where=f"{self.path}, event {self.seen + 1}",
                fix="is this a trace, and is it whole?",
            )
        self._lost += 1
        self._drop(NO_EVENT)
        return rest[at + 1 :]

    def _next(self, rest: bytes) -> int:
        """Where the event behind the one that ``rest`` begins with seems to begin; -1: nowhere, or asked too often."""
        return rest.find(self._begin, 1) if self._begin and self._lost < MOST_LOST else -1

    def _decode(self, texts: list[bytes]) -> list[T]:
        """All at once; else in smaller groups; else each alone."""
        try:
            return self._list.decode(b"[" + b",".join(texts) + b"]")
        except BROKEN:
            size = TOGETHER if len(texts) > TOGETHER else 1
        if len(texts) == 1:
            return self._mend(texts[0])
        return [event for k in range(0, len(texts), size) for event in self._decode(texts[k : k + size])]

    def _mend(self, text: bytes) -> list[T]:
        """One event that is no JSON: numbers that are none become null, stray bytes blanks or signs of replacement."""
        plain = text.decode(errors="replace").encode().translate(_VISIBLE)
        plain = _NO_NUMBER.sub(lambda found: found[1] or b"null", plain)
        try:
            events = self._list.decode(b"[" + plain + b"]") if plain != text else []
        except BROKEN:
            events = []
        if not events:
            self.dropped[NO_EVENT] += 1
            return []
        self.mended += 1
        return events

    def _drop(self, reason: str, count: int = 1) -> None:
        self.seen += count
        if count:
            self.dropped[reason] += count

    def _close(self, rest: bytes, source: Iterator[bytes]) -> None:
        """Read what follows the array; what is left of a torn event is counted."""
        if not self.complete:
            if rest.strip(BETWEEN):
                self._drop(TORN)
            self.beside = _object(self._head + b"]}") or {} if self._head else {}
            return
        if not self._head:
            self.behind = bool(rest.strip()) or any(block.strip() for block in source)
            return
        for block in source:
            rest += block
            if len(rest) > MOST_BESIDE:
                break
        whole = _object(self._head + b"]" + rest)
        self.behind = whole is None
        self.beside = whole if whole is not None else _object(self._head + b"]}") or {}


def text_of(raw: msgspec.Raw | None) -> str:
    """A JSON string or number as text; "" for anything else."""
    value = value_of(raw)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def value_of(raw: msgspec.Raw | None) -> Any:
    """The value of a piece of JSON; None where it is none."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except BROKEN:
        return None


def _object(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except BROKEN:
        return None
