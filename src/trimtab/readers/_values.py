"""Text into times, sizes and names, exactly, with the place of the first value that is none."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.study import TimeUnit
from trimtab.errors import DataError
from trimtab.readers._rows import Text

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,18}))?"
    r"\s?(?:(?P<utc>Z|UTC)|(?P<zone>[+-]\d\d(?::?\d\d)?))?",
    re.ASCII,
)
_POWER = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
LATEST = 1 << 62
"""ns."""
LARGEST_SIZE = 1 << 31
MOST_STREAMS = 4096


class Place(NamedTuple):
    """Where a column is, for messages."""

    path: Path
    column: str
    key: str

    def refuse(self, unit: str, place: int, value: Text, what: str, fix: str) -> DataError:
        """The DataError for one value."""
        shown = "no value" if value is None else repr(value if len(value) <= 60 else f"{value[:57]}...")
        where = f"{self.path}, {unit} {place}, column {self.column!r}; {self.key}"
        return DataError(f"{what}: {shown}", where=where, fix=fix)


class Times:
    """A column of times, checked to be numbers, not negative and in order; int64 ns since the unit's own zero."""

    def __init__(self, place: Place, unit: TimeUnit) -> None:
        self._place = place
        self._to_ns = iso_ns if unit == "iso" else scaled(unit)
        self._unit = unit
        self._last = -1
        self._parts: list[NDArray[np.int64]] = []

    def add(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> None:
        out = np.empty(len(values), dtype=np.int64)
        for k, value in enumerate(values):
            try:
                ns = self._to_ns(value or "")
            except ValueError as error:
                fix = f"correct it, or set unit (now {self._unit!r}) to what the column holds"
                raise self._place.refuse(unit, places[k], value, str(error), fix) from error
            if ns < self._last:
                fix = f"sort the file by {self._place.column!r}"
                raise self._place.refuse(unit, places[k], value, "this time is earlier than the one before it", fix)
            self._last = ns
            out[k] = ns
        self._parts.append(out)

    def values(self) -> NDArray[np.int64]:
        return np.concatenate(self._parts) if self._parts else np.empty(0, dtype=np.int64)


class Sizes:
    """A column of sizes: positive integers (``2500.0`` counts as one); those outside ``lo..hi`` are counted."""

    def __init__(self, place: Place, lo: int, hi: int) -> None:
        self._place = place
        self._lo, self._hi = lo, hi
        self._known: dict[Text, int] = {}
        self._outside = 0
        self._first: tuple[str, int, Text] | None = None
        self._parts: list[NDArray[np.int64]] = []

    def add(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> None:
        out = np.empty(len(values), dtype=np.int64)
        for k, value in enumerate(values):
            size = self._known.get(value)
            if size is None:
                size = self._known[value] = self._parse(unit, places[k], value)
            out[k] = size
        outside = (out < self._lo) | (out > self._hi)
        if outside.any() and self._first is None:
            first = int(np.argmax(outside))
            self._first = (unit, places[first], values[first])
        self._outside += int(outside.sum())
        self._parts.append(out)

    def _parse(self, unit: str, place: int, value: Text) -> int:
        try:
            return whole(value or "")
        except ValueError as error:
            fix = "correct or remove this row, or map the dim to another column"
            raise self._place.refuse(unit, place, value, str(error), fix) from error

    def values(self) -> NDArray[np.int64]:
        if self._first is not None:
            what = f"sizes outside {self._lo}..{self._hi} in {self._outside} rows, the first"
            name = self._place.key.rsplit(".", 1)[-1]
            fix = f"widen dims.{name} if the network accepts them, or filter these rows"
            raise self._place.refuse(*self._first, what, fix)
        return np.concatenate(self._parts) if self._parts else np.empty(0, dtype=np.int64)


class Names:
    """A column of names, as codes in the order of their first appearance."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._codes: dict[str, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> None:
        out = np.empty(len(values), dtype=np.int32)
        for k, value in enumerate(values):
            if value is None:
                raise self._place.refuse(unit, places[k], value, "the stream is missing", "name it, or drop this row")
            out[k] = self._codes.setdefault(value, len(self._codes))
            if len(self._codes) > MOST_STREAMS:
                what = f"more than {MOST_STREAMS} streams; this looks like an id of requests, not of clients"
                raise self._place.refuse(unit, places[k], value, what, "choose another column for shapes.stream")
        self._parts.append(out)

    def values(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, dtype=np.int32)
        return codes, tuple(self._codes)


def scaled(unit: str) -> Callable[[str], int]:
    """Text in ``unit`` (s, ms, us, ns) -> ns, exactly; ValueError for what is no time."""
    power = _POWER[unit]

    def to_ns(text: str) -> int:
        return _bounded(int(_decimal(text).scaleb(power).to_integral_value()))

    return to_ns


def iso_ns(text: str) -> int:
    """An ISO 8601 time in ns since 1970, UTC where it names no zone; ValueError for what is none."""
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError("not a time like 2023-11-16 18:17:03.9799600" if text else "the time is missing")
    zone = found["zone"] or "+00:00"
    zone = zone if len(zone) > 3 else f"{zone}:00"
    moment = datetime.datetime.fromisoformat(f"{found['date']}T{found['clock']}{zone}") - _EPOCH
    part = (found["part"] or "").ljust(9, "0")[:9]
    return _bounded((moment.days * 86_400 + moment.seconds) * 1_000_000_000 + int(part))


def _bounded(ns: int) -> int:
    if ns < 0:
        raise ValueError("the time is negative")
    if ns >= LATEST:
        raise ValueError("the time is too large to be one in this unit")
    return ns


def _decimal(text: str) -> Decimal:
    if not text:
        raise ValueError("the time is missing")
    if not _NUMBER.fullmatch(text):
        raise ValueError("the time is not a number")
    value = Decimal(text)
    if value and value.adjusted() > 20:
        raise ValueError("the time is too large to be one in this unit")
    return value


def whole(text: str) -> int:
    """A positive whole number; ValueError for what is none."""
    if not text:
        raise ValueError("the size is missing")
    if not _NUMBER.fullmatch(text):
        raise ValueError("the size is not a number")
    value = Decimal(text)
    if value <= 0:
        raise ValueError("the size is not above 0")
    if value.adjusted() > 10 or value >= LARGEST_SIZE:
        raise ValueError("the size is too large")
    if value != value.to_integral_value():
        raise ValueError("the size is not a whole number")
    return int(value)


def number(text: str) -> float:
    """A number that is not negative; ValueError for what is none."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    value = float(text)
    if value < 0 or value == float("inf"):
        raise ValueError("the number is negative or too large")
    return value
