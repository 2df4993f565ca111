"""Does a repetition agree when nothing changed, and differ when something did? Simulated, through ``reproduce``.

The traffic and the worker of ``bench/decisions.py``: a packet with three replays of a baseline and of a proposal that
takes a fifth less time, and their repetition on the same arrivals. On each occasion all service times differ by 2 %
(standard deviation) from those of another. *same*: nothing else changed. *slower*: service takes longer now.

    python bench/repetitions.py [--packets 200] [--requests 2000] [--loads 0.5 0.75]
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from decisions import SLA, traffic
from triggers import queue

from trimtab.retuning.reproduce import OCCASION, overall, repeat

LOADS = (0.5, 0.75)
LONGER = (1.0, 1.1, 1.25)
GAIN, REPLAYS = 0.8, 3


def repetition(load: float, requests: int, longer: float, occasion: float, seed: int) -> tuple[str, ...]:
    """The outcome of one repetition, and of each of its figures."""
    rng = np.random.default_rng((seed, round(load * 100), requests))
    workload, base = traffic(load, requests, rng)
    plans = {"today": 1.0, "proposed": GAIN}
    runs = []
    for factor in (1.0, longer):
        luck = factor * rng.normal(1.0, occasion)
        runs.append(
            {
                name: [queue(workload.scheduled, base, takes * luck, rng) for _ in range(REPLAYS)]
                for name, takes in plans.items()
            }
        )
    rows = repeat(runs[0], runs[1], SLA, seed, {name: load * takes for name, takes in plans.items()})
    return (overall(rows), *(row.outcome for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat simulated packets whose truth is known.")
    parser.add_argument("--packets", type=int, default=200)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS)
    parser.add_argument("--occasion", type=float, default=OCCASION, help="how far service times of occasions differ")
    asked = parser.parse_args()
    print(f"occasions differ by {asked.occasion:.1%}; {asked.packets} packets, {asked.requests} requests a replay")
    for load in asked.loads:
        for longer in LONGER:
            found = [repetition(load, asked.requests, longer, asked.occasion, seed) for seed in range(asked.packets)]
            print(f"load {load:g}, service x {longer:g}:", flush=True)
            for name, outcomes in zip(("all", "today", "proposed", "change"), zip(*found, strict=True), strict=True):
                counts = Counter(outcomes)
                print(
                    f"  {name:9}" + ", ".join(f"{word} {counts[word]}" for word in ("agree", "inconclusive", "differ"))
                )


if __name__ == "__main__":
    main()
