"""An Account: the latency of every request of one run, split over causes, own and inherited.

All times are int64 ns. For each request that ended well two sums are exact:

    latency = slip + hold + unavailable + occupied + busy + dispatch + off_core + cold + interference + premium
              + padding + co_batching + useful + unprofiled + completion
    busy + co_batching = sum of inherited.<label> over INHERITED

Every part is >= 0 except ``interference`` and ``premium``, which are signed. A failed request (latency +infinity)
keeps its row, its error kind, latency NEVER, and zeros.
"""

from __future__ import annotations

import msgspec

from trimtab.domain.noun import EntryId
from trimtab.domain.trace import Table

PARTS: tuple[str, ...] = (
    "slip",  # the load generator was late: scheduled -> enqueued
    "hold",  # an eligible worker was free, the batch not yet ready by policy
    "unavailable",  # no live eligible worker
    "occupied",  # every live eligible worker was taken, at least one of them by the pace kernel or a warm-up
    "busy",  # every live eligible worker ran a batch
    "dispatch",  # free and ready but not sent, plus sent but not started
    "off_core",  # run-queue delay while the batch ran
    "cold",  # run time above the warm promise in a first, changed or compiling run
    "interference",  # run time against the warm promise otherwise; signed
    "premium",  # the entry's promise against the reference entry at the executed dims; signed
    "padding",  # executed dims against the batch without bucket padding
    "co_batching",  # the batch without padding against the request alone
    "useful",  # the request alone, warm, on the reference entry
    "unprofiled",  # steps above that no profile covers, merged
    "completion",  # ended -> the driver knew
)
"""Own parts of a request, in the order of its life. They sum to its latency."""

CAUSES: tuple[str, ...] = (
    "padding",
    "premium",
    "interference",
    "off_core",
    "cold",
    "dispatch",
    "imbalance",
    "hold",
    "unavailable",
    "occupied",
    "unprofiled",
    "failed",
)
"""What can lengthen the queue for others: padding to hold are the method's; ``unavailable`` and ``occupied`` are the
backlog that an outage or a pace run leaves; ``unprofiled`` run time is never taken for useful work; ``failed`` is the
time of batches that failed."""

INHERITED: tuple[str, ...] = ("capacity", *CAUSES, "unmodelled")
"""Over what the busy wait and the co-batching time of a request are apportioned."""

OWN_OF_CAUSE: dict[str, str] = {cause: cause for cause in CAUSES if cause not in ("imbalance", "failed")}
"""Cause -> the own part that goes away with it."""

BATCH_PARTS: tuple[str, ...] = (
    "useful",
    "padding",
    "premium",
    "interference",
    "off_core",
    "cold",
    "dispatch",
    "unprofiled",
    "failed",
)
"""Parts of a batch as those behind it see them: all >= 0; ``padding`` holds bucket and ragged padding, ``dispatch``
the scheduler's lag before it. They sum to lag + (ended - dispatched)."""

ACCOUNT_COLUMNS: dict[str, str] = {
    "id": "int64",
    "stream": "int32",
    "error": "int8",  # into ERROR_KINDS; 0 = ok
    "batch": "int64",
    "latency": "int64",  # NEVER = failed
    **dict.fromkeys(PARTS, "int64"),
    "idle_elsewhere": "int64",  # of busy: an ineligible worker was free meanwhile
    "throttled": "int64",  # of off_core: at most what the quota took meanwhile, over all our processes
    "modelled": "int64",  # busy wait in the queue model with every cause present
    **{f"inherited.{label}": "int64" for label in INHERITED},
    **{f"relief.{cause}": "int64" for cause in CAUSES},  # inherited time that goes away if this cause alone does
}
"""The columns of ``Account.requests``, rows as in ``Trace.requests``."""


Eligible = tuple[tuple[tuple[int, ...], ...], ...]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The account of one run. ``requests`` has ACCOUNT_COLUMNS; ``batches`` has ``id`` and BATCH_PARTS, rows as in
    ``Trace.batches``; ``eligible[stream][entry]`` lists the workers that may take a stream's requests on an entry."""

    run: str
    plan: str
    reference_entry: EntryId
    eligible: Eligible
    requests: Table
    batches: Table


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that ran while the request waited: one hop, equal parts over the eligible workers. ``charged`` = its
    share of the busy wait, ns; ``parts`` splits the batch's own time (BATCH_PARTS, ns)."""

    batch: int
    worker: int
    entry: EntryId
    members: int
    charged: int
    parts: dict[str, int]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one request: its own parts, why there was a queue, and who was in front."""

    request: int
    stream: str
    dims: tuple[int, ...]
    latency: int
    parts: dict[str, int]
    inherited: dict[str, int]
    blockers: tuple[Blocker, ...]
    sentence: str
