"""How numbers are said. Every figure that a person reads goes through here.

Rules: a real minus sign, a thin gap before units, thousands with commas, no decimals below the interval, infinity in
words, and nothing at all for what is not known (an en dash).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from trimtab.domain.figure import Figure, Interval

GAP = "\u00a0"
MINUS = "\u2212"
NOTHING = "\u2013"
LARGEST = 1e12
"""From here on the digits of a number are not written out."""
SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_TURNING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Signs that are not seen and yet change how what follows them is read."""
_WORD, _WHOLE = 160, 4000
"""The most signs of one word and of one text that a page shows."""
_LONG = re.compile(rf"\S{{{_WORD + 1},}}")
_HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")
_SHARE = ("share", "ratio", "fraction")
_PLAIN = ("", "1", "count", "requests", "cores", "batches", "shapes", "entries", "runs", "windows", "workers")


def number(value: float | None, half_width: float | None = None) -> str:
    """``value`` with three significant digits, or with as many as ``half_width`` (of its interval) supports."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= LARGEST:
        return _scientific(value)
    digits = _decimals(value, half_width)
    said = f"{abs(value):,.{digits}f}"
    if not said.strip("0.,"):
        return "0"
    if half_width is None and "." in said:
        said = said.rstrip("0").rstrip(".")
    return f"{MINUS}{said}" if value < 0 else said


def _scientific(value: float) -> str:
    """``1.23e15``."""
    digits, exponent = f"{value:.2e}".split("e")
    return f"{float(digits):g}e{int(exponent)}".replace("-", MINUS)


def _decimals(value: float, half_width: float | None) -> int:
    size = abs(value)
    own = 2 if size == 0 else 2 - math.floor(math.log10(size))
    if value == round(value):
        own = min(own, 0)
    if size >= 1000:
        own = 0
    if half_width is None or not math.isfinite(half_width) or half_width <= 0:
        return max(min(own, 4), 0)
    return max(min(own, -math.floor(math.log10(half_width)), 4), 0)


def signed(value: float | None, half_width: float | None = None) -> str:
    """``number`` with an explicit plus sign."""
    said = number(value, half_width)
    return f"+{said}" if value is not None and value > 0 and said != "0" else said


def count(value: float) -> str:
    """A whole number with thousands separated."""
    return number(round(value)) if abs(value) < 1000 else f"{round(value):,}".replace("-", MINUS)


def percent(value: float | None, half_width: float | None = None) -> str:
    """A share 0..1 as per cent."""
    if value is None or not math.isfinite(value):
        return NOTHING
    scaled = value * 100
    width = None if half_width is None else half_width * 100
    return f"{_percents(scaled, width)}{GAP}%"


def change(value: float | None, half_width: float | None = None) -> str:
    """A relative change as signed per cent."""
    if value is None or not math.isfinite(value):
        return NOTHING
    scaled = value * 100
    width = None if half_width is None else half_width * 100
    said = _percents(scaled, width)
    return f"{'+' if scaled > 0 and said.strip('0.') else ''}{said}{GAP}%"


def _percents(scaled: float, width: float | None) -> str:
    said = number(scaled, _coarse(scaled, width))
    return said.rstrip("0").rstrip(".") if width is None and "." in said and "e" not in said else said


def _coarse(scaled: float, width: float | None) -> float:
    """Per cents above 10 carry no decimals, above 1 at most one: nobody decides on more. Almost all is not all."""
    almost_all = 99.5 <= abs(scaled) < 100
    natural = 5.0 if abs(scaled) >= 10 and not almost_all else 0.5 if abs(scaled) >= 1 else 0.05
    return max(natural, width or 0.0)


def half(interval: Interval | None) -> float | None:
    """Half the width of an interval, or None."""
    if interval is None or not (math.isfinite(interval.lo) and math.isfinite(interval.hi)):
        return None
    return (interval.hi - interval.lo) / 2


def spread(interval: Interval | None, unit: str = "") -> str:
    """An interval as ``(lo to hi)`` in the scale that ``quantity`` uses for ``unit``."""
    if interval is None:
        return ""
    width = half(interval)
    if unit in _SHARE:
        return f"({percent(interval.lo, width).removesuffix(GAP + '%')} to {percent(interval.hi, width)})"
    if unit == "change":
        return f"({change(interval.lo, width).removesuffix(GAP + '%')} to {change(interval.hi, width)})"
    return f"({number(interval.lo, width)} to {number(interval.hi, width)})"


def quantity(value: float | None, unit: str, interval: Interval | None = None) -> str:
    """A value with its unit: times in ms or s, memory in MiB or GiB, shares in per cent."""
    if value is None or not math.isfinite(value):
        return "> deadline" if value == math.inf and unit in ("ms", "s") else number(value)
    width = half(interval)
    if unit in _SAID:
        return _SAID[unit](value, width)
    if unit in _PLAIN:
        return number(value, width)
    return f"{number(value, width)}{GAP}{unit}"


def figure(item: Figure | None) -> str:
    """The value of a figure with its unit; a figure that could not be computed is an en dash."""
    return NOTHING if item is None else quantity(item.value, item.unit, item.interval)


def time(ms: float) -> str:
    """Milliseconds, in the unit that reads best."""
    if not math.isfinite(ms):
        return number(ms)
    if abs(ms) >= 1000:
        return f"{number(ms / 1e3)}{GAP}s"
    if 0 < abs(ms) < 0.1:
        return f"{number(ms * 1e3)}{GAP}µs"
    return f"{number(ms)}{GAP}ms"


def nanoseconds(ns: float) -> str:
    """Integer nanoseconds, in the unit that reads best."""
    return time(ns / 1e6)


def memory(size: float) -> str:
    """Bytes as MiB, or GiB from 1 GiB."""
    if size < 0 or not math.isfinite(size):
        return NOTHING
    if size >= 2**30:
        return f"{number(size / 2**30)}{GAP}GiB"
    return f"{number(size / 2**20)}{GAP}MiB"


def amount(number_of: int) -> str:
    """``no``, ``three``, ``1,240``."""
    return SMALL[number_of] if number_of < len(SMALL) else count(number_of)


def many(number_of: int, one: str, more: str = "") -> str:
    """``three entries``, ``one entry``, ``1,240 entries``."""
    return f"{amount(number_of)} {one if number_of == 1 else more or f'{one}s'}"


def short(name: str, most: int = 16) -> str:
    """A name that fits its place, cut with an ellipsis."""
    said = shown(name)
    return said if len(said) <= most else f"{said[: most - 1]}…"


def listed(parts: tuple[str, ...] | list[str], last: str = "and") -> str:
    """``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def moment(iso: str) -> str:
    """``2026-11-30T10:00:00Z`` as a reader writes it, to the minute."""
    zone = "UTC" if iso.endswith(("Z", "+00:00")) else ""
    return f"{iso[:10]} {iso[11:16]} {zone}".strip()


def shown(text: str) -> str:
    """Any text as a page may show it: signs that would turn or hide what stands beside them are written out, and what
    is too long to be read is cut, a word in its middle."""
    said = _TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    said = _LONG.sub(lambda found: f"{found[0][: _WORD - 40]}…{found[0][-39:]}", said)
    return said if len(said) <= _WHOLE else f"{said[:_WHOLE]}… ({count(len(said) - _WHOLE)} more signs)"


def typeset(sentence: str) -> str:
    """A stored sentence with real minus signs."""
    return _HYPHEN.sub(MINUS, sentence)


def opened(sentence: str) -> str:
    """With a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


def ended(sentence: str) -> str:
    """With a full stop."""
    return sentence if not sentence or sentence[-1] in ".!?…" else f"{sentence}."


_SAID: dict[str, Callable[[float, float | None], str]] = {
    **dict.fromkeys(_SHARE, percent),
    "change": change,
    "bytes": lambda value, _: memory(value),
    "ns": lambda value, _: nanoseconds(value),
    "us": lambda value, _: time(value / 1e3),
}
