"""Moves: the bounded changes that retune may try, each of them a plan of its own.

A move changes one kind of thing (R31), so that its effect has one cause, one owner and one way back: the baseline,
which stays in the packet untouched. ``enumerate_moves`` lists those that a study's space allows, "no change" always
among them. What cannot be offered comes back as a refused row with its reason, never silently.

``size`` ranks how much a move changes, smallest first: what is only run at start, what can be changed live, what costs
compiles (by how many), what may change outputs. Of two moves that do equally well the smaller one wins.

Two moves are tried whatever the space says, where the baseline's backend can: the lowest level of graph optimisation,
and eager. What a compiler is worth is known only beside what the network does without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from trimtab.domain.noun import EntryId, Executed
from trimtab.domain.plan import PRECISIONS, BatchPolicy, CompileSpec, Optimisation, Plan
from trimtab.domain.profile import CompileProfile
from trimtab.domain.study import Study
from trimtab.domain.verdict import Move, Rejected
from trimtab.evidence.figures import MIB
from trimtab.retuning._change import (
    NO_CHANGE,
    OWNER,
    changed,
    optimise,
    rank,
    rebatch,
    refit,
    rehost,
    run_eagerly,
    warm_up,
)
from trimtab.retuning._collector import Collector
from trimtab.retuning._entries import entry_moves
from trimtab.retuning._fits import bucket_fits
from trimtab.retuning._known import Known, Seen, seen_shapes
from trimtab.retuning._precisions import QUANTISE, WAYS, precision_moves
from trimtab.retuning._serving import serving_moves

__all__ = [
    "ABILITIES",
    "NO_CHANGE",
    "Known",
    "Options",
    "Seen",
    "changed",
    "charge",
    "enumerate_moves",
    "rank",
    "rebatch",
    "refit",
    "rehost",
    "seen_shapes",
    "warm_up",
]

LEVELS = "graph-optimisation levels"
EAGER = "mode eager"
ABILITIES = (LEVELS, EAGER, *(f"precision {name}" for name in PRECISIONS), *(f"{QUANTISE} {way}" for way in WAYS))
"""What moves ask of a backend, in the words of its abilities."""


@dataclass(frozen=True)
class Options:
    """The moves that can be tried, smallest first and ``no change`` at the head, and what was refused, with reasons."""

    moves: tuple[Move, ...]
    refused: tuple[Rejected, ...]


def enumerate_moves(study: Study, known: Known) -> Options:
    """Every move that ``study.space`` and ``study.candidates`` allow, on top of "no change", the lowest level of
    graph optimisation, and eager."""
    found = Collector(study, known)
    found.moves.append(
        Move(
            kind=NO_CHANGE,
            sentence=f"Keep plan {study.baseline.id} as it is.",
            owner="runtime",
            plan=study.baseline,
            size=0,
            compile_s=0.0,
            memory_mib=0.0,
        )
    )
    for candidate in study.candidates:
        _declared(found, candidate)
    _warm_lists(found)
    _batch_policies(found)
    serving_moves(found)
    bucket_fits(found)
    entry_moves(found)
    _backends(found)
    _optimisations(found)
    _eager(found)
    precision_moves(found)
    ordered = sorted(found.moves, key=lambda move: move.size)
    return Options(tuple(ordered), tuple(found.refused))


def charge(move: Move, baseline: Plan, profiles: Sequence[CompileProfile], before: Sequence[CompileProfile]) -> Move:
    """The move with what it costs beside ``baseline``, by the profiles of its plan and those of the baseline
    (``before``): seconds that a worker compiles and warms at start and the baseline does not, MiB that the compiled
    entries of all workers hold more. Unchanged where it compiles nothing else, or the plan has no profile."""
    plan = move.plan
    if not profiles or _programs(plan) == _programs(baseline):
        return move
    kept = _kept(baseline, plan)
    first = {timing.executed: timing.first_ns for profile in profiles for timing in profile.timings}
    warmed = [shape for shape in plan.serve.warm if not (kept and shape in baseline.serve.warm)]
    ns = sum(profile.compile_ns for profile in profiles if profile.entry not in kept)
    held, holds = (
        sum(profile.memory_bytes for profile in each) * one.serve.workers
        for one, each in ((baseline, before), (plan, profiles))
    )
    seconds = (ns + sum(first.get(shape, 0) for shape in warmed)) / 1e9
    return replace(move, compile_s=seconds, memory_mib=(holds - held) / MIB)


def _programs(plan: Plan) -> tuple[CompileSpec, int]:
    """All that says what a plan compiles."""
    return plan.compile, plan.serve.threads


def _kept(baseline: Plan, plan: Plan) -> set[EntryId]:
    """Entries whose compiled programs are the baseline's: the same shapes, compiled alike."""
    was, now = baseline.compile, plan.compile
    alike = replace(plan, compile=replace(now, entries=was.entries, fallback=was.fallback))
    same = _programs(alike) == _programs(baseline)
    return {entry.id for entry in now.entries if entry in was.entries} if same else set()


# --- one function for each kind of move ----------------------------------------------------------------------


def _declared(found: Collector, plan: Plan) -> None:
    kinds = changed(found.study.baseline, plan)
    sentence = plan.note or f"Serve plan {plan.id} instead of {found.study.baseline.id}."
    if not kinds:
        found.refuse(plan.id, sentence, "it changes nothing against the baseline")
        return
    if len(kinds) > 1:
        found.refuse(plan.id, sentence, f"it changes {len(kinds)} things at once ({', '.join(kinds)}); split it")
        return
    kind = kinds[0]
    old = {e.id for e in found.study.baseline.compile.entries}
    count = sum(e.id not in old for e in plan.compile.entries)
    cost = 0.0 if kind in _LIVE and plan.compile == found.study.baseline.compile else None
    move = Move(
        kind=kind,
        sentence=sentence,
        owner=OWNER.get(kind, "runtime"),
        plan=plan,
        size=rank(kind, count),
        compile_s=cost,
        memory_mib=cost,
        risk=_QUALITY_RISK if kind in ("backend", "precision", "optimisation") else "",
    )
    found.add(move)


_LIVE = ("batch", "order", "placement", "admit")
"""Kinds of change that cost nothing at start, as long as no entry is widened for them."""
_QUALITY_RISK = "Outputs may differ from the baseline's: quality evidence decides."


def _warm_lists(found: Collector) -> None:
    """Warm the shapes whose first runs cost most: excess x chance to come again (1 - exp(-times seen))."""
    base, predictor = found.study.baseline, found.known.predictor
    saving: dict[Executed, float] = {}
    for shape in found.known.seen:
        if shape.executed in base.serve.warm:
            continue
        warm = predictor.warm(shape.entry, shape.executed)
        excess = predictor.expected(shape.entry, shape.executed, True) - warm if warm else 0
        if excess > 0:
            saving[shape.executed] = saving.get(shape.executed, 0.0) + excess * -float(np.expm1(-shape.count))
    ranked = sorted(saving, key=lambda executed: (-saving[executed], executed))
    for count in found.study.space.warm_shapes:
        name = f"warm-{count}"
        if not ranked:
            found.refuse(name, f"Warm {count} shapes at start.", "no first run costs more than a warm one here")
            continue
        listed = tuple(ranked[:count])
        first = {shape.executed: predictor.expected(shape.entry, shape.executed, True) for shape in found.known.seen}
        found.add(
            Move(
                kind="warm",
                sentence=f"Run the {_shapes(len(listed))} once at start.",
                owner="runtime",
                plan=replace(warm_up(base, listed), id=name, note=""),
                size=rank("warm", len(listed)),
                compile_s=sum(first[executed] for executed in listed) / 1e9,
                risk="Shapes that are not on the list stay cold, and every start takes longer.",
            )
        )


def _shapes(count: int) -> str:
    return "shape with the costliest first run" if count == 1 else f"{count} shapes with the costliest first runs"


def _batch_policies(found: Collector) -> None:
    base = found.study.baseline
    for policy in found.study.space.batches:
        plan = replace(rebatch(base, policy), id=f"batch-{policy.max_size}-hold-{policy.hold_ms:g}ms", note="")
        recompiles = plan.compile.entries != base.compile.entries
        found.add(
            Move(
                kind="batch",
                sentence=_batch_sentence(policy),
                owner="runtime",
                plan=plan,
                size=rank("batch", policy.max_size),
                compile_s=None if recompiles else 0.0,
                memory_mib=None if recompiles else 0.0,
                risk="Who is batched with whom decides the executed shapes: small shifts of timing can move the tail.",
            )
        )


def _batch_sentence(policy: BatchPolicy) -> str:
    if policy.max_size == 1:
        return "Serve requests one by one."
    if policy.hold_ms == 0:
        return f"Batch up to {policy.max_size} waiting requests, holding none back."
    return f"Batch up to {policy.max_size} requests, holding the first at most {policy.hold_ms:g} ms."


def _backends(found: Collector) -> None:
    base = found.study.baseline
    for name in found.study.space.backends:
        if name == base.compile.backend:
            found.refuse(f"backend-{name}", f"Compile with {name}.", "it is the baseline's backend")
            continue
        dropped = ", ".join(sorted(base.compile.options))
        move = Move(
            kind="backend",
            sentence=f"Compile the same entries with {name}.",
            owner="compiler",
            plan=replace(rehost(base, name), id=f"backend-{name}", note=""),
            size=rank("backend"),
            risk=_QUALITY_RISK + (f" Options of {base.compile.backend} are dropped: {dropped}." if dropped else ""),
        )
        found.add(move)


LOWEST: Optimisation = "off"
_LEVELS: dict[Optimisation, str] = {
    "default": "Compile with the graph optimisations that the runtime takes by default.",
    "off": "Compile at the runtime's lowest level of graph optimisation; what it fuses even there stays fused.",
    "basic": "Compile with basic graph optimisations only.",
    "extended": "Compile with extended graph optimisations.",
    "all": "Compile with all graph optimisations.",
}


def _optimisations(found: Collector) -> None:
    """Fusion saves launches and may cost memory: every level is compiled, and judged with its peak beside it."""
    base = found.study.baseline
    for level in dict.fromkeys((*found.study.space.optimisations, LOWEST)):
        name, sentence = f"fusion-{level}", _LEVELS[level]
        if level == base.compile.optimisation:
            found.refuse(name, sentence, "it is the baseline's level")
            continue
        if LEVELS in found.known.unable:
            found.refuse(name, sentence, f"{base.compile.backend}: {found.known.unable[LEVELS]}")
            continue
        move = Move(
            kind="optimisation",
            sentence=sentence,
            owner=OWNER["optimisation"],
            plan=replace(optimise(base, level), id=name, note=""),
            size=rank("optimisation"),
            risk=_QUALITY_RISK + " Peak memory may rise with fusion.",
        )
        found.add(move)


def _eager(found: Collector) -> None:
    base = found.study.baseline
    name, sentence = "eager", "Run the network as it is, without compiling it."
    plan = replace(run_eagerly(base), id=name, note="")
    if EAGER in found.known.unable:
        found.refuse(name, sentence, f"{base.compile.backend}: {found.known.unable[EAGER]}")
        return
    dropped = ", ".join(sorted(base.compile.options.keys() - {"mode"}))
    risk = _QUALITY_RISK + (f" What the compiler was told is dropped: {dropped}." if dropped else "")
    found.add(
        Move(kind="backend", sentence=sentence, owner=OWNER["backend"], plan=plan, size=rank("backend"), risk=risk)
    )
