"""Would another table serve what comes now for less? What a controller acts on."""

from __future__ import annotations

from trimtab.domain.plan import CompileSpec, Entry
from trimtab.mapping.route import Router
from trimtab.retuning import _table as table
from trimtab.retuning._live import Prices, Ran
from trimtab.retuning._proof import Detector

WORTH = 0.05
ALARM_EVERY = 100_000
HINT_EVERY = 1_000


class Watch:
    """Looks for drift: a candidate table, refitted from time to time, against the batches that come after it."""

    def __init__(self) -> None:
        self._router: Router | None = None
        self._prices: Prices | None = None
        self._detector = Detector(WORTH)
        self._hinted = False
        self.targets: tuple[Entry, ...] = ()

    def aim(self, spec: CompileSpec, targets: tuple[Entry, ...], prices: Prices) -> None:
        """Judge the batches to come against ``spec`` with ``targets`` instead of its own padded entries."""
        self._prices, self.targets, self._hinted = prices, targets, False
        self._router = Router(table.refitted(spec, targets))

    def feed(self, ran: Ran) -> None:
        """Take a batch that is over."""
        if self._router is None or self._prices is None:
            return
        price = self._prices.batch(self._router, ran.dims, ran.size)
        if price:
            self._detector.add((ran.took - price) / max(ran.took, price))

    @property
    def proved(self) -> bool:
        """Whether the candidate is worth a refit."""
        return self._detector.reached(ALARM_EVERY)

    def hint(self) -> bool:
        """Whether it may be: enough to prepare for it, not to change anything. Said once for each aim."""
        hint = not self._hinted and self._detector.reached(HINT_EVERY)
        self._hinted = self._hinted or hint
        return hint

    @property
    def idle(self) -> bool:
        """Whether nothing at all speaks for it any more."""
        return not self._detector.reached(1.0)
