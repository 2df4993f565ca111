"""How well does the product's simulation foretell a replay? Plans of the line recogniser, each simulated and replayed.

Arrivals are those of the recorded conversation service, widths those of the receipts' lines, both in recorded order;
one worker on its own core. Every plan is loaded to about ``UTILISATION`` of its worker, going by its own simulation,
and runs for ``--seconds``. Each is profiled once (plans that compile alike share a profile), simulated with ``SEEDS``
seeds from that profile alone, and replayed ``--replays`` times on fresh workers, all plans in turn, every round in the
other direction.

*error* = simulated / replayed - 1, percentiles over all seeds against percentiles over all replays. *A/A* = the largest
of a plan's replays over its smallest, less 1: what a plan differs from itself by. Components, means over requests:
*wait* from schedule to dispatch; *run* as the worker has it; *handling* is what is left, from dispatch to start and
from end to done. A goal is met where the median error over the plans is below it, or below the median A/A where that
is larger.

    python bench/prediction.py [--seconds 8] [--replays 2] [--out out/prediction] [--page docs/retune.md]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

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
ROUNDS = 3
"""How often a plan's rate is corrected by the utilisation that its simulation has."""
GOALS = {0.5: 0.05, 0.95: 0.09, 0.99: 0.15}
PARTS = ("wait", "run", "handling")
FOUR, HELD = (
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=0.0),
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=3.0),
)


class Case(NamedTuple):
    """A plan with its load; ``seen``: the traffic that its profile knows."""

    plan: Plan
    load: Workload
    seen: Workload


class Told(NamedTuple):
    """Percentiles of latency and means of its parts, ms."""

    percentiles: dict[float, float]
    parts: dict[str, float]


class Row(NamedTuple):
    case: Case
    busy: float
    replayed: Told
    error: dict[float | str, float]
    floor: dict[float | str, float]


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
    """The plan under the rate at which its simulation fills the worker to UTILISATION."""
    costs, rate = rig.costs(one, seen), len(seen) / seen.span * 1e9
    load = seen
    for _ in range(ROUNDS):
        rate *= UTILISATION / utilisation(rig.simulate(one, load, costs, 1), 1)
        load = rig.traffic(max(round(rate * seconds), 200), rate)
    return Case(one, load, seen)


def said(traces: Sequence[Trace]) -> Told:
    """Of all requests of ``traces`` together."""
    latency = np.concatenate([trace.latency for trace in traces]) * 1e3
    columns = [parts(trace) for trace in traces]
    means = {name: float(np.mean(np.concatenate([each[name] for each in columns]))) for name in PARTS}
    return Told({q: quantile(latency, q) for q in GOALS}, means)


def parts(trace: Trace) -> dict[str, NDArray[np.float64]]:
    """ms of every request."""
    at = trace.requests
    wait, run = at["dispatched"] - at["scheduled"], at["ended"] - at["started"]
    handling = at["done"] - at["scheduled"] - wait - run
    return {"wait": wait / 1e6, "run": run / 1e6, "handling": handling / 1e6}


def compared(rig: Rig, case: Case, replays: Sequence[Replayed]) -> Row:
    """The plan's errors, and what its replays differ by."""
    costs = rig.costs(case.plan, case.seen)
    simulated = said([rig.simulate(case.plan, case.load, costs, seed) for seed in range(SEEDS)])
    traces = [each.trace for each in replays]
    replayed, each = said(traces), [said([trace]) for trace in traces]
    error: dict[float | str, float] = {}
    floor: dict[float | str, float] = {}
    for q in GOALS:
        error[q] = simulated.percentiles[q] / replayed.percentiles[q] - 1
        values = [one.percentiles[q] for one in each]
        floor[q] = max(values) / min(values) - 1
    for name in PARTS:
        error[name] = simulated.parts[name] / replayed.parts[name] - 1
        values = [one.parts[name] for one in each]
        floor[name] = max(values) / min(values) - 1
    busy = float(np.mean([utilisation(trace, 1) for trace in traces]))
    return Row(case, busy, replayed, error, floor)


def page(rows: Sequence[Row], command: str) -> str:
    """The table of plans, and the summary against the goals."""
    head = ("plan", "busy", "requests", *(f"p{q * 100:g}, ms: error (A/A)" for q in GOALS), *PARTS)
    body = [
        (
            row.case.plan.id,
            f"{row.busy:.2f}",
            f"{len(row.case.load)}",
            *(f"{row.replayed.percentiles[q]:.1f}: {percent(row.error[q])} ({row.floor[q]:.1%})" for q in GOALS),
            *(f"{row.replayed.parts[name]:.2f}: {percent(row.error[name])} ({row.floor[name]:.1%})" for name in PARTS),
        )
        for row in rows
    ]
    ends = []
    for key in (*GOALS, *PARTS):
        miss = median(abs(row.error[key]) for row in rows)
        bias = median(row.error[key] for row in rows)
        floor = median(row.floor[key] for row in rows)
        goal = GOALS.get(key) if isinstance(key, float) else None
        verdict = "" if goal is None else "met" if miss <= max(goal, floor) else "NOT met"
        name = key if isinstance(key, str) else f"p{key * 100:g}"
        ends.append(
            (name, f"{miss:.1%}", percent(bias), f"{floor:.1%}", "" if goal is None else f"{goal:.0%}", verdict)
        )
    summary = table(("median over the plans", "error", "signed", "A/A", "goal", ""), ends)
    return f"{summary}\n\n{table(head, body)}\n\n{stamp(command)}"


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--replays", type=int, default=2)
    parser.add_argument("--seen", type=int, default=1000, help="requests of traffic that the profiles know")
    parser.add_argument("--only", default="", help="plans whose id contains this")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "prediction")
    parser.add_argument("--page", type=Path, help="write the tables into this page's section")
    given = parser.parse_args(argv)
    rig = Rig(STUDY, given.out)
    seen = rig.traffic(given.seen, rig.study.workload.rate or 60.0)
    chosen = [one for one in plans(rig, seen) if given.only in one.id]
    cases = []
    for one in chosen:
        cases.append(loaded(rig, one, seen, given.seconds))
        print(f"{one.id}: {len(cases[-1].load)} requests in {given.seconds:g} s", flush=True)
    replays: dict[int, list[Replayed]] = {number: [] for number in range(len(cases))}
    for number, turn in in_turn(len(cases), given.replays):
        case = cases[number]
        replays[number].append(rig.replay(case.plan, case.load, rig.costs(case.plan, case.seen), turn))
        print(f"replayed {case.plan.id}, {turn} of {given.replays}", flush=True)
    rows = [compared(rig, case, replays[number]) for number, case in enumerate(cases)]
    told(page(rows, f"python bench/prediction.py {' '.join(argv)}".strip()), "prediction", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
