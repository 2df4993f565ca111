"""Columns of spans, filled piece by piece: names become codes, microseconds exact nanoseconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.spans import SPAN_COLUMNS
from trimtab.domain.trace import Table
from trimtab.errors import DataError
from trimtab.readers._file import file_digest

K = TypeVar("K", bound=Hashable)
Ints = NDArray[np.int64]

SINCE_1970 = 10**18
"""ns. A larger time is one of a calendar (September 2001), a smaller one counts from the start of something."""
MOST_SPANS = 20_000_000
MOST_CODES = 1 << 18
LONGEST_NAME = 4096
_LARGEST = 1 << 62
_LATEST_US = 2.2e15  # the year 2039, in microseconds since 1970; sums and differences of such times fit int64

OUT_OF_RANGE = "its time is none"
BACKWARDS = "it ends before it starts"


class Codes(dict[K, int]):
    """A code for each key, in the order of their first appearance. ``codes[key]`` makes one where there is none.

    A file may bear a different name in every span, so the number of codes is bounded; later keys share the code
    ``MOST_CODES``, and ``over`` counts how often that was.
    """

    over = 0

    def __missing__(self, key: K) -> int:
        if len(self) >= MOST_CODES:
            self.over += 1
            return MOST_CODES
        code = self[key] = len(self)
        return code

    def names(self) -> tuple[K, ...]:
        """The keys by code."""
        return tuple(self)


def texts(codes: Codes[str]) -> tuple[str, ...]:
    """The names by code; a name that is longer than anybody reads is cut."""
    named = tuple(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…" for name in codes)
    return (*named, "(other names)") if codes.over else named


class Gather:
    """Collects columns of equal length; ``dropped`` counts rows that cannot be spans."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        self.rows = 0
        self._parts: dict[str, list[NDArray[Any]]] = {}

    def add(self, start: Ints, end: Ints, known: NDArray[np.bool_], columns: Mapping[str, NDArray[Any]]) -> None:
        """Rows with their times, ns; those that are not ``known`` to be times, or run backwards, are left out."""
        forward = end >= start
        self._drop(OUT_OF_RANGE, ~known)
        self._drop(BACKWARDS, known & ~forward)
        keep = known & forward
        whole = bool(keep.all())
        for name, column in {"start": start, "end": end, **columns}.items():
            self._parts.setdefault(name, []).append(column if whole else column[keep])
        self.rows += int(keep.sum())
        if self.rows > MOST_SPANS:
            raise DataError(
                f"{self.path.name} holds more than {MOST_SPANS // 1_000_000} million spans",
                where=str(self.path),
                fix="record a shorter stretch: a few steps tell as much",
            )

    def _drop(self, reason: str, wrong: NDArray[np.bool_]) -> None:
        count = int(wrong.sum())
        if count:
            self.dropped[reason] += count

    def columns(self) -> tuple[dict[str, NDArray[Any]], Ns]:
        """All columns by start, the earliest start being 0, and what that was."""
        out = {}
        for name in list(self._parts):
            out[name] = np.concatenate(self._parts.pop(name))
        if not self.rows:
            return {}, 0
        order = np.argsort(out["start"], kind="stable")
        out = {name: column[order] for name, column in out.items()}
        first = int(out["start"][0])
        out["start"] -= first
        out["end"] -= first
        return out, first


def us_to_ns(values: Sequence[float]) -> tuple[Ints, NDArray[np.bool_]]:
    """Microseconds with fractions -> ns, and whether each is a time.

    The whole and the broken part are scaled apart: 1.7e15 us fit a float64 exactly, 1.7e18 ns do not. What a float64
    cannot hold is lost already: a fraction behind a time since 1970 is good to 0.25 us.
    """
    us = np.asarray(values, dtype=np.float64)
    known = np.abs(us) < _LATEST_US
    us = np.where(known, us, 0.0)
    whole = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64), known


def ids(values: Sequence[Any]) -> Ints:
    """Ids as int64; NEVER for what is no id."""
    try:
        return np.array(values, dtype=np.int64)
    except (OverflowError, ValueError, TypeError):
        return np.array([_id(value) for value in values], dtype=np.int64)


def _id(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < _LARGEST else NEVER


def table(columns: Mapping[str, NDArray[Any]], rows: int) -> Table:
    """The columns of spans; what no row has is NEVER."""
    out = {}
    for name, kind in SPAN_COLUMNS.items():
        given = columns.get(name)
        out[name] = np.full(rows, NEVER, dtype=kind) if given is None else given.astype(kind, copy=False)
    return Table(out)


def report(
    path: Path,
    name: str,
    *,
    rows: int,
    used: int,
    unit: str,
    dropped: Mapping[str, int],
    strict: bool,
    ignored: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ReadReport:
    """How ``path`` was read. DataError where nothing of it can be used or, strictly, where anything was left out."""
    left = {reason: count for reason, count in dropped.items() if count}
    said = "; ".join(f"{count} {unit} left out: {reason}" for reason, count in left.items())
    if strict and left:
        raise DataError(said, where=str(path), fix="record it again, or read it without --strict")
    if not used:
        raise DataError(
            f"{path.name} is a {name} without anything to read: {said or f'it has no {unit}'}",
            where=str(path),
            fix="record it again, and let the profiler stop before the file is copied",
        )
    return ReadReport(
        file=path.name, sha256=file_digest(path), rows=rows, used=used, columns={}, ignored=tuple(ignored),
        dropped=left, notes=tuple(notes), format=name, unit=unit,
    )  # fmt: skip
