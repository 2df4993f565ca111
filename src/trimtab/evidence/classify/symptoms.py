"""From the facts of a run to suspects: for each class, the evidence it requires, and what contradicts it.

One function a class. A fact that is None is not known: it becomes ``missing``, never a pass. The causes of the account
(padding, premium, cold, ...) carry the shares; the facts decide which class may use them:

    capacity -> capacity-queueing      hold -> batch-policy              imbalance -> core-imbalance
    cold -> cold-shape                 premium -> mapping-fallback       padding -> padding-waste
    unprofiled -> mapping-fallback (most of it on the fallback: outside of its range no entry promises anything)
    interference -> mapping-fallback (most of the time above promise after the runtime gave up compiling)
    off_core -> oversubscription (threads > cores, no throttle), else envelope
    interference -> envelope (pace below reference), memory-burst (time beyond the profile at large shapes only)
    stall -> envelope (quota)          launch -> launch-overhead         useful -> compute-bound

Decoys that the conditions keep apart: recompilation per size looks like oversubscription (first runs settle it); a
quota looks like slow kernels (throttled time settles it); a queue that grows while workers idle looks like capacity
(idle time settles it).

Thresholds are in the constants below; each says what it separates.
"""

from __future__ import annotations

from trimtab.evidence.classify.classes import Effect, Suspect
from trimtab.evidence.classify.known import Facts
from trimtab.evidence.figures import percent

__all__ = ["Facts", "defects", "suspects"]

BUSY = 0.5  # workers busy for less of the waits than this: the queue is not for want of capacity
COLD_CONTRAST = 2.0  # first runs at least twice as common among slow batches as among fast ones
PADDED = 1.10  # executed volume over true volume: below this padding explains little
PACE_SHIFT = 1.10  # pace over its reference: beyond the scatter of a quiet machine
OFF_CORE = 0.02  # run-queue share of the batches' wall time
STOLEN = 0.01
FALLBACK = 0.01
EXECUTED = 0.95  # share of time in the declared precision that counts as "as declared"
NEAR_LIMIT = 0.95
PEAK_GROWTH = 1.25  # peak memory over the baseline's: below this a plan is no burst
SAVED = 0.05  # run time saved against the baseline that may be worth such a peak
LAUNCHES = 0.20  # launches' share of run time: below this they explain little
NEAR_CEILING = 0.70  # share of the machine's ceiling from which only less work or more machine helps
DOMINANT = 0.50  # share of the tail from which one thing owns it
BESIDE = 0.75  # share of the tail's waiting beside a free worker that no scatter explains
SPIN = 1.0  # cores' worth of CPU that is busy while nothing runs


def suspects(facts: Facts) -> tuple[Suspect, ...]:
    """All classes that an account's causes can stand for."""
    return (
        _capacity(facts), _batch_policy(facts), _imbalance(facts), _oversubscription(facts), _cold(facts),
        _fallback(facts), _padding(facts), _memory_burst(facts), _memory_limit(facts), _envelope(facts),
        _launch_overhead(facts), _compute_bound(facts),
    )  # fmt: skip


def defects(facts: Facts) -> tuple[Suspect, ...]:
    """What is wrong whatever the tail says: precision and quality (R32), and memory that buys no time (R29)."""
    return (*_precision(facts), *_costly_memory(facts))


def _precision(facts: Facts) -> tuple[Suspect, ...]:
    if facts.quality is False:
        return (Suspect("precision-fallback", None, ("quality is below its floor",)),)
    if facts.executed is None or not facts.declared or facts.executed >= EXECUTED:
        return ()
    seen = f"{percent(facts.executed)} of profiled time ran in {facts.declared}, which was declared"
    if facts.executed_in:
        seen = f"{seen}; what ran was {facts.executed_in}"
    # What was declared is a promise. Good quality makes breaking it mild, not undone; declaring what runs ends it.
    beside = ("quality holds its floor",) if facts.quality else ()
    return (Suspect("precision-fallback", None, (seen, *beside)),)


def _costly_memory(facts: Facts) -> tuple[Suspect, ...]:
    if facts.peak_growth is None or facts.saved is None:
        return ()
    if facts.peak_growth < PEAK_GROWTH or facts.saved >= SAVED:
        return ()
    bought = f"{percent(facts.saved)} of run time saved" if facts.saved > 0 else "no run time saved"
    seen = f"peak memory is {facts.peak_growth:.2f} times the baseline's, for {bought}"
    return (Suspect("memory-burst", None, (seen,)),)


def _capacity(facts: Facts) -> Suspect:
    effect, idle = facts.effects.get("capacity"), facts.idle_while_waiting
    if facts.load is not None and facts.load >= 1:
        seen = f"useful work alone is {facts.load:.2f} times the workers' time: no queue can be stable"
        return Suspect("capacity-queueing", effect, (seen,), certain=True)
    if idle is None:
        return Suspect("capacity-queueing", effect, missing=("when workers were idle while requests waited",))
    seen = f"eligible workers were idle during {percent(idle)} of the tail's waiting"
    if idle > 1 - BUSY:
        return Suspect("capacity-queueing", effect, against=(seen,))
    if facts.alone is None:
        return Suspect("capacity-queueing", effect, (seen,), missing=("what useful work alone would leave",))
    left = f"useful work and its own queue would leave {facts.alone:.2f} times {facts.standard}"
    if facts.alone <= 1:
        return Suspect("capacity-queueing", effect, against=(left,))
    return Suspect("capacity-queueing", effect, (seen, left))


def _batch_policy(facts: Facts) -> Suspect:
    effect, idle = facts.effects.get("hold"), facts.idle_while_waiting
    if idle is None:
        return Suspect("batch-policy", effect, missing=("executed batch sizes and hold times",))
    seen = "batch sizes are not recorded"
    if facts.mean_size is not None and facts.max_size is not None:
        seen = f"batches hold {facts.mean_size:.2g} of {facts.max_size} requests"
    if idle <= 0:
        return Suspect(
            "batch-policy", effect, against=(f"no request waited while an eligible worker was free; {seen}",)
        )
    held = f"requests are held while a worker is free ({percent(idle)}); {seen}"
    # A wait that only grows has no interval, but time that passes beside a free worker needs none.
    certain = effect is not None and effect.lo is None and effect.share >= DOMINANT and idle >= BESIDE
    return Suspect("batch-policy", effect, (held,), certain=certain)


def _imbalance(facts: Facts) -> Suspect:
    effect, idle = facts.effects.get("imbalance"), facts.idle_elsewhere
    if idle is None:
        return Suspect("core-imbalance", effect, missing=("which workers each request could use",))
    seen = f"a worker that was not eligible stood idle during {percent(idle)} of the tail's waiting"
    if idle <= 0:
        return Suspect("core-imbalance", effect, against=(seen,))
    return Suspect("core-imbalance", effect, (seen,))


def _oversubscription(facts: Facts) -> Suspect:
    effect = facts.effects.get("off_core")
    if facts.idle_cpu is not None and facts.idle_cpu >= SPIN and not facts.throttled:
        seen = f"idle threads keep {facts.idle_cpu:.3g} cores busy while nothing runs"
        return Suspect("oversubscription", facts.largest("off_core", "premium", "interference"), (seen,))
    if facts.runqueue is None or facts.threads is None or facts.cores is None:
        unknown = {"the run-queue delay of batches": facts.runqueue, "threads": facts.threads, "cores": facts.cores}
        absent = ", ".join(name for name, value in unknown.items() if value is None)
        return Suspect("oversubscription", effect, missing=(absent,))
    seen = f"batches wait for a core during {percent(facts.runqueue)} of their time"
    if facts.throttled:
        return Suspect("oversubscription", effect, against=("a quota throttled the process: envelope",))
    if facts.threads <= facts.cores:
        why = f"{facts.threads} threads on {facts.cores} cores are not too many"
        return Suspect("oversubscription", effect, against=(why,))
    if facts.runqueue < OFF_CORE:
        return Suspect("oversubscription", effect, against=(seen,))
    return Suspect("oversubscription", effect, (f"{seen}, with {facts.threads} threads on {facts.cores} cores",))


def _cold(facts: Facts) -> Suspect:
    effect = facts.effects.get("cold")
    if facts.first_slow is None or facts.first_fast is None:
        return Suspect("cold-shape", effect, missing=("whether a batch was the first of its shape",))
    seen = (
        f"first runs are {percent(facts.first_slow)} of the slowest batches, {percent(facts.first_fast)} of the faster"
    )
    if facts.first_slow < COLD_CONTRAST * facts.first_fast or not facts.first_slow:
        return Suspect("cold-shape", effect, against=(seen,))
    compiled = (facts.compiling.inside,) if facts.compiling and facts.compiling.slow else ()
    return Suspect("cold-shape", effect, (seen, *compiled))


def _fallback(facts: Facts) -> Suspect:
    fell = facts.compiling if facts.compiling and facts.compiling.falls else None
    slowed = {"unprofiled": facts.fallback_time, "interference": fell.uncompiled if fell else None}
    effect = facts.largest("premium", *(cause for cause, share in slowed.items() if (share or 0) >= DOMINANT))
    if facts.fallback is None and facts.premium is None and fell is None:
        return Suspect("mapping-fallback", effect, missing=("route kinds, or a reference entry's times",))
    evidence = [] if fell is None else [fell.gave_up]
    if facts.fallback is not None and facts.fallback >= FALLBACK:
        evidence.append(f"{percent(facts.fallback)} of requests ran on the fallback")
    if facts.premium is not None and facts.premium > 0:
        evidence.append(f"the entries took {percent(facts.premium)} of run time more than the best entry known")
    if not evidence:
        return Suspect("mapping-fallback", effect, against=("no fallback route, no premium over the best entry",))
    return Suspect("mapping-fallback", effect, tuple(evidence))


def _padding(facts: Facts) -> Suspect:
    effect = facts.effects.get("padding")
    if facts.padding is None:
        return Suspect("padding-waste", effect, missing=("executed beside true dims",))
    seen = f"executed dims are {facts.padding:.2f} times the true ones"
    if facts.padding < PADDED:
        return Suspect("padding-waste", effect, against=(seen,))
    return Suspect("padding-waste", effect, (seen,))


def _memory_burst(facts: Facts) -> Suspect:
    effect = facts.largest("interference", *(("premium",) if facts.peak_growth is not None else ()))
    pace, grown = facts.stream_pace, facts.peak_growth
    if (pace is None and grown is None) or facts.large_excess is None or facts.small_excess is None:
        return Suspect("memory-burst", effect, missing=("stream pace, and time over the profile by shape",))
    rises = [] if pace is None else [f"stream pace is {pace:.2f} times its reference"]
    rises += [] if grown is None else [f"peak memory is {grown:.2f} times the baseline's"]
    seen = (
        f"{', '.join(rises)}; run time is {percent(facts.large_excess)} above "
        f"the profile at large shapes, {percent(facts.small_excess)} at small ones"
    )
    risen = (pace is not None and pace >= PACE_SHIFT) or (grown is not None and grown >= PEAK_GROWTH)
    if not risen or facts.large_excess <= max(2 * facts.small_excess, PACE_SHIFT - 1):
        return Suspect("memory-burst", effect, against=(seen,))
    return Suspect("memory-burst", effect, (seen,))


def _memory_limit(facts: Facts) -> Suspect:
    effect = facts.effects.get("memory", facts.effects.get("failed"))
    if facts.peak is None and facts.out_of_memory is None:
        return Suspect("memory-limit", effect, missing=("peak memory beside its limit",))
    evidence = []
    if facts.out_of_memory:
        evidence.append(f"{facts.out_of_memory} batches ended out of memory")
    if facts.peak is not None and facts.peak >= NEAR_LIMIT:
        evidence.append(f"peak memory reached {percent(facts.peak)} of its limit")
    if evidence and facts.failed_by_memory:
        return Suspect("memory-limit", effect, tuple(evidence), certain=True)
    if not evidence:
        return Suspect("memory-limit", effect, against=("peak memory stayed below its limit, nothing ran out of it",))
    return Suspect("memory-limit", effect, tuple(evidence))


def _envelope(facts: Facts) -> Suspect:
    """Off-core time that is not our own doing, and interference that the pace kernel confirms."""
    effect = facts.largest("off_core", "stall", "interference")
    evidence = [f"probed against assumed: {what}" for what in facts.differs or ()]
    if facts.throttled:
        evidence.append(f"the quota throttled {percent(facts.throttled)} of the time")
    if facts.stolen is not None and facts.stolen >= STOLEN:
        evidence.append(f"{percent(facts.stolen)} of the core's time was stolen")
    if facts.pace is not None and facts.pace >= PACE_SHIFT:
        evidence.append(f"the pace kernel ran {facts.pace:.2f} times its reference")
    if facts.stream_pace is not None and facts.stream_pace >= PACE_SHIFT:
        evidence.append(f"beside idle workers memory was {facts.stream_pace:.2f} times slower than its reference")
    evidence += _quota(facts)
    ours = facts.threads is None or facts.cores is None or facts.threads > facts.cores
    if facts.runqueue is not None and facts.runqueue >= OFF_CORE and not ours:
        evidence.append(f"others held our core during {percent(facts.runqueue)} of the batches' time")
    if evidence:
        return Suspect("envelope", effect, tuple(evidence))
    unknown = {"throttled time": facts.throttled, "stolen time": facts.stolen, "pace": facts.pace,
               "run-queue delay": facts.runqueue, "envelope checks": facts.differs}  # fmt: skip
    missing = tuple(name for name, value in unknown.items() if value is None)
    if missing:
        return Suspect("envelope", effect, missing=(", ".join(missing),))
    return Suspect("envelope", effect, against=("no throttling, no stolen time, pace at its reference",))


def _quota(facts: Facts) -> list[str]:
    """A quota that nobody read, by its marks: steps of its period, with time lost off core or more threads than it."""
    if not facts.steps:
        return []
    seen = "run times stand at multiples of 100 ms, the period of a quota"
    if facts.stall is not None and facts.stall >= OFF_CORE:
        return [f"{seen}; {percent(facts.stall)} of run time is neither on a core nor waiting for one"]
    if facts.quota is not None and facts.threads is not None and facts.threads > facts.quota:
        return [f"{seen}; {facts.threads} threads share a quota of {facts.quota:g} cores"]
    return []


def _launch_overhead(facts: Facts) -> Suspect:
    effect = facts.effects.get("launch")
    if facts.launches is None:
        return Suspect("launch-overhead", None)
    if facts.launch is None or facts.launch_small is None or facts.launch_large is None:
        return Suspect("launch-overhead", effect, missing=("the cost of one launch (launch_us)",))
    seen = (
        f"{facts.launches:.0f} launches are {percent(facts.launch)} of run time, {percent(facts.launch_small)} at "
        f"small shapes and {percent(facts.launch_large)} at large ones"
    )
    if facts.launch < LAUNCHES or facts.launch_small < facts.launch_large:
        return Suspect("launch-overhead", effect, against=(seen,))
    return Suspect("launch-overhead", effect, (seen,))


def _compute_bound(facts: Facts) -> Suspect:
    """The requests' own work alone breaks the standard: nothing but less work or a faster machine helps."""
    if facts.own_work is None or facts.own_alone is None or facts.own_work < DOMINANT or facts.own_alone <= 1:
        return Suspect("compute-bound", None)
    effect = Effect(facts.own_work)
    seen = f"own work alone is {facts.own_alone:.2f} times {facts.standard}"
    if facts.ceiling is None:
        return Suspect("compute-bound", effect, (seen,), missing=("the best entry's share of the ceiling (ceiling)",))
    near = f"the best known entry reaches {percent(facts.ceiling)} of the machine's ceiling"
    if facts.ceiling < NEAR_CEILING:
        return Suspect("compute-bound", effect, (seen,), against=(near,))
    return Suspect("compute-bound", effect, (seen, near), certain=True)
