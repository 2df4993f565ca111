"""Many plain values at once: exactly what :mod:`._values` makes of each of them, or None where one is not plain.

Plain is what machines write: digits with at most one point, no sign, no exponent. Everything else, and every value that
is none, is left to the slow and careful way, which also knows what to say of it.

A time in float64 is off by less than 2^-52 of itself. Where that cannot move it over the half between two nanoseconds,
rounding it is exact; else the digits themselves are joined, as far as they reach to whole nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from trimtab.readers._rows import Text
from trimtab.readers._values import LARGEST_SIZE

Many = Callable[[Sequence[Text]], NDArray[Any] | None]
DIGITS = 18
"""Digits of a whole number that surely fits int64."""
_POINTED = re.compile(r"[0-9.\n]*")
_WHOLE = re.compile(r"[0-9\n]*")
_POWER = {"s": 9, "ms": 6, "us": 3, "ns": 0}


def times(unit: str) -> Many:
    """Text in ``unit`` (s, ms, us, ns) -> int64 ns."""
    power = _POWER[unit]

    def many(values: Sequence[Text]) -> NDArray[np.int64] | None:
        texts = _texts(values, _POINTED)
        given = None if texts is None else _floats(texts)
        if texts is None or given is None:
            return None
        ns = given * 10.0**power
        to_half = np.abs(ns - np.floor(ns) - 0.5)
        if np.all(to_half > ns * 2.0**-51):
            return np.rint(ns).astype(np.int64)
        return _joined(texts, power)

    return many


def numbers(values: Sequence[Text]) -> NDArray[np.float64] | None:
    """Text -> float64."""
    texts = _texts(values, _POINTED)
    return None if texts is None else _floats(texts)


def sizes(values: Sequence[Text]) -> NDArray[np.int64] | None:
    """Text -> int64 above 0."""
    texts = _texts(values, _WHOLE)
    if texts is None or max(map(len, texts)) > DIGITS:
        return None
    try:
        out = np.array(list(map(int, texts)), dtype=np.int64)
    except ValueError:
        return None
    return out if out.min() > 0 and out.max() < LARGEST_SIZE else None


def _texts(values: Sequence[Text], plain: re.Pattern[str]) -> Sequence[str] | None:
    """The values, if there are some and all are of plain signs."""
    if not values or None in values:
        return None
    texts = cast(Sequence[str], values)
    return texts if plain.fullmatch("\n".join(texts)) else None


def _floats(texts: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        out = np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        return None
    return out if bool(np.isfinite(out).all()) else None


def _joined(texts: Sequence[str], power: int) -> NDArray[np.int64] | None:
    """Whole nanoseconds out of the digits before and behind the point."""
    out = []
    for text in texts:
        before, _, behind = text.partition(".")
        if len(behind) > power or len(before) + power > DIGITS + 1:
            return None
        out.append(int(before + behind.ljust(power, "0")))
    return np.array(out, dtype=np.int64) if max(out) < 1 << 62 else None
