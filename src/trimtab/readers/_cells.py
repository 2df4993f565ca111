"""Columns of a table of requests, parsed value by value: what is no value is missing, and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.noun import NEVER
from trimtab.domain.route import ROUTE_KINDS
from trimtab.readers import _plain
from trimtab.readers._plain import Many
from trimtab.readers._rows import Text
from trimtab.readers._values import MOST_STREAMS, Place, iso_ns, number, scaled, whole

_GOOD = frozenset(("true", "1", "yes", "y", "ok", "success", "none", "200"))
_BAD = {
    **dict.fromkeys(("false", "0", "no", "n", "failed", "fail", "error"), "backend-error"),
    **dict.fromkeys(("oom", "out of memory", "out_of_memory"), "out-of-memory"),
    **dict.fromkeys(("timeout", "timed out", "unfinished"), "unfinished"),
}
REPEATED = 4
"""Values that occur so often in the mean are parsed once."""
SAMPLE = 4096
"""Values by which is told whether counting all of them may pay."""
_MISSING = frozenset(("nan", "null", "none", "na", "n/a", "-"))


class Cells:
    """One column: ``values`` in the type that its role needs, ``bad`` = values that were none, by reason.

    ``bad_first`` = (unit, place, text, reason) of the first one, for a strict reading.
    """

    def __init__(
        self, place: Place, parse: Callable[[str], Any], dtype: str, absent: Any, many: Many | None = None
    ) -> None:
        self.place = place
        self._parse, self._dtype, self._absent, self._many = parse, dtype, absent, many
        self._parts: list[NDArray[Any]] = []
        self.bad = 0
        self.bad_first: tuple[str, int, Text, str] | None = None

    def add(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> None:
        """The values of some rows. What is plain is parsed all at once, and only the others one by one."""
        if self._many is None:
            self._parts.append(self._careful(unit, places, values))
            return
        out, odd = self._many(values)
        if odd.size:
            rows = odd.tolist()
            out[odd] = self._careful(unit, [places[k] for k in rows], [values[k] for k in rows])
        self._parts.append(out)

    def _careful(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> NDArray[Any]:
        out = self._repeated(values)
        return self._one_by_one(unit, places, values) if out is None else out

    def _repeated(self, values: Sequence[Text]) -> NDArray[Any] | None:
        """Values that are few, each parsed once; None where they are many, or one of them is none."""
        if len(set(values[:SAMPLE])) * REPEATED > len(values[:SAMPLE]):
            return None
        few = dict.fromkeys(values)
        if len(few) * REPEATED > len(values):
            return None
        try:
            known = {text: self._absent if _missing(text) else self._parse(text or "") for text in few}
        except ValueError:
            return None
        return np.fromiter(map(known.__getitem__, values), dtype=self._dtype, count=len(values))

    def _one_by_one(self, unit: str, places: Sequence[int], values: Sequence[Text]) -> NDArray[Any]:
        out = np.full(len(values), self._absent, dtype=self._dtype)
        for k, value in enumerate(values):
            if value is None or _missing(value):
                continue
            try:
                out[k] = self._parse(value)
            except ValueError as error:
                self.bad += 1
                self.bad_first = self.bad_first or (unit, places[k], value, str(error))
        return out

    def values(self) -> NDArray[Any]:
        """All values so far; they are handed over, so that a large column is held once."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=self._dtype), *parts])


def _missing(text: Text) -> bool:
    return text is None or text.lower() in _MISSING


def time_cells(place: Place, unit: str) -> Cells:
    """int64 ns of an absolute time or a duration; NEVER = missing."""
    if unit == "iso":
        return Cells(place, iso_ns, "int64", NEVER, _plain.isos)
    return Cells(place, scaled(unit), "int64", NEVER, _plain.times(unit))


def size_cells(place: Place) -> Cells:
    """Positive whole numbers; NEVER = missing."""
    return Cells(place, whole, "int64", NEVER, _plain.sizes)


def number_cells(place: Place) -> Cells:
    """Numbers that are not negative; nan = missing."""
    return Cells(place, number, "float64", np.nan, _plain.numbers)


class Codes(Cells):
    """Names as codes in the order of their first appearance; NEVER = missing."""

    def __init__(self, place: Place, most: int | None = None) -> None:
        super().__init__(place, self._code, "int64", NEVER)
        self.names: dict[str, int] = {}
        self._most = most

    def _code(self, text: str) -> int:
        code = self.names.setdefault(text, len(self.names))
        if self._most is not None and len(self.names) > self._most:
            raise TooManyNames
        return code


class TooManyNames(Exception):  # noqa: N818 - caught at once by the reader, which knows the column
    """A column of names that looks like one of ids."""


class Known(Cells):
    """Words of a fixed list as its codes; any other word is refused by the reader, never guessed."""

    def __init__(self, place: Place, codes: dict[str, int], absent: int) -> None:
        super().__init__(place, self._code, "int8", absent)
        self._codes = codes

    def _code(self, text: str) -> int:
        if text.lower() not in self._codes:
            raise ValueError("not one of the words that are understood here")
        return self._codes[text.lower()]


def ok_cells(place: Place) -> Known:
    """Codes into ERROR_KINDS: 0 = ended well; NEVER = missing."""
    kinds: list[str] = list(ERROR_KINDS)
    words = {kind: code for code, kind in enumerate(kinds)} | {word: kinds.index(kind) for word, kind in _BAD.items()}
    words |= dict.fromkeys(_GOOD, 0)
    return Known(place, words, NEVER)


def route_cells(place: Place) -> Known:
    """Codes into ROUTE_KINDS; NEVER = missing."""
    return Known(place, {kind: code for code, kind in enumerate(ROUTE_KINDS)}, NEVER)


def stream_cells(place: Place) -> Codes:
    return Codes(place, MOST_STREAMS)


def commonest(codes: NDArray[np.int64], names: Iterable[str]) -> str:
    """The name that most rows have, of several the one that appeared first; "" without any."""
    counts = np.bincount(codes[codes != NEVER])
    return list(names)[int(counts.argmax())] if counts.size else ""
