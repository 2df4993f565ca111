"""Where the values of a JSON array begin and end, in a piece of its bytes, whatever is between or inside them.

Brackets in strings do not count, so strings are told first: a quote opens or closes one unless an odd number of
backslashes stands before it. The depth of a bracket is then a running sum; a closing one without its opening would take
it below 0 and is set apart: the first ``]`` of these ends the array, any other is a stray.

Linear in the bytes, in time and memory, whatever they are: a few passes of numpy, and no stack.
Limit: a quote that is missing inside one event turns strings and the rest around for all that follow; the event then
seems not to end, and :mod:`._events` goes on behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
BETWEEN = b" \t\r\n,"
_OTHER = np.ones(256, dtype=bool)
_OTHER[list(BETWEEN)] = False


class Found(NamedTuple):
    """``starts`` and ``ends`` (behind the last byte) of the values that are whole, in order. ``done`` = up to where the
    bytes are settled; ``torn`` = whether a value begins there that does not end. ``closed`` = the array ends, at
    ``done``. ``foreign`` = strays and stretches between the values that are no part of any."""

    starts: Ints
    ends: Ints
    done: int
    torn: bool
    closed: bool
    foreign: int


def scan(data: bytes) -> Found:
    """The values at the top of ``data``, which begins inside an array, between two of its values."""
    raw = np.frombuffer(data, dtype=np.uint8)
    at, step = _brackets(raw, _in_string(data, raw))
    depth = np.cumsum(step)
    low = np.minimum.accumulate(np.minimum(depth, 0))
    stray = np.diff(low, prepend=0) < 0
    close = np.flatnonzero(stray & (raw[at] == ord("]")))
    closed = close.size > 0
    stop = int(at[close[0]]) if closed else len(data)
    ours = slice(int(close[0]) if closed else None)
    at, step, depth, low, stray = at[ours], step[ours], depth[ours], low[ours], stray[ours]
    starts = at[(step > 0) & (depth - low == 1)]
    ends = at[(step < 0) & (depth == low) & ~stray] + 1
    torn = starts.size > ends.size
    settled = int(starts[-1]) if torn else stop if closed else None
    starts = starts[: ends.size]
    foreign, last = _between(
        raw, np.sort(np.append(starts, at[stray])), np.sort(np.append(ends, at[stray] + 1)), settled
    )
    done = stop + 1 if closed else int(settled) if settled is not None else last
    return Found(starts, ends, done, torn and not closed, closed, foreign + int(stray.sum()))


def _in_string(data: bytes, raw: NDArray[np.uint8]) -> Flags:
    """Whether each byte lies in a string; of its two quotes only the first does."""
    quote = raw == ord('"')
    if b"\\" in data:
        after = np.flatnonzero(quote[1:] & (raw[:-1] == ord("\\"))) + 1
        plain = np.append(-1, np.flatnonzero(raw != ord("\\")))
        run = after - 1 - plain[np.searchsorted(plain, after) - 1]
        quote[after[run % 2 == 1]] = False
    return (np.cumsum(quote, dtype=np.int32) & 1).astype(bool)


def _brackets(raw: NDArray[np.uint8], in_string: Flags) -> tuple[Ints, Ints]:
    """Positions of the brackets outside of strings, and what each does to the depth."""
    kind = raw | 32  # [ and { differ from each other in this bit, as ] and } do
    opening, closing = kind == ord("{"), kind == ord("}")
    at = np.flatnonzero((opening | closing) & ~in_string)
    return at, np.where(opening[at], 1, -1)


def _between(raw: NDArray[np.uint8], starts: Ints, ends: Ints, settled: int | None) -> tuple[int, int]:
    """How many stretches between values hold more than separators, and where the last value ends.

    What follows the last value counts only up to ``settled``; None: more of it may come.
    """
    last = int(ends[-1]) if ends.size else 0
    begins = np.append(0, ends)
    stops = starts if settled is None else np.append(starts, settled)
    others = np.append(0, np.cumsum(_OTHER[raw], dtype=np.int32))
    return int((others[stops] > others[begins[: stops.size]]).sum()), last
