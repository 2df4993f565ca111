"""Answers: which requests judge a plan's outputs, and what the reference, the plan and its unpadded twin say to them.

The *reference* is the study's reference runtime in the declared precision with one dynamic entry: nothing is padded.
The *twin* of a plan is the same compile half with one dynamic entry: what the plan would say without its padding. Both
are asked once in a run for each request.

The same requests are put to every plan, and then more until each of its entries and each shape band has enough.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from trimtab.domain.figure import Series
from trimtab.domain.noun import Dims, EntryId
from trimtab.domain.plan import CompileSpec, Plan
from trimtab.domain.study import Study
from trimtab.errors import StudyError
from trimtab.evidence.quality import refusal, require_judge
from trimtab.loop.context import Context
from trimtab.loop.trials.trial import Answering, Answers
from trimtab.loop.watching import result_of
from trimtab.mapping.route import Router
from trimtab.retuning import arms
from trimtab.runtime.grading import beside
from trimtab.runtime.quality import Answered, Outputs, graded, sample_members
from trimtab.runtime.verify import Infinities, signs
from trimtab.runtime.wire import Member
from trimtab.store.codec import digest, read_json, write_json
from trimtab.store.packet import file_digest, is_done, mark_done

FOLDER = "quality"
INFINITIES = "infinities"


def reference_plan(ctx: Context) -> Plan:
    """One dynamic entry of the reference runtime, in the declared precision, that covers every shape."""
    quality = ctx.study.quality
    entry = ctx.any_shape("reference")
    spec = CompileSpec(backend=quality.reference, entries=(entry,), fallback=entry.id, precision=quality.precision)
    return Plan(id="reference-answers", compile=spec)


def twin(ctx: Context, plan: Plan) -> Plan:
    """``plan`` without padding."""
    entry = ctx.any_shape("unpadded")
    spec = msgspec.structs.replace(plan.compile, entries=(entry,), fallback=entry.id)
    return Plan(id=f"{plan.id}-unpadded", compile=spec)


def members(ctx: Context, plan: Plan) -> tuple[Member, ...]:
    """The requests that judge ``plan``."""
    quality, band, router = ctx.study.quality, bands(ctx), Router(plan.compile)

    def entry(dims: Dims) -> EntryId | None:
        return router.route(dims).entry

    seed = ctx.study.seeds.payload
    return sample_members(ctx.workload, quality.samples, seed, (band, entry), quality.samples_each)


def weights(ctx: Context, plan: Plan, asked: Sequence[Member]) -> list[float]:
    """How many requests of traffic each of ``asked`` stands for: those of its entry (or of none), shared out over the
    entry's samples by how often each occurs."""
    router, load = Router(plan.compile), ctx.workload
    rows = zip(load.payload.tolist(), map(tuple, load.dims.tolist()), strict=True)
    often = Counter[Member]((payload, dims) for payload, dims in rows)
    traffic, sampled = Counter[EntryId | None](), Counter[EntryId | None]()
    for member, count in often.items():
        traffic[router.route(member[1]).entry] += count
    for member in asked:
        sampled[router.route(member[1]).entry] += often[member]
    entries = [router.route(dims).entry for _, dims in asked]
    return [often[m] * traffic[entry] / sampled[entry] for m, entry in zip(asked, entries, strict=True)]


def bands(ctx: Context) -> Callable[[Dims], str]:
    """True dims -> the name of their band, along the first dim: the bands hold about equal numbers of requests."""
    found = [
        (int(ctx.workload.dims[rows, 0].max()), name)
        for name, rows in arms.shape_bands(ctx.study.dim_names[0], ctx.workload.dims[:, 0]).items()
    ]
    return lambda dims: next((name for high, name in found if dims[0] <= high), "")


def of_plan(ctx: Context, plan: Plan, asked: Sequence[Member], stage: str) -> tuple[Answered, ...]:
    """What ``plan`` says to each of ``asked``, asked now."""
    return _ask(ctx, plan, asked, stage, infinities(ctx, stage))


def in_batches(ctx: Context, plan: Plan, asked: Sequence[Member], stage: str) -> tuple[Answered, ...]:
    """What ``plan`` says to each of ``asked`` in batches as large as its policy forms; a seed draws who shares one."""
    order = np.random.default_rng(ctx.study.seeds.payload).permutation(len(asked)).tolist()
    mixed = [asked[at] for at in order]
    said = _ask(ctx, plan, mixed, stage, infinities(ctx, stage), plan.serve.batch.max_size)
    return tuple(said[at] for at in np.argsort(order).tolist())


def of_reference(ctx: Context, asked: Sequence[Member], stage: str) -> tuple[Answered, ...]:
    """What the reference says; its infinities are its own."""
    return _once(ctx, reference_plan(ctx), asked, lambda plan, lacking: _ask(ctx, plan, lacking, stage, None))


def of_twin(ctx: Context, plan: Plan, asked: Sequence[Member], stage: str) -> tuple[Answered, ...]:
    """What ``plan`` says where nothing is padded."""
    return _once(ctx, twin(ctx, plan), asked, lambda each, lacking: of_plan(ctx, each, lacking, stage))


def _once(
    ctx: Context, plan: Plan, asked: Sequence[Member], ask: Callable[[Plan, Sequence[Member]], tuple[Answered, ...]]
) -> tuple[Answered, ...]:
    key = digest(plan.compile)
    lacking = [member for member in asked if (key, member) not in ctx.answered]
    if lacking:
        ctx.answered |= {(key, one.member): one for one in ask(plan, lacking)}
    return tuple(ctx.answered[key, member] for member in asked)


def _ask(
    ctx: Context, plan: Plan, asked: Sequence[Member], stage: str, known: Infinities, size: int = 1
) -> tuple[Answered, ...]:
    made = result_of(
        ctx,
        Answers(
            stage=stage,
            note=f"answers of {plan.id}",
            plan=plan,
            members=tuple(asked),
            core=core(ctx),
            infinities=known,
            size=size,
        ),
    )
    assert isinstance(made, Answering)
    return made.answers


def core(ctx: Context) -> int:
    """The core on which answers are computed."""
    return ctx.worker_cores(ctx.study.baseline)[0]


def infinities(ctx: Context, stage: str) -> Infinities:
    """Which infinities outputs may hold: those that the reference gives to the sampled requests, asked once and kept in
    the packet. None where payloads are random, which judge nothing, and where the reference answers none of them."""
    if ctx.workload.payload_kind == "random":
        return None
    path = ctx.packet.path(f"{INFINITIES}.json")
    inputs = asked_of(ctx)
    if not is_done(ctx.packet.folder, INFINITIES, inputs):
        quality, seed = ctx.study.quality, ctx.study.seeds.payload
        asked = sample_members(ctx.workload, quality.samples, seed, (bands(ctx),), quality.samples_each)
        given = [one.outputs for one in of_reference(ctx, asked, stage) if one.outputs is not None]
        require_judge(quality.metric, given)  # here, before anything is profiled
        write_json(path, _infinities(given, quality.reference))
        mark_done(ctx.packet.folder, INFINITIES, inputs, [path])
    ctx.keep(path)
    columns = read_json(path, Series).columns
    return {str(name): str(sign) for name, sign in zip(columns["output"], columns["signs"], strict=True)} or None


def _infinities(known: Sequence[Outputs], reference: str) -> Series:
    names = list(dict.fromkeys(name for outputs in known for name in outputs))
    held = ["".join(sorted({sign for outputs in known for sign in signs(outputs[name])})) for name in names]
    return Series(
        id=INFINITIES,
        columns={"output": tuple(names), "signs": tuple(held)},
        scope=f"{len(known)} requests",
        artifact=f"{INFINITIES}.json",
        note=f"infinities that {reference} gives; any other one is a bad output",
    )


def asked_of(ctx: Context) -> dict[str, str]:
    """What every answer depends on besides the plan."""
    return {
        "quality": digest(ctx.study.quality),
        "function": _function_digest(ctx),
        "model": ctx.fed,
        "workload": ctx.workload_sha256,
        "versions": digest(ctx.versions),
    }


def grades(ctx: Context, given: Sequence[Outputs], reference: Sequence[Outputs]) -> tuple[float, ...]:
    """What the user's own function says of each request. StudyError where it fails, or says what no value can be."""
    quality = ctx.study.quality
    said = graded(quality.function, ctx.folder, list(zip(reference, given, strict=True)), core(ctx))
    for one in said:
        why = one.message or refusal(quality.metric, one.value)
        if why:
            raise StudyError(
                f"the quality function does not judge: {why}",
                where="quality.function",
                fix="it takes (reference outputs, outputs) of one request and returns one number",
            )
    return tuple(one.value for one in said)


def quality_function(study: Study, folder: Path) -> Path | None:
    """The file beside the study that holds the user's own quality function; None where there is no such file."""
    return beside(study.quality.function, folder) if study.quality.function else None


def _function_digest(ctx: Context) -> str:
    """Of the function's own file; of an installed package, its version."""
    function = ctx.study.quality.function
    if not function:
        return ""
    path = quality_function(ctx.study, ctx.folder)
    if path is not None:
        return file_digest(path)
    names = importlib.metadata.packages_distributions().get(function.partition(":")[0].partition(".")[0], [])
    return " ".join(f"{name} {importlib.metadata.version(name)}" for name in sorted(set(names)))
