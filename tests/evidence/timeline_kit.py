"""Timelines out of literal rows, for the tests of what they prove."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Dims
from trimtab.domain.spans import SPAN_COLUMNS, SPAN_KINDS, Compilation, Spans
from trimtab.domain.trace import Table

US, MS = 1_000, 1_000_000
ON_DEVICE = ("kernel", "copy")

Row = tuple[str, int, int] | tuple[str, int, int, int] | tuple[str, int, int, int, str]
"""kind, start, end, row of its launch (NEVER), name; times in us."""

READ = ReadReport(file="t.json", sha256="", rows=1, used=1, columns={})


def spans(rows: Sequence[Row], *, lanes: Sequence[int] = (), dtypes: Sequence[str] = ()) -> Spans:
    """A timeline of ``rows``, which are in order of start; ``lanes`` and ``dtypes`` by row where they matter."""
    kinds = [row[0] for row in rows]
    names = [row[4] if len(row) > 4 else row[0] for row in rows]
    known, types = list(dict.fromkeys(names)), list(dict.fromkeys(name for name in dtypes if name))
    lane = list(lanes) or [int(kind in ON_DEVICE) for kind in kinds]
    columns = {
        "start": [row[1] * US for row in rows],
        "end": [row[2] * US for row in rows],
        "kind": [SPAN_KINDS.index(kind) for kind in kinds],
        "name": [known.index(name) for name in names],
        "lane": lane,
        "device": [0 if kind in ON_DEVICE else NEVER for kind in kinds],
        "launch": [row[3] if len(row) > 3 else NEVER for row in rows],
        "shape": [NEVER] * len(rows),
        "dtype": [types.index(name) if name else NEVER for name in dtypes] or [NEVER] * len(rows),
    }
    table = Table({name: np.array(columns[name], dtype=kind) for name, kind in SPAN_COLUMNS.items()})
    named = tuple(f"lane {k}" for k in range(max(lane, default=0) + 1))
    return Spans(tool="test", table=table, names=tuple(known), lanes=named, dtypes=tuple(types))


def runs(took_us: Sequence[int], widths: Sequence[int], gap: int = 100) -> Spans:
    """Runs of a network one after another, each with its width."""
    rows, at = [], 0
    for took in took_us:
        rows.append(("run", at, at + took))
        at += took + gap
    base = spans(rows)
    shapes: list[tuple[Dims, ...]] = [((1, width),) for width in dict.fromkeys(widths)]
    base.table.columns["shape"] = np.array([shapes.index(((1, width),)) for width in widths], dtype=np.int32)
    return Spans(tool="test", table=base.table, names=base.names, lanes=base.lanes, shapes=tuple(shapes))


def log(*compiles: Compilation) -> Spans:
    """A compiler's log."""
    empty = Table({name: np.empty(0, dtype=kind) for name, kind in SPAN_COLUMNS.items()})
    return Spans(tool="test", table=empty, compiles=compiles)


def compiled(number: int, took_ms: float | None = 40, reason: str = "", **more: str) -> Compilation:
    """One compile of one function."""
    took = NEVER if took_ms is None else round(took_ms * MS)
    reasons = (reason,) if reason else ()
    return Compilation(id=f"0/{number}", code="fn", took=took, again=number > 0, reasons=reasons, **more)
