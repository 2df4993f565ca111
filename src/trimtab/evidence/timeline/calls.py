"""The runs of a timeline as requests, and what their shapes did.

A run is a call that a profiler saw, so its latency is its run time: the calls came one after another, whoever made
them, and no queue can show. That is what the gates of an imported table find as well.

Of a shape that ran at least three times, the first run is held against the median of the later ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import STAGE_COLUMNS, Imported, ReadReport, imported_trace
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Shapes, Spans
from trimtab.domain.trace import Table, empty
from trimtab.evidence.stats.quantiles import quantile
from trimtab.evidence.timeline.cover import Ints, cover, lasting

RUN, COMPILE = KIND["run"], KIND["compile"]
FEWEST = 3
MOST_INPUTS = 3


class Shape(msgspec.Struct, frozen=True):
    """The runs of one shape: how many, the first, the median of the later ones (None: fewer than two), ns."""

    text: str
    runs: int
    first: int
    later: int | None

    @property
    def excess(self) -> int:
        """What the first run took longer; 0 where the later ones do not say."""
        return max(self.first - self.later, 0) if self.later is not None else 0


def shapes(spans: Spans) -> tuple[Shape, ...]:
    """Every shape that ran, in the order of its first run; empty where shapes are not recorded."""
    table = spans.table
    runs = np.flatnonzero((table["kind"] == RUN) & (table["shape"] != NEVER))
    took = table["end"][runs] - table["start"][runs]
    codes, first = np.unique(table["shape"][runs], return_index=True)
    inputs = differing([spans.shapes[code] for code in codes])
    out = []
    for position in np.argsort(first, kind="stable").tolist():
        own = took[table["shape"][runs] == codes[position]]
        later = int(quantile(own[1:], 0.5)) if own.size >= FEWEST else None
        out.append(Shape(shape_text(spans.shapes[codes[position]], inputs), int(own.size), int(own[0]), later))
    return tuple(out)


def shape_text(dims: Shapes, inputs: Sequence[int]) -> str:
    """``1x3x32x32``: the inputs that differ between runs, or the first."""
    return ", ".join("x".join(map(str, dims[k])) or "scalar" for k in inputs[:MOST_INPUTS]) or "scalar"


def differing(given: Sequence[Shapes]) -> tuple[int, ...]:
    """Positions of the inputs whose dims differ; the first where none does, or not all have as many."""
    counts = {len(dims) for dims in given}
    if len(counts) > 1 or not min(counts, default=0):
        return (0,) if min(counts, default=0) else ()
    return tuple(k for k in range(counts.pop()) if len({dims[k] for dims in given}) > 1) or (0,)


def first_runs(found: Sequence[Shape]) -> str:
    """A sentence on what first runs took longer than later ones; empty where they did not."""
    excess = [one.excess for one in found if one.excess]
    if not excess:
        return ""
    return (
        f"the first runs of {len(excess)} of {len(found)} shapes took {lasting(sum(excess))} longer than the median of "
        f"their later runs"
    )


def compiling(spans: Spans) -> str:
    """A sentence on compiles inside the runs; empty where none is recorded there."""
    rows = spans.table["kind"] == RUN
    start, end = spans.table["start"][rows], spans.table["end"][rows]
    inside = compiled(spans)
    if not inside.any():
        return ""
    return (
        f"{int((inside > 0).sum())} of {inside.size} runs compiled something, for {lasting(inside.sum())} of the "
        f"{lasting((end - start).sum())} that all runs took"
    )


def as_requests(spans: Spans, read: ReadReport) -> Imported | None:
    """The runs as requests that ran when they were called; None where the timeline has none."""
    table = spans.table
    rows = np.flatnonzero(table["kind"] == RUN)
    if not rows.size:
        return None
    start, end = table["start"][rows], table["end"][rows]
    dims = _dims(spans, table["shape"][rows])
    requests = {
        "id": np.arange(rows.size, dtype=np.int64),
        "scheduled": start - start[0],
        "done": end - start[0],
        "error": np.zeros(rows.size, dtype=np.int8),
    }
    stages = empty(STAGE_COLUMNS, rows.size).columns
    stages |= {"compute": end - start, "worker": np.unique(table["lane"][rows], return_inverse=True)[1].astype("int32")}
    spent = compiled(spans)
    stages |= {"compile": spent} if spent.any() else {}
    trace = imported_trace(read, requests, dims, workers=len(np.unique(stages["worker"])))
    executed = {f"exec.{name}": column for name, column in dims.items()}
    return Imported(trace=trace, stages=Table(stages | executed))


def compiled(spans: Spans) -> Ints:
    """How long each run was compiling, in order; 0 where the timeline records no compiles beside runs."""
    runs, compiles = spans.table["kind"] == RUN, spans.table["kind"] == COMPILE
    covered = cover((spans.table["start"][compiles], spans.table["end"][compiles]))
    return covered.until(spans.table["end"][runs]) - covered.until(spans.table["start"][runs])


def _dims(spans: Spans, codes: NDArray[np.int32]) -> dict[str, Ints]:
    """The axes that differ between runs, by name; one number for the shape where the inputs differ in rank."""
    if not codes.size or np.any(codes == NEVER):
        return {}
    given = [spans.shapes[code] for code in codes.tolist()]
    if len({tuple(map(len, one)) for one in given}) > 1:
        return {"shape": codes.astype(np.int64) + 1}
    flat = np.array([[size for one in dims for size in one] for dims in given], dtype=np.int64)
    names = [f"input{k}.axis{axis}" for k, one in enumerate(given[0]) for axis in range(len(one))]
    varies = np.any(flat != flat[0], axis=0)
    return {name: np.maximum(flat[:, k], 1) for k, name in enumerate(names) if varies[k]}
