"""Quality: what a plan answers, against the reference at true dims, as a series and as cells that must pass (R3, R32).

The reference is the study's reference runtime in the declared precision with one dynamic entry: nothing is padded. The
same requests are put to every plan; one file per plan keeps the value of each of them. Random payloads judge nothing: a
study that has only those gets no quality cell, and a change of precision cannot ship on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from trimtab import backends
from trimtab.domain.figure import Cell, Series
from trimtab.domain.plan import CompileSpec, Plan
from trimtab.domain.study import QualityMetric
from trimtab.domain.verdict import CellStatus, MatrixCell
from trimtab.evidence import precision
from trimtab.evidence import quality as measure
from trimtab.loop.context import Context, Renamed
from trimtab.runtime.quality import Answered, answers, sample_members
from trimtab.store.codec import digest, read_json, write_json
from trimtab.store.packet import is_done, mark_done

FOLDER = "quality"
Values = NDArray[np.float64]


def reference_plan(ctx: Context) -> Plan:
    """One dynamic entry of the reference runtime, in the declared precision, that covers every shape."""
    quality = ctx.study.quality
    entry = ctx.any_shape("reference")
    spec = CompileSpec(backend=quality.reference, entries=(entry,), fallback=entry.id, precision=quality.precision)
    return Plan(id="reference-answers", compile=spec)


def judge(ctx: Context, plan: Plan, stage: str) -> Series | None:
    """How far each sampled answer of ``plan`` lies from the reference's; from the packet if it is there. None where
    payloads are random."""
    if ctx.workload.payload_kind == "random":
        return None
    path = ctx.packet.path(FOLDER, f"{plan.id}.json")
    checkpoint = f"quality-{plan.id}"
    inputs = {
        "compile": digest(plan.compile),
        "quality": digest(ctx.study.quality),
        "model": ctx.fed,
        "workload": ctx.workload_sha256,
        "versions": digest(ctx.versions),
    }
    if not is_done(ctx.packet.folder, checkpoint, inputs):
        write_json(path, _compare(ctx, plan, stage))
        mark_done(ctx.packet.folder, checkpoint, inputs, [path])
    ctx.keep(path)
    return read_json(path, Series)


def _compare(ctx: Context, plan: Plan, stage: str) -> Series:
    metric = ctx.study.quality.metric
    reference = _answers(ctx, reference_plan(ctx), stage)
    given = _answers(ctx, plan, stage)
    rows = [_row(ctx, metric, ours, theirs) for ours, theirs in zip(given, reference, strict=True)]
    return Series(
        id=f"quality.{plan.id}",
        columns={name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {},
        scope=f"{len(rows)} requests, {ctx.workload.payload_kind} payloads",
        artifact=f"{FOLDER}/{plan.id}.json",
        note=f"{metric} against {ctx.study.quality.reference} at true dims; floor {ctx.study.quality.floor:g}",
    )


def _answers(ctx: Context, plan: Plan, stage: str) -> tuple[Answered, ...]:
    members = sample_members(ctx.workload, ctx.study.quality.samples, ctx.study.seeds.payload)
    factory = backends.factory(plan.compile.backend)
    core = ctx.worker_cores(ctx.study.baseline)[0]
    progress = Renamed(ctx.progress, stage, f"answers of {plan.id}")
    return answers(plan, ctx.model, factory, ctx.payloads, members, core, progress)


def _row(ctx: Context, metric: QualityMetric, ours: Answered, theirs: Answered) -> dict[str, Cell]:
    """``value`` is None where the reference itself has no answer: then nothing is judged."""
    _, dims = ours.member
    value = None if theirs.outputs is None else measure.score(metric, ours.outputs, theirs.outputs)
    message = ours.message if theirs.outputs is not None else f"no reference: {theirs.message}"
    true = {f"dim.{name}": size for name, size in zip(ctx.study.dim_names, dims, strict=True)}
    executed = {f"exec.{name}": size for name, size in zip(ctx.study.dim_names, ours.executed[1:], strict=False)}
    return {**true, "entry": ours.entry, "route": ours.route, **executed, "value": value, "message": message}


def cells(ctx: Context, plan: Plan, stage: str) -> tuple[MatrixCell, ...]:
    """The quality guard of ``plan``, and the same for its padded requests alone where it pads."""
    found = judge(ctx, plan, stage)
    if found is None:
        return ()
    if not found.columns:
        return (_cell(ctx, "all shapes", np.empty(0)),)
    values = np.array(found.columns["value"], dtype=np.float64)
    padded = np.array([route == "padded" for route in found.columns["route"]])
    named = [("all shapes", values)]
    if padded.any():
        named.append(("padded shapes", values[padded]))
    return tuple(_cell(ctx, name, part) for name, part in named)


def holds(ctx: Context, plan: Plan, stage: str) -> bool | None:
    """Whether every quality cell of ``plan`` passes; None where payloads judge nothing."""
    found = cells(ctx, plan, stage)
    return all(cell.status == "pass" for cell in found) if found else None


def _cell(ctx: Context, part: str, values: Values) -> MatrixCell:
    quality = ctx.study.quality
    value = measure.summary(quality.metric, values)
    lost = int(np.isnan(values).sum())
    note = f"{lost} requests have no reference answer; " if lost else ""
    return MatrixCell(
        id=f"guard/quality/{part}".replace(" ", "-"),
        slice=part,
        condition="normal",
        metric=quality.metric,
        role="guard",
        status=_status(ctx, values),
        candidate=None if lost else value,
        floor=None,
        margin=None,
        samples=int(values.size),
        note=f"{note}floor {quality.floor:g}; {ctx.workload.payload_kind} payloads; reference {quality.reference}",
    )


def _status(ctx: Context, values: Values) -> CellStatus:
    """A sample without a reference answer leaves the cell open: it is never judged on the rest."""
    quality = ctx.study.quality
    if not values.size or np.isnan(values).any():
        return "inconclusive"
    value = measure.summary(quality.metric, values)
    return "pass" if measure.meets(quality.metric, value, quality.floor) else "fail"


def summaries(ctx: Context, plans: Iterable[Plan], stage: str) -> Series | None:
    """One row a plan: its quality beside the precision that it really executed."""
    rows = [row for plan in plans if (row := _summary(ctx, plan, stage)) is not None]
    if not rows:
        return None
    quality = ctx.study.quality
    return Series(
        id=f"{stage}.quality",
        columns={name: tuple(row[name] for row in rows) for name in rows[0]},
        scope=f"{quality.samples} requests at most, {ctx.workload.payload_kind} payloads",
        artifact=FOLDER,
        note=f"{quality.metric} against {quality.reference} in {quality.precision} at true dims",
    )


def _summary(ctx: Context, plan: Plan, stage: str) -> dict[str, Cell] | None:
    found = judge(ctx, plan, stage)
    if found is None or not found.columns:
        return None
    quality = ctx.study.quality
    values = np.array(found.columns["value"], dtype=np.float64)
    value = measure.summary(quality.metric, values)
    if np.isnan(values).all():
        return None
    worst = int(np.nanargmax(values) if quality.metric == "max-error" else np.nanargmin(values))
    first_dim = found.columns[f"dim.{ctx.study.dim_names[0]}"]
    return {
        "plan": plan.id,
        "metric": quality.metric,
        "value": None if np.isnan(value) else value,
        "floor": quality.floor,
        "status": _status(ctx, values),
        "worst": float(values[worst]),
        f"worst_{ctx.study.dim_names[0]}": first_dim[worst],
        "samples": int(values.size),
        "payloads": ctx.workload.payload_kind,
        "executed": ", ".join(f"{name} {share:.0%}" for name, share in executed_precision(ctx, plan).items()),
    }


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
