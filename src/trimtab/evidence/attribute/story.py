"""The story of one request: its parts, why there was a queue, and who was in front.

The blockers are one hop: the batches that ran on the request's eligible workers while it waited for a busy one, each
charged an equal part of that time. It explains one request. It never ranks causes: whoever arrives after a stall has
ended waits behind useful work, and because of the stall.
"""

from __future__ import annotations

import numpy as np

from trimtab.domain.account import BATCH_PARTS, INHERITED, PARTS, Account, Blocker, Story
from trimtab.domain.noun import NEVER
from trimtab.domain.trace import Trace
from trimtab.errors import DataError
from trimtab.evidence.attribute._words import ms
from trimtab.evidence.attribute.cuts import BUSY, Timeline, batch_ends
from trimtab.evidence.attribute.sets import LABELS, WORDS, inherited, own
from trimtab.evidence.attribute.split import apportion, batch_rows

MOST_TOLD = 3


def story(account: Account, trace: Trace, request: int) -> Story:
    """The story of the request with id ``request``. Raises DataError if the trace has none."""
    found = np.flatnonzero(account.requests["id"] == request)
    if not found.size:
        raise DataError(
            f"there is no request {request}",
            where=f"run {account.run}",
            fix=f"name one of its {len(account.requests)} requests by id",
        )
    row = int(found[0])
    columns = account.requests
    blockers = _blockers(account, trace, row) if columns["busy"][row] > 0 else ()
    return Story(
        request=request,
        stream=trace.streams[int(columns["stream"][row])],
        dims=tuple(int(trace.requests[f"dim.{name}"][row]) for name in trace.dim_names),
        latency=int(columns["latency"][row]),
        parts={name: int(columns[name][row]) for name in PARTS if columns[name][row]},
        inherited={
            label: int(columns[f"inherited.{label}"][row]) for label in INHERITED if columns[f"inherited.{label}"][row]
        },
        blockers=blockers,
        sentence=_sentence(account, row, blockers),
    )


def _blockers(account: Account, trace: Trace, row: int) -> tuple[Blocker, ...]:
    batches = trace.batches
    entry = max(int(batches["entry"][batch_rows(trace)[row]]), 0)
    eligible = account.eligible[int(account.requests["stream"][row])][entry]
    enqueued, sent = int(trace.requests["enqueued"][row]), int(trace.requests["dispatched"][row])
    ends = batch_ends(trace, sent)
    able = np.isin(batches["worker"], eligible) & (batches["dispatched"] < sent) & (ends > enqueued)
    rows = np.flatnonzero(able)
    view = Timeline(trace, trace.run.workers).view(eligible)
    busy = view.label == BUSY

    def upto(t: np.ndarray) -> np.ndarray:
        return view.upto(busy, t, view.place(t))

    overlap = upto(np.minimum(ends[rows], sent)) - upto(np.maximum(batches["dispatched"][rows], enqueued))
    waited = np.array([account.requests["busy"][row]], dtype=np.int64)
    charged = [int(piece[0]) for piece in apportion(waited, [overlap[i : i + 1] for i in range(rows.size)])]
    return tuple(
        Blocker(
            batch=int(batches["id"][r]),
            worker=int(batches["worker"][r]),
            entry=trace.entries[int(batches["entry"][r])],
            members=int(batches["size"][r]),
            charged=ns,
            parts={name: int(account.batches[name][r]) for name in BATCH_PARTS if account.batches[name][r]},
        )
        for r, ns in zip(rows, charged, strict=True)
        if ns
    )


def _sentence(account: Account, row: int, blockers: tuple[Blocker, ...]) -> str:
    latency = int(account.requests["latency"][row])
    if latency == NEVER:
        return "It failed: its latency counts as infinite."
    parts = {label: int(own(account, label)[row] + inherited(account, label)[row]) for label in LABELS}
    largest = sorted((label for label in LABELS if parts[label] > 0), key=lambda label: -parts[label])[:MOST_TOLD]
    told = ", ".join(f"{ms(parts[label])} {WORDS[label]}" for label in largest)
    text = f"Of {ms(latency)}: {told}."
    if blockers:
        waited = ms(int(account.requests["busy"][row]))
        text += f" It waited {waited} for a busy worker; {len(blockers)} batches ran meanwhile."
    return text
