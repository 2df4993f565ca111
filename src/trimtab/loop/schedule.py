"""How the time budget becomes lengths of traffic.

Everything but the replays takes a time that hardly depends on the traffic (probe, compile, profile, analysis); what is
left is dealt to the replays. Compilers differ by a factor of a hundred, so what an entry takes is the backend's to say.
A replay of s seconds takes s plus the start of fresh workers. A held-out segment is longer than a tune segment: the
verdict is made there. The figures below were measured on a virtual machine of two cores and only steer how much traffic
is taken: a budget is an aim, never a bound on what is measured.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.domain.noun import Noun, Ns
from trimtab.domain.study import Study
from trimtab.domain.workload import Slice, Workload
from trimtab.errors import StudyError

FIXED_S = 30.0
"""Probe, reading, analysis and report, s."""
PROFILE_S = 6.0
"""Profiling one plan, s; what its backend takes to compile comes on top."""
COMPILED = 2
"""How often a profile compiles each entry: to time it, and to inspect it."""
START_S = 3.5
"""Fresh workers for one replay, s; here too what they compile comes on top."""
HELD_OUT_WEIGHT = 1.5
AMPLE_S = 900.0
"""From this budget on, candidates are confirmed as often as the baseline is replayed; below it, once."""
CONFIRMED = 2
"""How many candidates are confirmed by real replay on the tune slice, beside the baseline."""
FEWEST_REQUESTS = 200
"""Below this a segment says nothing about a tail."""


class Schedule(Noun, frozen=True, kw_only=True):
    """Seconds of traffic per segment, and how often each is replayed."""

    tune_s: float
    held_out_s: float
    replays: int
    confirmed: int
    confirming: int


def profiling_s(study: Study, entry_s: Callable[[str], float]) -> float:
    """Seconds for the profiles of all that ``study`` may try. ``entry_s``: those that a backend, by name, takes to
    compile an entry."""
    base, space = study.baseline.compile, study.space
    here, dynamic = len(base.entries), sum(entry.kind == "dynamic" for entry in base.entries)
    alike = (space.entries, space.batches, space.optimisations, space.precisions)
    recompiled = sum(map(len, alike)) + space.precisions.count("int8")  # int8 is made in two ways
    own = [here, 1, here, *[here] * recompiled]  # the baseline, the reference, the baseline at the lowest level
    own += [count + dynamic for count in space.buckets]
    plans = [(base.backend, count) for count in own] + [(name, here) for name in space.backends]
    plans += [(plan.compile.backend, len(plan.compile.entries)) for plan in study.candidates]
    return sum(PROFILE_S + COMPILED * count * entry_s(name) for name, count in plans)


def starting_s(study: Study, entry_s: Callable[[str], float]) -> float:
    """Seconds until the workers of one replay are ready, going by the baseline."""
    spec = study.baseline.compile
    return START_S + len(spec.entries) * entry_s(spec.backend)


def plan_time(
    budget_s: float,
    replays: int,
    profiling: float,
    fixed_replay_s: float | None,
    conditions: int = 0,
    adapting: int = 0,
    starting: float = START_S,
) -> Schedule:
    """Deal ``budget_s`` out. ``profiling``: seconds that all profiles take; ``starting``: those of one replay's
    workers; ``fixed_replay_s`` overrides the tune length; each of ``conditions`` takes as many replays as the held-out
    slice as recorded; ``adapting`` replays of the tune slice show what a controller does."""
    confirming = replays if budget_s >= AMPLE_S else 1
    tune, held_out = replays + (CONFIRMED + 1) * confirming + adapting, 2 * replays * (1 + conditions)
    count, weight = tune + held_out, tune + held_out * HELD_OUT_WEIGHT
    left = budget_s - FIXED_S - profiling - starting * count
    tune_s = fixed_replay_s if fixed_replay_s is not None else max(left, 0.0) / weight
    return Schedule(
        tune_s=tune_s,
        held_out_s=tune_s * HELD_OUT_WEIGHT,
        replays=replays,
        confirmed=CONFIRMED,
        confirming=confirming,
    )


def cut(workload: Workload, schedule: Schedule) -> tuple[Slice, ...]:
    """The workload's slices, with ``tune`` and ``held-out`` shortened to what the schedule allows."""
    seconds = {"tune": schedule.tune_s, "held-out": schedule.held_out_s}
    return tuple(
        _shorten(workload, part, seconds[part.name]) if part.name in seconds else part for part in workload.slices
    )


def _shorten(workload: Workload, part: Slice, seconds: float) -> Slice:
    begin = int(workload.scheduled[part.start])
    end: Ns = begin + round(seconds * 1e9)
    stop = part.start + int((workload.scheduled[part.start : part.stop] <= end).sum())
    if stop - part.start < min(FEWEST_REQUESTS, part.stop - part.start):
        raise StudyError(
            f"the budget leaves {seconds:.1f} s for each replay of {part.name}: {stop - part.start} requests",
            where="budget.time",
            fix=f"allow more time, fewer replays, or a higher rate; {FEWEST_REQUESTS} requests are the least",
        )
    return Slice(name=part.name, start=part.start, stop=stop, streams=part.streams, band=part.band)
