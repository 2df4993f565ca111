"""Moves that change the entries of one dynamic dim: fitted to the shapes, or rounded up to a grid."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.plan import Plan
from trimtab.domain.verdict import Move
from trimtab.mapping import buckets
from trimtab.retuning._change import rank, refit
from trimtab.retuning._collector import Collector
from trimtab.retuning._known import Known


def bucket_fits(found: Collector) -> None:
    """Offer each number of fitted entries that the space allows, and the finest grid that fits beside them."""
    study, known = found.study, found.known
    counts = study.space.buckets
    if not counts:
        return
    if len(study.dims) != 1 or known.cost is None:
        why = "no measured time to fit to" if known.cost is None else "buckets are fitted to one dynamic dim only"
        found.refuse("refit", "Refit the entries to the shapes.", why)
        return
    (name, allowed), keep = next(iter(study.dims.items())), _dynamic_count(study.baseline)
    fits = buckets.sweep(known.dims, known.cost, max(counts), limit=allowed.hi)
    for k in counts:
        if k + keep > study.space.max_entries:
            reason = f"{k + keep} entries are more than the study allows ({study.space.max_entries})"
            found.refuse(f"refit-{k}", f"Add {k} entries for {name}.", reason)
            continue
        ends = fits[k - 1].boundaries
        sentence = f"Add {_entries(ends)} for {name} ({_listed(ends)}), pad requests up to them, warm each at start."
        _add_entries(found, "refit", f"refit-{k}", sentence, ends)
    _round_up(found, name, min(max(counts), study.space.max_entries - keep))


def _round_up(found: Collector, name: str, most: int) -> None:
    """The finest grid (multiples of a power of two) whose occupied cells fit into ``most`` entries."""
    if most < 1:
        return
    shapes, high = np.unique(found.known.dims), found.study.dims[name].hi
    step, ends = 1, shapes
    while ends.size > most:
        step *= 2
        ends = np.unique(np.minimum(-(-shapes // step) * step, high))
    sentence = f"Round {name} up to multiples of {step} ({_entries(ends)}, each warmed at start)."
    _add_entries(found, "round-up", f"round-up-{step}", sentence, tuple(int(end) for end in ends))


def _add_entries(found: Collector, kind: str, plan_id: str, sentence: str, ends: tuple[int, ...]) -> None:
    study = found.study
    allowed = next(iter(study.dims.values()))
    plan = replace(refit(study.baseline, ends, allowed.lo, allowed.hi), id=plan_id, note="")
    covered = max(ends)
    if _dynamic_count(study.baseline):
        risk = f"Shapes above {covered} still run on a dynamic entry, cold at first."
    else:
        risk = f"Shapes above {covered} are all padded to {allowed.hi}."
    seconds, mib = _estimate(found.known, study.baseline, plan)
    found.add(
        Move(
            kind=kind,
            sentence=sentence,
            owner="runtime",
            plan=plan,
            size=rank(kind, len(ends)),
            compile_s=seconds,
            memory_mib=mib,
            risk=risk,
        )
    )


def _estimate(known: Known, base: Plan, plan: Plan) -> tuple[float | None, float | None]:
    """What the added entries may cost, if each is like the baseline's typical one: an estimate until ``charge``."""
    mine = [p for p in known.profiles if p.plan == base.id]
    if not mine:
        return None, None
    added = len(plan.compile.entries) - _dynamic_count(base)
    return (
        added * median(p.compile_ns for p in mine) / 1e9,
        added * median(p.memory_bytes for p in mine) / 2**20,
    )


def _dynamic_count(plan: Plan) -> int:
    return sum(entry.kind == "dynamic" for entry in plan.compile.entries)


def _entries(ends: Sequence[int] | NDArray[np.int64]) -> str:
    return "1 entry" if len(ends) == 1 else f"{len(ends)} entries"


def _listed(ends: Sequence[int]) -> str:
    words = [str(end) for end in ends]
    if len(words) > 6:
        words = [*words[:2], "…", words[-1]]
    return ", ".join(words)
