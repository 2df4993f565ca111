"""Orders: which waiting request goes first.

An order is one function ``(arrival, route, predictor) -> key``; the smallest key is served first, ties by request id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trimtab.domain.events import Arrived
from trimtab.domain.ports import Predictor
from trimtab.domain.route import Route

Order: TypeAlias = Callable[[Arrived, Route, Predictor], int]


def fifo(arrival: Arrived, route: Route, predictor: Predictor) -> int:
    """First come, first served, by enqueue time."""
    return arrival.t


ORDER: dict[str, Order] = {"fifo": fifo}
"""``ServePolicy.order`` -> order."""
