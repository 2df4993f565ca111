"""Placements: which workers may serve a stream.

A placement is one function ``(stream, workers) -> worker numbers``; of those that are free, the one that has been free
the longest takes the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Place: TypeAlias = Callable[[int, int], tuple[int, ...]]


def shared(stream: int, workers: int) -> tuple[int, ...]:
    """One queue for all workers."""
    return tuple(range(workers))


def stream_affinity(stream: int, workers: int) -> tuple[int, ...]:
    """Each stream has one worker: its number modulo the number of workers."""
    return (stream % workers,)


PLACE: dict[str, Place] = {"shared": shared, "stream-affinity": stream_affinity}
"""``ServePolicy.placement`` -> placement."""
