"""Does a cheap search find the best plan of a grid that was simulated exhaustively?

The grid: fitted entries (none, 2, 4, 8, 12) x batch policies (none, up to 4, up to 8 with a hold of 5 ms, up to 8 held
20 ms) x orders (first come, shortest), 40 plans, on line widths as they were recorded, one worker, bursts of recorded
arrivals. Service times follow the line recogniser's curve with scatter; a first run of a new width costs 15 ms more.

*Truth* = goodput of each plan over the whole tune slice, mean of ``--truth`` replicas that no search sees. What the
grid costs: every plan on the whole slice, three replicas, as one would measure it. Every search gets the same share of
that, in simulated requests, and its pick is judged by the truth:

halving   successive halving as in the product, its first part so short that it fits the budget
random    as many plans as the budget pays for, drawn, each once on the whole slice
TPE       the tree-structured Parzen estimator of Optuna, if that is installed, each plan once on the whole slice
climbing  from a drawn plan to the best of its neighbours in the grid (one step in one direction), while it pays

A search is repeated with ``--seeds`` seeds. Simulated time stands in for measured time here: a real replay costs what
its part of the slice lasts, so shares carry over; whether simulated and replayed goodput agree is another figure.

Also measured: 200 candidates x 10,000 requests through the product's search, seconds of CPU (goal: 120 s on two cores).

    python bench/search.py [--requests 3000] [--truth 6] [--seeds 20] [--budget 0.1]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from datetime import datetime
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel, ProfileService
from trimtab.mapping.route import Router
from trimtab.retuning.halving import Halving, Trial, run
from trimtab.retuning.search import beginning, jitter, simulate_all
from trimtab.serving.simulate import simulate

TRACES = Path(__file__).parents[1] / "examples" / "ocr" / "traces"
LOW, HIGH, MOST = 16, 1640, 8
FITS = (0, 2, 4, 8, 12)
BATCHES = (
    BatchPolicy(),
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=0.0),
    BatchPolicy(kind="size-hold", max_size=8, hold_ms=5.0),
    BatchPolicy(kind="size-hold", max_size=8, hold_ms=20.0),
)
ORDERS = ("fifo", "shortest")
RATE = 150.0
SLA = Sla(metric="goodput", bound_ms=40.0)
ANY = Entry(id="any", kind="dynamic", lo=(LOW,), hi=(HIGH,), batch=(1, MOST))
GRID = tuple(product(range(len(FITS)), range(len(BATCHES)), range(len(ORDERS))))
Point = tuple[int, int, int]


def column(name: str, field: str, most: int) -> list[str]:
    with gzip.open(TRACES / name, "rt", encoding="utf-8") as lines:
        return [row[field] for _, row in zip(range(most), csv.DictReader(lines), strict=False)]


def traffic(requests: int) -> Workload:
    stamps = [datetime.fromisoformat(s[:26]).timestamp() for s in column("azure_conv.csv.gz", "TIMESTAMP", requests)]
    seconds = np.array(stamps) - stamps[0]
    widths = np.array([int(w) for w in column("sroie_lines.csv.gz", "width", requests)])
    return Workload(
        id="bench", dim_names=("width",), scheduled=(seconds * 1e9 * requests / RATE / seconds[-1]).astype(np.int64),
        dims=np.clip(widths, LOW, HIGH)[:, None], stream=np.zeros(requests, dtype=np.int32), streams=("all",),
        payload=np.zeros(requests, dtype=np.int32), payload_kind="random",
        deadline=np.full(requests, -1, dtype=np.int64), provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


def warm_ms(width: int, size: int = 1) -> float:
    """ms of a batch: what the recogniser takes with OpenVINO on one core, nearly linear in the batch."""
    return (0.8 + 0.013 * width) * size**0.92


def profile(entry: Entry) -> CompileProfile:
    widths = (16, 96, 192, 320, 640, 1640) if entry.kind == "dynamic" else entry.hi
    rng, timings = np.random.default_rng(9), []
    for size, width in product((1, 2, 4, 8), widths):
        walls = tuple(int(warm_ms(width, size) * 1e6 * ratio) for ratio in rng.gamma(60, 1 / 60, 12))
        first = int((warm_ms(width, size) + 15) * 1e6)
        timings.append(ShapeTiming(executed=(size, width), first_ns=first, wall_ns=walls, cpu_ns=walls))
    return CompileProfile(
        plan="bench", entry=entry.id, backend="null", versions={}, options=CompileOptions(), compile_ns=1,
        memory_bytes=1, peak_bytes=1, timings=tuple(timings),
        inspection=Inspection(executed=(1, 1), operators=(), operators_before=0),
    )  # fmt: skip


def plan_of(point: Point, fits: dict[int, tuple[int, ...]]) -> Plan:
    fit, batch, order = point
    ends = fits[FITS[fit]]
    added = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(LOW,), hi=(end,), batch=(1, MOST)) for end in ends)
    warm = tuple((size, end) for end in ends for size in range(1, BATCHES[batch].max_size + 1))
    return Plan(
        id="-".join(map(str, point)),
        compile=CompileSpec(backend="null", entries=(*added, ANY), fallback="any"),
        serve=ServePolicy(batch=BATCHES[batch], order=ORDERS[order], warm=warm),
    )


class Grid:
    """All plans, their truth, and a meter: what was simulated, in requests."""

    def __init__(self, requests: int) -> None:
        self.load = traffic(requests)
        cost: buckets.Cost = warm_ms
        fits = {count: buckets.fit(self.load.dims, cost, count, limit=HIGH) if count else () for count in FITS}
        self.plans = {point: plan_of(point, fits) for point in GRID}
        self.costs = {point: self._costs(plan) for point, plan in self.plans.items()}
        self.spent = 0

    def _costs(self, plan: Plan) -> CostModel:
        return CostModel.from_profiles([profile(entry) for entry in plan.compile.entries], plan.compile.entries)

    def evaluate(self, point: Point, share: float, seed: int) -> float:
        load = beginning(self.load, share)
        self.spent += len(load)
        return float(np.mean(self.run(point, jitter(load, seed, seed), seed).latency <= SLA.bound_ms / 1e3))

    def run(self, point: Point, load: Workload, seed: int) -> Trace:
        plan, costs = self.plans[point], self.costs[point]
        info = RunInfo(
            id="bench", plan=plan.id, slice="tune", source="simulated", workload_sha256="", envelope_sha256="",
            start_state="warm", seed=seed, workers=1, cores=(0,), driver_core=1,
        )  # fmt: skip
        return simulate(load, plan, Router(plan.compile), costs, ProfileService(costs, seed), info)


def neighbours(point: Point) -> list[Point]:
    sizes = (len(FITS), len(BATCHES), len(ORDERS))
    found = []
    for axis, step in product(range(3), (-1, 1)):
        moved = list(point)
        moved[axis] += step
        if 0 <= moved[axis] < sizes[axis]:
            found.append((moved[0], moved[1], moved[2]))
    return found


def halving(grid: Grid, budget: int, seed: int) -> Point:
    """The product's rounds down to one plan; the first part is as long as the budget allows."""
    moves = [Move(kind="no-change" if i == 0 else "grid", sentence="", owner="runtime", plan=grid.plans[point], size=i)
             for i, point in enumerate(GRID)]  # fmt: skip
    whole, first = len(grid.load), 1.0
    while rounds(whole, first, len(moves)) > budget and first > 1 / 64:
        first /= 2
    told: dict[str, float] = {}

    def evaluate(trial: Trial) -> float:
        point = GRID[trial.move.size]
        told[trial.move.plan.id] = grid.evaluate(point, trial.share, 1000 * seed + trial.replica)
        return told[trial.move.plan.id]

    best = run(Halving(moves, SLA, keep=1, first=first), evaluate).left[0]
    return GRID[0] if told[moves[0].plan.id] > told[best.plan.id] else GRID[best.size]


def rounds(whole: int, first: float, count: int) -> float:
    """Requests that halving to one plan simulates: ``count`` plans, the first of them in every round."""
    total, share, left = 0.0, first, count - 1
    while left > 1 and share <= 1:
        total += (left + 1) * max(share * whole, 200)
        left, share = -(-left // 2), 2 * share
    return total


def at_random(grid: Grid, budget: int, seed: int) -> Point:
    rng, seen = np.random.default_rng(seed), dict[Point, float]()
    for i in rng.permutation(len(GRID)):
        if grid.spent + len(grid.load) > budget:
            break
        seen[GRID[i]] = grid.evaluate(GRID[i], 1.0, 1000 * seed)
    return max(seen, key=lambda point: seen[point])


def climbing(grid: Grid, budget: int, seed: int) -> Point:
    rng, seen = np.random.default_rng(seed), dict[Point, float]()
    here = GRID[int(rng.integers(len(GRID)))]
    seen[here] = grid.evaluate(here, 1.0, 1000 * seed)
    while True:
        for point in neighbours(here):
            if point not in seen and grid.spent + len(grid.load) <= budget:
                seen[point] = grid.evaluate(point, 1.0, 1000 * seed)
        best = max((p for p in (here, *neighbours(here)) if p in seen), key=lambda point: seen[point])
        if best == here or grid.spent + len(grid.load) > budget:
            return max(seen, key=lambda point: seen[point])
        here = best


def parzen(grid: Grid, budget: int, seed: int) -> Point:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler, seen = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4), dict[Point, float]()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    tries = 0
    while grid.spent + len(grid.load) <= budget and tries < 10 * len(GRID):
        trial, tries = study.ask(), tries + 1
        point = tuple(
            trial.suggest_int(name, 0, len(axis) - 1)
            for name, axis in (("entries", FITS), ("batch", BATCHES), ("order", ORDERS))
        )
        if point not in seen:  # a plan that is known costs nothing more
            seen[point] = grid.evaluate(point, 1.0, 1000 * seed)
        study.tell(trial, seen[point])
    return max(seen, key=lambda point: seen[point])


def compare(requests: int, replicas: int, seeds: int, share: float) -> None:
    grid = Grid(requests)
    truth = {p: float(np.mean([grid.evaluate(p, 1.0, 900_000 + r) for r in range(replicas)])) for p in GRID}
    order = sorted(GRID, key=lambda point: -truth[point])
    whole = 3 * len(GRID) * requests
    print(f"{len(GRID)} plans; goodput within {SLA.bound_ms:g} ms: best {truth[order[0]]:.1%} "
          f"(entries {FITS[order[0][0]]}, batch {order[0][1]}, {ORDERS[order[0][2]]}), "
          f"median {truth[order[len(order) // 2]]:.1%}, worst {truth[order[-1]]:.1%}")  # fmt: skip
    print(f"\n| search | of the best goodput, mean | worst of {seeds} | at least 98 % | of the grid's cost |")
    print("|---|---|---|---|---|")
    searches = {"halving": halving, "random": at_random, "hill climbing": climbing}
    if find_spec("optuna"):
        searches["TPE"] = parzen
    for name, search in searches.items():
        ratios, spent = [], []
        for seed in range(seeds):
            grid.spent = 0
            ratios.append(truth[search(grid, round(share * whole), seed)] / truth[order[0]])
            spent.append(grid.spent / whole)
        met = float(np.mean(np.array(ratios) >= 0.98))
        print(f"| {name} | {np.mean(ratios):.1%} | {min(ratios):.1%} | {met:.0%} | {np.mean(spent):.1%} |")


def speed(candidates: int, requests: int) -> None:
    """The product's search on many candidates: fitted entries by number, batch sizes and holds."""
    grid = Grid(requests)
    base, moves = grid.plans[GRID[0]], []
    for i in range(candidates):
        policy = BatchPolicy() if i == 0 else BatchPolicy(kind="size-hold", max_size=1 + i % MOST, hold_ms=0.1 * i)
        plan = replace(base, id=f"c{i}", serve=replace(base.serve, batch=policy))
        moves.append(Move(kind="no-change" if i == 0 else "batch", sentence="", owner="runtime", plan=plan, size=i))
    runs: list[int] = []
    costs = grid.costs[GRID[0]]

    def simulated(plan: Plan, replica: int, share: float) -> Trace:
        load = jitter(beginning(grid.load, share), replica, 3)
        runs.append(len(load))
        info = RunInfo(
            id="bench", plan=plan.id, slice="tune", source="simulated", workload_sha256="", envelope_sha256="",
            start_state="warm", seed=replica, workers=1, cores=(0,), driver_core=1,
        )  # fmt: skip
        return simulate(load, plan, Router(plan.compile), costs, ProfileService(costs, replica), info)

    begin = time.process_time()
    for move in moves[:20]:
        simulated(move.plan, 1, 1.0)
    once = (time.process_time() - begin) / 20 * candidates
    runs.clear()
    begin = time.process_time()
    rows = simulate_all(moves, simulated, SLA)
    seconds = time.process_time() - begin
    full = sum(not row.dropped and not row.failed for row in rows)
    print(f"\n{candidates} candidates x {requests} requests, seconds of CPU, one core (goal 120 s on two): "
          f"each once in full {once:.0f}; the product's search {seconds:.0f}, which halves them to {full} "
          f"and simulates {sum(runs) / requests:.0f} whole slices")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--truth", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.1)
    given = parser.parse_args()
    compare(given.requests, given.truth, given.seeds, given.budget)
    speed(200, 10_000)


if __name__ == "__main__":
    main()
