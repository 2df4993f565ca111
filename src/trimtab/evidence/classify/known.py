"""What is known of one run when it is diagnosed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.evidence.classify.classes import Effect
from trimtab.evidence.classify.compiling import Compiling


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one run; None = not known. Shares are 0..1.

    ``idle_while_waiting`` = share of waiting in the tail during which an eligible worker was free. ``idle_elsewhere``
    = the same for workers that were not eligible. ``first_slow`` / ``first_fast`` = share of first, changed-and-slower
    or compiling runs among the slowest 5 % and the faster half of the batches. ``padding`` = executed / true volume.
    ``pace`` = compute pace / its reference. ``large_excess`` / ``small_excess`` = measured / promised - 1 of the
    largest and smallest fifth of shapes, first runs left out. ``peak`` = peak memory / limit. ``alone`` = what the
    primary percentile would be without any cause, over the SLA's bound: useful work and its own queue.
    ``load`` = useful work over the workers' time while requests were scheduled. ``fallback_time`` = share of the run
    time without a promise that fallback batches took.

    ``compiling`` = what the runtime compiled by itself while it served (None: nothing, or it does not say).

    ``failed_by_memory`` = the primary percentile falls among failed requests, and most of these ran out of memory.

    Known of imported tables only: ``peak_growth`` and ``saved`` = peak memory over the baseline's, and the share of its
    run time that is saved; ``stall`` = share of run time neither on a core nor waiting for one; ``steps`` = whether run
    times stand at multiples of 100 ms; ``quota`` = cores' worth of it; ``launch``, ``launch_small``, ``launch_large`` =
    launches' share of run time, over all and at small and large shapes; ``own_work`` = own useful work's share of the
    tail and ``own_alone`` its percentile over the standard; ``ceiling`` = share of the machine's; ``idle_cpu`` = cores
    busy while nothing runs; ``standard`` = what ``alone`` is held against.
    """

    effects: Mapping[str, Effect]
    alone: float | None = None
    load: float | None = None
    threads: int | None = None
    cores: int | None = None
    idle_while_waiting: float | None = None
    idle_elsewhere: float | None = None
    mean_size: float | None = None
    max_size: int | None = None
    runqueue: float | None = None
    throttled: float | None = None
    stolen: float | None = None
    pace: float | None = None
    stream_pace: float | None = None
    differs: tuple[str, ...] | None = None
    first_slow: float | None = None
    first_fast: float | None = None
    compiling: Compiling | None = None
    padding: float | None = None
    fallback: float | None = None
    fallback_time: float | None = None
    premium: float | None = None
    large_excess: float | None = None
    small_excess: float | None = None
    peak: float | None = None
    out_of_memory: int | None = None
    declared: str = ""
    executed: float | None = None
    quality: bool | None = None
    peak_growth: float | None = None
    saved: float | None = None
    stall: float | None = None
    steps: bool | None = None
    quota: float | None = None
    launch: float | None = None
    launch_small: float | None = None
    launch_large: float | None = None
    launches: float | None = None
    own_work: float | None = None
    own_alone: float | None = None
    ceiling: float | None = None
    idle_cpu: float | None = None
    failed_by_memory: bool = False
    executed_in: str = ""
    standard: str = "the SLA's bound"

    def largest(self, *causes: str) -> Effect | None:
        """The largest effect among those of ``causes`` that are known."""
        return max((self.effects[c] for c in causes if c in self.effects), key=lambda one: one.share, default=None)
