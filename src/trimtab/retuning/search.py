"""Search: simulate every candidate, confirm the few best by real replay, choose the smallest that is not worse.

Simulation ranks, measurement decides. Where there are many moves, halving (``retuning.halving``) picks those that are
looked at in full; the others stay rows, with the reason. Every move that is left is run through the serving machine
under the virtual clock, on the tune slice, as paired replicas: replica ``r`` of every plan sees the same jitter of
arrivals and the same draws, so what they share cancels in the ratio. A first look takes a few replicas; moves whose
spread reaches the leader's, and all that re-form batches, get the full ensemble (at least 20), because there
microseconds decide who is batched with whom and hence which shapes run: one run says nothing. The spread (5th to 95th
percentile of the paired changes) is printed with every row, and a gain inside it counts as none.

The best of many noisy rows looks better than it is, so nothing is claimed here: the short list (the leader, the
smallest of those that cannot be told from it, then the best of each other kind) is replayed for real, and ``confirm``
chooses among what was measured. Two moves cannot be told apart where their spreads overlap, and where they differ by no
more than replays of one plan do: a simulation that is surer than the measurement would hide the smaller move.

Limits. Simulated service times are as good as the profiles they are drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from trimtab.domain.figure import Figure, Interval
from trimtab.domain.noun import Ns
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Slice, Workload
from trimtab.errors import TrimtabError
from trimtab.evidence.stats.quantiles import quantile
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.halving import Dropped, Halving, Trial, run

FIRST_LOOK = 3
ENSEMBLE = 20
REFORMING = ("batch", "order", "placement", "admit", "workers", "threads")
"""Kinds of move that decide who waits for whom, and so who is batched with whom."""
JITTER_NS: Ns = 60_000
"""Standard deviation of the arrival jitter between replicas: what a quiet machine's own timing shows."""

SPREAD = "5th to 95th percentile of paired replicas"
LONGEST_MESSAGE = 240
"""Characters of a compiler's message in a row; the profile keeps all of it."""


FEWEST_REQUESTS = 200
"""Fewer say nothing about a tail, however short a part of the slice is asked for."""
FULL = 24
"""So many moves are all simulated in full; of more, halving leaves about as many."""

Simulate = Callable[[Plan, int, float], Trace]
"""``(plan, replica, share)`` -> a run on the first ``share`` of the tune slice, arrivals jittered and services drawn by
the replica's number. A plan that cannot run raises a TrimtabError; the search keeps it as a row."""


def beginning(workload: Workload, share: float) -> Workload:
    """The first ``share`` of a workload's requests, at least ``FEWEST_REQUESTS``."""
    count = max(round(share * len(workload)), FEWEST_REQUESTS)
    return workload if count >= len(workload) else workload.take(Slice(name="beginning", start=0, stop=count))


def jitter(workload: Workload, replica: int, seed: int, sigma: Ns = JITTER_NS) -> Workload:
    """The workload with normal arrival jitter (ns), the same for every plan of one replica; replica 0 has none.

    Requests keep their order and ids: a request never moves before its predecessor.
    """
    if replica == 0:
        return workload
    rng = np.random.default_rng((seed, replica))
    shifted = workload.scheduled + np.rint(rng.normal(0.0, sigma, len(workload))).astype(np.int64)
    return replace(workload, scheduled=np.maximum.accumulate(np.maximum(shifted, 0)))


@dataclass(frozen=True)
class Simulated:
    """One candidate under the virtual clock. ``values`` by replica (ms or share) · ``change`` = median of the paired
    changes against the baseline's same replica · ``spread`` of them · ``failed`` says why there is nothing,
    ``dropped`` why there is only one run of a part of the slice, ``barred`` why it must not be proposed whatever it
    gains."""

    move: Move
    values: tuple[float, ...]
    changes: tuple[float, ...]
    misses: float
    failed: str = ""
    dropped: str = ""
    barred: str = ""

    @property
    def value(self) -> float:
        return quantile(self.values, 0.5)

    @property
    def change(self) -> float | None:
        return None if self.failed else quantile(self.changes, 0.5)

    @property
    def spread(self) -> Interval | None:
        """None where a replica fell among the failed, or there is none."""
        if self.failed or self.dropped or not np.all(np.isfinite(self.changes)):
            return None
        lo, hi = quantile(self.changes, 0.05), quantile(self.changes, 0.95)
        return Interval(lo=lo, hi=hi, level=0.9, method=SPREAD)

    def gain(self, name: str) -> float:
        """How much better than the baseline, as a share; -inf where there is nothing to say, or too little."""
        change = self.change
        if change is None or self.dropped or np.isnan(change):
            return -np.inf
        return change if metric.higher_is_better(name) else -change


def simulate_all(moves: Sequence[Move], simulate: Simulate, sla: Sla, *, ensemble: int = ENSEMBLE) -> list[Simulated]:
    """Every move with its replicas, best first; those that halving dropped and failures are rows at the end.

    The first move must be "no change": it is what the others are paired with. ``ensemble`` bounds the replicas.
    """
    if len(moves) <= FULL:
        return _in_full(moves, simulate, sla, ensemble)

    def evaluate(trial: Trial) -> float | str:
        try:
            latency = simulate(trial.move.plan, trial.replica, trial.share).latency
        except TrimtabError as fault:
            return fault.what
        return metric.value(latency, sla.metric, sla)

    halving = run(Halving(moves, sla, keep=FULL), evaluate)
    rows = _in_full([moves[0], *halving.left], simulate, sla, ensemble)
    return rows + sorted((_out(each) for each in halving.dropped), key=lambda row: (bool(row.failed), row.move.size))


def _out(each: Dropped) -> Simulated:
    if each.failed:
        return Simulated(each.move, (), (), np.nan, each.failed)
    change = _change(each.baseline, each.value)
    return Simulated(each.move, (each.value,), (change,), np.nan, dropped=each.reason)


def _in_full(moves: Sequence[Move], simulate: Simulate, sla: Sla, ensemble: int) -> list[Simulated]:
    if not moves or moves[0].kind != NO_CHANGE:
        raise ValueError("the first move must be the baseline")
    first = min(FIRST_LOOK, ensemble)
    baseline = _replicas(moves[0], simulate, sla, range(first))
    others = [_row(move, _replicas(move, simulate, sla, range(first)), baseline, sla) for move in moves[1:]]
    rows = [_row(moves[0], baseline, baseline, sla), *others]
    again = _close(rows, sla.metric)
    if again and ensemble > first and not isinstance(baseline, str):
        baseline = _longer(moves[0], baseline, simulate, sla, ensemble)
        for i in again:
            seen = (rows[i].values, rows[i].misses)
            longer = baseline if i == 0 else _longer(moves[i], seen, simulate, sla, ensemble)
            rows[i] = _row(moves[i], longer, baseline, sla)
    return sorted(rows, key=lambda row: (-row.gain(sla.metric), row.move.size))


_Replicas = tuple[tuple[float, ...], float] | str
"""Values of the primary metric by replica and the mean miss rate; or why the plan cannot run."""


def _replicas(move: Move, simulate: Simulate, sla: Sla, which: range) -> _Replicas:
    values, misses = [], []
    for replica in which:
        try:
            latency = simulate(move.plan, replica, 1.0).latency
        except TrimtabError as fault:
            return fault.what
        values.append(metric.value(latency, sla.metric, sla))
        misses.append(metric.value(latency, "miss", sla))
    return tuple(values), float(np.mean(misses))


def _longer(move: Move, seen: tuple[tuple[float, ...], float], simulate: Simulate, sla: Sla, to: int) -> _Replicas:
    more = _replicas(move, simulate, sla, range(len(seen[0]), to))
    if isinstance(more, str):
        return more
    have = len(seen[0])
    return seen[0] + more[0], (seen[1] * have + more[1] * (to - have)) / to


def _row(move: Move, found: _Replicas, baseline: _Replicas, sla: Sla) -> Simulated:
    if isinstance(baseline, str):
        return Simulated(move, (), (), np.nan, f"the baseline could not be simulated: {baseline}")
    if isinstance(found, str):
        return Simulated(move, (), (), np.nan, found)
    changes = tuple(_change(a, b) for a, b in zip(baseline[0], found[0], strict=False))
    return Simulated(move, found[0], changes, found[1])


def _change(baseline: float, candidate: float) -> float:
    """(candidate - baseline) / baseline; from failure into a figure is -100 %, the other way +inf, neither 0."""
    if np.isinf(baseline):
        return 0.0 if np.isinf(candidate) else -1.0
    if baseline == 0:
        return 0.0 if candidate == 0 else np.inf
    return candidate / baseline - 1


def _close(rows: Sequence[Simulated], name: str) -> list[int]:
    """Rows that need the ensemble: those whose spread reaches the leader's, and all that re-form batches."""
    leader = max(range(len(rows)), key=lambda i: rows[i].gain(name))
    close = [
        i
        for i, row in enumerate(rows)
        if not row.failed and (i == leader or row.move.kind in REFORMING or _overlap(row, rows[leader]))
    ]
    return sorted({0, *close}) if len(close) > 1 or any(rows[i].move.kind in REFORMING for i in close) else []


def _overlap(row: Simulated, other: Simulated) -> bool:
    a, b = row.spread, other.spread
    if a is None or b is None:
        return row.change == other.change
    return a.lo <= b.hi and b.lo <= a.hi


def shortlist(rows: Sequence[Simulated], sla: Sla, most: int, floor: float) -> tuple[Move, ...]:
    """The few moves to confirm by real replay, out of ``rows`` (best first).

    The leader, the smallest of those that cannot be told from it, then the best of each other kind that gains
    anything. The baseline is not listed: it is replayed anyway. ``floor``: the share by which replays of one plan
    differ.
    """
    allowed = [row for row in rows if row.move.kind != NO_CHANGE and not row.barred]
    gains = [row for row in allowed if row.gain(sla.metric) > 0]
    if not gains or most < 1:
        return ()
    leader = gains[0]
    rivals = [row for row in gains if _overlap(row, leader) or abs(row.value - leader.value) <= floor * leader.value]
    picked = [leader.move, min(rivals, key=lambda row: row.move.size).move]
    for row in gains:
        if all(move.kind != row.move.kind for move in picked):
            picked.append(row.move)
    unique = {move.plan.id: move for move in picked}
    return tuple(unique.values())[:most]


def why_not(row: Simulated, sla: Sla) -> str:
    """Why a simulated candidate was not replayed."""
    if row.failed or row.dropped or row.barred:
        return row.failed or row.dropped or row.barred
    spread = row.spread
    if row.gain(sla.metric) <= 0:
        return "no gain in simulation"
    good = metric.higher_is_better(sla.metric)
    if spread is not None and (spread.lo <= 0 if good else spread.hi >= 0):
        return "its simulated gain lies within the spread of replicas"
    return "simulated only: others gained more"


def not_compiled(failures: Sequence[CompileFailure]) -> str:
    """Why a plan cannot run, in the compiler's words: its first entry that failed, and how many more did."""
    first, more = failures[0], len(failures) - 1
    message = " ".join(first.message.split())
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}…"
    rest = f" ({more} more entr{'y' if more == 1 else 'ies'} failed)" if more else ""
    return f"entry {first.entry} does not compile ({first.kind}): {message}{rest}"


def simulated_figure(row: Simulated, sla: Sla, artifact: str) -> Figure:
    """The simulated change of the primary metric, with its spread."""
    return Figure(
        id=f"retune.simulated.{row.move.plan.id}",
        value=row.change,
        unit="share",
        samples=len(row.values),
        scope="tune",
        artifact=artifact,
        interval=row.spread,
        note=row.failed or row.dropped or f"simulated change of {sla.metric}, {len(row.values)} replicas",
    )
