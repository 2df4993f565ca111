"""How bursty arrivals are, by the length of time over which one looks (R1).

Theory. The index of dispersion of counts, variance / mean of the arrivals in windows of width w (Cox and Lewis, The
Statistical Analysis of Series of Events, 1966): 1 at every width for a Poisson process, 0 for a metronome, above 1
where arrivals crowd. The gaps' coefficient of variation sees neighbours only; a load that swells for minutes shows in
wide windows alone. Of n windows of a Poisson process the index has a standard error of about sqrt(2 / (n - 1)).

Widths are spaced evenly in their logarithm, from four mean gaps to the span over FEWEST windows; a window that the end
of the recording cuts is left out.

Limits: a trend of the rate counts as burstiness. Below the tick of a recorded clock the index says more of the clock
than of the traffic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Finding, Series
from trimtab.domain.workload import Workload
from trimtab.evidence.figures import Desk, series

NAME = "workload.bursts"
WIDTHS = 12
FEWEST = 30
GAPS = 4

Ints = NDArray[np.int64]


def bursts(workload: Workload, artifact: str) -> tuple[tuple[Series, ...], tuple[Figure, ...], tuple[Finding, ...]]:
    """The index by width, its largest value as a figure, and a sentence; nothing where there are too few requests."""
    n, span = len(workload), workload.span
    least, most = GAPS * span / max(n, 1), span / FEWEST
    if not 1 <= least < most:
        return (), (), ()
    widths = np.unique(np.geomspace(least, most, WIDTHS).astype(np.int64))
    counts = [_counts(workload.scheduled, int(width), span) for width in widths]
    index = np.array([float(one.var() / one.mean()) for one in counts])
    columns: dict[str, NDArray[Any]] = {
        "width": widths / 1e9,
        "dispersion": index,
        "windows": np.array([one.size for one in counts]),
    }
    note = "variance / mean of the arrivals in windows of one width; 1 = Poisson"
    table = series(NAME, columns, {"width": "s", "dispersion": "1"}, artifact, scope="whole workload", note=note)
    at = int(index.argmax())
    desk = Desk("workload", "whole workload", artifact)
    wide = f"{widths[at] / 1e9:.3g} s"
    desk.add(
        "dispersion", float(index[at]), "1", counts[at].size, note=f"variance / mean of counts in windows of {wide}"
    )
    text = f"Counts vary most in windows of {wide}: {index[at]:.3g} times as much as those of a Poisson process."
    return (table,), tuple(desk.figures), (Finding(text=text, figures=("workload.dispersion",), owner="observability"),)


def _counts(scheduled: Ints, width: int, span: int) -> Ints:
    """Arrivals in each whole window of ``width`` ns; the first arrival is at 0."""
    windows = span // width
    return np.bincount(scheduled // width, minlength=windows)[:windows].astype(np.int64)
