"""The facts of a run that a diagnosis needs, read off its trace, its account and its envelope.

effect of a cause = its single-removal gain / (observed - what is left when every cause and the queue of useful work,
capacity, are gone), at the primary percentile; capacity's gain takes away the waiting that useful work alone inherits.
The gain is the machine's own, from running it again without the cause, where that reproduces the run; else the
account's prediction.

The tail = requests at or above the p95 of those that ended well. Slow batches = the slowest 5 % by run time over
promise (by run time where nothing was promised), fast ones = the faster half. Large and small shapes = the fifths of
largest and smallest executed volume. Whatever a trace does not hold stays None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.account import CAUSES, Account
from trimtab.domain.envelope import Assumptions, Envelope, EnvelopeCheck, memory_limit
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.figure import Findings
from trimtab.domain.plan import Plan
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.evidence.attribute.offcore import off_core
from trimtab.evidence.attribute.sets import TAILS, inherited, latencies, without_any
from trimtab.evidence.classify.classes import Effect
from trimtab.evidence.classify.compiling import compiling
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.envelope import stolen, throttled
from trimtab.evidence.figures import NS_MS
from trimtab.evidence.memory import peak_of_run
from trimtab.evidence.score.batches import Batches, Bool
from trimtab.evidence.stats.bootstrap import paired_quantile
from trimtab.evidence.stats.quantiles import Floats, quantile, relaxation_requests

SLOW, FAST, FIFTH = 0.95, 0.50, 0.20


def gather(
    trace: Trace,
    batches: Batches,
    account: Account,
    effects: Mapping[str, Effect],
    plan: Plan,
    envelope: Envelope | None = None,
    checks: Sequence[EnvelopeCheck] | None = None,
    alone: float | None = None,
    memory: int | None = None,
) -> Facts:
    """The facts of one run. ``effects`` = the account's single removals by cause; ``alone`` = :func:`left_alone`;
    ``memory`` = bytes that all workers may take (None: what the envelope says)."""
    route = trace.requests["route"]
    idle, elsewhere = _idle(account)
    slow, fast = _ends(batches)
    small, large = _excess_by_volume(trace, batches)
    compute, stream = _pace(trace, envelope)
    return Facts(
        effects=effects,
        alone=alone,
        load=_load(trace, account),
        threads=plan.serve.threads * plan.serve.workers,
        cores=len(set(trace.run.cores)) or None,
        idle_while_waiting=idle,
        idle_elsewhere=elsewhere,
        mean_size=float(batches.size.mean()) if batches.size.size else None,
        max_size=plan.serve.batch.max_size,
        runqueue=_runqueue(trace),
        throttled=throttled(trace),
        stolen=stolen(trace),
        pace=compute,
        stream_pace=stream,
        differs=None if checks is None else tuple(_words(c) for c in checks if c.status == "differs"),
        first_slow=float(batches.first[slow].mean()) if slow.any() else None,
        first_fast=float(batches.first[fast].mean()) if fast.any() else None,
        compiling=compiling(trace, batches, slow, fast),
        padding=_padding(trace, batches),
        fallback=float((route == ROUTE_KINDS.index("fallback")).mean()) if route.size else None,
        fallback_time=_fallback_time(trace, account),
        premium=batches.lost("premium") if batches.best.any() else None,
        large_excess=large,
        small_excess=small,
        peak=_peak(trace, envelope, memory),
        out_of_memory=int((trace.batches["error"] == ERROR_KINDS.index("out-of-memory")).sum()),
    )


def effects(
    account: Account, found: Findings, tail: str, rng: np.random.Generator, *, gains: str = "gain"
) -> dict[str, Effect]:
    """Each cause's effect on the percentile ``tail`` (p95, p99), from the attribute stage's figures named ``gains``
    (``gain`` or ``resimulated``); ``rng`` draws capacity's interval. Empty where the percentile falls among failed
    requests."""
    observed, q = latencies(account), TAILS[tail]
    capacity = inherited(account, "capacity")
    least = without_any(account) - capacity
    bound, floor = quantile(observed, q), quantile(least, q)
    if not (np.isfinite(bound) and np.isfinite(floor)) or bound <= floor:
        return {}
    whole = (bound - floor) * NS_MS
    out = {}
    for cause in CAUSES:
        gain = found.figure(f"tail.{tail}.{cause}.{gains}") or found.figure(f"tail.{tail}.{cause}.gain")
        if gain is not None and gain.value is not None:
            between = gain.interval
            ends = (between.lo / whole, between.hi / whole) if between is not None else (None, None)
            out[cause] = Effect(gain.value / whole, *ends)
    ratio = paired_quantile(
        observed, observed - capacity, q, rng, resamples=200, relaxation=relaxation_requests(observed)
    )
    if ratio.value is not None:
        scale = bound / (bound - floor)
        between = ratio.interval
        ends = (scale * (1 - between.hi), scale * (1 - between.lo)) if between is not None else (None, None)
        out["capacity"] = Effect(scale * (1 - ratio.value), *ends)
    return out


def left_alone(account: Account, tail: str, bound_ms: float) -> float | None:
    """What the percentile would be without any cause, over the SLA's bound; None among failed requests."""
    left = quantile(without_any(account), TAILS[tail])
    return left * NS_MS / bound_ms if np.isfinite(left) else None


def _fallback_time(trace: Trace, account: Account) -> float | None:
    """Share of the unprofiled run time that fallback batches took; None where nothing is unprofiled."""
    unprofiled = account.batches["unprofiled"]
    total = float(unprofiled.sum())
    fell = trace.batches["route"] == ROUTE_KINDS.index("fallback")
    return float(unprofiled[fell].sum()) / total if total else None


def _words(check: EnvelopeCheck) -> str:
    return f"{check.name} is {check.probed}, assumed {check.assumed}"


def _idle(account: Account) -> tuple[float | None, float | None]:
    """Share of the tail's waiting with an eligible worker free, and with an ineligible one free."""
    rows = account.requests
    latency = rows["latency"].astype(np.float64)
    well = latency >= 0
    if not well.any():
        return None, None
    tail = well & (latency >= quantile(latency[well], SLOW))
    busy, free = float(rows["busy"][tail].sum()), float(rows["hold"][tail].sum())
    if busy + free <= 0:
        return None, None
    return free / (busy + free), float(rows["idle_elsewhere"][tail].sum()) / busy if busy else 0.0


def _load(trace: Trace, account: Account) -> float | None:
    """Useful work over the workers' time between the first and the last scheduled arrival."""
    scheduled = trace.requests["scheduled"]
    span = int(scheduled[-1] - scheduled[0]) if scheduled.size else 0
    return float(account.batches["useful"].sum()) / (span * trace.run.workers) if span and trace.run.workers else None


def _slowness(batches: Batches) -> Floats:
    """Run time over promise; over the median run time where nothing was promised."""
    typical = np.median(batches.measured) if batches.measured.size else 1.0
    base = np.where(batches.promised > 0, batches.promised, max(float(typical), 1.0))
    return np.asarray(batches.measured / base, dtype=np.float64)


def _ends(batches: Batches) -> tuple[Bool, Bool]:
    """Which batches are slow and which fast; none are where there are fewer than two."""
    slowness = _slowness(batches)
    if slowness.size < 2:
        none = np.zeros(slowness.size, dtype=np.bool_)
        return none, none
    return slowness >= quantile(slowness, SLOW), slowness <= quantile(slowness, FAST)


def _volumes(trace: Trace, batches: Batches) -> Floats:
    """Executed volume of each batch: rows times the product of its dims."""
    b = trace.batches.take(batches.row)
    volume = b["executed_size"].astype(np.float64)
    for name in trace.dim_names:
        volume = volume * b[f"exec.{name}"]
    return np.asarray(volume, dtype=np.float64)


def _padding(trace: Trace, batches: Batches) -> float | None:
    ran = batches.of_request >= 0
    true = np.ones(int(ran.sum()))
    for name in trace.dim_names:
        true = true * trace.requests[f"dim.{name}"][ran]
    total = float(true.sum())
    return float(_volumes(trace, batches).sum()) / total if total else None


def _excess_by_volume(trace: Trace, batches: Batches) -> tuple[float | None, float | None]:
    """measured / promised - 1 of warm runs at the smallest and the largest fifth of executed volumes."""
    keep = ~batches.first & (batches.promised > 0)
    if not keep.any():
        return None, None
    volume = _volumes(trace, batches)[keep]
    small, large = volume <= quantile(volume, FIFTH), volume >= quantile(volume, 1 - FIFTH)
    measured, promised = batches.measured[keep], batches.promised[keep]
    return _excess(measured, promised, small), _excess(measured, promised, large)


def _excess(measured: NDArray[np.int64], promised: NDArray[np.int64], rows: NDArray[np.bool_]) -> float:
    return float(measured[rows].sum()) / float(promised[rows].sum()) - 1


def _runqueue(trace: Trace) -> float | None:
    b = trace.batches
    known = (b["runqueue"] >= 0) & (b["started"] >= 0) & (b["ended"] > b["started"])
    wall = b["ended"] - b["started"]
    whole = float(wall[known].sum())
    return float(off_core(b, np.maximum(wall, 0))[known].sum()) / whole if whole else None


def _pace(trace: Trace, envelope: Envelope | None) -> tuple[float | None, float | None]:
    """Median compute and stream pace over the reference of the core that they ran on."""
    reference = {} if envelope is None else {pace.core: pace for pace in envelope.pace}
    rows = np.flatnonzero(trace.marks["kind"] == MARK_KINDS.index("pace"))
    core_of = dict(zip(trace.batches["worker"].tolist(), trace.batches["core"].tolist(), strict=True))
    compute, stream = [], []
    for row in rows.tolist():
        base = reference.get(core_of.get(int(trace.marks["worker"][row]), -1))
        if base is not None:
            compute.append(float(trace.marks["value"][row]) / base.compute_ns)
            stream.append(float(trace.marks["value2"][row]) / base.stream_ns)
    return (quantile(compute, 0.5), quantile(stream, 0.5)) if compute else (None, None)


def _peak(trace: Trace, envelope: Envelope | None, memory: int | None) -> float | None:
    """The workers' peaks together over the memory that they may take; None where either is unknown."""
    limit = memory_limit(Assumptions(), envelope) if memory is None and envelope is not None else memory
    held = peak_of_run(trace)
    return held / limit if limit and held is not None else None
