"""Files of one job put together: which recordings are of ranks that ran side by side, which compiles fell into which.

A recording says its own rank, a compiler's log the rank of every compile; a log that does not bears it in its name, as
torch writes it. What names no rank is the only process of its job, and fits only what names none, too. All of it counts
from 1970: a file whose clock has no known zero is not put together with another, and neither are recordings that do not
overlap.

A compile belongs to the recording of its rank in whose time it begins; there it becomes a span of its own, so that what
it stalled is told of the runs. A recording that holds compiles itself keeps its own: they are the same ones.

Limits: clocks of two machines may differ by milliseconds, so nothing here rests on who of two ranks was first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.spans import KIND, Compilation, Spans
from trimtab.domain.trace import Table
from trimtab.evidence.timeline.cover import lasting

LANE = "torch.compile, from its log"
DAY = 86_400_000_000_000
_NAMED = re.compile(r"torch_trace_rank_(\d{1,6})(?!\d)")
NO_ZERO = "its clock has no known zero"


class Part(NamedTuple):
    """One file and what it holds."""

    file: str
    spans: Spans


class Joined(msgspec.Struct, frozen=True):
    """The parts, recordings with the compiles of the logs; ``notes`` on each. ``ranks`` = (rank, position of its
    recording) of those that ran side by side, in order; empty where fewer than two did."""

    spans: tuple[Spans, ...]
    notes: tuple[tuple[str, ...], ...]
    ranks: tuple[tuple[int, int], ...]


def joined(parts: Sequence[Part]) -> Joined:
    """Put ``parts`` together as far as they say that they belong together; what does not fit is said in a note."""
    recorded = [k for k, part in enumerate(parts) if len(part.spans.table)]
    logs = [part for part in parts if part.spans.compiles and not len(part.spans.table)]
    spans = [part.spans for part in parts]
    notes: list[tuple[str, ...]] = [() for _ in parts]
    for k in recorded:
        for log in logs:
            spans[k], note = _with_log(spans[k], log, recorded_itself=_compiles_itself(parts[k].spans))
            notes[k] = (*notes[k], note)
    ranked = [(rank, k) for k in recorded if (rank := rank_of(parts[k].spans)) != NEVER]
    refused = _refused([(rank, parts[k]) for rank, k in ranked]) if len(ranked) > 1 else ""
    for _, k in ranked if refused else ():
        notes[k] = (*notes[k], f"ranks are not put together: {refused}")
    together = () if refused or len(ranked) < 2 else tuple(sorted(ranked))
    return Joined(tuple(spans), tuple(notes), together)


def rank_of(spans: Spans) -> int:
    """The rank that a recording says it is of; NEVER where it says none."""
    text = spans.facts.get("rank", "")
    return int(text) if text.isdecimal() else NEVER


def _refused(ranked: Sequence[tuple[int, Part]]) -> str:
    """Why these recordings are not of one job at one time; "" where they may be."""
    seen: dict[int, str] = {}
    for rank, part in ranked:
        if rank in seen:
            return f"{seen[rank]} and {part.file} are both of rank {rank}"
        seen[rank] = part.file
    lost = next((part.file for _, part in ranked if part.spans.origin is None), "")
    if lost:
        return f"{lost} cannot be compared in time, {NO_ZERO}"
    first = min((part for _, part in ranked), key=_end)
    last = max((part for _, part in ranked), key=lambda part: part.spans.origin or 0)
    apart = (last.spans.origin or 0) - _end(first)
    return f"{first.file} ends {_long(apart)} before {last.file} begins" if apart > 0 else ""


def _end(part: Part) -> Ns:
    """When the recording ends, ns since 1970."""
    return (part.spans.origin or 0) + int(part.spans.table["end"].max())


def _compiles_itself(spans: Spans) -> bool:
    return bool(np.any(spans.table["kind"] == KIND["compile"]))


def _with_log(spans: Spans, log: Part, *, recorded_itself: bool) -> tuple[Spans, str]:
    """The recording with those compiles of ``log`` that fell into it, and what to know of it."""
    rank, named = rank_of(spans), _rank_in(log.file)
    mine = [one for one in log.spans.compiles if (named if one.rank == NEVER else one.rank) == rank]
    timed = [one for one in mine if NEVER not in (one.start, one.took)]
    if recorded_itself:
        return spans, f"not joined to {log.file}: this recording holds its compiles itself"
    if not mine:
        return spans, f"not joined to {log.file}: {_ranks_of(log.spans, named)}, this recording {_said(rank)}"
    if not timed:
        return spans, f"not joined to {log.file}: it does not say when compiles began and how long they took"
    if spans.origin is None or log.spans.origin is None:
        lost = log.file if log.spans.origin is None else "this recording"
        return spans, f"not joined to {log.file}: {lost} cannot be compared in time, {NO_ZERO}"
    shift, end = log.spans.origin - spans.origin, int(spans.table["end"].max())
    inside = [(one, one.start + shift) for one in timed if 0 <= one.start + shift <= end]
    if not inside:
        return spans, f"not joined to {log.file}: {_beside(timed, shift, end)}"
    where = "" if rank == NEVER else f" of rank {rank}"
    return _added(spans, inside), f"{len(inside)} of {len(mine)} compiles{where} of {log.file} fall into this recording"


def _rank_in(file: str) -> int:
    """The rank in the name of a log, as torch writes it."""
    found = _NAMED.search(file)
    return int(found[1]) if found else NEVER


def _ranks_of(log: Spans, named: int) -> str:
    ranks = sorted({rank for one in log.compiles if (rank := named if one.rank == NEVER else one.rank) != NEVER})
    return f"it tells of rank {', '.join(map(str, ranks))}" if ranks else "it names no rank"


def _said(rank: int) -> str:
    return "names none" if rank == NEVER else f"is of rank {rank}"


def _beside(timed: Sequence[Compilation], shift: Ns, end: Ns) -> str:
    """By how much the nearest compile misses the recording."""
    before = min((-(one.start + shift) for one in timed if one.start + shift < 0), default=None)
    after = min((one.start + shift - end for one in timed if one.start + shift > end), default=None)
    if after is None or (before is not None and before <= after):
        return f"its last compile begins {_long(before or 0)} before this recording does"
    return f"its first compile begins {_long(after)} after this recording ends"


def _long(ns: int) -> str:
    """A time that may be as long as one likes."""
    return f"{ns / DAY:,.0f} days" if ns >= 2 * DAY else lasting(ns)


def _added(spans: Spans, compiles: Sequence[tuple[Compilation, Ns]]) -> Spans:
    """``spans`` and the compiles as spans on a lane of their own, in order of start."""
    codes = tuple(dict.fromkeys(one.code for one, _ in compiles))
    place = {name: len(spans.names) + k for k, name in enumerate(codes)}
    count, more = len(spans.table), len(compiles)
    new = {name: np.full(more, NEVER, dtype=column.dtype) for name, column in spans.table.columns.items()}
    new["start"] = np.array([at for _, at in compiles], dtype=np.int64)
    new["end"] = np.array([at + one.took for one, at in compiles], dtype=np.int64)
    new["kind"] = np.full(more, KIND["compile"], dtype=np.int8)
    new["name"] = np.array([place[one.code] for one, _ in compiles], dtype=np.int32)
    new["lane"] = np.full(more, len(spans.lanes), dtype=np.int32)
    both = {name: np.concatenate((column, new[name])) for name, column in spans.table.columns.items()}
    order = np.argsort(both["start"], kind="stable")
    rows = np.empty(count + more, dtype=np.int64)
    rows[order] = np.arange(count + more)
    launch = both["launch"]
    both["launch"] = np.where(launch == NEVER, NEVER, rows[np.maximum(launch, 0)])
    table = Table({name: column[order] for name, column in both.items()})
    return msgspec.structs.replace(spans, table=table, names=(*spans.names, *codes), lanes=(*spans.lanes, LANE))
