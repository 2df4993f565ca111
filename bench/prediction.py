"""How well does the product's simulation foretell a replay? Plans of the line recogniser, each simulated and replayed.

Arrivals are those of the recorded conversation service, widths those of the receipts' lines, both in recorded order;
one worker on its own core. Every plan is loaded to about ``UTILISATION`` of its worker, going by its own simulation,
and runs for ``--seconds``. Every round profiles each plan anew, on traffic of that rate, as a study profiles on its own
(plans that compile and are loaded alike share a profile), and replays it once on a fresh worker: the one right before
or right behind the other, every round in the other direction, so that a machine that drifts does so under profiles and
replays alike. A plan is simulated from these profiles alone, with ``SEEDS`` seeds each.

*error* = simulated / replayed - 1, percentiles over all profiles and seeds against percentiles over all replays. *one
profile* = the same where one round's profile alone is known, as in a study; it holds the drift. *A/A* = the largest
of a plan's replays over its smallest, less 1: what a plan differs from itself by. Components, means over requests:
*wait* from schedule to dispatch; *run* as the worker has it; *handling* is what is left, from dispatch to start and
from end to done. A goal is met where the median error over the plans is below it, or below the median A/A where that
is larger.

    python bench/prediction.py [--seconds 10] [--rounds 3] [--out out/prediction] [--page docs/retune.md]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeAlias

import numpy as np
from marked import percent, stamp, table, told
from msgspec.structs import replace
from numpy.typing import NDArray
from rig import Replayed, Rig, in_turn

from trimtab.domain.plan import BatchPolicy, Plan
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.evidence.stats.quantiles import quantile
from trimtab.mapping import buckets
from trimtab.retuning.size import utilisation

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "examples" / "ocr" / "study.toml"
UTILISATION = 0.55
SEEDS = 5
CORRECTIONS = 3
"""How often a plan's rate is corrected by the utilisation that its simulation has."""
GOALS = {0.5: 0.05, 0.95: 0.09, 0.99: 0.15}
PARTS = ("wait", "run", "handling")
FOUR, HELD = (
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=0.0),
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=3.0),
)

Key: TypeAlias = float | str
"""A percentile (of latency) or the name of a part."""
Told: TypeAlias = dict[Key, float]
"""ms: percentiles of latency, and means of its parts."""
KEYS: tuple[Key, ...] = (*GOALS, *PARTS)


class Case(NamedTuple):
    """A plan with its load; ``seen``: the traffic that its profile knows."""

    plan: Plan
    load: Workload
    seen: Workload


class Row(NamedTuple):
    """``alone``: the error of every round's profile by itself."""

    case: Case
    busy: float
    replayed: Told
    error: dict[Key, float]
    alone: dict[Key, tuple[float, ...]]
    floor: dict[Key, float]


def plans(rig: Rig, seen: Workload) -> list[Plan]:
    """Entries x batch policies x orders x warm lists x runtimes, all on one worker."""
    found = []
    for backend, counts in (("openvino", (0, 4, 8, 12)), ("onnxruntime", (0, 8))):
        found += [rig.plan(seen, backend, count) for count in counts]
        found.append(rig.plan(seen, backend, 8, FOUR))
        found.append(rig.plan(seen, backend, 0, HELD))
    found.append(rig.plan(seen, "openvino", 8, HELD))
    found += [rig.plan(seen, "onnxruntime", count, order="shortest") for count in (0, 8)]
    often, times = buckets.values(seen.dims)
    common = often[np.argsort(-times, kind="stable")][:32].tolist()
    base = rig.plan(seen, "openvino", 0)
    warmed = replace(base.serve, warm=tuple((1, width) for width in common))
    return [*found, replace(base, id=f"{base.id}-warm-32", serve=warmed)]


def loaded(rig: Rig, one: Plan, seen: Workload, seconds: float) -> Case:
    """The plan under the rate at which its simulation fills the worker to UTILISATION, known at that rate, too."""
    costs, rate = rig.costs(one, seen), len(seen) / seen.span * 1e9
    load = seen
    for _ in range(CORRECTIONS):
        rate *= UTILISATION / utilisation(rig.simulate(one, load, costs, 1), 1)
        load = rig.traffic(max(round(rate * seconds), 200), rate)
    return Case(one, load, rig.traffic(len(seen), rate))


def said(traces: Sequence[Trace]) -> Told:
    """Of all requests of ``traces`` together."""
    latency = np.concatenate([trace.latency for trace in traces]) * 1e3
    columns = [parts(trace) for trace in traces]
    found: Told = {q: quantile(latency, q) for q in GOALS}
    return found | {name: float(np.mean(np.concatenate([each[name] for each in columns]))) for name in PARTS}


def parts(trace: Trace) -> dict[str, NDArray[np.float64]]:
    """ms of every request."""
    at = trace.requests
    wait, run = at["dispatched"] - at["scheduled"], at["ended"] - at["started"]
    handling = at["done"] - at["scheduled"] - wait - run
    return {"wait": wait / 1e6, "run": run / 1e6, "handling": handling / 1e6}


def compared(rig: Rig, case: Case, replays: Sequence[Replayed]) -> Row:
    """The plan's errors, and what its replays differ by."""
    traces = [each.trace for each in replays]
    rounds = [foretold(rig, case, turn) for turn in range(1, len(traces) + 1)]
    replayed, each = said(traces), [said([trace]) for trace in traces]
    simulated = said([trace for round_ in rounds for trace in round_])
    alone = [said(round_) for round_ in rounds]
    return Row(
        case=case,
        busy=float(np.mean([utilisation(trace, 1) for trace in traces])),
        replayed=replayed,
        error={key: simulated[key] / value - 1 for key, value in replayed.items()},
        alone={key: tuple(one[key] / value - 1 for one in alone) for key, value in replayed.items()},
        floor={key: max(one[key] for one in each) / min(one[key] for one in each) - 1 for key in replayed},
    )


def foretold(rig: Rig, case: Case, turn: int) -> list[Trace]:
    """Simulated from the profile of one round."""
    costs = rig.costs(case.plan, case.seen, turn)
    return [rig.simulate(case.plan, case.load, costs, seed) for seed in range(SEEDS)]


def page(rows: Sequence[Row], command: str) -> str:
    """The table of plans, and the summary against the goals."""
    head = ("plan", "busy", "requests", *(f"{said_of(q)}, ms: error (A/A)" for q in GOALS), *PARTS)
    body = [
        (row.case.plan.id, f"{row.busy:.2f}", f"{len(row.case.load)}", *(cell(row, key) for key in KEYS))
        for row in rows
    ]
    ends = [summed(rows, key) for key in KEYS]
    summary = table(("median over the plans", "error", "signed", "one profile", "A/A", "goal", ""), ends)
    return f"{summary}\n\n{table(head, body)}\n\n{stamp(command)}"


def said_of(key: Key) -> str:
    return key if isinstance(key, str) else f"p{key * 100:g}"


def cell(row: Row, key: Key) -> str:
    digits = 2 if isinstance(key, str) else 1
    return f"{row.replayed[key]:.{digits}f}: {percent(row.error[key])} ({row.floor[key]:.1%})"


def summed(rows: Sequence[Row], key: Key) -> tuple[str, ...]:
    """Medians over the plans, and whether the goal is met."""
    miss, floor = median(abs(row.error[key]) for row in rows), median(row.floor[key] for row in rows)
    alone = median(abs(one) for row in rows for one in row.alone[key])
    signed = percent(median(row.error[key] for row in rows))
    found = (said_of(key), f"{miss:.1%}", signed, f"{alone:.1%}", f"{floor:.1%}")
    if isinstance(key, str):
        return (*found, "", "")
    return (*found, f"{GOALS[key]:.0%}", "met" if miss <= max(GOALS[key], floor) else "NOT met")


def measured(rig: Rig, chosen: Sequence[Plan], seen: Workload, seconds: float, rounds: int) -> list[Row]:
    """Profile and replay each plan in every round. What a replay promises comes from the profile that was last made."""
    cases: list[Case] = []
    replays: list[list[Replayed]] = [[] for _ in chosen]
    for number, turn in in_turn(len(chosen), rounds):
        if turn == 1:
            cases.append(loaded(rig, chosen[number], seen, seconds))
        case = cases[number]
        costs = rig.costs(case.plan, case.seen, turn if turn % 2 else turn - 1)
        replays[number].append(rig.replay(case.plan, case.load, costs, turn))
        rig.profile(case.plan, case.seen, turn)
        print(f"{case.plan.id}: {len(case.load)} requests, {turn} of {rounds}", flush=True)
    return [compared(rig, case, found) for case, found in zip(cases, replays, strict=True)]


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seen", type=int, default=1000, help="requests of traffic that the profiles know")
    parser.add_argument("--only", default="", help="plans whose id contains this")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "prediction")
    parser.add_argument("--page", type=Path, help="write the tables into this page's section")
    given = parser.parse_args(argv)
    rig = Rig(STUDY, given.out)
    seen = rig.traffic(given.seen, rig.study.workload.rate or 60.0)
    chosen = [one for one in plans(rig, seen) if given.only in one.id]
    rows = measured(rig, chosen, seen, given.seconds, given.rounds)
    told(page(rows, f"python bench/prediction.py {' '.join(argv)}".strip()), "prediction", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
