"""What adapting while serving would win: static, adapted and clairvoyant runs on the same arrivals (R24).

Theory
------
Runs of the serving machine under the virtual clock, with common draws:

    static       the baseline, as it is
    adapted      the baseline with the online controller (:mod:`trimtab.retuning.adapt`) within ``bounds``
    without stalls   the same, but what the controller asks for is ready at once: what is lost to compiling
    clairvoyant  the arrivals are cut into windows of equal numbers of requests (at least 200); per window the best of
                 {baseline, buckets fitted to the window before, buckets fitted to this very window} by the primary
                 metric, ready and warm at once. Its choice is made on runs of each of the three over all arrivals; if
                 one of these, or a run of the controller, is better throughout than that mixture (what a window leaves
                 warm or queued, the next one inherits), it takes that one: its headroom is never below 0 or a gain.

A new entry of the controller is compiled on the spare core in the compile time of the profiled entry nearest to it
(|log| of the ratio of their dims), takes as much memory, and is run there once at each size of batch, for as long as a
first run takes. Its service time = that of the same entry where it was profiled, else the reference entry's measured
time at its dims: *interpolated*, and the share of work served so is printed.

The floor is the A/A floor of the simulation: static runs that differ in their draws alone.

Limits. A static kernel may be faster than the reference entry at the same dims; an interpolated entry gives that
away. Compiling on the spare core slows no worker down. A clairvoyant that picks the best of noisy windows is too
good: headroom is an upper bound. One dynamic dim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log
from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import Bounds, Entry, Plan
from trimtab.domain.ports import Controller
from trimtab.domain.profile import CompileProfile
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.evidence.latency import metric_value
from trimtab.evidence.score.adaptation import Adaptation, Shift, window_values, windows
from trimtab.evidence.score.gain import clairvoyant
from trimtab.evidence.stats.floor import MIN_REPLAYS, aa_floor
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.retuning._change import bucket, refit
from trimtab.retuning._scripted import Scripted, union, warm_lists
from trimtab.retuning._table import batches
from trimtab.retuning.adapt import Adapter, Known
from trimtab.serving.simulate import Startup, simulate

FEWEST_WINDOWS = 2
CHOICES = ("baseline", "window before", "this window", "as adapted")


@dataclass(frozen=True)
class Terms:
    """What may be refitted, and what is known of times.

    ``bounds`` of the refits, the clairvoyant's too · ``cost`` ms of one request in a
    bucket that ends at a value · ``costs`` of the baseline's entries · ``measured``: padded entries that were profiled,
    with the model that knows them · ``reference`` knows ``reference_entry`` at every shape · ``profiles`` to read
    compile times and memory from: padded entries' where there are any, else the baseline's.
    """

    baseline: Plan
    bounds: Bounds
    cost: Callable[[int], float]
    costs: CostModel
    measured: Mapping[Entry, CostModel]
    reference: CostModel
    reference_entry: EntryId
    profiles: Sequence[CompileProfile]


class Lent:
    """Times of entries that borrow from whichever model knows them: a Predictor, and with ``seed`` a Service. Where a
    table changes, a dynamic entry of the baseline gets shapes that its profile never saw: the reference lends those."""

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
        self._reference = (terms.reference, terms.reference_entry)
        models = {id(costs): costs for costs, _ in (*self._of.values(), self._reference)}
        self._services = {key: ProfileService(costs, seed) for key, costs in models.items()}

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        """The lender's warm time, ns; 0 = no promise."""
        costs, name = self._lender(entry, executed)
        return costs.warm(name, executed)

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        """The lender's expected time, ns."""
        costs, name = self._lender(entry, executed)
        return costs.expected(name, executed, first_seen)

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """The lender's draw: the same luck for the same oldest member, whoever serves it."""
        service, lent = self._lent(batch)
        return service.draw(lent)

    def handling(self, batch: Dispatch) -> tuple[Ns, Ns]:
        """What surrounds the lender's run."""
        service, lent = self._lent(batch)
        return service.handling(lent)

    def _lender(self, entry: EntryId, executed: Executed) -> tuple[CostModel, EntryId]:
        costs, name = self._of[entry]
        return (costs, name) if costs.support(name, executed) != "none" else self._reference

    def _lent(self, batch: Dispatch) -> tuple[ProfileService, Dispatch]:
        costs, name = self._lender(batch.entry, batch.executed)
        return self._services[id(costs)], batch if name == batch.entry else replace(batch, entry=name)


def adapt(workload: Workload, terms: Terms, sla: Sla, run: RunInfo) -> Adaptation | str:
    """The runs on ``workload``, or why there is nothing to adapt. ``run`` says what they share; its seed draws."""
    edges = windows(len(workload))
    if edges.size - 1 < FEWEST_WINDOWS:
        return f"{len(workload)} requests are one window: nothing in it shows what a change would win"
    arms = _Arms(workload, terms, sla, run, edges)
    static, adapted, free = arms.static(run.seed), arms.adapted(), arms.adapted(at_once=True)
    knowing, chosen = _clairvoyant(arms, static, {"adapted": adapted, "free": free})
    again = [arms.static(run.seed + k) for k in range(1, MIN_REPLAYS)]
    kind: Literal["relative", "absolute"] = "absolute" if sla.metric == "goodput" else "relative"
    return Adaptation(
        static=static,
        adapted=adapted,
        without_stalls=free,
        clairvoyant=knowing,
        floor=aa_floor([[metric_value(trace, sla) for trace in (static, *again)]], kind),
        edges=edges,
        shifts=_shifts(adapted, terms.baseline, edges, [CHOICES[which] for which in chosen]),
        interpolated=_interpolated(adapted, arms.borrowed),
    )


def _clairvoyant(arms: _Arms, static: Trace, controlled: Mapping[str, Trace]) -> tuple[Trace, list[int]]:
    """The best that knowing each window gives, and what it takes in each: positions in CHOICES."""
    base, edges, sla = arms.baseline, arms.edges, arms.sla
    here = [arms.fitted(w, lo, hi) for w, (lo, hi) in enumerate(pairwise(edges.tolist()))]
    before = [base, *here[:-1]]
    lag, own = arms.scripted("window-before", before), arms.scripted("this-window", here)
    values = np.stack([window_values(trace, sla, edges) for trace in (static, lag, own)], axis=1)
    picked = clairvoyant(values, sla.metric).tolist()
    best = [(base, earlier, mine)[which] for which, earlier, mine in zip(picked, before, here, strict=True)]
    ways = [(arms.scripted("clairvoyant", best), picked)]
    ways += [(trace, [which] * len(here)) for which, trace in enumerate((static, lag, own))]
    ways += [(trace, [CHOICES.index("as adapted")] * len(here)) for trace in controlled.values()]
    totals = np.array([[metric_value(trace, sla) for trace, _ in ways]])
    return ways[int(clairvoyant(totals, sla.metric)[0])]


class _Arms:
    """Runs on one workload, with common draws."""

    def __init__(self, workload: Workload, terms: Terms, sla: Sla, run: RunInfo, edges: NDArray[np.int64]) -> None:
        self.baseline, self.sla, self.edges = terms.baseline, sla, edges
        self._workload, self._terms, self._run = workload, terms, run
        self._possible = possible(terms.baseline, terms.bounds)
        self.borrowed = Lent(terms, self._possible, 0).borrowed

    def static(self, seed: int) -> Trace:
        """The baseline as it is, drawn with ``seed``."""
        return self._simulate("static", self.baseline, Lent(self._terms, self.baseline.compile.entries, seed), seed)

    def adapted(self, *, at_once: bool = False) -> Trace:
        """The baseline under the online controller. ``at_once``: compiling takes no time."""
        controller, times = online(self._terms, self.sla, self._run.seed)
        takes = {entry.id: 0 if at_once else self._preparing(entry, times) for entry in self._possible}
        name = "without-stalls" if at_once else "adapted"
        return self._simulate(name, self.baseline, times, self._run.seed, controller, takes)

    def _preparing(self, entry: Entry, times: Lent) -> Ns:
        """ns to compile an entry and to run it once at each size of batch."""
        warm = batches(entry, self.baseline.serve.batch)
        return _compile_ns(self._terms.profiles, entry) + sum(times.expected(entry.id, each, True) for each in warm)

    def scripted(self, name: str, plans: Sequence[Plan]) -> Trace:
        """``plans`` by window, each ready and warm at once."""
        entries = union(plans)
        times = Lent(self._terms, entries, self._run.seed)
        controller = Scripted(plans, self.edges[:-1].tolist(), warm_lists(plans, times))
        at_once = dict.fromkeys((entry.id for entry in entries), 0)
        return self._simulate(name, plans[0], times, self._run.seed, controller, at_once)

    def fitted(self, number: int, start: int, stop: int) -> Plan:
        """The baseline with buckets fitted to the requests ``start <= id < stop``."""
        terms, bounds = self._terms, self._terms.bounds
        ends = buckets.fit(self._workload.dims[start:stop], terms.cost, bounds.entries, limit=bounds.high[0])
        plan = refit(self.baseline, [(end,) for end in ends], bounds.low, bounds.high)
        return replace(plan, id=f"window-{number}", note="")

    def _simulate(
        self,
        name: str,
        plan: Plan,
        times: Lent,
        seed: int,
        controller: Controller | None = None,
        prepare_ns: Mapping[EntryId, Ns] | None = None,
    ) -> Trace:
        info = replace(self._run, id=f"simulated-{name}", plan=name, source="simulated", seed=seed)
        startup = Startup(prepare_ns=prepare_ns or {})
        router = Router(plan.compile)
        return simulate(
            self._workload, plan, router, times, times, info, startup=startup, controller=controller,
            handling=times.handling,
        )  # fmt: skip


def online(terms: Terms, sla: Sla, seed: int) -> tuple[Adapter, Lent]:
    """The online controller of the baseline, for one run, and what promises the times of all that it may bring."""
    times = Lent(terms, possible(terms.baseline, terms.bounds), seed)
    known = Known(compile_ns=partial(_compile_ns, terms.profiles), memory_bytes=partial(_memory_bytes, terms.profiles))
    return Adapter(terms.baseline, terms.bounds, sla, times, known), times


def _compile_ns(profiles: Sequence[CompileProfile], entry: Entry) -> Ns:
    return nearest(profiles, entry).compile_ns


def _memory_bytes(profiles: Sequence[CompileProfile], entry: Entry) -> int:
    return nearest(profiles, entry).memory_bytes


def possible(plan: Plan, bounds: Bounds) -> tuple[Entry, ...]:
    """The plan's entries, and every padded entry that a refit within ``bounds`` may bring."""
    low, high = bounds.low[0], bounds.high[0]
    first = max(bounds.step, -(-low // bounds.step) * bounds.step)
    ends = dict.fromkeys((*range(first, high + 1, bounds.step), high))
    own = {entry.id for entry in plan.compile.entries}
    found = [bucket(plan, (end,), bounds.low) for end in ends]
    return (*plan.compile.entries, *(entry for entry in found if entry.id not in own))


def nearest(profiles: Sequence[CompileProfile], entry: Entry) -> CompileProfile:
    """The profile whose executed dims come nearest to the entry's, by the ratio of their sizes."""
    return min(profiles, key=lambda p: min((_apart(t.executed[1:], entry.hi) for t in p.timings), default=9e9))


def _apart(a: Sequence[int], b: Sequence[int]) -> float:
    return sum(abs(log(x / y)) for x, y in zip(a, b, strict=True))


def _shifts(adapted: Trace, base: Plan, edges: NDArray[np.int64], best: Sequence[str]) -> tuple[Shift, ...]:
    """What the adapted run did in each window, from its marks and batches."""
    starts = adapted.requests["scheduled"][edges[:-1]]
    marks, own = adapted.marks, {entry.id for entry in base.compile.entries}
    window = np.searchsorted(starts, marks["t"], side="right") - 1
    tables = np.isin(marks["kind"], [MARK_KINDS.index(kind) for kind in ("remap", "roll-back")])
    prepared = marks["kind"] == MARK_KINDS.index("prepare")
    stalls, stalled = _first_runs(adapted, own)
    ends, found = _ends([entry.id for entry in base.compile.entries], base), []
    for number, chosen in enumerate(best):
        for row in np.flatnonzero(tables & (window == number)).tolist():
            ends = _ends(adapted.details[marks["detail"][row]].partition(":")[0].split(), base)
        mine = prepared & (window == number)
        took = int((marks["end"] - marks["t"])[mine].sum())
        stall = int(stalls[np.searchsorted(starts, stalled, side="right") - 1 == number].sum())
        found.append(Shift(ends=ends, compiled=int(mine.sum()), compiling=took, stall=stall, best=chosen))
    return tuple(found)


def _ends(names: Sequence[EntryId], base: Plan) -> tuple[int, ...]:
    """Where the padded entries of a table end, ascending."""
    own = {entry.id: entry for entry in base.compile.entries}
    padded = [name for name in names if name not in own or own[name].kind != "dynamic"]
    return tuple(sorted(own[name].hi[0] if name in own else int(name.removeprefix("to-")) for name in padded))


def _first_runs(adapted: Trace, own: set[EntryId]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """ns beyond the promise of each first run of an entry that the baseline has not, and when it started."""
    batches = adapted.batches
    code = [number for number, entry in enumerate(adapted.entries) if entry not in own]
    rows = batches.take(batches["first_seen"] & np.isin(batches["entry"], code))
    return np.maximum(rows["ended"] - rows["started"] - rows["promised"], 0), rows["started"]


def _interpolated(adapted: Trace, borrowed: set[EntryId]) -> float:
    """Share of the adapted run's work that ran on entries nobody profiled."""
    code = [number for number, entry in enumerate(adapted.entries) if entry in borrowed]
    took = adapted.batches["ended"] - adapted.batches["started"]
    whole = int(took.sum())
    return int(took[np.isin(adapted.batches["entry"], code)].sum()) / whole if whole else 0.0
