"""The p95 and p99 sets of an account, and what each label owns of them.

A *label* is a name under which time can stand in the tail: an own part of the request, what it inherited through the
queue, or both. Busy wait and co-batching are no labels: they are what is inherited.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trimtab.domain.account import CAUSES, INHERITED, OWN_OF_CAUSE, PARTS, Account
from trimtab.domain.noun import NEVER
from trimtab.evidence.attribute.split import Int
from trimtab.evidence.stats.quantiles import Floats, quantile

LABELS: tuple[str, ...] = (
    "slip",
    "unavailable",
    "occupied",
    "hold",
    "imbalance",
    "dispatch",
    "off_core",
    "cold",
    "interference",
    "premium",
    "padding",
    "failed",
    "unprofiled",
    "unmodelled",
    "completion",
    "useful",
    "capacity",
)
WORDS: dict[str, str] = {
    "slip": "the late load generator",
    "unavailable": "waiting for a live worker",
    "occupied": "occupation by the pace kernel and warm-ups",
    "hold": "batch hold",
    "imbalance": "core imbalance",
    "dispatch": "dispatch",
    "off_core": "off-core time",
    "cold": "the cost of cold runs",
    "interference": "interference",
    "premium": "the entry's premium over the reference",
    "padding": "padding",
    "failed": "the time of failed batches",
    "unprofiled": "run time that no profile covers",
    "unmodelled": "waiting that the queue model does not explain",
    "completion": "completion",
    "useful": "the requests' own useful work",
    "capacity": "queueing behind useful work",
}
OWNERS: dict[str, str] = {
    **dict.fromkeys(("cold", "premium", "padding", "unprofiled"), "compiler"),
    **dict.fromkeys(("slip", "occupied", "off_core", "interference", "unmodelled"), "observability"),
    **dict.fromkeys(("unavailable", "hold", "imbalance", "dispatch", "failed", "completion"), "runtime"),
    **dict.fromkeys(("useful", "capacity"), "runtime"),
}
REMOVABLE: tuple[str, ...] = ("slip", *CAUSES, "completion")
"""Labels whose removal alone the account can predict."""

TAILS: dict[str, float] = {"p95": 0.95, "p99": 0.99}
TYPICAL = (0.40, 0.60)


class TailSet(msgspec.Struct, frozen=True):
    """The requests at or above one percentile that ended well: ``rows``; ``failed`` more are above it, apart.

    ``bound`` is the percentile over ALL scheduled requests in ns, +inf where it falls among the failed; then ``rows``
    are the slowest of those that ended, and ``note`` says so.
    """

    name: str
    q: float
    bound: float
    rows: Int
    failed: int
    note: str = ""

    @property
    def lost(self) -> bool:
        """More requests failed than lie above the percentile: they own it, whatever the others waited for."""
        return math.isinf(self.bound)


def latencies(account: Account) -> Floats:
    """ns as float64, in order of arrival, +inf = failed."""
    latency = account.requests["latency"]
    return np.where(latency == NEVER, np.inf, latency.astype(np.float64))


def tail_set(account: Account, name: str) -> TailSet:
    """The set of one percentile (a key of TAILS)."""
    q, latency = TAILS[name], latencies(account)
    ended = np.isfinite(latency)
    failed = int(latency.size - ended.sum())
    bound, note = quantile(latency, q), ""
    from_ = bound
    if not math.isfinite(bound) and ended.any():
        from_ = quantile(latency[ended], q)
        note = f"{name} falls among {failed} failed requests; the account is that of the slowest that ended"
    rows = np.flatnonzero(ended & (latency >= from_)) if math.isfinite(from_) else np.zeros(0, dtype=np.int64)
    return TailSet(name, q, bound, rows, failed, note)


def typical_rows(account: Account) -> Int:
    """Requests around the median: those that ended well within the p40 and p60 of the others that did."""
    latency = latencies(account)
    ended = latency[np.isfinite(latency)]
    if not ended.size:
        return np.zeros(0, dtype=np.int64)
    low, high = (quantile(ended, q) for q in TYPICAL)
    return np.flatnonzero((latency >= low) & (latency <= high))


def own(account: Account, label: str) -> Int:
    """Own time under ``label`` of every request, ns (zeros for labels that are only inherited)."""
    return account.requests[label] if label in PARTS else np.zeros(len(account.requests), dtype=np.int64)


def inherited(account: Account, label: str) -> Int:
    """Time inherited under ``label`` by every request, ns."""
    if label not in INHERITED:
        return np.zeros(len(account.requests), dtype=np.int64)
    return account.requests[f"inherited.{label}"]


def without(account: Account, label: str) -> Floats:
    """Latencies that the account predicts if ``label`` alone were gone, ns; failed requests stay +inf."""
    gone = own(account, label) if label not in CAUSES else own(account, OWN_OF_CAUSE.get(label, ""))
    if label in CAUSES:
        gone = gone + account.requests[f"relief.{label}"]
    return latencies(account) - gone


def without_any(account: Account) -> Floats:
    """Latencies if every cause were gone: what useful work alone, and its queue, would leave."""
    out = latencies(account)
    for cause in CAUSES:
        out = out - own(account, OWN_OF_CAUSE.get(cause, "")) - inherited(account, cause)
    return out


class Share(msgspec.Struct, frozen=True):
    """What one label owns of a set of requests; means over the set, ns."""

    label: str
    own: float
    inherited: float
    typical: float

    @property
    def total(self) -> float:
        return self.own + self.inherited


def shares(account: Account, rows: Int, typical: Int) -> list[Share]:
    """Every label's part of ``rows``, and of the ``typical`` requests beside it."""
    out = []
    for label in LABELS:
        mine, handed = own(account, label), inherited(account, label)
        usual = float((mine[typical] + handed[typical]).mean()) if typical.size else 0.0
        out.append(Share(label, float(mine[rows].mean()), float(handed[rows].mean()), usual))
    return out


def leading_cause(parts: list[Share]) -> str:
    """The removable label that owns most, "" if none owns anything."""
    able = [part for part in parts if part.label in REMOVABLE and part.total > 0]
    return max(able, key=lambda part: part.total).label if able else ""
