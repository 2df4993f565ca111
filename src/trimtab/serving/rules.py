"""Rules: all that the machine takes from its plan, in one place, so that a changed plan is one changed object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from trimtab.domain.noun import Dims, EntryId, Executed
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan
from trimtab.domain.ports import Predictor
from trimtab.errors import StudyError
from trimtab.mapping.route import Router, executed
from trimtab.serving.batch import BATCH
from trimtab.serving.order import ORDER
from trimtab.serving.place import PLACE, Asked, size_ranks

T = TypeVar("T")


class Rules:
    """A plan's policies, looked up and checked.

    ``policies``: the batch policy by entry, its size limited to the entry's compiled range. ``warm``: by entry, the
    executed dims that a fresh worker runs once before it takes traffic. ``entries`` and ``policies`` outlive a
    change of the plan, for requests that still wait; ``warm`` keeps what is left out of the table until it is dropped.
    """

    def __init__(self, plan: Plan, router: Router, predictor: Predictor) -> None:
        serve = plan.serve
        _check_batch(serve.batch)
        if serve.admit is not None and serve.admit < 1:
            raise StudyError(
                f"a bound of {serve.admit} admits nobody", where="serve.admit", fix="at least 1, or none at all"
            )
        if serve.workers < 1:
            raise StudyError(f"{serve.workers} workers cannot serve", where="serve.workers", fix="at least 1")
        self.plan = plan
        self.router = router
        self.predictor = predictor
        self.entries: dict[EntryId, Entry] = dict(router.entries)
        self.workers = serve.workers
        self.admit = math.inf if serve.admit is None else serve.admit
        self.batch = _choose(BATCH, serve.batch.kind, "serve.batch.kind")
        self.order = _choose(ORDER, serve.order, "serve.order")
        self._place = _choose(PLACE, serve.placement, "serve.placement")
        self.policies: dict[EntryId, BatchPolicy] = {
            name: msgspec.structs.replace(serve.batch, max_size=min(serve.batch.max_size, entry.batch[1]))
            for name, entry in router.entries.items()
        }
        self.warm = _warm_lists(serve.warm, router)
        self._ranks = size_ranks(router.entries)
        self._eligible: dict[tuple[int, EntryId], tuple[int, ...]] = {}

    def remapped(self, spec: CompileSpec, warm: Mapping[EntryId, tuple[Executed, ...]]) -> Rules:
        """The same policies for the entries of ``spec``; ``warm`` as for those of the plan, of entries new to it."""
        serve = msgspec.structs.replace(self.plan.serve, warm=())
        changed = Rules(msgspec.structs.replace(self.plan, compile=spec, serve=serve), Router(spec), self.predictor)
        for name, entry in changed.entries.items():
            if self.entries.get(name, entry) != entry:
                raise StudyError(
                    f"two entries are called {name!r}", where="baseline.compile.entries", fix="rename the baseline's"
                )
        changed.warm = {**{name: warm.get(name, ()) for name in changed.entries}, **self.warm}
        changed.entries = self.entries | changed.entries
        changed.policies = self.policies | changed.policies
        return changed

    def executed(self, entry: EntryId, members: Sequence[Dims]) -> Executed:
        """What really runs when ``members`` share a batch on ``entry``, in the table or not any more."""
        return executed(self.entries[entry], members)

    def eligible(self, stream: int, entry: EntryId) -> tuple[int, ...]:
        """The workers that may serve ``stream`` on ``entry``: its eligibility class."""
        known = self._eligible.get((stream, entry))
        if known is None:
            asked = Asked(stream, self._ranks[entry], len(self._ranks), self.workers)
            known = self._eligible[stream, entry] = self._place(asked)
        return known


def _choose(table: Mapping[str, T], name: str, where: str) -> T:
    if name not in table:
        raise StudyError(f"unknown policy {name!r}", where=where, fix=f"use one of {', '.join(sorted(table))}")
    return table[name]


def _check_batch(policy: BatchPolicy) -> None:
    if policy.max_size < 1 or policy.hold_ms < 0:
        raise StudyError(
            f"no batch can have max_size {policy.max_size} and hold_ms {policy.hold_ms}",
            where="serve.batch",
            fix="max_size >= 1, hold_ms >= 0",
        )


def _warm_lists(warm: tuple[Executed, ...], router: Router) -> dict[EntryId, tuple[Executed, ...]]:
    """Each warm shape goes to the entry that would run it, at the dims that this entry would execute."""
    lists: dict[EntryId, dict[Executed, None]] = {entry: {} for entry in router.entries}
    for size, *dims in warm:
        route = router.route(tuple(dims))
        if route.entry is None or not 1 <= size <= router.entries[route.entry].batch[1]:
            raise StudyError(
                f"no entry runs the warm shape {(size, *dims)}",
                where="serve.warm",
                fix="list shapes (batch size, *dims) that the plan's entries cover",
            )
        lists[route.entry][router.batch(route, [tuple(dims)] * size)] = None
    return {entry: tuple(shapes) for entry, shapes in lists.items()}
