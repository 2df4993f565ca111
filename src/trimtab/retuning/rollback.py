"""The way back: when a shipped move must be undone, as a rule that somebody can watch.

The rule looks at the share of late requests over windows of at least 100 arrivals: neighbours in a queue are late
together, so single requests would alarm all the time, windows much less. Two windows running must pass the bound.

*Bound.* The largest share that any window of the candidate's own healthy replays showed, plus one request.

*False alarms* are counted, not assumed: healthy runs of the same length are redrawn from the replays in circular
blocks of requests (5 relaxation times, at least one window), which shifts what falls into one window, and the share of
runs in which the rule fires is printed with its Wilson interval. A run is redrawn from one replay and judged by the
bound of the others, because no replay passes a bound that it set itself. (One replay alone has to do both.)

*Delay.* The same runs with every latency 1.25, 1.5 and 2 times as long, and runs redrawn from the baseline's own
replays (the worst case: the move does nothing any more), each begun somewhere within a window. The delay counts
requests from there to the end of the second window above the bound; the median, and between which ends nine of ten runs
lie.

Limits. It is calibrated on the traffic that was replayed; heavier traffic needs a new bound. Replays share their
arrivals, so the interval shows what redrawing leaves open, not what other arrivals bring: on those a queue at
utilisation 0.75 fires falsely in 8 % of 2,000 requests where 1 % is printed, at 0.5 in 1 % (``bench/triggers.py``).
Longer latencies stand for a regression that does not lengthen the queue: slower service does, and was found two to five
times as soon. It says that something is wrong, not what.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from trimtab.domain.figure import Interval
from trimtab.domain.noun import Ns
from trimtab.evidence.stats.bootstrap import block_length
from trimtab.evidence.stats.quantiles import Floats, quantile, relaxation_requests

WINDOW = 100
"""Arrivals in one window, at least."""
SLOWER = (1.25, 1.5, 2.0)
"""How many times as long latencies are in injected regressions."""
RUNS = 300
_LEVEL, _MOST = 0.95, 0.90
_REDRAWN = "redrawn runs"


@dataclass(frozen=True)
class Rule:
    """Roll back when, in two windows of ``window`` arrivals running, a larger share than ``bound`` is later than
    ``late_ms``. ``seen`` = healthy windows behind the bound (``bound`` None: there were none)."""

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
        above = _shares(latency, self.late_ms, self.window) > self.bound
        both = np.flatnonzero(above[:-1] & above[1:])
        return int(both[0] + 2) * self.window if both.size else None


@dataclass(frozen=True)
class Tried:
    """The rule on ``runs`` redrawn runs. ``delay`` = requests until it fired, the median over all runs (None: fewer
    than half were found), with the ends between which nine of ten runs lie (+inf = not found)."""

    name: str
    runs: int
    found: float
    delay: float | None
    between: Interval


@dataclass(frozen=True)
class Proven:
    """A rule, its false alarms as a share of healthy runs of ``length`` requests, and how it found injected faults."""

    rule: Rule
    length: int
    false_alarms: float | None = None
    interval: Interval | None = None
    tried: tuple[Tried, ...] = ()


def rule_of(healthy: Sequence[Floats], late_ms: float, window: int = WINDOW) -> Rule:
    """The rule from the candidate's own replays (latencies in seconds, in order of arrival, +inf = failed)."""
    if window < WINDOW:
        raise ValueError(f"a window of {window} arrivals is too short; take at least {WINDOW}")
    shares = np.concatenate([_shares(one, late_ms, window) for one in healthy]) if healthy else np.empty(0)
    bound = min(float(shares.max()) + 1 / window, 1.0) if shares.size else None
    return Rule(window, late_ms, bound, int(shares.size))


def prove(healthy: Sequence[Floats], baseline: Sequence[Floats], rule: Rule, seed: int, runs: int = RUNS) -> Proven:
    """Replay ``rule`` against redrawn healthy runs, injected regressions, and the baseline's own runs."""
    length = min((len(one) for one in healthy), default=0)
    if not rule.watches:
        return Proven(rule, length)
    rng = np.random.default_rng(seed)
    held_back = [_without(healthy, k, rule) for k in range(len(healthy))]
    drawn = list(_redraws(healthy, rule.window, runs, rng))
    alarms = sum(held_back[k].fires_at(run) is not None for k, run in drawn)
    tried = [_try(f"latencies x {factor:g}", [run * factor for _, run in drawn], drawn, rule, rng) for factor in SLOWER]
    if baseline:
        worst = [run for _, run in _redraws(baseline, rule.window, runs, rng)]
        tried.append(_try("the baseline", worst, drawn, rule, rng))
    return Proven(rule, length, alarms / runs, wilson(alarms, runs), tuple(tried))


def wilson(hits: int, runs: int) -> Interval:
    """Interval of a share of independent trials (Wilson 1927)."""
    z = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    share, spread = hits / runs, z * z / runs
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / runs + spread / (4 * runs)) / (1 + spread)
    return Interval(lo=max(middle - half, 0.0), hi=min(middle + half, 1.0), level=_LEVEL, method="Wilson")


def _without(healthy: Sequence[Floats], k: int, rule: Rule) -> Rule:
    rest = [one for i, one in enumerate(healthy) if i != k]
    return rule_of(rest, rule.late_ms, rule.window) if rest else rule


def _try(
    name: str, bad: Sequence[Floats], drawn: Sequence[tuple[int, Floats]], rule: Rule, rng: np.random.Generator
) -> Tried:
    """Each run of ``bad`` behind the first part of a healthy window: nobody regresses at the edge of a window."""
    delays = []
    for (_, healthy), run in zip(drawn, bad, strict=True):
        phase = int(rng.integers(rule.window))
        at = rule.fires_at(np.concatenate([healthy[:phase], run]))
        delays.append(math.inf if at is None else float(at - phase))
    found = float(np.isfinite(delays).mean())
    median, lo, hi = (quantile(delays, q) for q in (0.5, (1 - _MOST) / 2, (1 + _MOST) / 2))
    between = Interval(lo=lo, hi=hi, level=_MOST, method=_REDRAWN)
    return Tried(name, len(delays), found, median if math.isfinite(median) else None, between)


def _shares(latency: Floats, late_ms: float, window: int) -> Floats:
    late = np.asarray(latency > late_ms / 1e3, dtype=np.float64)
    whole = len(late) // window * window
    return np.asarray(late[:whole].reshape(-1, window).mean(axis=1), dtype=np.float64)


def _redraws(
    replays: Sequence[Floats], window: int, runs: int, rng: np.random.Generator
) -> Iterator[tuple[int, Floats]]:
    """``runs`` runs in circular blocks, from each replay in turn: which replay, and the run."""
    blocks = [max(block_length(len(x), relaxation_requests(x)), window) for x in replays]
    for i in range(runs):
        k = i % len(replays)
        replay, length = replays[k], blocks[k]
        starts = rng.integers(0, len(replay), size=math.ceil(len(replay) / length))
        rows = (starts[:, None] + np.arange(length)).reshape(-1)[: len(replay)] % len(replay)
        yield k, np.asarray(replay[rows], dtype=np.float64)
