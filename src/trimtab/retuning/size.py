"""Size: how many cores does this SLA need at this traffic, and how much traffic do these cores carry? By simulation.

The recorded arrivals run through the serving machine under the virtual clock with 1, 2, .. N workers, one core each,
everything else of the plan unchanged. The answer is the smallest count that meets the SLA's primary metric *and stays
there*: every larger count meets it too. Beside it stands the margin to the bound and the load at which that count stops
meeting it: a rate multiple found by bisection over arrivals whose gaps are divided by it, shapes and order unchanged.

Limits. Simulated, from profiles of one core at a time: workers share no memory bandwidth, no cache and no power budget
here, so counts above the cores that were replayed are extrapolated, and real machines fall short of them. Dividing the
gaps keeps the burstiness of one recording; more clients would come less bursty. A metric over one recording has no
interval. Where the simulation of the plan that was replayed misses its replays by more than these differ among
themselves, the answer carries that as ``doubted``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from trimtab.domain.plan import Plan
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.retuning import _metric as metric

Run = Callable[[Plan, Workload], Trace]
"""Simulates a plan on a workload; the plan's ``serve.workers`` says how many cores it has."""


@dataclass(frozen=True)
class SizeRow:
    """One count of cores: the primary metric (ms or share), share of late requests, mean share of time that a worker is
    busy, and whether the SLA is met. ``extrapolated`` = more cores than were ever replayed."""

    cores: int
    value: float
    miss: float
    utilisation: float
    met: bool
    extrapolated: bool


@dataclass(frozen=True)
class Sizing:
    """``needed`` None = none of the counts tried is enough. ``margin`` = share of the bound that is left at that count.

    ``stops_at`` = the rate multiple up to which ``needed`` cores meet the SLA; ``beyond`` = it was still met at the end
    of the search. ``doubted`` = why the simulation must not be relied on; empty where nothing speaks against it.
    """

    rows: tuple[SizeRow, ...]
    needed: int | None
    margin: float | None
    stops_at: float | None
    beyond: bool = False
    doubted: str = ""


def size(
    plan: Plan, workload: Workload, sla: Sla, run: Run, most: int, *, measured: int, highest: float = 8.0
) -> Sizing:
    """Rows for 1 .. ``most`` cores, and the smallest count that is enough.

    ``measured`` = workers that real replays had on this machine; ``highest`` bounds the search for the load.
    """
    rows = tuple(_row(with_cores(plan, cores), workload, sla, run, measured) for cores in range(1, most + 1))
    enough = [row for row in rows if all(other.met for other in rows[row.cores - 1 :])]
    if not enough:
        return Sizing(rows, None, None, None)
    first = enough[0]
    load = carries(with_cores(plan, first.cores), workload, sla, run, lowest=1.0, highest=highest)
    return Sizing(rows, first.cores, _margin(first.value, sla), load, load == highest)


def with_cores(plan: Plan, cores: int) -> Plan:
    """The plan with ``cores`` workers of one core each."""
    return replace(plan, serve=replace(plan.serve, workers=cores))


def scaled(workload: Workload, multiple: float) -> Workload:
    """The same requests at ``multiple`` times the rate: every gap divided by it, to the nearest ns."""
    times = np.rint(workload.scheduled / multiple).astype(np.int64)
    return replace(workload, id=f"{workload.id}@x{multiple:g}", scheduled=times)


def carries(
    plan: Plan,
    workload: Workload,
    sla: Sla,
    run: Run,
    *,
    lowest: float = 1 / 16,
    highest: float = 8.0,
    accuracy: float = 0.02,
) -> float | None:
    """The highest rate multiple at which the plan still meets the SLA, found from below to ``accuracy`` (a share).

    None if not even ``lowest`` is met. ``highest`` is returned where that is still met: the limit lies beyond.
    Bisection assumes that more load is never better; where the metric wobbles it finds one crossing of the bound.
    """

    def met(multiple: float) -> bool:
        return metric.meets(_value(run(plan, scaled(workload, multiple)), sla), sla)

    if not met(lowest):
        return None
    if met(highest):
        return highest
    low, high = lowest, highest
    while high / low > 1 + accuracy:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if met(middle) else (low, middle)
    return low


def _row(plan: Plan, workload: Workload, sla: Sla, run: Run, measured: int) -> SizeRow:
    trace = run(plan, workload)
    value, cores = _value(trace, sla), plan.serve.workers
    return SizeRow(
        cores=cores,
        value=value,
        miss=metric.value(trace.latency, "miss", sla),
        utilisation=utilisation(trace, cores),
        met=metric.meets(value, sla),
        extrapolated=cores > measured,
    )


def _value(trace: Trace, sla: Sla) -> float:
    return metric.value(trace.latency, sla.metric, sla)


def _margin(value: float, sla: Sla) -> float:
    bound = metric.bound(sla)
    return (value - bound) / bound if metric.higher_is_better(sla.metric) else (bound - value) / bound


def utilisation(trace: Trace, workers: int) -> float:
    """Share of the run, first arrival to last end, that a worker spends on batches (dispatch to end); nan if it has
    no batch."""
    batches = trace.batches
    ran = batches["ended"] >= 0
    if not len(batches) or not np.any(ran):
        return math.nan
    span = float(batches["ended"].max() - trace.requests["scheduled"].min())
    return float((batches["ended"] - batches["dispatched"])[ran].sum()) / (workers * span) if span > 0 else math.nan
