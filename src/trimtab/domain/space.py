"""What retune may try: the changes of a plan that it may enumerate, and those that may be made while serving."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.noun import Count, Noun, Positive
from trimtab.domain.plan import BatchPolicy, Optimisation, Precision

EntryChange = Literal["add", "drop"]


class Space(Noun, frozen=True, kw_only=True):
    """Which candidates retune may enumerate besides ``candidates``: bucket counts, one entry added to the baseline's or
    dropped from them, warm lists, batch policies, orders, admission bounds, placements, ``workers`` (pairs: workers,
    threads of each), other backends, graph-optimisation levels (how far operators are fused), precisions. "No change",
    and the baseline at the lowest of those levels and run eagerly, where its backend can, are always among them."""

    buckets: tuple[int, ...] = ()
    entries: tuple[EntryChange, ...] = ()
    warm_shapes: tuple[int, ...] = ()
    batches: tuple[BatchPolicy, ...] = ()
    orders: tuple[str, ...] = ()
    admit: tuple[Count, ...] = ()
    placements: tuple[str, ...] = ()
    workers: tuple[tuple[Count, Count], ...] = ()
    backends: tuple[str, ...] = ()
    optimisations: tuple[Optimisation, ...] = ()
    precisions: tuple[Precision, ...] = ()
    max_entries: Count = 12


class AdaptSpec(Noun, frozen=True, kw_only=True):
    """Refitting padded entries while serving. What it would win is simulated wherever ``space.buckets`` allows some;
    with ``replay`` the baseline is also replayed on the tune slice as it is and refitted, in turn, ``budget.replays``
    times each. At most as many padded entries settle as ``space.buckets`` allows; ``spare``: how many more a worker may
    hold meanwhile (none given: a third of them); ``compile_s``: seconds of compiling in any hour.
    """

    replay: bool = False
    spare: Count | None = None
    compile_s: Positive = 360.0
