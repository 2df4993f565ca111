"""Are decisions right? Simulated studies whose truth is known, through the product's own validation and decision.

One worker, Poisson arrivals, service times of 5 to 15 ms by shape that scatter by 10 % from replay to replay, and
nothing else: what differs between two replays of one plan is luck, and near saturation the queue multiplies it. Each
study has three replays an arm on arrivals of its own, one primary cell (p95) and three guards: p95 within 5 % and
within 10 %, p99 within 10 %.

A/A     The candidate is the baseline. `guard-failed` is wrong (goal: at most 5 % of the studies), and so is `ship`.
+10 %   Every latency of the candidate is 10 % longer. The p95 guard of 10 % must not pass, its margin is the truth
        (nominal 2.5 %): so often the decision passes it, and so often its interval alone would have.
power   The same with as many requests as the tool asks for, the median of what pilot studies print. The p95 guard of
        5 % should fail: *found* (goal: at least 80 %).

Beside a share stands its 95 % interval (Wilson). *Thin* = studies in which a replay's p95 rests on too few effective
samples: there the floor widens the interval. `interval excludes 0` in A/A is nominally 5 %.

    python bench/decisions.py [--studies 400] [--requests 2000] [--loads 0.5 0.75 0.9] [--processes 2]
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.study import Guard, SignOff, Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.verdict import MatrixCell, Move
from trimtab.domain.workload import Provenance, Workload
from trimtab.evidence.stats.quantiles import effective_samples
from trimtab.mapping.route import Router
from trimtab.retuning.arms import AS_RECORDED, HELD_OUT, arms_of
from trimtab.retuning.case import Case
from trimtab.retuning.decide import decide
from trimtab.retuning.validate import validate
from trimtab.serving.simulate import simulate

LOADS = (0.5, 0.75, 0.9)
WORST_FALSE, LEAST_POWER = 0.05, 0.80
LONGER = 1.10
REPLAYS, RESAMPLES = 3, 400
PILOT_REQUESTS, PILOTS = 1000, 40
MOST_REQUESTS = 20_000
"""A larger sample than this is printed and not simulated: it would take the bench hours."""
SHORTEST_NS, LONGEST_NS, SCATTER = 5_000_000, 15_000_000, 0.10
SLA = Sla(metric="p95", bound_ms=60.0)
CATCHES, AT_MARGIN = Guard(metric="p95", margin=0.05), Guard(metric="p95", margin=0.10)
GUARDS = (CATCHES, AT_MARGIN, Guard(metric="p99", margin=0.10))
ANY = Entry(id="any", kind="dynamic", lo=(1,), hi=(1000,))
BASELINE = Plan(id="today", compile=CompileSpec(backend="simulated", entries=(ANY,), fallback="any"))
MOVE = Move(kind="order", sentence="Serve in another order.", owner="runtime", plan=BASELINE, size=1)
"""A kind of move that changes no output: what is decided here is decided on time."""
ASKED = re.compile(r"about (\d+) requests a replay would decide")


class Served:
    """Service times by request id; promises nothing."""

    def __init__(self, walls: list[Ns]) -> None:
        self.walls = walls

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        return 0

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        return 0

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        wall = self.walls[batch.members[0]]
        return wall, BatchReport(wall, 0)


@dataclass(frozen=True)
class Outcome:
    """What one study came to. ``excludes`` = the p95 interval excludes 0; ``thin`` = few effective samples behind it;
    ``found`` = the p95 guard of 5 % failed; ``passed`` = that of 10 % passed, ``alone`` = its interval lies below 10 %;
    ``asked`` = requests a replay that the p95 guard of 5 % asks for."""

    verdict: str
    excludes: bool
    thin: bool
    found: bool
    passed: bool
    alone: bool
    asked: float


def traffic(load: float, requests: int, rng: np.random.Generator) -> tuple[Workload, np.ndarray]:
    """Arrivals that keep one worker busy for ``load`` of the time, and what each request takes on average, ns."""
    base = rng.uniform(SHORTEST_NS, LONGEST_NS, requests)
    gaps = rng.exponential((SHORTEST_NS + LONGEST_NS) / 2 / load, requests)
    scheduled = np.rint(np.cumsum(gaps) - gaps[0]).astype(np.int64)
    workload = Workload(
        id="held-out", dim_names=("width",), scheduled=scheduled, dims=np.full((requests, 1), 9),
        stream=np.zeros(requests, dtype=np.int32), streams=("all",), payload=np.zeros(requests, dtype=np.int32),
        payload_kind="random", deadline=np.full(requests, -1), provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip
    return workload, base


def replay(workload: Workload, base: np.ndarray, longer: float, rng: np.random.Generator) -> Trace:
    """One run: every request takes its average time and luck, and every latency comes out ``longer`` times as long."""
    served = Served(np.rint(base * rng.gamma(SCATTER**-2, SCATTER**2, base.size)).astype(np.int64).tolist())
    run = RunInfo(
        id="run", plan="today", slice=HELD_OUT, source="simulated", workload_sha256="", envelope_sha256="",
        start_state="empty queue", seed=0, workers=1, cores=(0,), driver_core=1,
    )  # fmt: skip
    trace = simulate(workload, BASELINE, Router(BASELINE.compile), served, served, run)
    due, done = trace.requests["scheduled"], trace.requests["done"]
    done[:] = due + np.rint((done - due) * longer).astype(np.int64)
    return trace


def study(load: float, requests: int, longer: float, seed: int) -> Outcome:
    """One study: its verdict, and what its p95 cells say."""
    rng = np.random.default_rng((seed, round(load * 100), requests))
    workload, base = traffic(load, requests, rng)
    before = [replay(workload, base, 1.0, rng) for _ in range(REPLAYS)]
    after = [replay(workload, base, longer, rng) for _ in range(REPLAYS)]
    pair = arms_of(AS_RECORDED, before, after)
    matrix = validate(SLA, GUARDS, [pair], {HELD_OUT: np.arange(requests)}, seed, resamples=RESAMPLES)
    verdict = decide(Case(move=MOVE, baseline="today", cells=matrix.cells, sla=SLA, signoff=SignOff()))
    catches, at_margin, _ = matrix.guards
    worth = [effective_samples(trace.latency, 0.95) for trace in (*before, *after)]
    return Outcome(
        verdict=verdict.reason or verdict.decision,
        excludes=catches.interval is not None and not catches.interval.lo <= 0 <= catches.interval.hi,
        thin=not all(one.enough for one in worth),
        found=catches.status == "fail",
        passed=at_margin.status == "pass",
        alone=at_margin.interval is not None and at_margin.interval.hi < AT_MARGIN.margin,
        asked=_asked(catches, requests),
    )


def _asked(cell: MatrixCell, requests: int) -> float:
    """How many requests a replay the cell asks for; as many as it had where they decided it."""
    if cell.status != "inconclusive":
        return requests
    found = ASKED.search(cell.note)
    return float(found[1]) if found else math.inf


Run = Callable[[int, float, Sequence[int]], list[Outcome]]
"""Studies at one load, of (requests, longer), one for each seed."""


def in_turn(load: float, requests: int, longer: float, seeds: Sequence[int]) -> list[Outcome]:
    """Studies one after the other, in this process."""
    return [study(load, requests, longer, seed) for seed in seeds]


def pooled(pool: ProcessPoolExecutor, load: float, requests: int, longer: float, seeds: Sequence[int]) -> list[Outcome]:
    """The same in the processes of ``pool``."""
    return list(pool.map(partial(study, load, requests, longer), seeds, chunksize=4))


def asked_for(pilots: Sequence[Outcome]) -> float:
    """The sample size, requests a replay, that pilot studies ask for: their median."""
    return float(np.median([pilot.asked for pilot in pilots]))


def share(outcomes: Sequence[Outcome], counted: Callable[[Outcome], bool]) -> tuple[float, str]:
    """The share of outcomes that are counted, and as a text with its interval."""
    n, k = len(outcomes), sum(map(counted, outcomes))
    z = 1.96
    middle, half = (k / n + z * z / 2 / n), z * math.sqrt(k / n * (1 - k / n) / n + z * z / 4 / n / n)
    lo, hi = (max((middle + sign * half) / (1 + z * z / n), 0.0) for sign in (-1, 1))
    return k / n, f"{k / n * 100:.1f} % ({lo * 100:.1f} to {hi * 100:.1f})"


def same_plan(found: Sequence[Outcome]) -> Iterator[str]:
    """A/A: the lines to print; the goal last."""
    failed, text = share(found, lambda one: one.verdict == "guard-failed")
    yield f"A/A    guard-failed {text}; ship {_verdicts(found, 'ship')}"
    yield f"       no-benefit {_verdicts(found, 'no-benefit')}; inconclusive {_verdicts(found, 'inconclusive')}"
    yield f"       interval excludes 0 {share(found, lambda one: one.excludes)[1]}; thin {_thin(found)}"
    yield f"       goal: guard-failed at most {WORST_FALSE:.0%}: {'met' if failed <= WORST_FALSE else 'NOT met'}"


def at_the_margin(found: Sequence[Outcome]) -> Iterator[str]:
    """+10 % against a margin of 10 %: the lines to print."""
    alone, passed = (share(found, counted)[1] for counted in (lambda one: one.alone, lambda one: one.passed))
    yield f"+10 %  the guard of 10 % passes {passed}; by its interval alone {alone}; thin {_thin(found)}"


def power(found: Sequence[Outcome], requests: int) -> Iterator[str]:
    """+10 % at the size that was asked for: the lines to print; the goal last."""
    reached, text = share(found, lambda one: one.found)
    yield f"power  {requests} requests: found {text}; thin {_thin(found)}"
    yield f"       goal: found at least {LEAST_POWER:.0%}: {'met' if reached >= LEAST_POWER else 'NOT met'}"


def lines(run: Run, requests: int, studies: int) -> Iterator[str]:
    """Everything that is said of one load."""
    yield from same_plan(run(requests, 1.0, range(studies)))
    yield from at_the_margin(run(requests, LONGER, range(10_000, 10_000 + studies // 2)))
    asked = asked_for(run(PILOT_REQUESTS, LONGER, range(20_000, 20_000 + PILOTS)))
    words = f"{asked:,.0f} a replay" if math.isfinite(asked) else "a number that is not affordable"
    yield f"pilots of {PILOT_REQUESTS} requests ask for {words}"
    if asked <= MOST_REQUESTS:
        yield from power(run(round(asked), LONGER, range(30_000, 30_000 + studies // 2)), round(asked))


def _verdicts(found: Sequence[Outcome], word: str) -> str:
    return share(found, lambda one: one.verdict == word)[1]


def _thin(found: Sequence[Outcome]) -> str:
    return share(found, lambda one: one.thin)[1]


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--studies", type=int, default=400, help="A/A studies at each load; half as many of the others")
    args.add_argument("--requests", type=int, default=2000, help="requests a replay, where nobody asks for a number")
    args.add_argument("--loads", type=float, nargs="+", default=LOADS, help="utilisations of the one worker")
    args.add_argument("--processes", type=int, default=2)
    given = args.parse_args()
    missed = False
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for load in given.loads:
            print(f"utilisation {load:g}: {given.studies} studies of {given.requests} requests")
            for line in lines(partial(pooled, pool, load), given.requests, given.studies):
                print(f"  {line}", flush=True)
                missed |= line.endswith("NOT met")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
