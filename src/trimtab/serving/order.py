"""Orders: which waiting request goes first.

An order is one function ``(arrival, route, predictor) -> key``; the smallest key is served first, ties by request id.
What has no key of its own (no promise, no deadline) goes last. Any order but first come, first served can starve: a
request with a large key waits for as long as smaller ones keep coming.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trimtab.domain.events import Arrived
from trimtab.domain.noun import NEVER
from trimtab.domain.ports import Predictor
from trimtab.domain.route import Route

Order: TypeAlias = Callable[[Arrived, Route, Predictor], int]

LAST = 2**62


def fifo(arrival: Arrived, route: Route, predictor: Predictor) -> int:
    """First come, first served, by enqueue time."""
    return arrival.t


def shortest(arrival: Arrived, route: Route, predictor: Predictor) -> int:
    """Shortest predicted first: by the warm time promised for the request alone."""
    if route.entry is None:
        return LAST
    return predictor.warm(route.entry, route.executed) or LAST


def deadline(arrival: Arrived, route: Route, predictor: Predictor) -> int:
    """Earliest deadline first."""
    return arrival.due if arrival.due != NEVER else LAST


ORDER: dict[str, Order] = {"fifo": fifo, "shortest": shortest, "deadline": deadline}
"""``ServePolicy.order`` -> order."""
