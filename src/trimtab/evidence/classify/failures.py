"""What failed in a run: how many requests, of which kinds, and where. It is told before any class.

A request that failed has no latency, so no cause of the account can own it. Where more requests failed than a
percentile leaves above itself (5 % for p95), that percentile is theirs: it is infinite, and whatever made the slowest
of the others slow does not explain it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import ERROR_KINDS, ErrorKind
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.evidence.figures import NS_MS, percent
from trimtab.evidence.stats.quantiles import quantile

MOST_ENTRIES = 3
UNFINISHED = ERROR_KINDS.index("unfinished")

Rows = NDArray[np.bool_]


def failed(trace: Trace) -> Rows:
    """Which requests did not end well."""
    return np.asarray(~np.isfinite(trace.latency), dtype=np.bool_)


def own(trace: Trace, q: float) -> bool:
    """Whether the q-quantile over all scheduled requests falls among those that failed."""
    return math.isinf(quantile(trace.latency, q))


def mostly(trace: Trace, kind: ErrorKind) -> bool:
    """Whether more than half of the failed requests failed in this way."""
    lost = failed(trace)
    return 2 * int((_codes(trace)[lost] == ERROR_KINDS.index(kind)).sum()) > int(lost.sum())


def kinds(trace: Trace) -> dict[ErrorKind, int]:
    """Failed requests by kind, the most frequent first."""
    codes, counts = np.unique(_codes(trace)[failed(trace)], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {ERROR_KINDS[codes[i]]: int(counts[i]) for i in order.tolist()}


def sentence(trace: Trace) -> str:
    """``3 of 40 requests failed (7.5 %): 2 crash (entry any, width 640, at 1.2 to 3.4 s), 1 rejected (...)``; empty
    where none did."""
    lost = failed(trace)
    if not lost.any():
        return ""
    parts = [
        f"{count:,} {kind} ({_where(trace, lost & (_codes(trace) == ERROR_KINDS.index(kind)))})"
        for kind, count in kinds(trace).items()
    ]
    return f"{int(lost.sum()):,} of {lost.size:,} requests failed ({percent(float(lost.mean()))}): {', '.join(parts)}"


def _codes(trace: Trace) -> NDArray[np.int8]:
    """Kinds of failure by request; one that neither ended nor failed is unfinished."""
    error = trace.requests["error"]
    return np.where(error > 0, error, UNFINISHED).astype(np.int8)


def _where(trace: Trace, rows: Rows) -> str:
    """On which entries, at which dims, and when."""
    words = [_entries(trace, rows)]
    for name in trace.dim_names:
        dims = trace.requests[f"dim.{name}"][rows]
        known = dims[dims > 0]
        if known.size:
            words.append(f"{name} {_range(f'{known.min()}', f'{known.max()}')}")
    due = trace.requests["scheduled"][rows] * NS_MS / 1e3
    words.append(f"at {_range(f'{due.min():.3g}', f'{due.max():.3g}')} s")
    return ", ".join(word for word in words if word)


def _entries(trace: Trace, rows: Rows) -> str:
    batches = trace.requests["batch"][rows]
    here = np.isin(trace.batches["id"], batches[batches != NEVER])
    names = [trace.entries[code] for code in dict.fromkeys(trace.batches["entry"][here].tolist()) if code >= 0]
    more = f" and {len(names) - MOST_ENTRIES} more" if len(names) > MOST_ENTRIES else ""
    return f"entry {' '.join(names[:MOST_ENTRIES])}{more}" if names else ""


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
