"""Which packets may be compared at all, and what is not the same where they may.

What the figures hang on (processor, cores, quota, memory limit, workers and their threads) forbids a comparison where
it differs. What may move them (kernel, microcode, governor, host) is named, and costs the pairing of arrivals. The
versions of runtimes are judged by who asks: a repetition needs the same ones, a gate is there to see what new ones do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from trimtab.domain.envelope import Envelope
from trimtab.domain.plan import Plan
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.evidence.attribute.offcore import off_core

_FORBIDS = {
    "cpu_model": "processor",
    "quota_cores": "quota in cores",
    "memory_limit_bytes": "memory limit in bytes",
    "virtualisation": "virtualisation",
}
_DIFFERS = ("host", "kernel", "microcode", "firmware", "governor", "power_profile", "huge_pages", "clock_source")
_SERVE = ("workers", "threads")
PACE_TOLERANCE = 0.1
WAIT_TOLERANCE = 0.05


def forbids(then: Envelope, now: Envelope) -> tuple[str, ...]:
    """What differs between two machines so that their figures may not be compared; empty = nothing."""
    named = [_told(name, getattr(then, field), getattr(now, field)) for field, name in _FORBIDS.items()]
    cores = _told("cores that may be used", len(then.cores_allowed), len(now.cores_allowed))
    lost = sorted(set(then.cpu_flags) - set(now.cpu_flags))
    flags = f"processor flags gone: {', '.join(lost[:5])}" if lost else ""
    return tuple(text for text in (*named, cores, flags) if text)


def plan_forbids(then: Plan, now: Plan) -> tuple[str, ...]:
    """The same for what a plan takes of the machine."""
    named = [_told(f"{name} of plan {then.id}", getattr(then.serve, name), getattr(now.serve, name)) for name in _SERVE]
    return tuple(text for text in named if text)


def differs(then: Envelope, now: Envelope) -> tuple[str, ...]:
    """What else is not the same; empty = nothing that is known."""
    named = [_told(name.replace("_", " "), getattr(then, name), getattr(now, name)) for name in _DIFFERS]
    return tuple(text for text in named if text)


def machine_differs(then: Sequence[Trace], now: Sequence[Trace]) -> tuple[str, ...]:
    """Whether the machine was faster, slower or busier with others while it replayed: the median of its pace kernels,
    and the share of the batches' time that they waited for a core. Empty = it was not, or nobody measured it. A plan
    that loads the machine moves both too, so this explains and never corrects."""
    told = []
    for column, name in (("value", "compute"), ("value2", "memory")):
        before, after = (_median_pace(traces, column) for traces in (then, now))
        if before and after and abs(after / before - 1) > PACE_TOLERANCE:
            told.append(f"{name} pace while replaying: {before / 1e3:.3g} µs then, {after / 1e3:.3g} µs now")
    waits = [_waiting(traces) for traces in (then, now)]
    if abs(waits[1] - waits[0]) > WAIT_TOLERANCE:
        told.append(f"time that batches waited for a core: {waits[0] * 100:.2g} % then, {waits[1] * 100:.2g} % now")
    return tuple(told)


def _waiting(traces: Sequence[Trace]) -> float:
    """Share of the batches' wall time; 0 where no delay was readable."""
    waited = total = 0
    for batches in (trace.batches for trace in traces):
        ran = (batches["started"] >= 0) & (batches["ended"] >= batches["started"])
        wall = np.where(ran, batches["ended"] - batches["started"], 0)
        waited += int(off_core(batches, wall).sum())
        total += int(wall.sum())
    return waited / total if total else 0.0


def _median_pace(traces: Sequence[Trace], column: str) -> float | None:
    """ns; None without a timed pace run."""
    pace = MARK_KINDS.index("pace")
    values = np.concatenate([trace.marks[column][trace.marks["kind"] == pace] for trace in traces] or [np.empty(0)])
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None


def versions_differ(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Versions that are not the same, by name."""
    return tuple(_versions(then, now))


def _versions(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*then, *now}):
        text = _told(name, then.get(name, ""), now.get(name, ""))
        if text:
            yield text


def _told(name: str, then: object, now: object) -> str:
    return "" if then == now else f"{name}: {_known(then)} then, {_known(now)} now"


def _known(value: object) -> str:
    return "none" if value is None or value == "" else str(value)
