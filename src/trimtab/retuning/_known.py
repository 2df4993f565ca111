"""What is known before anything is tried: the tune slice's shapes, and the baseline's profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.ports import Predictor
from trimtab.domain.profile import CompileProfile
from trimtab.domain.trace import Trace


@dataclass(frozen=True)
class Seen:
    """An executed shape on the tune slice: the entry that ran it, and in how many batches."""

    entry: EntryId
    executed: Executed
    count: int


def seen_shapes(trace: Trace) -> tuple[Seen, ...]:
    """The distinct (entry, executed dims) of one run's batches, most frequent first."""
    table = trace.batches
    if not len(table):
        return ()
    keys = np.column_stack([table["entry"], table["executed_size"], table.dims("exec", trace.dim_names)])
    distinct, counts = np.unique(keys.astype(np.int64), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return tuple(
        Seen(trace.entries[int(row[0])], tuple(int(v) for v in row[1:]), int(n))
        for row, n in zip(distinct[order], counts[order], strict=True)
    )


@dataclass(frozen=True)
class Known:
    """What the moves are made from, all of it from the tune slice and the baseline's profile.

    ``dims`` int64[n, k] of the tune slice · ``seen`` shapes the baseline executed there · ``predictor`` of the baseline
    · ``profiles`` known so far · ``cost`` ms of one request in a bucket that ends at a value, ``box_cost`` the same for
    any number of dims (None: no refit) · ``deadlines``: whether those of the requests differ ·
    ``unable``: ability that the baseline's backend lacks -> why; what is not listed it has.
    """

    dims: NDArray[np.int64]
    seen: tuple[Seen, ...]
    predictor: Predictor
    profiles: tuple[CompileProfile, ...] = ()
    cost: Callable[[int], float] | None = None
    box_cost: Callable[[Dims], float] | None = None
    deadlines: bool = False
    unable: Mapping[str, str] = field(default_factory=dict)
