"""Placements: which workers may serve a request.

A placement is one function ``(asked) -> worker numbers``; of those that are free, the one that has been free longest
takes the work. It depends on the stream of a request and on the entry that it goes to, on nothing else: requests that
may go to the same workers and the same entry wait together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from trimtab.domain.noun import EntryId
from trimtab.domain.plan import Entry


class Asked(NamedTuple):
    """Who asks for a worker: a stream, and the rank of an entry, smallest first, among ``sizes`` entries."""

    stream: int
    size: int
    sizes: int
    workers: int


Place: TypeAlias = Callable[[Asked], tuple[int, ...]]


def shared(asked: Asked) -> tuple[int, ...]:
    """One queue for all workers."""
    return tuple(range(asked.workers))


def stream_affinity(asked: Asked) -> tuple[int, ...]:
    """Each stream has one worker: its number modulo the number of workers."""
    return (asked.stream % asked.workers,)


def size_affinity(asked: Asked) -> tuple[int, ...]:
    """Small entries go to the first workers, large ones to the last: nobody small waits behind somebody large.

    Entries share the workers evenly by their number: several entries one worker, or several workers one entry.
    """
    first = asked.size * asked.workers // asked.sizes
    beyond = (asked.size + 1) * asked.workers // asked.sizes
    return tuple(range(first, max(beyond, first + 1)))


SIZE_AFFINITY = "size-affinity"
PLACE: dict[str, Place] = {"shared": shared, "stream-affinity": stream_affinity, SIZE_AFFINITY: size_affinity}
"""``ServePolicy.placement`` -> placement."""


def size_ranks(entries: Mapping[EntryId, Entry]) -> dict[EntryId, int]:
    """Each entry's rank by the volume of its largest dims, smallest first; ties by id."""
    ordered = sorted(entries.values(), key=lambda entry: (math.prod(entry.hi), entry.id))
    return {entry.id: rank for rank, entry in enumerate(ordered)}
