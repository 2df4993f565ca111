"""Are rollback triggers right? Simulated plans whose truth is known, through the product's own triggers.

The traffic and the worker of ``bench/decisions.py``; with one worker that serves in order of arrival a run is one sum
along the queue. A plan is replayed three times, its trigger is set from those replays and from runs on redrawn
arrivals (late = later than 1.1 times their p95, as a guard within 10 % would have it), and then it watches fresh runs:

printed      what the trigger says of itself: its false alarms, and its delays with slower service
same, other  how often it fires on fresh healthy runs, on the arrivals of the replays and on other arrivals like them
slower       how often and after how many requests (median) it fires where service takes longer, on other arrivals

Beside a share stands its 95 % interval (Wilson): of *printed* that which a single trigger prints, the median over all
plans; of *other* over plans, because the runs that one trigger watches stand or fall together.

    python bench/triggers.py [--studies 200] [--requests 2000] [--loads 0.5 0.75 0.9]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from decisions import SCATTER, traffic

from trimtab.domain.workload import Workload
from trimtab.evidence.stats.bootstrap import block_length
from trimtab.evidence.stats.quantiles import relaxation_requests
from trimtab.retuning.rollback import FAULTY, RUNS, SLOWER, Proven, prove, redraw, rule_of, stretch, wilson

LOADS = (0.5, 0.75, 0.9)
REPLAYS, FRESH = 3, 5
LIMIT, Q = 1.1, 0.95


@dataclass
class Tally:
    """What all studies of one load came to; delays in requests, +inf = not found."""

    printed: list[Proven] = field(default_factory=list)
    same: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    slower: dict[float, list[float]] = field(default_factory=lambda: {factor: [] for factor in SLOWER})


def queue(scheduled: np.ndarray, base: np.ndarray, longer: float, rng: np.random.Generator) -> np.ndarray:
    """Latencies, s, of one worker that serves in order of arrival; each request takes ``longer`` x its average time and
    luck: it ends S_i after the latest of all (arrival less what was served before it)."""
    served = base * longer * rng.gamma(SCATTER**-2, SCATTER**2, base.size)
    total = np.cumsum(served)
    idle = np.maximum.accumulate(scheduled - (total - served))
    return np.asarray((idle + total - scheduled) / 1e9, dtype=np.float64)


def study(load: float, requests: int, seed: int, tally: Tally) -> None:
    """One plan, its trigger, and the fresh runs that it watches."""
    rng = np.random.default_rng((seed, round(load * 100), requests))
    workload, base = traffic(load, requests, rng)
    healthy = [queue(workload.scheduled, base, 1.0, rng) for _ in range(REPLAYS)]
    proven = trigger(workload, base, healthy, rng)
    if not proven.rule.watches:
        return
    tally.printed.append(proven)
    same, other = [], []
    for _ in range(FRESH):
        others, their_base = traffic(load, requests, rng)
        same.append(delay(proven, queue(workload.scheduled, base, 1.0, rng)))
        other.append(delay(proven, queue(others.scheduled, their_base, 1.0, rng)))
        for factor in SLOWER:
            tally.slower[factor].append(delay(proven, queue(others.scheduled, their_base, factor, rng)))
    tally.same.append(float(np.isfinite(same).mean()))
    tally.other.append(float(np.isfinite(other).mean()))


def trigger(workload: Workload, base: np.ndarray, healthy: Sequence[np.ndarray], rng: np.random.Generator) -> Proven:
    """The trigger of a plan from its replays, as the product sets it."""
    simulated = queue(workload.scheduled, base, 1.0, rng)
    longer, block = stretch(healthy, simulated, Q), block_length(len(workload), relaxation_requests(simulated))

    def redrawn(count: int, factor: float = 1.0) -> list[np.ndarray]:
        drawn = (redraw(workload, block, rng) for _ in range(count))
        return [queue(arrivals.scheduled, base[rows], factor, rng) * longer for rows, arrivals in drawn]

    late_ms = LIMIT * float(np.quantile(np.concatenate(healthy), Q)) * 1e3
    rule = rule_of([*healthy, *redrawn(RUNS)], late_ms)
    faulty = {f"service x {factor:g}": redrawn(FAULTY, factor) for factor in SLOWER}
    return prove(rule, redrawn(RUNS), faulty, seed=1)


def delay(proven: Proven, latency: np.ndarray) -> float:
    """Requests until the trigger fires."""
    found = proven.rule.fires_at(latency)
    return math.inf if found is None else float(found)


def lines(load: float, tally: Tally) -> Iterator[str]:
    """What is printed of one load."""
    printed = [one.false_alarms for one in tally.printed if one.false_alarms is not None]
    most = [one.interval.hi for one in tally.printed if one.interval is not None]
    between = wilson(round(sum(tally.other)), len(tally.other))
    yield f"load {load:g}: {len(tally.printed)} triggers, bounds {_bounds(tally)}"
    yield f"  false alarms printed {_percent(np.mean(printed))} (0 to {_percent(np.median(most))})"
    yield f"  fresh runs, same arrivals {_percent(np.mean(tally.same))}"
    yield (
        f"  fresh runs, other arrivals {_percent(np.mean(tally.other))} "
        f"({_percent(between.lo)} to {_percent(between.hi)})"
    )
    for factor in SLOWER:
        found = tally.slower[factor]
        told = [t.delay or math.inf for one in tally.printed for t in one.tried if t.name == f"service x {factor:g}"]
        yield (
            f"  service x {factor:g}: printed {_after(told)}; fresh runs {_after(found)}, "
            f"found in {_percent(np.isfinite(found).mean())}"
        )


def _bounds(tally: Tally) -> str:
    bounds = [one.rule.bound or 0.0 for one in tally.printed]
    lo, middle, hi = np.quantile(bounds, (0.05, 0.5, 0.95))
    return f"{_percent(middle)} ({_percent(lo)} to {_percent(hi)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _after(delays: Sequence[float]) -> str:
    median = float(np.median(delays))
    return f"after {median:.0f} requests" if math.isfinite(median) else "not in half of the runs"


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch simulated plans whose truth is known.")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS)
    asked = parser.parse_args()
    for load in asked.loads:
        tally = Tally()
        for seed in range(asked.studies):
            study(load, asked.requests, seed, tally)
        print("\n".join(lines(load, tally)), flush=True)


if __name__ == "__main__":
    main()
