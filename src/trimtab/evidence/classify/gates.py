"""Validity gates: may this run be believed at all? They come before every diagnosis (R18).

Theory
------
A late load generator looks like a fast server: the queue sees smoother and sparser traffic than the schedule asked
for. Two symptoms, each enough: the issue rate stays below the offered one, or requests are issued late by a time that
matters against the latencies under study. A percentile without enough effective samples is not a measurement, and an
incomplete run has a tail that nobody saw.

Thresholds: issue rate below 98 % of the offered one over at least 1 s of schedule; p95 of the loader slip above 1 ms
AND above 5 % of the run's p50 latency or of the SLA's bound, whichever is smaller.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.stats.quantiles import Floats, effective_samples, quantile

ISSUE_RATE = 0.98
SLIP_NS = 1_000_000
SLIP_SHARE = 0.05

GateName = Literal[
    "load-generator", "samples", "effective-samples", "complete", "successes", "rows", "stages", "closed-loop"
]


class Gate(msgspec.Struct, frozen=True):
    """One check: ``text`` says what was seen, passed or not; ``fix`` what to do when it was not.

    ``decides`` False: a failure weakens a percentile (it is indicative) without making the run unusable.
    """

    name: GateName
    passed: bool
    text: str
    figures: tuple[str, ...]
    fix: str = ""
    decides: bool = True


def gates(trace: Trace, seconds: Floats, sla: Sla) -> tuple[Gate, ...]:
    """All gates of one run; ``seconds`` are its latencies in order of arrival."""
    return (
        load_generator(trace, seconds, sla),
        *samples(trace, seconds, sla),
        complete(trace),
        successes(trace, seconds),
    )


def load_generator(trace: Trace, seconds: Floats, sla: Sla) -> Gate:
    """Whether requests were issued when the schedule asked for them."""
    run = trace.run.id
    names = (f"replay.{run}.slip_p99", f"replay.{run}.issued_rate", f"replay.{run}.offered_rate")
    fix = "give the driver a core of its own, or lower the rate; this run's latencies are not those of the schedule"
    req = trace.requests
    issued = req["enqueued"] >= 0
    if not issued.any():
        return Gate("load-generator", False, "no request was ever issued", names, fix)
    slip = quantile((req["enqueued"] - req["scheduled"])[issued], 0.95)
    offered = int(req["scheduled"][-1] - req["scheduled"][0])
    took = int(req["enqueued"][issued].max() - req["scheduled"][0])
    rate = offered / took if took > 0 and offered >= 1_000_000_000 else 1.0
    finite = seconds[np.isfinite(seconds)]
    typical = quantile(finite, 0.5) * 1e9 if finite.size else math.inf
    limit = max(SLIP_NS, SLIP_SHARE * min(typical, sla.bound_ms * 1e6))
    seen = f"issue rate {rate * 100:.1f} % of the offered one, loader slip p95 {slip / 1e6:.3g} ms"
    return Gate(
        "load-generator", rate >= ISSUE_RATE and slip <= limit, f"{seen} (limit {limit / 1e6:.3g} ms)", names, fix
    )


def samples(trace: Trace, seconds: Floats, sla: Sla) -> tuple[Gate, Gate]:
    """Whether there are enough requests for the primary percentile, and enough independent ones."""
    worth = effective_samples(seconds, {"p50": 0.5, "p95": 0.95, "p99": 0.99, "goodput": 0.95}[sla.metric])
    figures = (f"replay.{trace.run.id}.{sla.metric}",)
    few = f"{worth.samples} requests; {sla.metric} needs at least {worth.needed}, were they independent"
    enough = worth.samples >= worth.needed
    fix = f"replay at least {worth.needed} requests"
    if worth.effective is None:
        rests = f"the worth of the samples behind {sla.metric} cannot be assessed: {worth.reason}"
    else:
        rests = f"{sla.metric} rests on {worth.effective:.0f} effective samples of {worth.samples}"
        rests += f"; {worth.needed} are needed, until then it is indicative"
        fix = f"replay about {math.ceil(worth.samples * worth.needed / worth.effective)} requests"
    return (
        Gate("samples", enough, few, figures, fix),
        Gate("effective-samples", worth.enough, rests, figures, fix, decides=False),
    )


def complete(trace: Trace) -> Gate:
    """Whether the run was cut short."""
    text = "the run is complete" if trace.run.complete else f"the run was cut short. {trace.run.note}".strip()
    return Gate("complete", trace.run.complete, text, (), "replay again")


def successes(trace: Trace, seconds: Floats) -> Gate:
    """Whether any request ended well."""
    failed = int(np.isinf(seconds).sum())
    text = f"{failed} of {seconds.size} requests failed"
    passed = seconds.size > 0 and failed < seconds.size
    return Gate("successes", passed, text, (f"replay.{trace.run.id}.failed",), "see the failures by kind")
