"""The way back: when a shipped move must be undone, as a rule that somebody can watch.

The rule looks at the share of late requests over windows of at least 100 arrivals: neighbours in a queue are late
together, so single requests would alarm all the time, windows much less. Two windows running must pass the bound.

*Healthy runs.* Replays share their arrivals, and say nothing of others. So the slice is redrawn (:func:`redraw`): its
requests, each with the gap before it, its shape and its stream, in circular blocks of 5 relaxation times and at least
1/25 of the slice, put together to arrivals that never came; the caller lets the serving machine run them under a
virtual clock, with service times from the profile. A queue on redrawn arrivals builds up where none did before, which
redrawing the *latencies* of a replay cannot show. It is redrawn twice: the slice is itself one draw of its traffic, so
further traffic differs from it by more than one redrawing does, in its mean rate above all. Simulated latencies are
stretched by what the slowest replay's percentile was above the simulated one on the recorded arrivals (never
shortened).

*Bound.* The largest share that two windows running both reached, in any replay or any of the first half of the
redrawn runs, plus one request. Runs are exchangeable, so a further one reaches more with probability 1 / (n + 1) at
most, n = those in the bound (the argument of conformal prediction: Vovk, Gammerman, Shafer 2005).

*False alarms* are counted, not assumed: the share of the other half in which the rule fires, with its Wilson interval.

*Delay.* Runs on redrawn arrivals in which service itself takes 1.25, 1.5 and 2 times as long, and runs of the
baseline (the worst case: the move does nothing any more), each begun somewhere within a healthy window. The delay
counts requests from there to the end of the second window above the bound; the median, and between which ends nine of
ten runs lie.

Limits. It is calibrated on traffic like the recorded one: as heavy, with such bursts; other traffic needs a new bound.
Redrawing keeps what lasts no longer than a block: a swell of an hour is known only if the slice holds one. What the
machine does to all runs of a day is not in a simulation (but for the stretch). ``bench/triggers.py`` holds the printed
rate against fresh arrivals of queues whose truth is known. It says that something is wrong, not what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.figure import Interval
from trimtab.domain.noun import Ns
from trimtab.domain.workload import Workload
from trimtab.evidence.stats.quantiles import Floats, quantile

WINDOW = 100
"""Arrivals in one window, at least."""
SLOWER = (1.25, 1.5, 2.0)
"""How many times as long service takes in injected regressions."""
RUNS, FAULTY = 100, 50
"""Redrawn runs that set the bound, and as many that count its false alarms; runs of each injected regression."""
_LEVEL, _MOST = 0.95, 0.90

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Redrawn:
    """A simulated run on redrawn arrivals: latencies (s, in order of arrival, +inf = failed), and which request of the
    recorded slice each stands for."""

    rows: Rows
    latency: Floats

    def of(self, part: Rows) -> Floats:
        """The latencies of those that stand for a request of ``part``."""
        belongs = np.zeros(max(int(self.rows.max(initial=-1)), int(part.max(initial=-1))) + 1, dtype=bool)
        belongs[part] = True
        return self.latency[belongs[self.rows]]


@dataclass(frozen=True)
class Rehearsal:
    """Simulated runs of what would run: on the recorded arrivals, healthy on redrawn ones, and with each injected
    regression, by its name."""

    recorded: Redrawn
    healthy: tuple[Redrawn, ...]
    faulty: Mapping[str, tuple[Redrawn, ...]]


@dataclass(frozen=True)
class Rule:
    """Roll back when, in two windows of ``window`` arrivals running, a larger share than ``bound`` is later than
    ``late_ms``. ``seen`` = healthy windows behind the bound (``bound`` None: no run held two)."""

    window: int
    late_ms: float
    bound: float | None
    seen: int

    @property
    def watches(self) -> bool:
        """Whether any window could pass the bound."""
        return self.bound is not None and self.bound < 1

    def soonest(self, rate_hz: float) -> Ns | None:
        """How soon it can fire at ``rate_hz`` arrivals/s, ns; None where it never can."""
        if not self.watches or not rate_hz > 0 or math.isinf(rate_hz):
            return None
        return round(2 * self.window / rate_hz * 1e9)

    def fires_at(self, latency: Floats) -> int | None:
        """After how many requests of ``latency`` (seconds, in order of arrival) it fires; None = not at all."""
        if self.bound is None:
            return None
        above = np.flatnonzero(_both(_shares(latency, self.late_ms, self.window)) > self.bound)
        return int(above[0] + 2) * self.window if above.size else None


@dataclass(frozen=True)
class Tried:
    """The rule on ``runs`` faulty runs. ``delay`` = requests until it fired, the median over all runs (None: fewer
    than half were found), with the ends between which nine of ten runs lie (+inf = not found)."""

    name: str
    runs: int
    found: float
    delay: float | None
    between: Interval


@dataclass(frozen=True)
class Proven:
    """A rule, its false alarms as a share of ``runs`` healthy runs of ``length`` requests that did not set it, and how
    it found injected faults."""

    rule: Rule
    length: int
    runs: int = 0
    false_alarms: float | None = None
    interval: Interval | None = None
    tried: tuple[Tried, ...] = ()


def redraw(load: Workload, block: int, rng: np.random.Generator) -> tuple[Rows, Workload]:
    """As many requests as ``load`` has, in circular blocks of ``block``, drawn twice, each behind the gap that it had:
    which request each stands for, and the arrivals. (What was first had no gap; it gets the mean one.)"""
    n = len(load)
    gaps = np.diff(load.scheduled, prepend=0)
    gaps[:1] = round(load.span / (n - 1)) if n > 1 else 0
    rows = _blocks(n, block, rng)[_blocks(n, block, rng)]
    scheduled = np.cumsum(gaps[rows])
    return rows, replace(
        load,
        scheduled=scheduled - scheduled[0],
        dims=load.dims[rows],
        stream=load.stream[rows],
        payload=load.payload[rows],
        deadline=load.deadline[rows],
        slices=(),
    )


def _blocks(n: int, block: int, rng: np.random.Generator) -> Rows:
    """``n`` positions below ``n``, in circular blocks."""
    starts = rng.integers(0, n, size=math.ceil(n / block))
    return np.asarray((starts[:, None] + np.arange(block)).reshape(-1)[:n] % n, dtype=np.int64)


def stretch(replays: Sequence[Floats], simulated: Floats, q: float) -> float:
    """By how much simulated latencies are too short: the slowest replay's q-quantile over the simulated one, 1 at
    least, and where either falls among the failed."""
    slowest, ours = max(quantile(one, q) for one in replays), quantile(simulated, q)
    return max(slowest / ours, 1.0) if 0 < ours < math.inf and slowest < math.inf else 1.0


def rule_of(healthy: Sequence[Floats], late_ms: float, window: int = WINDOW) -> Rule:
    """The rule that none of these runs passes (latencies in seconds, in order of arrival, +inf = failed)."""
    if window < WINDOW:
        raise ValueError(f"a window of {window} arrivals is too short; take at least {WINDOW}")
    shares = [_shares(one, late_ms, window) for one in healthy]
    reached = np.concatenate([_both(one) for one in shares]) if shares else np.empty(0)
    bound = min(float(reached.max()) + 1 / window, 1.0) if reached.size else None
    return Rule(window, late_ms, bound, sum(one.size for one in shares))


def prove(rule: Rule, healthy: Sequence[Floats], faulty: Mapping[str, Sequence[Floats]], seed: int) -> Proven:
    """``rule`` on ``healthy`` runs that did not set it, and on runs with each injected regression."""
    length = min((len(one) for one in healthy), default=0)
    if not rule.watches or not healthy:
        return Proven(rule, length)
    alarms, runs = sum(rule.fires_at(one) is not None for one in healthy), len(healthy)
    rng = np.random.default_rng(seed)
    tried = tuple(_try(name, bad, healthy, rule, rng) for name, bad in faulty.items() if bad)
    return Proven(rule, length, runs, alarms / runs, wilson(alarms, runs), tried)


def wilson(hits: int, runs: int) -> Interval:
    """Interval of a share of independent trials (Wilson 1927)."""
    z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    share, spread = hits / runs, z * z / runs
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / runs + spread / (4 * runs)) / (1 + spread)
    lo, hi = max(middle - half, 0.0) if hits else 0.0, min(middle + half, 1.0) if hits < runs else 1.0
    return Interval(lo=lo, hi=hi, level=_LEVEL, method="Wilson")


def _try(name: str, bad: Sequence[Floats], healthy: Sequence[Floats], rule: Rule, rng: np.random.Generator) -> Tried:
    """Each run of ``bad`` behind the first part of a healthy window: nobody regresses at the edge of a window."""
    delays = []
    for k, run in enumerate(bad):
        phase = int(rng.integers(rule.window))
        at = rule.fires_at(np.concatenate([healthy[k % len(healthy)][:phase], run]))
        delays.append(math.inf if at is None else float(at - phase))
    found = float(np.isfinite(delays).mean())
    median, lo, hi = (quantile(delays, q) for q in (0.5, (1 - _MOST) / 2, (1 + _MOST) / 2))
    between = Interval(lo=lo, hi=hi, level=_MOST, method="simulated runs")
    return Tried(name, len(delays), found, median if math.isfinite(median) else None, between)


def _shares(latency: Floats, late_ms: float, window: int) -> Floats:
    """The share of late requests in each whole window."""
    late = np.asarray(latency > late_ms / 1e3, dtype=np.float64)
    whole = len(late) // window * window
    return np.asarray(late[:whole].reshape(-1, window).mean(axis=1), dtype=np.float64)


def _both(shares: Floats) -> Floats:
    """What two windows running both reached, for each pair."""
    return np.minimum(shares[:-1], shares[1:])
