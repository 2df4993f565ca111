"""Mapping: which compiled entry runs a shape, and at which dims. The one definition, used by every driver.

A shape goes to the cheapest entry that covers it: the static entry of exactly these dims, else the smallest bucket by
volume, else the tightest dynamic range, else the plan's fallback; a shape that nothing takes is rejected. Volume is
the product of an entry's upper dims: for one network the work grows with each dim, so a smaller volume never pads
more. Ties go to the entry that the plan names first.

A dynamic entry runs a batch at the largest dims among its members, a static or bucket entry always at its own. A batch
smaller than the entry's compiled range is padded up to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import ENTRY_KINDS, CompileSpec, Entry
from trimtab.domain.route import Route, RouteKind
from trimtab.errors import StudyError

REJECTED = Route(kind="rejected", entry=None, executed=())


def covers(entry: Entry, dims: Dims) -> bool:
    """Whether ``dims`` lie inside the range that ``entry`` was compiled for."""
    return len(dims) == len(entry.hi) and all(lo <= d <= hi for lo, d, hi in zip(entry.lo, dims, entry.hi, strict=True))


class Router:
    """Shape -> :class:`Route` under one CompileSpec; every shape is worked out once and remembered."""

    def __init__(self, spec: CompileSpec) -> None:
        self.entries: dict[EntryId, Entry] = {entry.id: entry for entry in spec.entries}
        _check(spec, self.entries)
        self._cheapest_first = sorted(spec.entries, key=lambda e: (ENTRY_KINDS.index(e.kind), prod(e.hi)))
        self._fallback = self.entries[spec.fallback] if spec.fallback is not None else None
        self._known: dict[Dims, Route] = {}

    def route(self, dims: Dims) -> Route:
        """How one request of true ``dims`` runs; its ``executed`` is that of a batch of one."""
        known = self._known.get(dims)
        if known is None:
            known = self._known[dims] = self._find(dims)
        return known

    def batch(self, route: Route, members: Sequence[Dims]) -> Executed:
        """What really runs when requests of true dims ``members``, all routed to ``route.entry``, share a batch."""
        if route.entry is None:
            raise ValueError("a rejected request has no batch")
        return executed(self.entries[route.entry], members)

    def outside(self, dims: Dims) -> bool:
        """Whether ``dims`` lie outside the range of every entry (they run on the fallback, or not at all)."""
        return self.route(dims).kind in ("fallback", "rejected")

    def _find(self, dims: Dims) -> Route:
        for entry in self._cheapest_first:
            if not covers(entry, dims):
                continue
            if entry.kind == "dynamic":
                return Route(kind="dynamic", entry=entry.id, executed=executed(entry, [dims]))
            kind: RouteKind = "exact" if dims == entry.hi else "padded"
            return Route(kind=kind, entry=entry.id, executed=executed(entry, [dims]))
        if self._fallback is None or not _can_fall_back(self._fallback, dims):
            return REJECTED
        return Route(kind="fallback", entry=self._fallback.id, executed=executed(self._fallback, [dims]))


def executed(entry: Entry, members: Sequence[Dims]) -> Executed:
    """What really runs when requests of true dims ``members`` share a batch on ``entry``."""
    size = max(len(members), entry.batch[0])
    if entry.kind != "dynamic":
        return (size, *entry.hi)
    if len(members) == 1:
        return (size, *members[0])
    return (size, *map(max, *members))


def _can_fall_back(entry: Entry, dims: Dims) -> bool:
    """A dynamic program can be asked for any dims; a static or bucket one only takes what fits into its own."""
    if len(dims) != len(entry.hi):
        return False
    return entry.kind == "dynamic" or all(d <= hi for d, hi in zip(dims, entry.hi, strict=True))


def _check(spec: CompileSpec, by_id: dict[EntryId, Entry]) -> None:
    if len(by_id) != len(spec.entries):
        ids = [entry.id for entry in spec.entries]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        raise StudyError(f"entries share the id {twice[0]!r}", where="entries", fix="give each entry its own id")
    if spec.fallback is not None and spec.fallback not in by_id:
        raise StudyError(
            f"fallback names no entry: {spec.fallback!r}",
            where="fallback",
            fix=f"use one of {', '.join(sorted(by_id))}",
        )
    ranks = {len(entry.hi) for entry in spec.entries}
    if len(ranks) > 1:
        raise StudyError(
            f"entries disagree on the number of dims: {sorted(ranks)}",
            where="entries",
            fix="give lo and hi one value for each dim of the study",
        )
    for entry in spec.entries:
        _check_entry(entry)


def _check_entry(entry: Entry) -> None:
    where = f"entries.{entry.id}"
    if len(entry.lo) != len(entry.hi) or any(lo > hi for lo, hi in zip(entry.lo, entry.hi, strict=False)):
        raise StudyError(f"lo {entry.lo} and hi {entry.hi} are not a range", where=where, fix="lo <= hi, dim by dim")
    if entry.kind == "static" and entry.lo != entry.hi:
        raise StudyError(f"a static entry covers one shape, not {entry.lo}..{entry.hi}", where=where, fix="lo = hi")
    if not 1 <= entry.batch[0] <= entry.batch[1]:
        raise StudyError(f"batch {entry.batch} is not a range", where=where, fix="1 <= lowest <= highest batch size")
