"""The envelope while a run went on: what the machine did around our batches, from its samples and counters (R5, R8).

Definitions
-----------
Of each run, over the cores that its workers were pinned to:

    clock        median and lowest MHz of the samples in which the core was busy for half of the time and more: an idle
                 core may clock down without harm
    stolen       mean share of the time that a hypervisor gave to others
    throttled    time that a CPU quota stopped us / time between the first and the last sample
    temperature  the highest reading of the hottest zone
    resident     the most that all our processes held together
    migrations   how often a thread of a worker changed its core while a batch ran; 0 where each is pinned to one
    page faults  while batches ran: *minor*, and *major* ones, which read from disk
    pace         median time of the compute and of the stream kernel, between batches

What this machine does not tell has no value, and says so: nothing is guessed from another machine.

Limits: samples are half a second apart, so a short stop of the clock may fall between two of them. A counter is summed
over the batches for which it could be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Cell, Finding, Findings
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import Desk, percent, series
from trimtab.evidence.stats.quantiles import Floats

BUSY = 0.5
STOLEN = 0.01
MIB = 2**20
UNTOLD = "this machine does not tell it"
PACE = MARK_KINDS.index("pace")


class Quantity(NamedTuple):
    """One thing that is known of the envelope of a run: its column, its unit, the table of the trace that holds it, and
    how it is read off the trace."""

    name: str
    unit: str
    table: Literal["samples", "batches", "marks"]
    note: str
    read: Callable[[Trace], float | None]


def told(found: Findings, traces: Sequence[Trace]) -> Findings:
    """``found`` with figures ``<stage>.<run>.<quantity>``, the series ``<stage>.envelope`` with a row a run, and a
    sentence for what should not have happened in a run."""
    if not traces:
        return found
    desk = Desk(found.stage, "this run", "traces")
    rows = [_row(desk, trace) for trace in traces]
    said = [finding for row in rows for finding in _said(found.stage, row)]
    units = {one.name: one.unit for one in QUANTITIES}
    made = series(f"{found.stage}.envelope", table(rows), units, "traces", scope=traces[0].run.slice)
    return msgspec.structs.replace(
        found,
        findings=(*found.findings, *said),
        figures=(*found.figures, *desk.figures),
        series=(*found.series, made),
    )


def throttled(trace: Trace) -> float | None:
    """Throttled time over the time between the first and the last sample; None without a quota to read."""
    s = trace.samples
    known = s["throttled_ns"] >= 0
    if known.sum() < 2:
        return None
    taken = float(s["throttled_ns"][known].max() - s["throttled_ns"][known].min())
    span = float(s["t"][known].max() - s["t"][known].min())
    return taken / span if span else None


def stolen(trace: Trace) -> float | None:
    """Mean stolen share of the time of the workers' cores; None where it is not told."""
    return _over(np.mean, trace.samples["stolen"][_ours(trace)])


def _row(desk: Desk, trace: Trace) -> dict[str, Cell]:
    row: dict[str, Cell] = {"run": trace.run.id, "plan": trace.run.plan}
    for one in QUANTITIES:
        value = row[one.name] = one.read(trace)
        note, artifact = one.note if value is not None else UNTOLD, f"traces/{trace.run.id}/{one.table}.parquet"
        count = len(getattr(trace, one.table))
        desk.add(f"{trace.run.id}.{one.name}", value, one.unit, count, note=note, artifact=artifact)
    return row


def _said(stage: str, row: Mapping[str, Cell]) -> Iterator[Finding]:
    for name, least, words in _UNWANTED:
        value = row[name]
        if isinstance(value, float) and value > least:
            shown = words.format(percent(value) if name in ("stolen", "throttled") else f"{value:,.0f}")
            ids = (f"{stage}.{row['run']}.{name}",)
            yield Finding(text=f"Run {row['run']}: {shown}.", figures=ids, owner="observability")


_UNWANTED = (
    ("migrations", 0.0, "threads of its workers changed their core {} times while batches ran"),
    ("major_faults", 0.0, "{} pages were read from disk while batches ran"),
    ("throttled", 0.0, "a CPU quota stopped it for {} of the time"),
    ("stolen", STOLEN, "{} of its cores' time was stolen"),
)
"""Quantity, above what it is said, and how."""


# --- how each quantity is read ----------------------------------------------------------------------------------------


def _clock(trace: Trace, how: Callable[[Floats], Any]) -> float | None:
    s = trace.samples
    return _over(how, s["mhz"][_ours(trace) & (np.nan_to_num(s["busy"]) >= BUSY)])


def _ours(trace: Trace) -> NDArray[np.bool_]:
    """Samples of the cores that the workers were pinned to."""
    return np.isin(trace.samples["core"], trace.run.cores)


def _temperature(trace: Trace) -> float | None:
    return _over(np.max, trace.samples["celsius"])


def _resident(trace: Trace) -> float | None:
    held = trace.samples["rss_bytes"]
    return _over(np.max, held[held != NEVER] / MIB)


def _counted(trace: Trace, column: str) -> float | None:
    counts = trace.batches[column]
    return _over(np.sum, counts[counts != NEVER].astype(np.float64))


def _pace(trace: Trace, column: str) -> float | None:
    return _over(np.median, trace.marks[column][trace.marks["kind"] == PACE] / 1e3)


def _over(how: Callable[[Floats], Any], values: Floats) -> float | None:
    """``how`` of the values that are known; None where none is."""
    known = values[np.isfinite(values)]
    return float(how(known)) if known.size else None


QUANTITIES = (
    Quantity("clock", "MHz", "samples", "median, while a core was busy", partial(_clock, how=np.median)),
    Quantity("clock_lowest", "MHz", "samples", "lowest, while a core was busy", partial(_clock, how=np.min)),
    Quantity("stolen", "share", "samples", "mean, of the workers' cores", stolen),
    Quantity("throttled", "share", "samples", "of the time, by a CPU quota", throttled),
    Quantity("temperature", "°C", "samples", "highest, of the hottest zone", _temperature),
    Quantity("resident", "MiB", "samples", "highest, of all our processes together", _resident),
    Quantity("migrations", "migrations", "batches", "of the workers' threads", partial(_counted, column="migrations")),
    Quantity("minor_faults", "faults", "batches", "while batches ran", partial(_counted, column="minor_faults")),
    Quantity("major_faults", "faults", "batches", "pages read from disk", partial(_counted, column="major_faults")),
    Quantity("pace_compute", "us", "marks", "median of the pace kernel", partial(_pace, column="value")),
    Quantity("pace_stream", "us", "marks", "median of the pace kernel", partial(_pace, column="value2")),
)
