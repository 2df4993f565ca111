"""Does a cheap search find the best plan of a grid that was simulated exhaustively?

The grid: fitted entries (none, 2, 4, 8, 12) x batch policies (none, up to 4, up to 8 with a hold of 5 ms, up to 8 held
20 ms) x orders (first come, shortest), 40 plans, on line widths as they were recorded, one worker, bursts of recorded
arrivals. Service times follow the line recogniser's curve with scatter; a first run of a new width costs 15 ms more.

*Truth* = goodput of each plan over the whole tune slice, mean of ``--truth`` replicas that no search sees. What the
grid costs: every plan on the whole slice, three replicas, as one would measure it. Every search gets the same share of
that, in simulated requests, and its pick is judged by the truth:

halving   successive halving as in the product, its first part so short that it fits the budget
random, hill climbing, TPE   see rivals.py; each plan once on the whole slice

A search is repeated with ``--seeds`` seeds. Simulated time stands in for measured time here: a real replay costs what
its part of the slice lasts. ``--replay`` does it for real (replayed.py): a grid that was replayed, searched by the
product with replays.

Also measured: 200 candidates x 10,000 requests through the product's search, seconds of CPU (goal: 120 s on two cores).

    python bench/search.py [--requests 3000] [--truth 6] [--seeds 12] [--budget 0.1] [--page docs/retune.md]
    python bench/search.py --replay [--seconds 8] [--out out/search] [--page docs/retune.md]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import product
from pathlib import Path

import numpy as np
import replayed
import rivals
from marked import stamp, table, told
from msgspec.structs import replace
from rig import Rig
from rivals import Point

from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.retuning.halving import Halving, Trial, run
from trimtab.retuning.search import beginning, jitter, simulate_all
from trimtab.serving.simulate import simulate

ROOT = Path(__file__).parents[1]
TRACES = ROOT / "examples" / "ocr" / "traces"
LOW, HIGH, MOST = 16, 1640, 8
FITS = (0, 2, 4, 8, 12)
BATCHES = (
    BatchPolicy(),
    BatchPolicy(kind="size-hold", max_size=4, hold_ms=0.0),
    BatchPolicy(kind="size-hold", max_size=8, hold_ms=5.0),
    BatchPolicy(kind="size-hold", max_size=8, hold_ms=20.0),
)
ORDERS = ("fifo", "shortest")
AXES = (len(FITS), len(BATCHES), len(ORDERS))
RATE = 150.0
SLA = Sla(metric="goodput", bound_ms=40.0)
ANY = Entry(id="any", kind="dynamic", lo=(LOW,), hi=(HIGH,), batch=(1, MOST))
GRID = rivals.points(AXES)


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
    """All plans, and a meter: what was simulated, in requests."""

    def __init__(self, requests: int) -> None:
        self.load = traffic(requests)
        cost: buckets.Cost = warm_ms
        fits = {count: buckets.fit(self.load.dims, cost, count, limit=HIGH) if count else () for count in FITS}
        self.plans = {point: plan_of(point, fits) for point in GRID}
        self.costs = {point: self._costs(plan) for point, plan in self.plans.items()}
        self.axes, self.spent, self.whole = AXES, 0.0, float(requests)

    def _costs(self, plan: Plan) -> CostModel:
        return CostModel.from_profiles([profile(entry) for entry in plan.compile.entries], plan.compile.entries)

    def evaluate(self, point: Point, share: float, seed: int) -> float:
        load = beginning(self.load, share)
        self.spent += len(load)
        return float(np.mean(self.run(point, jitter(load, seed, seed), seed).latency <= SLA.bound_ms / 1e3))

    def run(self, point: Point, load: Workload, seed: int) -> Trace:
        return simulation(self.plans[point], load, self.costs[point], seed)


def halving(grid: Grid, budget: float, seed: int) -> Point:
    """The product's rounds down to one plan; the first part is as long as the budget allows."""
    moves = [Move(kind="no-change" if i == 0 else "grid", sentence="", owner="runtime", plan=grid.plans[point], size=i)
             for i, point in enumerate(GRID)]  # fmt: skip
    whole, first = len(grid.load), 1.0
    while rounds(whole, first, len(moves)) > budget and first > 1 / 64:
        first /= 2
    heard: dict[str, float] = {}

    def evaluate(trial: Trial) -> float:
        point = GRID[trial.move.size]
        heard[trial.move.plan.id] = grid.evaluate(point, trial.share, 1000 * seed + trial.replica)
        return heard[trial.move.plan.id]

    best = run(Halving(moves, SLA, keep=1, first=first), evaluate).left[0]
    return GRID[0] if heard[moves[0].plan.id] > heard[best.plan.id] else GRID[best.size]


def rounds(whole: int, first: float, count: int) -> float:
    """Requests that halving to one plan simulates: ``count`` plans, the first of them in every round."""
    total, share, left = 0.0, first, count - 1
    while left > 1 and share <= 1:
        total += (left + 1) * max(share * whole, 200)
        left, share = -(-left // 2), 2 * share
    return total


def compare(requests: int, replicas: int, seeds: int, share: float) -> str:
    """The table of simulated searches."""
    grid = Grid(requests)
    truth = {p: float(np.mean([grid.evaluate(p, 1.0, 900_000 + r) for r in range(replicas)])) for p in GRID}
    order = sorted(GRID, key=lambda point: -truth[point])
    whole = 3 * len(GRID) * requests
    facts = (
        f"{len(GRID)} plans; goodput within {SLA.bound_ms:g} ms: best {truth[order[0]]:.1%}, "
        f"median {truth[order[len(order) // 2]]:.1%}, worst {truth[order[-1]]:.1%}."
    )
    rows = []
    for name, search in {"halving": halving, **rivals.all_of_them()}.items():
        ratios, spent = [], []
        for seed in range(seeds):
            grid.spent = 0.0
            ratios.append(truth[search(grid, share * whole, seed)] / truth[order[0]])
            spent.append(grid.spent / whole)
        met = float(np.mean(np.array(ratios) >= 0.98))
        rows.append((name, f"{np.mean(ratios):.1%}", f"{min(ratios):.1%}", f"{met:.0%}", f"{np.mean(spent):.1%}"))
    head = ("search", "of the best goodput, mean", f"worst of {seeds}", "at least 98 %", "of the grid's cost")
    return f"{facts}\n\n{table(head, rows)}"


def speed(candidates: int, requests: int) -> str:
    """The product's search on many candidates: fitted entries by number, batch sizes and holds."""
    grid = Grid(requests)
    base, moves = grid.plans[GRID[0]], []
    for i in range(candidates):
        policy = BatchPolicy() if i == 0 else BatchPolicy(kind="size-hold", max_size=1 + i % MOST, hold_ms=0.1 * i)
        plan = replace(base, id=f"c{i}", serve=replace(base.serve, batch=policy))
        moves.append(Move(kind="no-change" if i == 0 else "batch", sentence="", owner="runtime", plan=plan, size=i))
    runs: list[int] = []

    def simulated(plan: Plan, replica: int, share: float) -> Trace:
        load = jitter(beginning(grid.load, share), replica, 3)
        runs.append(len(load))
        return simulation(plan, load, grid.costs[GRID[0]], replica)

    begin = time.process_time()
    for move in moves[:20]:
        simulated(move.plan, 1, 1.0)
    once = (time.process_time() - begin) / 20 * candidates
    runs.clear()
    begin = time.process_time()
    rows = simulate_all(moves, simulated, SLA)
    seconds = time.process_time() - begin
    full = sum(not row.dropped and not row.failed for row in rows)
    return (
        f"{candidates} candidates x {requests} requests, seconds of CPU, one core (goal 120 s on two): "
        f"each once in full {once:.0f}; the product's search {seconds:.0f}, which halves them to {full} "
        f"and simulates {sum(runs) / requests:.0f} whole slices."
    )


def simulation(plan: Plan, load: Workload, costs: CostModel, seed: int) -> Trace:
    """One run under the virtual clock."""
    info = RunInfo(
        id="bench", plan=plan.id, slice="tune", source="simulated", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=seed, workers=1, cores=(0,), driver_core=1,
    )  # fmt: skip
    service = ProfileService(costs, seed)
    return simulate(load, plan, Router(plan.compile), costs, service, info, handling=service.handling)


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--truth", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--replay", action="store_true", help="search a grid that is really replayed")
    parser.add_argument("--seconds", type=float, default=8.0, help="traffic of each replay")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "search", help="where replays are kept")
    parser.add_argument("--page", type=Path, help="write the tables into this page's section")
    given = parser.parse_args(argv)
    command = f"python bench/search.py {' '.join(argv)}".strip()
    if given.replay:
        found = replayed.tables(Rig(replayed.STUDY, given.out, replayed.REPEATS), given.seconds)
        told(f"{found}\n\n{stamp(command)}", "search-replayed", given.page)
        return
    found = compare(given.requests, given.truth, given.seeds, given.budget)
    told(f"{found}\n\n{speed(200, 10_000)}\n\n{stamp(command)}", "search", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
