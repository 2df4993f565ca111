"""Many plain values at once: exactly what :mod:`._values` makes of each of them; the others are told apart.

Plain is what machines write: at most 19 digits with at most one point, no sign, no exponent. Everything else, and every
value that is none, is *odd*: it is left to the slow and careful way, which also knows what to say of it.

Written digits are joined to whole numbers, place by place over all values at once, so nothing is rounded that the file
does not round. A stored float64 v stands for the shortest decimal that reads as v, which is off by less than 2^-53 of
itself, as is v times a power of ten: where both together cannot move it over the half between two nanoseconds, rounding
the product is exact; else that decimal is written out and its digits are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.readers._packed import Bools, Cut, Ints, Stored
from trimtab.readers._rows import Text
from trimtab.readers._values import LARGEST_SIZE, LATEST

DIGITS = 19
"""Digits that surely fit uint64."""
_POWER = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_TENS = np.array([10**k for k in range(DIGITS + 1)], dtype=np.uint64)
_MOST = np.uint64(LATEST - 1) // _TENS
"""What may be multiplied by each of them and still be a time."""
_EXACT = 1 << 53
"""Whole numbers below it, divided by a power of ten below 10^23, round once: to what the decimal itself rounds to."""
_CLOCK = 19
"""Signs of a date and a time of day without a part of a second."""
_FIELDS = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19), (_CLOCK + 1, _CLOCK + 1 + _POWER["s"]))
_BETWEEN = {4: b"-", 7: b"-", 10: b"T ", 13: b":", 16: b":", _CLOCK: b".,"}
_LONGEST = _CLOCK + 1 + 18
_LAST_YEAR = 2116
"""In it 2^62 ns since 1970 are over."""


class Parsed(NamedTuple):
    """One value each; what is missing is NEVER or nan. ``odd`` = positions of those that are still to be judged."""

    values: NDArray[Any]
    odd: Ints


Many = Callable[[Sequence[Text]], Parsed]


class _Digits(NamedTuple):
    """``joined`` uint64[n] = all digits of each value as one number, of which ``behind`` int64[n] stand behind the
    point; ``plain`` bool[n] = it is so."""

    joined: NDArray[np.uint64]
    behind: Ints
    plain: Bools


def times(unit: str) -> Many:
    """Text in ``unit`` (s, ms, us, ns) -> int64 ns."""
    power = _POWER[unit]

    def written(cut: Cut) -> Parsed:
        return _parsed(*_to_ns(_digits(cut), power), cut.missing, NEVER)

    def many(values: Sequence[Text]) -> Parsed:
        if not isinstance(values, Stored):
            return written(_cut(values))
        found = _parsed(*_stored_ns(values.numbers, power), values.nothing, NEVER)
        if not found.odd.size:
            return found
        again = written(Cut.joined([values[k] for k in found.odd.tolist()]))
        found.values[found.odd] = again.values
        return Parsed(found.values, found.odd[again.odd])

    return many


def isos(values: Sequence[Text]) -> Parsed:
    """``2023-11-16 18:17:03.9799600``, also with T and Z -> int64 ns since 1970; one with a zone is odd."""
    cut = _cut(values)
    signs = np.frombuffer(cut.data, dtype=np.uint8) if cut.data else np.zeros(1, dtype=np.uint8)
    utc = signs.take(cut.end - 1, mode="clip") == ord("Z")
    body = cut.end - cut.begin - utc
    pointed = (body > _CLOCK + 1) & (body <= _LONGEST)
    plain = (body == _CLOCK) | pointed

    def field(begin: int, end: int) -> Ints:
        """The number at these places; 0 for each one that the value does not reach."""
        out = np.zeros(body.size, dtype=np.int64)
        for place in range(begin, end):
            digit = signs.take(cut.begin + place, mode="clip") - np.uint8(ord("0"))
            inside = body > place
            plain[inside & (digit > 9)] = False
            out = out * 10 + np.where(inside, digit, 0)
        return out

    for place, allowed in _BETWEEN.items():
        sign = signs.take(cut.begin + place, mode="clip")
        plain &= np.isin(sign, np.frombuffer(allowed, dtype=np.uint8)) | (body <= place)
    year, month, day, hour, minute, second, part = (field(*places) for places in _FIELDS)
    field(_FIELDS[-1][1], min(int(body.max(initial=0)), _LONGEST))  # digits below a nanosecond only must be digits
    plain &= (year >= 1970) & (year < _LAST_YEAR) & (month >= 1) & (month <= 12)
    months = np.where(plain, (year - 1970) * 12 + month - 1, 0)
    first, after = (at.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) for at in (months, months + 1))
    plain &= (day >= 1) & (day <= after - first) & (hour < 24) & (minute < 60) & (second < 60)
    seconds = (((first + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    return _parsed(np.where(plain, seconds, 0) * 10**9 + part, plain, cut.missing, NEVER)


def numbers(values: Sequence[Text]) -> Parsed:
    """Text -> float64."""
    if isinstance(values, Stored):
        out = values.numbers.astype(np.float64)
        return _parsed(out, np.isfinite(out) & (out >= 0), values.nothing, np.nan)
    cut = _cut(values)
    digits = _digits(cut)
    out = digits.joined.astype(np.float64) / _TENS.astype(np.float64)[digits.behind]
    return _parsed(out, digits.plain & (digits.joined < _EXACT), cut.missing, np.nan)


def sizes(values: Sequence[Text]) -> Parsed:
    """Text -> int64 above 0."""
    if isinstance(values, Stored):
        fits = (values.numbers > 0) & (values.numbers < LARGEST_SIZE)
        out = np.where(fits, values.numbers, 0).astype(np.int64)
        return _parsed(out, fits & (out == values.numbers), values.nothing, NEVER)
    cut = _cut(values)
    digits = _digits(cut)
    whole, plain = digits.joined, digits.plain
    if digits.behind.any():
        whole, rest = np.divmod(whole, _TENS[digits.behind])
        plain = plain & (rest == 0)
    plain = plain & (whole > 0) & (whole < LARGEST_SIZE)
    return _parsed(whole.astype(np.int64), plain, cut.missing, NEVER)


def _cut(values: Sequence[Text]) -> Cut:
    return values if isinstance(values, Cut) else Cut.joined(values)


def _parsed(values: NDArray[Any], plain: Bools, missing: Bools, absent: float) -> Parsed:
    values[missing] = absent
    return Parsed(values, np.flatnonzero(~(plain | missing)))


def _digits(cut: Cut) -> _Digits:
    """The digits of every value, one place of all values after the other."""
    signs, at = np.frombuffer(cut.data, dtype=np.uint8), cut.begin.copy()
    length = np.minimum(cut.end - cut.begin, DIGITS + 2).astype(np.uint8)
    joined = np.zeros(at.size, dtype=np.uint64)
    points, behind = np.zeros(at.size, dtype=np.uint8), np.zeros(at.size, dtype=np.uint8)
    plain = length <= DIGITS + 1
    for place in range(min(int(length.max(initial=0)), DIGITS + 1)):
        sign = signs.take(at, mode="clip")
        inside = length > place
        point = (sign == ord(".")) & inside
        digit = sign - np.uint8(ord("0"))
        counts = (digit < 10) & inside
        plain &= counts | point | ~inside
        points += point
        behind += counts & (points > 0)
        joined *= counts * np.uint8(9) + np.uint8(1)
        joined += counts * digit
        at += 1
    count = length - points
    plain &= (points <= 1) & (count > 0) & (count <= DIGITS)
    return _Digits(joined, behind.astype(np.int64), plain)


def _to_ns(digits: _Digits, power: int) -> tuple[Ints, Bools]:
    """Nanoseconds, a half to the even one, and which of them are exact and within the range of times."""
    shift = power - digits.behind
    up = _TENS[np.maximum(shift, 0)]
    fits = digits.joined <= _MOST[np.maximum(shift, 0)]
    ns = digits.joined * up
    down = np.flatnonzero(shift < 0)
    if down.size:
        ten = _TENS[-shift[down]]
        whole, rest = np.divmod(digits.joined[down], ten)
        left = ten - rest
        ns[down] = whole + ((rest > left) | ((rest == left) & (whole % 2 == 1)))
    return ns.astype(np.int64), digits.plain & fits


def _stored_ns(stored: NDArray[Any], power: int) -> tuple[Ints, Bools]:
    """The same of numbers; those that a rounding could move are not exact."""
    if stored.dtype.kind == "i":
        fits = (stored >= 0) & (stored <= (LATEST - 1) // 10**power)
        return np.where(fits, stored, 0) * 10**power, fits
    fits = (stored >= 0) & (stored < LATEST / 10**power / 2)
    ns = np.where(fits, stored, 0.0) * 10.0**power
    to_half = np.abs(ns - np.floor(ns) - 0.5)
    return np.rint(ns).astype(np.int64), fits & (to_half > ns * 2.0**-51)
