"""What the tail would be without one cause, and without any, asked of the machine itself (:mod:`.rerun`).

Definitions. base = the recorded run, run again with every cause; less k = the same without cause k.

    resimulated gain of k   p95(base) - p95(less k), ms: the median over replicas
    interval                pooled over replicas: paired block bootstrap of p95(less k) / p95(base) on the same arrivals
    reproduced              p95(base) / p95(recorded)

A plan that never batches has no luck of the draw: one replica. Others have 20, so the interval holds what a jitter of
some microseconds does beside what the traffic does.

It *decides* (ranks causes in the diagnosis) where at least 90 % of the base run's batches are as recorded and the
percentile is reproduced within 10 %; else the figures are called modelled, and the account's own predictions rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from trimtab.domain.account import CAUSES, Account
from trimtab.domain.figure import Interval
from trimtab.domain.plan import Plan
from trimtab.domain.ports import Predictor
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.rerun import Rerun, refusal
from trimtab.evidence.attribute.sets import TAILS, latencies, shares, tail_set
from trimtab.evidence.figures import NS_MS
from trimtab.evidence.stats.bootstrap import paired_quantile
from trimtab.evidence.stats.quantiles import Floats, quantile, relaxation_requests

REPLICAS = 20
RESAMPLES = 400
MOST_REQUESTS = 3_000_000
"""Simulated in all, at most: about a minute on one core."""

LEAST_SHARE = 0.005
"""A cause that owns less of every tail set is not worth a run of its own."""

AS_RECORDED = 0.90
REPRODUCED = 0.10
METHOD = "paired block bootstrap over replicas"
ALL = "all"
TAKEN = tuple(cause for cause in ("slip", *CAUSES, "completion") if cause not in ("unavailable", "occupied", "failed"))
"""The causes that the machine can be run without."""


class Gain(msgspec.Struct, frozen=True):
    """What removing one cause does to a percentile, ms; positive = faster. ``reason`` where it has no interval."""

    value: float
    interval: Interval | None
    reason: str = ""


class Counterfactuals(msgspec.Struct, frozen=True, kw_only=True):
    """``gains[tail][cause]``, ``cause`` = "all" for every cause at once. ``reason``: why there are none.

    ``same`` = share of the base run's batches that ran as recorded; ``reproduced[tail]`` = base / recorded percentile.
    """

    gains: Mapping[str, Mapping[str, Gain]] = {}
    same: float = math.nan
    reproduced: Mapping[str, float] = {}
    replicas: int = 0
    reason: str = ""

    def decides(self, tail: str) -> bool:
        """Whether the causes of ``tail`` may be ranked by these gains."""
        near = abs(self.reproduced.get(tail, math.inf) - 1) <= REPRODUCED
        return bool(self.gains) and self.same >= AS_RECORDED and near

    def note(self, tail: str) -> str:
        """What a reader must know beside each of the figures."""
        runs = "one run" if self.replicas == 1 else f"{self.replicas} jittered replicas"
        said = f"re-simulated, {runs}; {self.same * 100:.0f} % of batches as recorded"
        return said if self.decides(tail) else f"modelled, ranks nothing: {said}"


def counterfactuals(
    trace: Trace, account: Account, plan: Plan, promise: Predictor, reference: Predictor, seed: int
) -> Counterfactuals:
    """Every cause that owns a part of the tail taken away alone, then all of them. ``seed`` draws the bootstrap."""
    why = refusal(trace, plan) or ("" if _owned(account) else "no cause owns a part of the tail")
    if why:
        return Counterfactuals(reason=why)
    removals: dict[str, tuple[str, ...]] = {cause: (cause,) for cause in _owned(account)} | {ALL: TAKEN}
    replicas = range(1, REPLICAS + 1) if plan.serve.batch.max_size > 1 else range(1)
    requests = len(trace.requests) * len(replicas) * (len(removals) + 1)
    if requests > MOST_REQUESTS:
        return Counterfactuals(
            reason=f"{requests:,} requests would have to be simulated, the most are {MOST_REQUESTS:,}"
        )
    rerun = Rerun(trace, account, plan, promise, reference)
    bases = [rerun.run((), replica) for replica in replicas]
    base = [latency for latency, _ in bases]
    less = {name: [rerun.run(gone, replica)[0] for replica in replicas] for name, gone in removals.items()}
    observed = latencies(account)
    relaxation = relaxation_requests(observed)
    rng = np.random.default_rng(seed)
    return Counterfactuals(
        gains={
            tail: {name: _gain(base, runs, q, relaxation, rng) for name, runs in less.items()}
            for tail, q in TAILS.items()
        },
        same=float(np.mean([same for _, same in bases])),
        reproduced={
            tail: _middle([quantile(run, q) for run in base]) / quantile(observed, q) for tail, q in TAILS.items()
        },
        replicas=len(replicas),
    )


def _owned(account: Account) -> list[str]:
    """The causes that own a part of a tail set worth a run of their own."""
    sets = [tail_set(account, name) for name in TAILS]
    able = set()
    for found in sets:
        if not found.rows.size:
            continue
        parts = shares(account, found.rows, found.rows[:0])
        whole = sum(part.total for part in parts)
        able |= {part.label for part in parts if abs(part.total) >= LEAST_SHARE * whole}
    return [cause for cause in TAKEN if cause in able]


def _gain(
    base: Sequence[Floats], less: Sequence[Floats], q: float, relaxation: float, rng: np.random.Generator
) -> Gain:
    """The gain in one percentile, over replicas that share their jitter."""
    gains: list[float] = []
    drawn: list[Floats] = []
    reason = ""
    resamples = max(RESAMPLES // len(base), 40)
    for before, after in zip(base, less, strict=True):
        bound = quantile(before, q)
        compared = paired_quantile(before, after, q, rng, resamples=resamples, relaxation=relaxation)
        gains.append((bound - quantile(after, q)) * NS_MS)
        reason = reason or compared.reason
        drawn.append(bound * NS_MS * (1 - compared.replicates))
    value = _middle(gains)
    if reason:
        return Gain(value, None, reason)
    pooled = np.concatenate(drawn)
    return Gain(value, Interval(lo=quantile(pooled, 0.025), hi=quantile(pooled, 0.975), method=METHOD))


def _middle(values: Sequence[float]) -> float:
    return float(np.median(np.asarray(values)))
