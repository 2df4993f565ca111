"""Are rollback triggers right? Simulated plans whose truth is known, through the product's own triggers.

The traffic and the worker of ``bench/decisions.py``. A plan is replayed three times, its trigger is set from those
replays (late = later than 1.1 times their p95, as a guard within 10 % would have it), and then it watches fresh runs:

printed      what the trigger says of itself: its false alarms, and its delays with all latencies longer
same, other  how often it fires on fresh healthy runs, on the arrivals of the replays and on other arrivals like them
slower       how often and after how many requests (median) it fires where service itself takes longer

    python bench/triggers.py [--studies 40] [--requests 2000] [--loads 0.5 0.75]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from decisions import replay, traffic

from trimtab.retuning.rollback import SLOWER, Rule, prove, rule_of

LOADS = (0.5, 0.75)
REPLAYS, FRESH, RUNS = 3, 3, 150
LIMIT = 1.1


@dataclass
class Tally:
    """What all studies of one load came to; delays in requests, +inf = not found."""

    printed: list[float] = field(default_factory=list)
    same: list[bool] = field(default_factory=list)
    other: list[bool] = field(default_factory=list)
    told: dict[float, list[float]] = field(default_factory=lambda: {factor: [] for factor in SLOWER})
    slower: dict[float, list[float]] = field(default_factory=lambda: {factor: [] for factor in SLOWER})


def delay(rule: Rule, latency: np.ndarray) -> float:
    """Requests until ``rule`` fires."""
    found = rule.fires_at(latency)
    return math.inf if found is None else float(found)


def study(load: float, requests: int, seed: int, tally: Tally) -> None:
    """One plan, its trigger, and the fresh runs that it watches."""
    rng = np.random.default_rng((seed, round(load * 100), requests))
    workload, base = traffic(load, requests, rng)
    healthy = [replay(workload, base, 1.0, rng).latency for _ in range(REPLAYS)]
    late_ms = LIMIT * float(np.quantile(np.concatenate(healthy), 0.95)) * 1e3
    proven = prove(healthy, [], rule_of(healthy, late_ms), seed, runs=RUNS)
    if proven.false_alarms is None:
        return
    tally.printed.append(proven.false_alarms)
    for factor, tried in zip(SLOWER, proven.tried, strict=True):
        tally.told[factor].append(math.inf if tried.delay is None else tried.delay)
    for _ in range(FRESH):
        others, their_base = traffic(load, requests, rng)
        tally.same.append(math.isfinite(delay(proven.rule, replay(workload, base, 1.0, rng).latency)))
        tally.other.append(math.isfinite(delay(proven.rule, replay(others, their_base, 1.0, rng).latency)))
        for factor in SLOWER:
            tally.slower[factor].append(delay(proven.rule, replay(others, their_base * factor, 1.0, rng).latency))


def lines(load: float, tally: Tally) -> Sequence[str]:
    """What is printed of one load."""
    shares = (100 * float(np.mean(found)) for found in (tally.printed, tally.same, tally.other))
    printed, same, other = (f"{share:.1f} %" for share in shares)
    out = [
        f"load {load:g}: false alarms printed {printed}; fresh runs: same {same}, other {other} of {len(tally.other)}"
    ]
    for factor in SLOWER:
        found = tally.slower[factor]
        share = 100 * float(np.mean(np.isfinite(found)))
        out.append(
            f"  x {factor:g}: printed {_after(tally.told[factor])}; with slower service {_after(found)}, "
            f"found in {share:.0f} % of the runs"
        )
    return out


def _after(delays: Sequence[float]) -> str:
    median = float(np.median(delays))
    return f"after {median:.0f} requests" if math.isfinite(median) else "not in half of the runs"


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch simulated plans whose truth is known.")
    parser.add_argument("--studies", type=int, default=40)
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
