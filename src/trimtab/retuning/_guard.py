"""Is the table that was swapped in any better than the one before it? When to go back, and when to stay."""

from __future__ import annotations

from trimtab.domain.plan import CompileSpec
from trimtab.mapping.route import Router
from trimtab.retuning._live import Live, Ran
from trimtab.retuning._proof import MISS_WINDOW, Proof

MARGIN = 0.05
MISS_MARGIN = 0.02
ERROR = 0.01


class Guard:
    """Watches a table that was swapped in against the one before it, at the prices and the misses of then."""

    def __init__(self, before: CompileSpec, live: Live) -> None:
        self.before = before
        self._router, self._prices = Router(before), live.prices()
        self._good, self._bad = Proof(-MARGIN, ERROR), Proof(0.0, ERROR)
        self._missed = Proof(min(live.miss_share() + MISS_MARGIN, 1.0), ERROR)
        self._windows = live.miss_windows

    def feed(self, ran: Ran | None, live: Live) -> None:
        """Take a batch that is over, if it says anything, and the misses, if a window of them is full."""
        price = self._prices.batch(self._router, ran.dims, ran.size) if ran is not None else 0.0
        if ran is not None and price:
            dearer = (ran.took - price) / max(ran.took, price)
            self._good.add(-dearer)
            self._bad.add(dearer)
        if live.miss_windows != self._windows:
            self._windows = live.miss_windows
            self._missed.add(live.miss_share(MISS_WINDOW))

    @property
    def trigger(self) -> str:
        """Why to roll back; empty = nothing speaks for it."""
        if self._bad.proved:
            return "batches take longer than they would have before"
        return "more requests miss the bound than before" if self._missed.proved else ""

    @property
    def passed(self) -> bool:
        """Whether it is refuted that batches take longer by the margin."""
        return self._good.proved
