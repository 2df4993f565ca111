"""Tables of entries for the shapes of a window: which to aim for, which entry to add next, which to do without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import BatchPolicy, Bounds, CompileSpec, Entry, Plan
from trimtab.domain.ports import Predictor
from trimtab.mapping import buckets
from trimtab.mapping.route import Router
from trimtab.retuning._change import bucket
from trimtab.retuning._live import Prices

Shapes = Counter[Dims]


def padded(spec: CompileSpec) -> tuple[Entry, ...]:
    """The entries of a table that run at their own dims."""
    return tuple(entry for entry in spec.entries if entry.kind != "dynamic")


def indispensable(spec: CompileSpec) -> Entry | None:
    """The padded entry without which some shape that the table runs would be rejected, or None."""
    own = padded(spec)
    if spec.fallback in {entry.id for entry in own}:
        return next(entry for entry in own if entry.id == spec.fallback)
    return max(own, key=lambda entry: entry.hi) if len(own) == len(spec.entries) else None


def fitted(plan: Plan, bounds: Bounds, shapes: Shapes, predictor: Predictor) -> tuple[Entry, ...]:
    """The padded entries that serve ``shapes`` cheapest, as many as may settle; none where no shape is in bounds."""
    low, high = bounds.low[0], bounds.high[0]
    inside = [dims for dims in shapes.elements() if low <= dims[0] <= high]
    if not inside:
        return ()

    def cost(end: int) -> float:
        return predictor.warm(bucket(plan, (end,), bounds.low).id, (1, end)) / 1e6

    ends = buckets.fit(np.array(inside, dtype=np.int64), cost, bounds.entries, multiple=bounds.step, limit=high)
    own = {entry.id: entry for entry in plan.compile.entries}
    found = [bucket(plan, (end,), bounds.low) for end in ends]
    return tuple(own.get(entry.id, entry) for entry in found)


def refitted(spec: CompileSpec, entries: Sequence[Entry]) -> CompileSpec:
    """``spec`` with these padded entries instead of its own, but for the one it cannot do without."""
    needed = indispensable(spec)
    kept = {entry.id: entry for entry in spec.entries if entry.kind == "dynamic" or entry == needed}
    return replace(spec, entries=(*(entry for entry in entries if entry.id not in kept), *kept.values()))


def added(spec: CompileSpec, entry: Entry) -> CompileSpec:
    """``spec`` with one entry more."""
    return replace(spec, entries=(entry, *spec.entries))


def next_best(
    spec: CompileSpec, targets: Sequence[Entry], shapes: Shapes, prices: Prices
) -> tuple[Entry, float] | None:
    """The target that saves most beside what is there, and which share of the cost; None if there is no target left."""
    names = {entry.id for entry in spec.entries}
    today = prices.traffic(spec, shapes)
    left = [entry for entry in targets if entry.id not in names]
    if not left or not today:
        return None
    costs = [prices.traffic(added(spec, entry), shapes) for entry in left]
    at = costs.index(min(costs))
    return left[at], 1 - costs[at] / today


def least_needed(spec: CompileSpec, shapes: Shapes, prices: Prices) -> Entry | None:
    """The padded entry without which ``shapes`` would cost least, among those that can be done without."""
    needed, router = indispensable(spec), Router(spec)
    free = [entry for entry in padded(spec) if entry != needed]
    mine: dict[EntryId | None, Shapes] = {}
    for dims, times in shapes.items():
        mine.setdefault(router.route(dims).entry, Shapes())[dims] = times

    def dearer(entry: Entry) -> float:
        """What the shapes that it serves would cost more; the others stay where they are."""
        served = mine.get(entry.id, Shapes())
        return prices.traffic(without(spec, [entry]), served) - prices.traffic(spec, served)

    return min(free, key=dearer) if free else None


def without(spec: CompileSpec, entries: Sequence[Entry]) -> CompileSpec:
    """``spec`` less ``entries``."""
    return replace(spec, entries=tuple(entry for entry in spec.entries if entry not in entries))


def batches(entry: Entry, policy: BatchPolicy) -> tuple[Executed, ...]:
    """What a padded entry runs: at each batch size that the policy can form, its own dims."""
    low, high = entry.batch
    return tuple((size, *entry.hi) for size in range(low, min(policy.max_size, high) + 1))
