"""Quality: what a plan answers, against the reference at true dims, as a series and as cells that must pass (R3, R32).

One file per plan keeps the value of each request that judged it, with its band, its entry, and what padding alone and
being in a batch did to it. All requests, alone and in batches, the padded ones, the worst shape band, the worst entry
and the worst padding are cells: a plan holds its floor if all of them do. Random payloads judge nothing: a study that
has only those gets no quality cell, and a change of precision cannot ship on it.

Speed stands beside quality: each row carries the warm time of the same requests, under the plan and under the baseline,
by their profiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Cell, Series
from trimtab.domain.plan import Plan
from trimtab.domain.study import FUNCTIONS
from trimtab.domain.verdict import MatrixCell
from trimtab.evidence import gate, precision
from trimtab.evidence import quality as measure
from trimtab.loop import answers
from trimtab.loop.answers import FOLDER
from trimtab.loop.context import Context
from trimtab.mapping.route import Router
from trimtab.runtime.quality import Answered, Outputs
from trimtab.store.codec import digest, read_json, write_json
from trimtab.store.packet import is_done, mark_done

Values = NDArray[np.float64]

SLICES: dict[gate.Kind, str] = {
    "all": "all shapes",
    "padded": "padded shapes",
    "batched": "in batches",
    "band": "worst band",
    "entry": "worst entry",
    "padding": "padding alone",
}
"""What a decisive part is called as the slice of a cell."""


def judge(ctx: Context, plan: Plan, stage: str) -> Series | None:
    """How far each sampled answer of ``plan`` lies from the reference's; from the packet if it is there. None where
    payloads are random."""
    if ctx.workload.payload_kind == "random":
        return None
    path = ctx.packet.path(FOLDER, f"{plan.id}.json")
    checkpoint = f"quality-{plan.id}"
    served = (plan.compile, plan.serve.threads, plan.serve.batch.max_size)
    inputs = {"plan": digest(served), **answers.asked_of(ctx)}
    if not is_done(ctx.packet.folder, checkpoint, inputs):
        write_json(path, _compare(ctx, plan, stage))
        mark_done(ctx.packet.folder, checkpoint, inputs, [path])
    ctx.keep(path)
    return read_json(path, Series)


def _compare(ctx: Context, plan: Plan, stage: str) -> Series:
    quality = ctx.study.quality
    asked = answers.members(ctx, plan)
    reference = answers.of_reference(ctx, asked, stage)
    measure.require_judge(quality.metric, [one.outputs for one in reference if one.outputs is not None])
    given = answers.of_plan(ctx, plan, asked, stage)
    values = _values(ctx, [one.outputs for one in given], [one.outputs for one in reference])
    unpadded, band = _unpadded(ctx, plan, given, stage), answers.bands(ctx)
    batched = _batched(ctx, plan, reference, stage)
    weights = answers.weights(ctx, plan, asked)
    rows = [
        {**_shape(ctx, ours), "band": band(ours.member[1]), "entry": ours.entry, "route": ours.route,
         "requests": weights[at], "value": cell, "unpadded": unpadded.get(at), "batched": batched[at],
         "message": _message(ctx, ours, theirs)}
        for at, (ours, theirs, cell) in enumerate(zip(given, reference, _cells(values), strict=True))
    ]  # fmt: skip
    function = f" by {quality.function}" if quality.function else ""
    return Series(
        id=f"quality.{plan.id}",
        columns={name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {},
        scope=f"{len(rows)} requests, {ctx.workload.payload_kind} payloads",
        artifact=f"{FOLDER}/{plan.id}.json",
        note=f"{quality.metric}{function} against {quality.reference} at true dims; floor {quality.floor:g}",
    )


def _values(ctx: Context, given: Sequence[Outputs | None], reference: Sequence[Outputs | None]) -> Values:
    """By the study's metric; a user's own function is asked in a worker, for all that have both answers."""
    metric = ctx.study.quality.metric
    if metric not in FUNCTIONS:
        return measure.scores(metric, given, reference)
    values = np.array([np.nan if ref is None else measure.WORST[metric] for ref in reference])
    pairs = {at: (one, ref) for at, (one, ref) in enumerate(zip(given, reference, strict=True)) if one and ref}
    if pairs:
        values[list(pairs)] = answers.grades(ctx, *zip(*pairs.values(), strict=True))
    return values


def _unpadded(ctx: Context, plan: Plan, given: Sequence[Answered], stage: str) -> dict[int, Cell]:
    """Row of a padded request -> its agreement with the plan's own answer without padding; None = there is no such."""
    rows = [at for at, one in enumerate(given) if one.route == "padded"]
    if not rows:
        return {}
    alone = answers.of_twin(ctx, plan, [given[at].member for at in rows], stage)
    values = _values(ctx, [given[at].outputs for at in rows], [one.outputs for one in alone])
    return dict(zip(rows, _cells(values), strict=True))


def _batched(ctx: Context, plan: Plan, reference: Sequence[Answered], stage: str) -> list[Cell]:
    """Agreement with the reference of each request in a batch; all None where the plan forms none."""
    if plan.serve.batch.max_size == 1:
        return [None] * len(reference)
    given = answers.in_batches(ctx, plan, [one.member for one in reference], stage)
    return _cells(_values(ctx, [one.outputs for one in given], [one.outputs for one in reference]))


def _shape(ctx: Context, ours: Answered) -> dict[str, Cell]:
    """True and executed dims of one request."""
    names, ran = ctx.study.dim_names, ours.executed[1:] or (None,) * len(ctx.study.dim_names)
    true = {f"dim.{name}": size for name, size in zip(names, ours.member[1], strict=True)}
    return true | {f"exec.{name}": size for name, size in zip(names, ran, strict=True)}


def _message(ctx: Context, ours: Answered, theirs: Answered) -> str:
    if theirs.outputs is None:
        return f"no reference: {theirs.message}"
    if ours.outputs is None or ctx.study.quality.metric in FUNCTIONS:
        return ours.message
    return measure.mismatch(ours.outputs, theirs.outputs)


def _cells(values: Values) -> list[Cell]:
    """None where nothing can be judged: the reference, or the twin, has no answer."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def cells(ctx: Context, plan: Plan, stage: str) -> tuple[MatrixCell, ...]:
    """The quality guards of ``plan``: all requests, the padded ones, batches, the worst band, entry and padding."""
    found = judge(ctx, plan, stage)
    if found is None:
        return ()
    before = judge(ctx, ctx.study.baseline, stage)
    known = {} if before is None else {(part.kind, part.name): part for part in gate.parts(before)}
    nothing = gate.Part("all", "all shapes", (), np.empty(0), np.empty(0))
    decisive = gate.decisive(gate.parts(found), ctx.study.quality) or (nothing,)
    return tuple(_cell(ctx, found, part, known.get((part.kind, part.name))) for part in decisive)


def holds(ctx: Context, plan: Plan, stage: str) -> bool | None:
    """Whether every quality cell of ``plan`` passes; None where payloads judge nothing."""
    found = cells(ctx, plan, stage)
    return all(cell.status == "pass" for cell in found) if found else None


def failing(ctx: Context, plan: Plan, stage: str) -> str:
    """Which of the plan's quality cells fails, in words; empty where none does."""
    failed = next((cell for cell in cells(ctx, plan, stage) if cell.status == "fail"), None)
    if failed is None:
        return ""
    value = "unknown" if failed.candidate is None else f"{failed.candidate:.4g}"
    return f"its answers do not hold: {failed.metric} of {failed.slice} is {value}, floor {ctx.study.quality.floor:g}"


def _cell(ctx: Context, found: Series, part: gate.Part, before: gate.Part | None) -> MatrixCell:
    quality, named = ctx.study.quality, SLICES[part.kind]
    return MatrixCell(
        id=f"guard/quality/{named}".replace(" ", "-"),
        slice=named if part.name == named else f"{named}, {part.name}",
        condition="normal",
        metric=quality.metric,
        role="guard",
        status=gate.status(part, quality),
        baseline=None if before is None else gate.value(before, quality),
        candidate=gate.value(part, quality),
        floor=None,
        margin=None,
        samples=len(part.rows),
        note="; ".join(_notes(ctx, found, part)),
    )


def _notes(ctx: Context, found: Series, part: gate.Part) -> list[str]:
    quality = ctx.study.quality
    said = [str(message) for row in part.rows if (message := found.columns["message"][row])]
    lost = int(np.isnan(part.values).sum())
    against = "its own answers without padding" if part.kind == "padding" else f"reference {quality.reference}"
    alone = part.kind != "padded" or any(found.columns["unpadded"][row] is not None for row in part.rows)
    return [
        *([f"{lost} requests have no {'unpadded' if part.kind == 'padding' else 'reference'} answer"] if lost else []),
        *([f"{len(said)} cannot be compared, the first: {said[0]}"] if said else []),
        f"floor {quality.floor:g}",
        f"{ctx.workload.payload_kind} payloads",
        against,
        *([] if alone else ["padding alone is not judged: the plan does not run these requests unpadded"]),
        *([f"function {quality.function}"] if quality.function else []),
    ]


def summaries(ctx: Context, plans: Iterable[Plan], stage: str) -> Series | None:
    """One row a plan: its quality beside its speed and the precision that it really executed."""
    quality = ctx.study.quality
    note = f"{quality.metric} against {quality.reference} in {quality.precision} at true dims"
    return _table(ctx, f"{stage}.quality", [_summary(ctx, plan, stage) for plan in plans], note)


def by_part(ctx: Context, plans: Iterable[Plan], stage: str) -> Series | None:
    """One row for each plan and shape band, entry, and padding."""
    rows = [row for plan in plans for row in _part_rows(ctx, plan, stage)]
    return _table(ctx, f"{stage}.quality_parts", rows, "padding: against the plan's own answers without it")


def _table(ctx: Context, name: str, rows: Sequence[dict[str, Cell]], note: str) -> Series | None:
    known = [row for row in rows if row]
    if not known:
        return None
    return Series(
        id=name,
        columns={column: tuple(row[column] for row in known) for column in known[0]},
        units={"time": "ms", "baseline_time": "ms"},
        scope=f"{ctx.workload.payload_kind} payloads",
        artifact=FOLDER,
        note=note,
    )


def _summary(ctx: Context, plan: Plan, stage: str) -> dict[str, Cell]:
    """Empty where nothing was judged."""
    quality, rows = ctx.study.quality, _part_rows(ctx, plan, stage)
    if not rows:
        return {}
    found = judge(ctx, plan, stage)
    assert found is not None
    parts = gate.parts(found)
    at = gate.worst_row(parts[0], quality)
    dim = ctx.study.dim_names[0]
    kinds: tuple[gate.Kind, ...] = ("band", "entry", "padding", "batched")
    low = {kind: gate.worst(parts, kind, quality) for kind in kinds}
    return {
        "plan": plan.id,
        **{name: rows[0][name] for name in ("metric", "value", "floor")},
        "status": gate.verdict(parts, quality),
        "worst": rows[0]["worst"],
        f"worst_{dim}": None if at is None else found.columns[f"dim.{dim}"][at],
        **{f"worst_{kind}": part.name if part else None for kind, part in low.items()},
        **{f"worst_{kind}_value": gate.value(part, quality) if part else None for kind, part in low.items()},
        **{name: rows[0][name] for name in ("samples", "payloads", "time", "baseline_time", "executed")},
    }


def _part_rows(ctx: Context, plan: Plan, stage: str) -> list[dict[str, Cell]]:
    found = judge(ctx, plan, stage)
    if found is None or not found.columns:
        return []
    quality = ctx.study.quality
    times, before = _times(ctx, plan, found), _times(ctx, ctx.study.baseline, found)
    more: dict[str, Cell] = {
        "payloads": ctx.workload.payload_kind,
        "executed": ", ".join(f"{name} {share:.0%}" for name, share in executed_precision(ctx, plan).items()),
    }
    return [{"plan": plan.id, **gate.row(part, quality, times, before), **more} for part in gate.parts(found)]


def _times(ctx: Context, plan: Plan, found: Series) -> list[float | None]:
    """Warm ms of every request of ``found``, alone, by the profile of ``plan``; None without a promise."""
    router, costs = Router(plan.compile), ctx.costs(plan)
    dims = zip(*(found.columns[f"dim.{name}"] for name in ctx.study.dim_names), strict=True)
    routes = [router.route(tuple(int(size or 0) for size in each)) for each in dims]
    promised = [costs.warm(route.entry, route.executed) if route.entry else 0 for route in routes]
    return [ns / 1e6 if ns else None for ns in promised]


def executed_precision(ctx: Context, plan: Plan) -> dict[str, float]:
    """Share of profiled operator time in each precision, over the plan's entries; empty where it is unknown."""
    return precision.executed(ctx.compiled(plan))


def precision_changes(ctx: Context, plan: Plan) -> bool:
    """Whether ``plan`` computes in another precision than the baseline: declared, or by most of the time executed.

    What is unknown is no other precision; whether the answers hold is judged beside it.
    """
    baseline = ctx.study.baseline
    if plan.compile.precision != baseline.compile.precision:
        return True
    ours, theirs = (_leading(executed_precision(ctx, each)) for each in (plan, baseline))
    return bool(ours and theirs) and ours != theirs


def _leading(shares: dict[str, float]) -> str:
    return next(iter(shares), "")
