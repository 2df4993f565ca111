"""The primary metric's trend: both arms, window by window, on the held-out traffic that the verdict rests on.

Windows hold equal numbers of requests, at least 200, at most 48 of them; requests of all replays of an arm are taken
together, and the lowest and highest replay stand beside. A window is too short for a p99: its trend is that of p95.

Limits. Windows follow one another in one queue and are not independent: the trend shows where in the traffic a gain was
made, the matrix says whether there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trimtab.domain.figure import Cell, Finding, Series
from trimtab.domain.study import Sla
from trimtab.evidence.latency import window_edges
from trimtab.evidence.stats.quantiles import Floats
from trimtab.retuning import _metric as metric
from trimtab.retuning.arms import Arms

SERIES = "decide.trend"
_SHOWN = {"p99": "p95"}


def trend(arms: Arms, sla: Sla) -> Series | None:
    """Series ``decide.trend``: a row a window; None where the arms must not be compared or hold no requests.

    Columns ``first`` and ``last`` (requests, counted from 0), and for ``baseline`` and ``candidate`` the metric with
    ``_lo`` and ``_hi``, the range over replays; None = among the failed.
    """
    lengths = {len(one) for one in (*arms.baseline, *arms.candidate)}
    if arms.refusal or not arms.baseline or not arms.candidate or len(lengths) != 1 or not max(lengths):
        return None
    name = _SHOWN.get(sla.metric, sla.metric)
    rows = [
        {"first": int(lo), "last": int(hi) - 1}
        | _cells("baseline", [x[lo:hi] for x in arms.baseline], name, sla)
        | _cells("candidate", [x[lo:hi] for x in arms.candidate], name, sla)
        for lo, hi in pairwise(window_edges(max(lengths)))
    ]
    unit = metric.unit(name)
    return Series(
        id=SERIES,
        columns={key: tuple(row[key] for row in rows) for key in rows[0]},
        units={key: unit for key in rows[0] if key not in ("first", "last")},
        scope="held-out",
        artifact="traces",
        note=f"{name} by window of equal numbers of requests, all replays together; lo and hi are single replays",
    )


def told(found: Series, sla: Sla) -> Finding:
    """In how many windows the candidate was better: "p95 was better in 7 of 8 windows of 250 requests."."""
    name = _SHOWN.get(sla.metric, sla.metric)
    pairs = list(zip(_known(found, "baseline", name), _known(found, "candidate", name), strict=True))
    better = sum(now > was if metric.higher_is_better(name) else now < was for was, now in pairs)
    width = int(str(found.columns["last"][0])) + 1
    return Finding(text=f"{name} was better in {better} of {len(pairs)} windows of {width} requests.")


def _known(found: Series, column: str, name: str) -> list[float]:
    """Values of a column; what fell among the failed is as bad as can be."""
    worst = -math.inf if metric.higher_is_better(name) else math.inf
    return [float(cell) if isinstance(cell, float) else worst for cell in found.columns[column]]


def _cells(arm: str, parts: Sequence[Floats], name: str, sla: Sla) -> dict[str, Cell]:
    each = [metric.value(part, name, sla) for part in parts]
    cells = {"": metric.value(np.concatenate(parts), name, sla), "_lo": min(each), "_hi": max(each)}
    return {f"{arm}{end}": value if math.isfinite(value) else None for end, value in cells.items()}
