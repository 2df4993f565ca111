"""The ReferenceSet: the lowest profiled time at which known entries could have served a batch.

Theory
------
b(B) = min over partitions of B's members into groups, each group served by the entry of the set that is fastest for it
at the members' TRUE shapes (a bucket entry still runs at its own dims). Members are sorted by volume and only
contiguous groups are tried, by dynamic programming: one batch, each alone and everything between are included, and
for one dynamic dim with times that rise with it nothing better exists. A group holds at most ``n_max`` members and
what the entry was compiled for.

*Winner's curse.* The fastest of many noisy medians is too fast. So the winner of a group is chosen on one half of the
raw repeats (even positions) and timed on the other half (odd ones); it may then come out slower than a rival, which
is the honest price. Entries with fewer than 4 repeats at a shape use all of them for both, and count as unsplit.

Limits: groups run one after the other on one worker; what a group costs the queue is not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

import msgspec

from trimtab.domain.noun import Dims, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry
from trimtab.domain.ports import Predictor
from trimtab.domain.profile import CompileProfile, ShapeTiming
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router

SPLIT_REPEATS = 4


class _Contender(msgspec.Struct, frozen=True):
    entry: Entry
    router: Router
    chooser: Predictor
    judge: Predictor


class ReferenceSet:
    """A frozen set of entries with the predictors that know them. ``judge`` times what ``predictor`` chose."""

    def __init__(
        self, entries: Iterable[Entry], predictor: Predictor, n_max: int, judge: Predictor | None = None
    ) -> None:
        self.n_max = max(n_max, 1)
        self._contenders = tuple(
            _Contender(entry, Router(CompileSpec(backend="", entries=(entry,))), predictor, judge or predictor)
            for entry in entries
        )
        self._known: dict[tuple[Dims, ...], Ns] = {}
        self._groups: dict[tuple[Dims, ...], tuple[Ns, Ns]] = {}

    @classmethod
    def from_profiles(cls, entries: Sequence[Entry], profiles: Iterable[CompileProfile], n_max: int) -> ReferenceSet:
        """The entries of ONE plan, chosen on half of its raw repeats and timed on the other half."""
        even, odd = halves(profiles)
        return cls(entries, CostModel.from_profiles(even, entries), n_max, CostModel.from_profiles(odd, entries))

    def __or__(self, other: ReferenceSet) -> ReferenceSet:
        """Both sets together; the larger ``n_max`` holds."""
        both = ReferenceSet((), _NOTHING, max(self.n_max, other.n_max))
        both._contenders = self._contenders + other._contenders
        return both

    def best(self, members: Sequence[Dims]) -> Ns:
        """Lowest warm time for serving ``members`` (true dims), ns; 0 = no entry of the set can, or none is known."""
        key = tuple(sorted(members, key=lambda dims: (prod(dims), dims)))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = cheapest(key, self._group, self.n_max)
        return known

    def _group(self, members: tuple[Dims, ...]) -> tuple[Ns, Ns]:
        known = self._groups.get(members)
        if known is None:
            known = self._groups[members] = self._choose(members)
        return known

    def _choose(self, members: tuple[Dims, ...]) -> tuple[Ns, Ns]:
        """(time by which the winner was chosen, time on the other half) of one batch of ``members``; (0, 0) = none."""
        found = (0, 0)
        for one in self._contenders:
            executed = _executed(one, members)
            if executed is None:
                continue
            chosen = one.chooser.warm(one.entry.id, executed)
            judged = one.judge.warm(one.entry.id, executed)
            if chosen > 0 and judged > 0 and (not found[0] or chosen < found[0]):
                found = (chosen, judged)
        return found


class _Nothing:
    def warm(self, entry: str, executed: Executed) -> Ns:
        return 0

    def expected(self, entry: str, executed: Executed, first_seen: bool) -> Ns:
        return 0


_NOTHING = _Nothing()


def _executed(one: _Contender, members: tuple[Dims, ...]) -> Executed | None:
    if len(members) > one.entry.batch[1]:
        return None
    routes = [one.router.route(dims) for dims in members]
    if any(route.entry is None for route in routes):
        return None
    return one.router.batch(routes[0], members)


def cheapest(members: tuple[Dims, ...], cost: Callable[[tuple[Dims, ...]], tuple[Ns, Ns]], n_max: int) -> Ns:
    """Cheapest partition of sorted ``members`` into contiguous groups of at most ``n_max``.

    ``cost(group)`` = (ns to choose by, ns to add up); 0 = this group cannot be served. Returns the sum of the second
    numbers of the partition that is cheapest by the first, 0 where there is none.
    """
    reached: list[tuple[Ns, Ns] | None] = [(0, 0)]
    for stop in range(1, len(members) + 1):
        best: tuple[Ns, Ns] | None = None
        for start in range(max(0, stop - n_max), stop):
            before, (chosen, judged) = reached[start], cost(members[start:stop])
            if before is None or not chosen:
                continue
            if best is None or before[0] + chosen < best[0]:
                best = (before[0] + chosen, before[1] + judged)
        reached.append(best)
    last = reached[-1]
    return last[1] if last is not None else 0


def halves(profiles: Iterable[CompileProfile]) -> tuple[tuple[CompileProfile, ...], tuple[CompileProfile, ...]]:
    """Each profile twice: with the warm repeats at even, and at odd positions; all of them where below 4."""
    kept = tuple(profiles)
    return tuple(_half(p, 0) for p in kept), tuple(_half(p, 1) for p in kept)


def _half(profile: CompileProfile, which: int) -> CompileProfile:
    timings = tuple(_half_timing(timing, which) for timing in profile.timings)
    return msgspec.structs.replace(profile, timings=timings)


def _half_timing(timing: ShapeTiming, which: int) -> ShapeTiming:
    if len(timing.wall_ns) < SPLIT_REPEATS:
        return timing
    return msgspec.structs.replace(timing, wall_ns=timing.wall_ns[which::2], cpu_ns=timing.cpu_ns[which::2])
