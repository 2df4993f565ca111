"""How many entries are enough? Every entry saves padding, and must be compiled, warmed and held.

    total(k) = mean ms a request by the best k boundaries  +  k * start / n

with ``start`` what compiling and warming one more entry takes, and ``n`` the requests that one start serves. The first
term falls ever more slowly, the second rises in a line: the least total lies between. Memory is a limit, not a price:
``held + k * memory`` MiB must fit.

Limits. Entries are taken to start one after the other and to cost alike. Waiting is left out: a start delays the first
requests, and shorter requests shorten the queue; the candidates' simulation and replay judge that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.domain.noun import Noun
from trimtab.mapping.buckets import BucketFit


class EntryPrice(Noun, frozen=True, kw_only=True):
    """What one more entry costs: ``start_ms`` to compile and warm it, ``memory_mib`` to hold it in all workers.

    ``requests``: how many one start serves. ``held_mib`` is held without any such entry, ``limit_mib`` may be (None:
    no limit is known).
    """

    start_ms: float
    memory_mib: float
    requests: float
    held_mib: float = 0.0
    limit_mib: float | None = None


class Priced(NamedTuple):
    """One number of entries with all that it costs: ms a request, MiB in all, and whether they fit."""

    fit: BucketFit
    start_ms: float
    total_ms: float
    memory_mib: float
    fits: bool


def priced(fits: Sequence[BucketFit], price: EntryPrice) -> tuple[Priced, ...]:
    """Every fit with its price, in the order given."""
    return tuple(_priced(fit, price) for fit in fits)


def _priced(fit: BucketFit, price: EntryPrice) -> Priced:
    start = fit.count * price.start_ms / price.requests
    memory = price.held_mib + fit.count * price.memory_mib
    return Priced(fit, start, fit.mean_ms + start, memory, price.limit_mib is None or memory <= price.limit_mib)


def cheapest(rows: Sequence[Priced]) -> Priced | None:
    """The least total among those that fit, of equals the fewest entries; None where none fits."""
    fitting = [row for row in rows if row.fits]
    return min(fitting, key=lambda row: (row.total_ms, row.fit.count)) if fitting else None
