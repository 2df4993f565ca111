"""Padding: how much of what was executed is padding, by the true size of the request and by the entry that ran it.

Definition. A batch of n members executes P = batch size x product of its executed dims positions, and P / n of them for
each member, whose true positions are the product of its own dims. Over a group of requests

    padding = 1 - sum of true positions / sum of P / n

by entry; by entry and size, in bars of equal width; and of the whole run, with a block bootstrap interval.

Limits. Positions, not time: a kernel may take padding cheaper or dearer than work. What padding costs in time is in the
score's loss and in the account. Padding up to an entry and padding up to the largest mate in a batch are one thing
here. Of the replays of a plan, which have the same arrivals, only the first is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from trimtab.domain.figure import Findings
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.attribute.split import Int, batch_rows
from trimtab.evidence.figures import Desk, series
from trimtab.evidence.stats.bootstrap import ratio_of_sums
from trimtab.evidence.stats.quantiles import Floats

BARS = 48

Row = dict[str, Any]


class Work(msgspec.Struct, frozen=True):
    """One row a request that ran well: its entry (into ``Trace.entries``), true size, and executed positions."""

    entry: Int
    size: Int
    executed: Floats


def told(found: Findings, traces: Sequence[Trace], seed: int) -> Findings:
    """``found`` with a figure ``<stage>.padding.<plan>`` for each plan of ``traces``, and the series
    ``<stage>.padding`` (by entry and size) and ``<stage>.padding_by_entry``; unchanged where nothing ran."""
    first = {trace.run.plan: trace for trace in reversed(traces) if trace.dim_names}
    works = {plan: work for plan, trace in first.items() if (work := executed(trace)).size.size}
    if not works:
        return found
    desk = Desk(found.stage, "this run", "traces")
    for plan, work in works.items():
        run = first[plan].run
        share = ratio_of_sums(work.executed - work.size, work.executed, np.random.default_rng(seed))
        desk.compare(f"padding.{plan}", share, "share", note=f"padding in executed positions, run {run.id}")
    by_size = [row for plan, work in works.items() for row in _by_size(plan, first[plan], work)]
    by_entry = [row for plan, work in works.items() for row in _by_entry(plan, first[plan], work)]
    scope = " and ".join(dict.fromkeys(first[plan].run.slice for plan in works))
    made = (
        series(f"{found.stage}.{name}", table(rows), {"padding": "share"}, "traces", scope=scope)
        for name, rows in (("padding", by_size), ("padding_by_entry", by_entry))
    )
    figures = (msgspec.structs.replace(figure, scope=scope) for figure in desk.figures)
    return msgspec.structs.replace(found, figures=(*found.figures, *figures), series=(*found.series, *made))


def executed(trace: Trace) -> Work:
    """What each request that ran well had executed for it."""
    batches, rows = trace.batches, batch_rows(trace)
    well = (batches["error"] == 0) & (batches["executed_size"] > 0) & (batches["size"] > 0)
    ran = np.flatnonzero(rows >= 0)
    ran = ran[well[rows[ran]]]
    batch = rows[ran]
    positions = batches["executed_size"] * batches.dims("exec", trace.dim_names).prod(axis=1)
    return Work(
        entry=batches["entry"][batch].astype(np.int64),
        size=trace.requests.dims("dim", trace.dim_names)[ran].prod(axis=1),
        executed=positions[batch] / batches["size"][batch],
    )


def _by_size(plan: str, trace: Trace, work: Work) -> Iterator[Row]:
    """``lo`` and ``hi`` are the least and the largest true size in the bar, so that bars of two entries never meet."""
    low = int(work.size.min())
    width = -(-(int(work.size.max()) - low + 1) // BARS)
    for entry in np.unique(work.entry):
        mine = np.flatnonzero(work.entry == entry)
        bar = (work.size[mine] - low) // width
        for number in np.unique(bar):
            yield _row(plan, trace, work, mine[bar == number])


def _by_entry(plan: str, trace: Trace, work: Work) -> Iterator[Row]:
    for entry in np.unique(work.entry):
        yield _row(plan, trace, work, np.flatnonzero(work.entry == entry))


def _row(plan: str, trace: Trace, work: Work, rows: Int) -> Row:
    size, executed_ = work.size[rows], work.executed[rows]
    return {
        "plan": plan,
        "entry": trace.entries[int(work.entry[rows[0]])],
        "lo": int(size.min()),
        "hi": int(size.max()),
        "requests": rows.size,
        "padding": 1 - float(size.sum()) / float(executed_.sum()),
    }
