"""Compiles beside requests: a compiler's log and a table of requests on the same clock.

A compile runs inside the call that met the new shape, so it belongs to the request that was running when it started: of
those that had begun and not ended then, the one that began first. A request runs from its end less its recorded run
time, else from its scheduled time. The compile counts up to that request's end.

The log is taken to hold every compile of the process, so a request that no compile falls into had none.
Limits: of several workers that share one log, the wrong one may be charged; clocks of two machines are not compared.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Spans
from trimtab.domain.trace import Table


class Joined(msgspec.Struct, frozen=True):
    """The table with its compiles; how many fell into a request, of how many that the log tells the time of."""

    table: Imported
    inside: int
    compiles: int


def with_compiles(table: Imported, log: Spans) -> Joined | None:
    """``table`` with the stage ``compile`` from ``log``. None where the two cannot be joined: a clock without a known
    zero, a stage that is recorded already, or no compile that falls into a request."""
    timed = [one for one in log.compiles if one.start != NEVER and one.took != NEVER]
    recorded = table.stages["compile"]
    if table.origin is None or log.origin is None or not timed or np.any(recorded != NEVER):
        return None
    requests = table.trace.requests
    ended = np.flatnonzero(requests["done"] != NEVER)
    compute = table.stages["compute"][ended]
    end = requests["done"][ended]
    begin = np.where(compute != NEVER, end - compute, requests["scheduled"][ended])
    order = np.argsort(begin, kind="stable")
    rows, begin, end = ended[order], begin[order], end[order]
    at = np.array([one.start for one in timed], dtype=np.int64) + (log.origin - table.origin)
    took = np.array([one.took for one in timed], dtype=np.int64)
    # The first whose end, or that of one before it, lies behind the start: then it is its own end.
    first = np.searchsorted(np.maximum.accumulate(end), at, side="right")
    inside = first < rows.size
    inside[inside] = begin[first[inside]] <= at[inside]
    if not inside.any():
        return None
    hit = first[inside]
    stage = np.zeros(recorded.size, dtype=np.int64)
    np.add.at(stage, rows[hit], np.minimum(took[inside], end[hit] - at[inside]))
    stages = Table({**table.stages.columns, "compile": stage})
    return Joined(msgspec.structs.replace(table, stages=stages), int(inside.sum()), len(timed))
