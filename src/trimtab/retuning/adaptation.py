"""The adapted run: buckets refitted at each window boundary on the window before, its stalls charged (R24).

Theory
------
The arrivals are cut into windows of equal numbers of requests (at least 200). Four runs of the serving machine on these
arrivals, under the virtual clock, with common draws:

    static       the baseline, as it is
    adapted      window 0 as the baseline; at each later boundary the buckets are fitted to the shapes of the window
                 before (exact dynamic programme over measured ms, at most k of them), and every worker compiles what
                 it does not hold, runs it once at each size, and serves nothing meanwhile
    without stalls   the same plans, each ready at once: what adapting would give if compiling cost nothing
    clairvoyant  per window the best of {baseline, fitted to the window before, fitted to this very window} by the
                 primary metric, ready at once. Its choice is made on runs of each of the three over all arrivals; if
                 one of the three is better throughout than that mixture (what a window leaves warm or queued, the
                 next one inherits), it takes that one: its headroom is never below 0 or below the gain without stalls.

A new entry's stall = the compile time of the profiled entry nearest to it (|log| of the ratio of their dims) plus that
entry's first runs at the nearest sizes. Its service time = that of the same entry where it was profiled, else the
reference entry's measured time at its dims: *interpolated*, and the share of work served so is printed.

The floor is the A/A floor of the simulation: static runs that differ in their draws alone.

Limits. A static kernel may be faster than the reference entry at the same dims; an interpolated entry gives that away.
Workers stop together and compile for themselves, on their own core: the worst case, and the one that needs no spare
core. A clairvoyant that picks the best of noisy windows is too good: headroom is an upper bound. One dynamic dim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.profile import CompileProfile
from trimtab.domain.study import Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.evidence.latency import metric_value
from trimtab.evidence.score.adaptation import Adaptation, Shift, window_values, windows
from trimtab.evidence.score.gain import clairvoyant
from trimtab.evidence.stats.floor import MIN_REPLAYS, aa_floor
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel, ProfileService
from trimtab.retuning._change import refit
from trimtab.retuning._shifting import ShiftingMachine, union, warm_lists
from trimtab.serving.simulate import Startup, simulate

FEWEST_WINDOWS = 2
CHOICES = ("baseline", "window before", "this window")


@dataclass(frozen=True)
class Terms:
    """What may be refitted, and what is known of times.

    ``most`` buckets at a time, each reaching down to ``low``, none above ``high`` · ``cost`` ms of one request in a
    bucket that ends at a value · ``costs`` of the baseline's entries · ``measured``: padded entries that were profiled,
    with the model that knows them · ``reference`` knows ``reference_entry`` at every shape · ``profiles`` to read
    stalls from: padded entries' where there are any, else the baseline's.
    """

    baseline: Plan
    most: int
    low: int
    high: int
    cost: Callable[[int], float]
    costs: CostModel
    measured: Mapping[Entry, CostModel]
    reference: CostModel
    reference_entry: EntryId
    profiles: Sequence[CompileProfile]


class Lent:
    """Times of entries that borrow from whichever model knows them: a Predictor, and with ``seed`` a Service."""

    def __init__(self, terms: Terms, entries: Sequence[Entry], seed: int) -> None:
        own = {entry.id for entry in terms.baseline.compile.entries}
        self._of: dict[EntryId, tuple[CostModel, EntryId]] = {}
        self.borrowed: set[EntryId] = set()
        for entry in entries:
            if entry.id in own:
                self._of[entry.id] = (terms.costs, entry.id)
            elif entry in terms.measured:
                self._of[entry.id] = (terms.measured[entry], entry.id)
            else:
                self._of[entry.id] = (terms.reference, terms.reference_entry)
                self.borrowed.add(entry.id)
        models = {id(costs): costs for costs, _ in self._of.values()}
        self._services = {key: ProfileService(costs, seed) for key, costs in models.items()}

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        """The lender's warm time, ns; 0 = no promise."""
        costs, name = self._of[entry]
        return costs.warm(name, executed)

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        """The lender's expected time, ns."""
        costs, name = self._of[entry]
        return costs.expected(name, executed, first_seen)

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """The lender's draw: the same luck for the same oldest member, whoever serves it."""
        costs, name = self._of[batch.entry]
        return self._services[id(costs)].draw(batch if name == batch.entry else replace(batch, entry=name))


def adapt(workload: Workload, terms: Terms, sla: Sla, run: RunInfo) -> Adaptation | str:
    """The four runs on ``workload``, or why there is nothing to adapt. ``run`` says what they share; its seed draws."""
    edges = windows(len(workload))
    if edges.size - 1 < FEWEST_WINDOWS:
        return f"{len(workload)} requests are one window: there is no boundary to refit at"
    base = terms.baseline
    here = [_fitted(terms, f"window-{w}", workload.dims[lo:hi]) for w, (lo, hi) in enumerate(pairwise(edges.tolist()))]
    before = [base, *here[:-1]]
    arms = _Arms(workload, terms, run, edges)
    static, adapted = arms.run("static", [base] * len(here)), arms.run("adapted", before, charged=True)
    free, own = arms.run("without-stalls", before), arms.run("this-window", here)
    values = np.stack([window_values(trace, sla, edges) for trace in (static, free, own)], axis=1)
    picked = clairvoyant(values, sla.metric).tolist()
    best = [(base, earlier, mine)[which] for which, earlier, mine in zip(picked, before, here, strict=True)]
    ways = [(arms.run("clairvoyant", best), picked)]
    ways += [(trace, [which] * len(here)) for which, trace in enumerate((static, free, own))]
    totals = np.array([[metric_value(trace, sla) for trace, _ in ways]])
    knowing, chosen = ways[int(clairvoyant(totals, sla.metric)[0])]
    again = [arms.run("static", [base] * len(here), seed=run.seed + k) for k in range(1, MIN_REPLAYS)]
    kind: Literal["relative", "absolute"] = "absolute" if sla.metric == "goodput" else "relative"
    return Adaptation(
        static=static,
        adapted=adapted,
        without_stalls=free,
        clairvoyant=knowing,
        floor=aa_floor([[metric_value(trace, sla) for trace in (static, *again)]], kind),
        edges=edges,
        shifts=_shifts(terms, before, [CHOICES[which] for which in chosen]),
        interpolated=_interpolated(adapted, terms, before),
    )


class _Arms:
    """Runs of shifting plans on one workload, with common draws."""

    def __init__(self, workload: Workload, terms: Terms, run: RunInfo, edges: NDArray[np.int64]) -> None:
        self._workload, self._terms, self._run, self._starts = workload, terms, run, edges[:-1].tolist()

    def run(self, name: str, plans: Sequence[Plan], *, charged: bool = False, seed: int | None = None) -> Trace:
        """``plans`` by window; what is new in one is ready at once, or ``charged`` with its stall."""
        draws = self._run.seed if seed is None else seed
        everything = union(plans)
        times = Lent(self._terms, everything.compile.entries, draws)
        lists = warm_lists(plans, times)
        cost = {e.id: stall(self._terms, e, lists[e.id]) if charged else 0 for e in everything.compile.entries}
        machine = ShiftingMachine(plans, self._starts, times, self._run.cores)
        info = replace(self._run, id=f"simulated-{name}", plan=name, source="simulated", seed=draws)
        startup = Startup(prepare_ns=cost)
        return simulate(
            self._workload, everything, machine.router, times, times, info, startup=startup, machine=machine
        )


def _fitted(terms: Terms, name: str, dims: NDArray[np.int64]) -> Plan:
    ends = buckets.fit(dims, terms.cost, terms.most, limit=terms.high)
    boxes = [(end,) for end in ends]
    return replace(refit(terms.baseline, boxes, (terms.low,), (terms.high,)), id=name, note="")


def stall(terms: Terms, entry: Entry, warm: Sequence[Executed]) -> Ns:
    """What getting ``entry`` ready keeps a worker from serving, ns: compiling it, and running ``warm`` once each.

    Both from the profile nearest to the entry's dims, first runs at the size nearest to theirs.
    """
    near = min(terms.profiles, key=lambda p: min((_apart(t.executed[1:], entry.hi) for t in p.timings), default=9e9))
    firsts = [min(near.timings, key=lambda t: _apart(t.executed, executed)).first_ns for executed in warm]
    return near.compile_ns + sum(firsts)


def _apart(a: Sequence[int], b: Sequence[int]) -> float:
    return sum(abs(log(x / y)) for x, y in zip(a, b, strict=True))


def _shifts(terms: Terms, plans: Sequence[Plan], best: Sequence[str]) -> tuple[Shift, ...]:
    lists = warm_lists(plans, Lent(terms, union(plans).compile.entries, 0))
    found, held = [], set(plans[0].compile.entries)
    for plan, chosen in zip(plans, best, strict=True):
        new = [entry for entry in plan.compile.entries if entry not in held]
        ends = tuple(entry.hi[0] for entry in plan.compile.entries if entry.kind != "dynamic")
        cost = sum(stall(terms, entry, lists[entry.id]) for entry in new)
        found.append(Shift(ends=ends, compiled=len(new), stall=cost, best=chosen))
        held = set(plan.compile.entries)
    return tuple(found)


def _interpolated(adapted: Trace, terms: Terms, plans: Sequence[Plan]) -> float:
    """Share of the adapted run's work that ran on entries nobody profiled."""
    borrowed = Lent(terms, union(plans).compile.entries, 0).borrowed
    code = [number for number, entry in enumerate(adapted.entries) if entry in borrowed]
    took = adapted.batches["ended"] - adapted.batches["started"]
    whole = int(took.sum())
    return int(took[np.isin(adapted.batches["entry"], code)].sum()) / whole if whole else 0.0
