"""Does the product's search find the best plan of a grid that was really replayed, at a tenth of its cost?

The grid: fitted entries (none, 4, 8, 12) x batch policies (none; up to 4 at once, held 0, 2, 6 or 15 ms) x orders
(first come, shortest), 40 plans of the line recogniser on OpenVINO, one worker. Arrivals are those of the recorded
conversation service at ``RATE`` requests/s, widths those of the receipts' lines, both in recorded order. Every plan is
replayed ``TIMES`` times on a fresh worker, all plans in turn, every round in the other direction. *Truth* = a plan's
mean goodput over its replays. The bound is the least multiple of 5 ms within which the best plan's simulation keeps
``GOOD`` of the requests, so that plans differ.

The product's search, as ``trimtab run`` makes it: profile what compiles alike once, simulate all plans (halving, then
replicas), replay baseline and short list in turn, choose. Its cost is the machine's time for profiles and replays,
against the machine's time for the grid. It is made once for real, with fresh replays, and with ``SEEDS`` more seeds,
each of them taking its confirming replays out of the grid's. The others (rivals.py) may spend a tenth of the grid's
time, each evaluation one replay out of the grid's; they need no profiles. Every pick is judged by the truth. The picks
of several seeds use the same replays: their spread shows luck of the search, not of the machine.

Last, the product's pick and its strongest rival (the best other plan by the truth) are replayed anew, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import rivals
from marked import table
from rig import SINGLE, Replayed, Rig, in_turn
from rivals import Point

from trimtab.domain.plan import BatchPolicy, Plan
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Workload
from trimtab.evidence.stats.floor import MIN_REPLAYS
from trimtab.evidence.stats.quantiles import Floats
from trimtab.loop.context import profile_digest
from trimtab.mapping.cost import CostModel
from trimtab.retuning.confirm import choose
from trimtab.retuning.moves import NO_CHANGE, changed, rank
from trimtab.retuning.search import beginning, jitter, shortlist, simulate_all

STUDY = Path(__file__).parents[1] / "examples" / "ocr" / "study.toml"
FITS = (0, 4, 8, 12)
BATCHES = (SINGLE, *(BatchPolicy(kind="size-hold", max_size=4, hold_ms=hold) for hold in (0.0, 2.0, 6.0, 15.0)))
ORDERS = ("fifo", "shortest")
AXES = (len(FITS), len(BATCHES), len(ORDERS))
POINTS = rivals.points(AXES)
RATE, GOOD, SEEDS, CONFIRMED, BUDGET = 90.0, 0.95, 6, 2, 0.1
TIMES = MIN_REPLAYS
"""Replays of a plan: what an A/A floor takes."""
SEEN = 1000
"""Requests of traffic that the profiles know."""
REPEATS = 4
"""Of a profile's grid: a profile is part of what the search costs."""
FRESH, AGAIN = 100, 200
"""Numbers of replays: confirming ones, and those of the end."""
GOAL = 0.98


class Grid:
    """All plans, replayed; a meter in seconds of the machine for those that search it."""

    axes = AXES

    def __init__(self, rig: Rig, seconds: float) -> None:
        self.rig, self.spent = rig, 0.0
        self.seen = rig.traffic(SEEN, rig.study.workload.rate or 60.0)
        self.load = rig.traffic(max(round(RATE * seconds), 200), RATE)
        self.plans = {at: rig.plan(self.seen, "openvino", FITS[at[0]], BATCHES[at[1]], ORDERS[at[2]]) for at in POINTS}
        self.costs = {at: rig.costs(plan, self.seen) for at, plan in self.plans.items()}
        self.sla = Sla(metric="goodput", bound_ms=self._bound())
        self.replays: dict[Point, list[Replayed]] = {at: [] for at in POINTS}

    def _bound(self) -> float:
        simulated = [self.rig.simulate(self.plans[at], self.load, self.costs[at], 0).latency * 1e3 for at in POINTS]
        return next(bound for bound in np.arange(5.0, 1e4, 5.0).tolist()
                    if max(float(np.mean(one <= bound)) for one in simulated) >= GOOD)  # fmt: skip

    def measure(self) -> None:
        """Replay everything, or find it where it was kept."""
        for number, turn in in_turn(len(POINTS), TIMES):
            at = POINTS[number]
            self.replays[at].append(self.replay(at, turn))
            print(f"replayed {self.plans[at].id}, {turn} of {TIMES}", flush=True)

    def replay(self, at: Point, number: int) -> Replayed:
        """One replay of one plan."""
        return self.rig.replay(self.plans[at], self.load, self.costs[at], number)

    def goodput(self, trace: Trace) -> float:
        """Share of requests within the bound."""
        return float(np.mean(trace.latency <= self.sla.bound_ms / 1e3))

    def truth(self, at: Point) -> float:
        """Mean goodput over the plan's replays."""
        return float(np.mean([self.goodput(one.trace) for one in self.replays[at]]))

    def drawn(self, at: Point, seed: int) -> Replayed:
        """One of the plan's replays."""
        return self.replays[at][int(np.random.default_rng((seed, POINTS.index(at))).integers(TIMES))]

    @property
    def seconds(self) -> float:
        """What measuring the grid kept the machine for."""
        return sum(one.seconds for each in self.replays.values() for one in each)

    @property
    def whole(self) -> float:
        """What one replay costs, on average."""
        return self.seconds / (TIMES * len(POINTS))

    def evaluate(self, point: Point, share: float, seed: int) -> float:
        """One replay out of the grid's."""
        self.spent += self.whole
        return self.goodput(self.drawn(point, seed).trace)

    @property
    def profiling(self) -> float:
        """Seconds that all profiles kept the machine for; plans that compile alike share one."""
        alike = {profile_digest(plan): plan for plan in self.plans.values()}
        return sum(self.rig.profile(plan, self.seen).seconds for plan in alike.values())


class Found(NamedTuple):
    """What a search of the product picked, and seconds of confirming replays."""

    point: Point
    seconds: float


def moves_of(grid: Grid) -> list[Move]:
    """Every plan as a move from the first one, which is "no change"."""
    base, found = grid.plans[POINTS[0]], []
    for at, plan in grid.plans.items():
        kinds = changed(base, plan)
        kind = next((name for key, name in KINDS.items() if key in kinds), NO_CHANGE)
        size = rank(kind, FITS[at[0]] if kind == "refit" else 1) if kind != NO_CHANGE else 0
        found.append(Move(kind=kind, sentence="", owner="runtime", plan=plan, size=size))
    return found


KINDS = {"entries": "refit", "batch": "batch", "order": "order"}


def product(grid: Grid, seed: int, replayed: Callable[[Point], Replayed]) -> Found:
    """Simulate all, confirm the few best, choose: the steps of the retune stage."""
    moves, places = moves_of(grid), {plan.id: at for at, plan in grid.plans.items()}

    def simulate(plan: Plan, replica: int, share: float) -> Trace:
        load: Workload = jitter(beginning(grid.load, share), replica, seed)
        costs: CostModel = grid.costs[places[plan.id]]
        return grid.rig.simulate(plan, load, costs, 1000 * seed + replica)

    rows = simulate_all(moves, simulate, grid.sla)
    competing = [moves[0], *shortlist(rows, grid.sla, CONFIRMED, floor=0.0)]
    confirmed = {move.plan.id: replayed(places[move.plan.id]) for move in competing}
    latencies: dict[str, Sequence[Floats]] = {name: [one.trace.latency] for name, one in confirmed.items()}
    choice = choose(competing, lambda move: latencies[move.plan.id], grid.sla, seed)
    return Found(places[choice.chosen.plan.id], sum(one.seconds for one in confirmed.values()))


def searches(grid: Grid) -> list[tuple[str, ...]]:
    """A row for each search: what its picks are worth, and what they cost."""
    best = max(map(grid.truth, POINTS))

    def row(name: str, picks: Sequence[Point], costs: Sequence[float]) -> tuple[str, ...]:
        worth = [grid.truth(at) / best for at in picks]
        met = sum(one >= GOAL for one in worth)
        share = f"{np.mean(costs) / grid.seconds:.1%}"
        return name, f"{np.mean(worth):.1%}", f"{min(worth):.1%}", f"{met} of {len(worth)}", share

    mine = [product(grid, seed, partial(grid.drawn, seed=seed)) for seed in range(1, SEEDS + 1)]
    rows = [row("the product", [one.point for one in mine], [grid.profiling + one.seconds for one in mine])]
    for name, search in rivals.all_of_them().items():
        picks, costs = [], []
        for seed in range(1, SEEDS + 1):
            grid.spent = 0.0
            picks.append(search(grid, BUDGET * grid.seconds, seed))
            costs.append(grid.spent)
        rows.append(row(name, picks, costs))
    return rows


def again(grid: Grid, picked: Point) -> list[tuple[str, ...]]:
    """The pick and its strongest rival, replayed anew in turn; and the rows of both in the grid."""
    rival = max((at for at in POINTS if at != picked), key=grid.truth)
    pair = (picked, rival)
    fresh: dict[Point, list[Replayed]] = {at: [] for at in pair}
    for number, turn in in_turn(len(pair), TIMES):
        fresh[pair[number]].append(grid.replay(pair[number], AGAIN + turn))
    return [
        (name, grid.plans[at].id, _each(grid, grid.replays[at]), _each(grid, fresh[at]))
        for name, at in zip(("picked", "rival"), pair, strict=True)
    ]


def _each(grid: Grid, replays: Sequence[Replayed]) -> str:
    return ", ".join(f"{grid.goodput(one.trace):.1%}" for one in replays)


def tables(rig: Rig, seconds: float) -> str:
    """Measure what is not kept yet, search it, and tell."""
    grid = Grid(rig, seconds)
    grid.measure()
    found = product(grid, 0, partial(grid.replay, number=FRESH))
    worth, order = {at: grid.truth(at) for at in POINTS}, sorted(POINTS, key=grid.truth, reverse=True)
    best = worth[order[0]]
    spread = [float(np.ptp([grid.goodput(one.trace) for one in each])) for each in grid.replays.values()]
    simulated = [grid.goodput(rig.simulate(grid.plans[at], grid.load, grid.costs[at], 0)) for at in POINTS]
    ranks = np.corrcoef(*(np.argsort(np.argsort(each)) for each in (simulated, [worth[at] for at in POINTS])))[0, 1]
    share = (grid.profiling + found.seconds) / grid.seconds
    kept = worth[found.point] / best
    facts = (
        f"{len(POINTS)} plans x {TIMES} replays of {len(grid.load)} requests ({grid.seconds:.0f} s of the machine); "
        f"goodput within {grid.sla.bound_ms:g} ms: best {best:.1%} ({grid.plans[order[0]].id}), median "
        f"{worth[order[len(order) // 2]]:.1%}, worst {worth[order[-1]]:.1%}. A/A, among a plan's replays: median "
        f"{median(spread):.1%}, largest {max(spread):.1%}. Simulated against replayed: rank correlation {ranks:.2f}."
    )
    verdict = "met" if kept >= GOAL and share <= BUDGET else "NOT met"
    picked = (
        f"The product, once for real: {grid.plans[found.point].id}, {kept:.1%} of the best goodput, for {share:.1%} of "
        f"the grid's time ({grid.profiling:.0f} s profiles, {found.seconds:.0f} s replays); "
        f"goal {GOAL:.0%} for {BUDGET:.0%}: {verdict}."
    )
    head = ("search", "of the best goodput, mean", f"worst of {SEEDS}", f"at least {GOAL:.0%}", "of the grid's time")
    pair = table(("", "plan", "goodput in the grid", "replayed anew"), again(grid, found.point))
    return f"{facts}\n\n{picked}\n\n{table(head, searches(grid))}\n\n{pair}"
