"""Spans: what a profiler or a compiler's log recorded, as columns. A timeline of work, not a table of requests.

Whatever tool wrote the file, a span is one piece of work on one lane: a thread of the host, or a stream of a device.
How the tool links a launch to the work that it started (correlation ids, external ids) is settled by its reader; here
it is a row number. Times count from the first thing in the file, ``origin`` says when that was.
"""

from __future__ import annotations

import msgspec

from trimtab.domain.noun import NEVER, Dims, Noun, Ns
from trimtab.domain.trace import Table

SPAN_KINDS = ("run", "op", "launch", "driver", "wait", "kernel", "copy", "compile", "note", "other")
"""``run`` = one call of the network or one step; ``op`` = an operator, on the host; ``launch`` = a host call that put
work on a device, ``driver`` = any other call of its driver, ``wait`` = one that waits for it; ``kernel`` and ``copy`` =
work on a device; ``compile`` = loading or compiling; ``note`` = a name that somebody gave to a stretch of time."""
KIND = {name: number for number, name in enumerate(SPAN_KINDS)}
"""The number of each kind in the column."""

SPAN_COLUMNS: dict[str, str] = {
    "start": "int64",
    "end": "int64",
    "kind": "int8",  # into SPAN_KINDS
    "name": "int32",  # into Spans.names
    "lane": "int32",  # into Spans.lanes
    "device": "int32",  # NEVER = the host
    "launch": "int64",  # row of the span that launched it; NEVER = not launched, or not recorded
    "shape": "int32",  # into Spans.shapes; NEVER = not recorded
    "dtype": "int32",  # into Spans.dtypes; NEVER = not recorded
}
"""Rows are sorted by start. Spans of one lane are nested or apart, as their tool recorded them."""

Shapes = tuple[Dims, ...]
"""The dims of each input of one span; () for a scalar."""


class Compilation(Noun, frozen=True, kw_only=True):
    """One compile of one piece of code, as a compiler's log tells it.

    ``again`` = that code was compiled before. ``reasons`` = the guards that failed, so that it had to be. ``breaks`` =
    why the graph ends early. ``cache`` = ``hit``, ``miss``, ``bypass`` or "" where no cache is named. ``failure`` = why
    no program came of it; ``limit`` = the limit that stopped further compiles of this code. Both leave it to run
    uncompiled. ``start`` counts from ``Spans.origin``; NEVER = not recorded.
    """

    id: str
    code: str
    rank: int = NEVER
    start: Ns = NEVER
    took: Ns = NEVER
    again: bool = False
    reasons: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    cache: str = ""
    failure: str = ""
    limit: str = ""


class Spans(msgspec.Struct, frozen=True, kw_only=True):
    """One file's timeline. ``origin`` = the time 0, ns since 1970; None = a clock without a known zero.

    ``facts`` = what the file says of its machine and versions. ``complete`` False = it ends before its own end.
    """

    tool: str
    table: Table
    names: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    shapes: tuple[Shapes, ...] = ()
    dtypes: tuple[str, ...] = ()
    compiles: tuple[Compilation, ...] = ()
    origin: Ns | None = None
    facts: dict[str, str] = {}
    complete: bool = True
