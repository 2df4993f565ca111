"""What the page of a diagnosis draws of a timeline, thinned so that the page of any recording stays small.

- The window in equal pieces, each cut into the layers of :mod:`.device`, stacked: where the device idled, over what.
- Distributions on -log10(1 - p), order statistics: from a launch to its kernel, the launch call itself, the kernels,
  and the gaps in which no kernel and no copy ran.
- Runs and compiles one by one: first runs of a shape, compiles by how long they took, and of the rest every n-th.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.domain.figure import Series
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Compilation, Spans
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import NS_MS, NS_S, series
from trimtab.evidence.stats.quantiles import tail_curve
from trimtab.evidence.timeline.calls import RUN, differing, shape_text
from trimtab.evidence.timeline.compiles import Compiles
from trimtab.evidence.timeline.cover import cover
from trimtab.evidence.timeline.device import Device
from trimtab.evidence.timeline.tell import Told

POINTS = 48
FEWEST = 10
FIRSTS = 300
OTHERS = 900
COMPILES = 400
US = 1e-3  # ns -> us

Row = dict[str, Any]


def charts(found: Told, file: str) -> tuple[Series, ...]:
    """The series ``timeline.*`` that only charts need; what is not recorded is absent."""
    on = found.device
    made: dict[str, tuple[list[Row], dict[str, str]]] = {
        "timeline.window": ([] if on is None else list(_window(on)), {"start": "ms", "end": "ms"}),
        "timeline.gaps": ([] if on is None else list(_gaps(on, found.spans)), {"took": "us"}),
        "timeline.runs": (list(_runs(found.spans)), {"t": "s", "took": "ms"}),
        "timeline.compiled": (list(_compiled(found.compiles)), {"t": "s", "took": "ms"}),
    }
    return tuple(
        series(name, table(rows), units, file, scope="this file") for name, (rows, units) in made.items() if rows
    )


def _window(on: Device) -> Iterator[Row]:
    """Of each piece and layer, from which to which share of the piece it reaches when the layers are stacked."""
    for k in range(on.edges.size - 1):
        start, end = (float(edge - on.edges[0]) * NS_MS for edge in on.edges[k : k + 2])
        length, below = max(int(on.edges[k + 1] - on.edges[k]), 1), 0
        for name, pieces in on.pieces.items():
            above = below + int(pieces[k])
            if above > below:
                yield {"start": start, "end": end, "layer": name, "lo": below / length, "hi": above / length}
            below = above


def _gaps(on: Device, spans: Spans) -> Iterator[Row]:
    kind, start, end = (spans.table[name] for name in ("kind", "start", "end"))
    kernels = kind == KIND["kernel"]
    work = kernels | (kind == KIND["copy"])
    busy = cover((start[work], end[work]))
    given = {
        "from launch to start": np.maximum(on.delays, 0),
        "the launch call": on.calls,
        "the kernel": (end - start)[kernels],
        "idle between work": busy.starts[1:] - busy.ends[:-1],
    }
    for what, took in given.items():
        for tail, value in tail_curve(took, POINTS) if took.size >= FEWEST else ():
            yield {"what": what, "tail": tail, "took": value * US}


def _runs(spans: Spans) -> Iterator[Row]:
    rows = np.flatnonzero(spans.table["kind"] == RUN)
    codes = spans.table["shape"][rows]
    first = np.zeros(rows.size, dtype=bool)
    first[np.unique(codes, return_index=True)[1]] = True
    first &= codes != NEVER
    inputs = differing([spans.shapes[code] for code in np.unique(codes[codes != NEVER])])
    rest = np.flatnonzero(~first)
    thinned = rest[:: -(-rest.size // OTHERS)] if rest.size > OTHERS else rest
    for k in np.sort(np.concatenate((np.flatnonzero(first)[:FIRSTS], thinned))).tolist():
        start, end, code = int(spans.table["start"][rows[k]]), int(spans.table["end"][rows[k]]), int(codes[k])
        yield {
            "t": start * NS_S,
            "took": (end - start) * NS_MS,
            "shape": "" if code == NEVER else shape_text(spans.shapes[code], inputs),
            "first": bool(first[k]),
        }


def _compiled(found: Compiles) -> Iterator[Row]:
    """The longest compiles that say when and how long, in their order."""
    timed, for_size = [one for one in found.all if NEVER not in (one.start, one.took)], set(found.for_size)
    kept = sorted(timed, key=lambda one: -one.took)[:COMPILES]
    for one in sorted(kept, key=lambda one: one.start):
        rank = None if one.rank == NEVER else one.rank
        yield {"t": one.start * NS_S, "took": one.took * NS_MS, "rank": rank, "kind": _kind(one, for_size)}


def _kind(one: Compilation, for_size: set[Compilation]) -> str:
    if one.failure or one.limit:
        return "no program"
    if one in for_size:
        return "again, for a size"
    return "again" if one.again else "first"
