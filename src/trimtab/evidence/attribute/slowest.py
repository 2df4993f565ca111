"""The requests that a reader may look at one by one: where each stands, what its time went to, and who was in front.

Kept: every request of the p95 set up to TAIL of the slowest, and of the others every n-th, so that the cloud keeps its
form and a packet of any length stays small; the series' note says how many of how many. The STORIES slowest have their
story told (:mod:`.story`): their times, and the FRONT batches in front that cost them most, each with its own parts.

Limit. A batch's parts are amounts of time, not an order: nothing records when within a run its cold part was paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trimtab.domain.account import BATCH_PARTS, Account, Story
from trimtab.domain.figure import Series
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.attribute.cuts import batch_ends
from trimtab.evidence.attribute.sets import LABELS, TailSet, inherited, own
from trimtab.evidence.attribute.split import Int, batch_rows
from trimtab.evidence.attribute.story import story
from trimtab.evidence.figures import NS_MS, NS_S, series

TAIL = 300
OTHERS = 900
STORIES = 16
FRONT = 8

Row = dict[str, Any]


def build(account: Account, trace: Trace, found: TailSet) -> tuple[Series, ...]:
    """``requests.shown``, ``requests.parts``, ``requests.stories`` and ``requests.front``; none without a tail."""
    latency = account.requests["latency"]
    slowest = found.rows[np.argsort(-latency[found.rows], kind="stable")][:TAIL]
    if not slowest.size:
        return ()
    ended = np.flatnonzero(latency != NEVER)
    others = np.setdiff1d(ended, found.rows)
    thinned = others[:: -(-others.size // OTHERS)] if others.size > OTHERS else others
    rows = np.sort(np.concatenate((slowest, thinned)))
    told = [story(account, trace, int(account.requests["id"][row])) for row in slowest[:STORIES]]
    note = (
        f"{slowest.size} of the {found.rows.size} requests of the {found.name} set, the slowest; "
        f"{thinned.size} of the {others.size} others that ended"
    )
    artifact = f"accounts/{account.run}.parquet"
    ms = dict.fromkeys(("latency", "own", "inherited", "waited", "charged", "start", "end", "part"), "ms")
    made: tuple[tuple[str, list[Row]], ...] = (
        ("requests.shown", list(_shown(account, trace, rows, set(slowest.tolist())))),
        ("requests.parts", list(_parts(account, slowest))),
        ("requests.stories", list(_stories(account, trace, told, slowest))),
        ("requests.front", list(_front(account, trace, told, slowest))),
    )
    return tuple(series(name, table(each), {"t": "s"} | ms, artifact, note=note) for name, each in made if each)


def _shown(account: Account, trace: Trace, rows: Int, tail: set[int]) -> Iterator[Row]:
    """``t`` counts from the run's start; ``size`` = product of the true dims; ``cause`` owns most of the latency."""
    sizes = np.prod(trace.requests.dims("dim", trace.dim_names), axis=1) if trace.dim_names else None
    whole = np.stack([own(account, label)[rows] + inherited(account, label)[rows] for label in LABELS])
    largest = whole.argmax(axis=0)
    for at, row in enumerate(rows.tolist()):
        yield {
            "request": int(account.requests["id"][row]),
            "t": float(trace.requests["scheduled"][row]) * NS_S,
            "latency": float(account.requests["latency"][row]) * NS_MS,
            "size": int(sizes[row]) if sizes is not None else None,
            "stream": trace.streams[int(account.requests["stream"][row])],
            "cause": LABELS[int(largest[at])],
            "tail": row in tail,
        }


def _parts(account: Account, rows: Int) -> Iterator[Row]:
    """What each slow request owes to each label, ms; labels that owe nothing are left out."""
    for label in LABELS:
        mine, handed = own(account, label)[rows], inherited(account, label)[rows]
        for at in np.flatnonzero((mine != 0) | (handed != 0)).tolist():
            yield {
                "request": int(account.requests["id"][rows[at]]),
                "cause": label,
                "own": float(mine[at]) * NS_MS,
                "inherited": float(handed[at]) * NS_MS,
            }


def _stories(account: Account, trace: Trace, told: list[Story], rows: Int) -> Iterator[Row]:
    """Times are ms from the request's scheduled time; ``blockers`` counts all batches in front."""
    placed = batch_rows(trace)
    for each, row in zip(told, rows.tolist(), strict=False):
        batch = placed[row]
        scheduled = int(trace.requests["scheduled"][row])
        times = {
            name: (int(trace.requests[name][row]) - scheduled) * NS_MS
            for name in ("enqueued", "batched", "dispatched", "started", "ended", "done")
        }
        yield {
            "request": each.request,
            "stream": each.stream,
            "dims": "x".join(str(size) for size in each.dims),
            "latency": each.latency * NS_MS,
            "waited": each.parts.get("busy", 0) * NS_MS,
            "blockers": len(each.blockers),
            "sentence": each.sentence,
            "batch": int(trace.batches["id"][batch]),
            "worker": int(trace.batches["worker"][batch]),
            "entry": trace.entries[int(trace.batches["entry"][batch])],
            "first": bool(trace.batches["first_seen"][batch]),
            **times,
        }


def _front(account: Account, trace: Trace, told: list[Story], rows: Int) -> Iterator[Row]:
    """One row a part of each batch in front, in the order in which they ran; ``start`` and ``end`` are those of the
    batch, ms from the request's scheduled time."""
    ends = batch_ends(trace, int(trace.requests["done"].max(initial=0)))
    begins = ends - sum(account.batches[name] for name in BATCH_PARTS)
    place = {int(batch): at for at, batch in enumerate(trace.batches["id"])}
    for each, row in zip(told, rows.tolist(), strict=False):
        scheduled = int(trace.requests["scheduled"][row])
        costly = sorted(each.blockers, key=lambda blocker: -blocker.charged)[:FRONT]
        for blocker in sorted(costly, key=lambda blocker: int(ends[place[blocker.batch]])):
            at = place[blocker.batch]
            for cause, part in blocker.parts.items():
                yield {
                    "request": each.request,
                    "batch": blocker.batch,
                    "worker": blocker.worker,
                    "entry": blocker.entry,
                    "members": blocker.members,
                    "charged": blocker.charged * NS_MS,
                    "start": (int(begins[at]) - scheduled) * NS_MS,
                    "end": (int(ends[at]) - scheduled) * NS_MS,
                    "cause": cause,
                    "part": part * NS_MS,
                }
