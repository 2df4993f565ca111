"""Moves that change the entries: fitted to the shapes, or, with one dynamic dim, rounded up to a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.noun import Dims
from trimtab.domain.plan import Plan
from trimtab.domain.verdict import Move
from trimtab.errors import MissingTool
from trimtab.evidence.figures import MIB
from trimtab.mapping import boxes, buckets
from trimtab.retuning._change import rank, refit
from trimtab.retuning._collector import Collector
from trimtab.retuning._known import Known


def bucket_fits(found: Collector) -> None:
    """Offer each number of fitted entries that the space allows; with one dim also the finest grid that fits beside
    the plan's own entries."""
    study, known = found.study, found.known
    if not study.space.buckets:
        return
    if (known.cost if len(study.dims) == 1 else known.box_cost) is None:
        found.refuse("refit", "Refit the entries to the shapes.", "no measured time to fit to")
        return
    if len(study.dims) == 1:
        _one_dim(found)
        return
    _boxes(found)


def _one_dim(found: Collector) -> None:
    study, known = found.study, found.known
    counts, (name, allowed) = study.space.buckets, next(iter(study.dims.items()))
    assert known.cost is not None
    fits = buckets.sweep(known.dims, known.cost, max(counts), limit=allowed.hi)
    for k in _within(found, name):
        ends = fits[k - 1].boundaries
        sentence = f"Add {_entries(ends)} for {name} ({_listed(ends)}), pad requests up to them, warm each at start."
        _add_entries(found, "refit", f"refit-{k}", sentence, [(end,) for end in ends])
    _round_up(found, name, min(max(counts), study.space.max_entries - _dynamic_count(study.baseline)))


def _boxes(found: Collector) -> None:
    """Two dims or more: boxes, by mixed integer programming. Without the solver that is a refused row."""
    study, known = found.study, found.known
    names, limit = " x ".join(study.dims), tuple(dim.hi for dim in study.dims.values())
    assert known.box_cost is not None
    for k in _within(found, names):
        try:
            fitted = boxes.fit(known.dims, known.box_cost, k, limit=limit).boxes
        except MissingTool as missing:
            found.refuse(f"refit-{k}", f"Add {k} entries for {names}.", f"{missing.what}: {missing.fix}")
            continue
        listed = _listed(["x".join(map(str, box)) for box in fitted])
        sentence = f"Add {_entries(fitted)} for {names} ({listed}), pad requests up to them, warm each at start."
        _add_entries(found, "refit", f"refit-{k}", sentence, fitted)


def _within(found: Collector, names: str) -> Iterator[int]:
    """The numbers of entries that the study allows beside the plan's own; the others are refused."""
    study, keep = found.study, _dynamic_count(found.study.baseline)
    for k in study.space.buckets:
        if k + keep > study.space.max_entries:
            reason = f"{k + keep} entries are more than the study allows ({study.space.max_entries})"
            found.refuse(f"refit-{k}", f"Add {k} entries for {names}.", reason)
            continue
        yield k


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
    _add_entries(found, "round-up", f"round-up-{step}", sentence, [(int(end),) for end in ends])


def _add_entries(found: Collector, kind: str, plan_id: str, sentence: str, ends: Sequence[Dims]) -> None:
    study = found.study
    low, high = (tuple(getattr(dim, side) for dim in study.dims.values()) for side in ("lo", "hi"))
    plan = replace(refit(study.baseline, ends, low, high), id=plan_id, note="")
    covered, whole = (_listed(["x".join(map(str, dims))]) for dims in (max(ends), high))
    if _dynamic_count(study.baseline):
        risk = f"Shapes above {covered} still run on a dynamic entry, cold at first."
    else:
        risk = f"Shapes above {covered} are all padded to {whole}."
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
        added * median(p.memory_bytes for p in mine) / MIB,
    )


def _dynamic_count(plan: Plan) -> int:
    return sum(entry.kind == "dynamic" for entry in plan.compile.entries)


def _entries(ends: Sequence[object] | NDArray[np.int64]) -> str:
    return "1 entry" if len(ends) == 1 else f"{len(ends)} entries"


def _listed(ends: Sequence[int] | Sequence[str]) -> str:
    words = [str(end) for end in ends]
    if len(words) > 6:
        words = [*words[:2], "…", words[-1]]
    return ", ".join(words)
