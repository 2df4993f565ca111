"""Batch policies: when the head of a queue may run, and with how many others.

A policy is one function ``(times, policy) -> (ready_at, size)``. ``times`` holds the enqueue times (ns, not falling, at
least one) of the requests that wait for the same entry and the same workers; ``policy.max_size`` is already limited to
what the entry was compiled for. The answer: the time from which the queue may send a batch, and how many it would send
now (at least 1, at most those that wait and ``max_size``). A batch forms late, at dispatch, so whoever arrives while
all workers are busy still rides along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from trimtab.domain.noun import Ns
from trimtab.domain.plan import BatchPolicy

Batcher: TypeAlias = Callable[[Sequence[Ns], BatchPolicy], tuple[Ns, int]]


def none(times: Sequence[Ns], policy: BatchPolicy) -> tuple[Ns, int]:
    """One request at a time, ready when it arrives."""
    return times[0], 1


def size_hold(times: Sequence[Ns], policy: BatchPolicy) -> tuple[Ns, int]:
    """Ready when ``max_size`` requests wait, or when the oldest has waited ``hold``, whichever comes first."""
    held = times[0] + policy.hold_ns
    if len(times) < policy.max_size:
        return held, len(times)
    return min(held, times[policy.max_size - 1]), policy.max_size


BATCH: dict[str, Batcher] = {"none": none, "size-hold": size_hold}
"""``BatchPolicy.kind`` -> policy."""
