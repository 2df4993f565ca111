"""The shape of a run of the network, where the tool records shapes of operators only.

A run's shape is read off its operators on the same thread: the first one, in the order of running, whose inputs differ
between runs; where none differs, the first one of all. An operator that runs several times in a run counts once, with
its first inputs; one that fewer than nine runs of ten have tells nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND
from trimtab.domain.trace import Table

_MOST_RUNS = 0.9


def set_run_shapes(found: Table) -> None:
    """Write the shape of each run of ``found`` into its row."""
    runs = np.flatnonzero(found["kind"] == KIND["run"])
    ops = np.flatnonzero((found["kind"] == KIND["op"]) & (found["shape"] != NEVER))
    inside = _run_of(found, ops, runs)
    ops, inside = ops[inside != NEVER], inside[inside != NEVER]
    if not ops.size:
        return
    # The first time that a name runs inside each run: rows are sorted by start.
    _, first = np.unique(inside * (int(found["name"].max()) + 1) + found["name"][ops], return_index=True)
    telling = _telling(found["name"][ops[first]], found["shape"][ops[first]], ops[first], runs.size)
    chosen = first[found["name"][ops[first]] == telling]
    found["shape"][runs[inside[chosen]]] = found["shape"][ops[chosen]]


def _run_of(found: Table, ops: NDArray[np.int64], runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in ``runs`` of the run on the same thread that holds each operator; NEVER where none does."""
    out = np.full(ops.size, NEVER, dtype=np.int64)
    for lane in np.unique(found["lane"][runs]):
        here = np.flatnonzero(found["lane"][runs] == lane)
        mine = np.flatnonzero(found["lane"][ops] == lane)
        at = np.searchsorted(found["start"][runs[here]], found["start"][ops[mine]], side="right") - 1
        holds = (at >= 0) & (found["end"][ops[mine]] <= found["end"][runs[here[np.maximum(at, 0)]]])
        out[mine[holds]] = here[at[holds]]
    return out


def _telling(names: NDArray[Any], shapes: NDArray[Any], rows: NDArray[np.int64], runs: int) -> int:
    """The first name whose shape differs, among those that nearly every run has; else the first of all."""
    order = np.argsort(rows)
    names, shapes = names[order], shapes[order].astype(np.int64)
    _, first, code = np.unique(names, return_index=True, return_inverse=True)
    most = int(shapes.max()) + 1
    different = np.bincount(np.unique(code * most + shapes) // most)
    fit = (different > 1) & (np.bincount(code) >= _MOST_RUNS * runs)
    wanted = fit if fit.any() else np.ones(first.size, dtype=bool)
    return int(names[first[wanted].min()])
