"""A Route: how one request's shape, or one batch, runs under a plan."""

from __future__ import annotations

from typing import Literal, get_args

from trimtab.domain.noun import EntryId, Executed, Noun

RouteKind = Literal["exact", "padded", "dynamic", "fallback", "rejected"]
ROUTE_KINDS: tuple[RouteKind, ...] = get_args(RouteKind)
"""Order is the code in columns. *Cold* is not a kind: whether a worker sees a shape for the first time depends on
the run, so it is a flag of the batch."""


class Route(Noun, frozen=True, kw_only=True):
    """Where a shape goes. ``entry`` is None exactly where ``kind`` is ``rejected``; ``executed`` is ``(n, *dims)``."""

    kind: RouteKind
    entry: EntryId | None
    executed: Executed
