"""First runs beyond the sizes that a worker has met so far: a stronger sense of "new" than "this very shape is new".

Theory. What a runtime prepares by shape it pays for at every new shape. What it prepares for a range (buffers that
grow, a program that is compiled for the sizes met so far) it pays for only where a size goes beyond all before it. So
two numbers tell them apart: what first runs took beyond their warm time where they went beyond the running range, and
where they lay between sizes that had run.

A run is *beyond* if any of its executed dims lies below the least or above the greatest that its worker ran before. The
very first run of a worker, which everything is new to, is in neither group. It takes the order of the calls and their
sizes, and nothing that the system says of itself.

Limits: sizes that rise all the time are all beyond. Requests without sizes have no range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.evidence.imported.recorded import Bool, Calls
from trimtab.evidence.stats.quantiles import Floats, quantile
from trimtab.evidence.timeline.cover import lasting

FEWEST = 3
"""First runs of each kind that a median needs."""

Ints = NDArray[np.int64]


def sentence(table: Imported, given: Calls, excess: Floats) -> str:
    """What first runs beyond and within the running range took beyond their warm time (``excess``, ns a call); empty
    where there are too few of both to say."""
    sizes = executed(table, given)
    if sizes is None:
        return ""
    out, known = beyond(sizes, given.worker)
    first = given.head & given.first & known
    outer, inner = excess[first & out], excess[first & ~out]
    if min(outer.size, inner.size) < FEWEST:
        return ""
    return (
        f"{outer.size} of {outer.size + inner.size} first runs go beyond the sizes that their worker had met and take "
        f"{lasting(quantile(outer, 0.5))} more than warm runs, those between them {lasting(quantile(inner, 0.5))} "
        "(medians)"
    )


def executed(table: Imported, given: Calls) -> Ints | None:
    """int64[calls, dims]: what each call ran, its true dims where that is not recorded. None without sizes, or where a
    call has none."""
    columns = []
    for name in table.trace.dim_names:
        true = table.trace.requests[f"dim.{name}"][given.row]
        ran = table.stages.columns.get(f"exec.{name}")
        columns.append(true if ran is None else np.where(ran[given.row] != NEVER, ran[given.row], true))
    sizes = np.stack(columns, axis=1) if columns else np.empty((given.row.size, 0), dtype=np.int64)
    return sizes.astype(np.int64) if sizes.size and sizes.min() >= 1 else None


def beyond(sizes: Ints, worker: Ints) -> tuple[Bool, Bool]:
    """bool[calls] each: whether a call goes beyond the range of those that its worker ran before, and whether there was
    any before it. ``sizes`` int64[calls, dims] in order of start."""
    out, known = np.zeros(worker.size, dtype=bool), np.zeros(worker.size, dtype=bool)
    for one in np.unique(worker):
        rows = np.flatnonzero(worker == one)
        mine, later = sizes[rows], rows[1:]
        low, high = np.minimum.accumulate(mine)[:-1], np.maximum.accumulate(mine)[:-1]
        out[later] = np.any((mine[1:] < low) | (mine[1:] > high), axis=1)
        known[later] = True
    return out, known
