"""``trimtab init``: a first study from a network's open axes and a trace's columns, and a short look at how it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

from trimtab import backends
from trimtab.domain.noun import Noun
from trimtab.domain.ports import Progress
from trimtab.domain.study import DType, Study
from trimtab.domain.workload import Workload
from trimtab.errors import DataError, MachineError, ModelError, StudyError, UsageError, did_you_mean
from trimtab.loop.verbs.first_look import Look, look, paced
from trimtab.readers.traffic import peek, read_workload
from trimtab.store.draft import FILL_IN, DraftInput, DraftModel, DraftOutput, DraftTrace, Facts, draft_study
from trimtab.store.packet import file_digest, write_bytes
from trimtab.store.study import parse_study

PREFERRED = ("openvino", "onnxruntime")
PEEKED = 20_000
LARGEST = 2**31 - 1


class Drafted(Noun, frozen=True, kw_only=True):
    """A study that was written: what is still to be filled in by hand; what the traffic is (a wrong unit shows in it);
    what the look at the network gave, or why it does not run. All but the first are empty where something is to be
    filled in."""

    study: str
    backend: str
    fill_in: tuple[str, ...]
    traffic: str
    measured: str
    fault: str


def write_draft(model: Path, trace: Path, out: Path, *, force: bool, progress: Progress) -> Drafted:
    """Write the study to ``out``. UsageError if the file is there and ``force`` is not; DataError for a trace with a
    row that no run could use."""
    if out.exists() and not force:
        raise UsageError(f"{out} is there already", where="--out", fix="name another file, or add --force")
    if not model.is_file():
        beside = [path.name for path in model.parent.iterdir()] if model.parent.is_dir() else []
        fix = did_you_mean(model.name, beside) or "give the network's ONNX file"
        raise ModelError("there is no model file", where=str(model), fix=fix)
    home, backend, columns = out.resolve().parent, _backend(), peek(trace, rows=PEEKED)
    if not any(columns.values()):
        raise DataError(f"{trace.name} has no rows", where=str(trace), fix="give a table with one row a request")
    network, table = _model(model, home), DraftTrace(_from(trace, home), columns)
    text = partial(draft_study, model.stem, network, table, tuple(sorted(os.sched_getaffinity(0))), backend)
    drafted = text()
    left = _left(drafted, table)
    traffic = measured = fault = ""
    if not left:
        facts, traffic, measured, fault = _facts(text, drafted, home, progress)
        drafted = text(facts)
    write_bytes(out, drafted.encode())
    return Drafted(study=str(out), backend=backend, fill_in=left, traffic=traffic, measured=measured, fault=fault)


def _left(text: str, table: DraftTrace) -> tuple[str, ...]:
    """What of the study nobody could guess: it does not run before."""
    try:
        study = parse_study(text)
    except StudyError as error:
        return (f"{error.where}: {error.what}; {error.fix}",)
    columns = f"columns: {', '.join(table.columns) or 'none'}"
    sizes = "no column of the trace looks like it; name one, or write its size into model.inputs and remove the dim"
    dims = [dim for dim, column in study.workload.shapes.dims.items() if column == FILL_IN]
    left = [f"workload.shapes.dims.{dim}: {sizes}; {columns}" for dim in dims]
    if study.workload.arrivals.time == FILL_IN:
        left.append(f"workload.arrivals.time: no column of the trace looks like it; {columns}")
    return tuple(left)


def _facts(text: Callable[[Facts], str], drafted: str, home: Path, progress: Progress) -> tuple[Facts, str, str, str]:
    """What the whole trace and the network itself say, and the sentences about both; the last: why it does not run."""
    names = parse_study(drafted).dim_names
    workload = read_workload(parse_study(text(Facts(dict.fromkeys(names, (1, LARGEST)), 0))), home)
    lo, hi = workload.dims.min(axis=0).tolist(), workload.dims.max(axis=0).tolist()
    facts = Facts(dict(zip(names, zip(lo, hi, strict=True), strict=True)), len(workload))
    recorded = (len(workload) - 1) / (workload.span / 1e9) if workload.span else None
    traffic = _traffic(facts, workload, recorded)
    study = parse_study(text(facts))
    seen = look(study, home, workload, progress)
    if isinstance(seen, str):
        return facts, traffic, "", seen
    facts = facts._replace(bound_ms=seen.bound_ms, bound_why=f"at least five times a slow request: {seen}")
    if recorded is not None:
        pace = paced(study, workload.scheduled, seen)
        facts = facts._replace(rate=pace.rate, rate_why=pace.why, minutes=pace.minutes)
    return facts, traffic, _sentence(study, seen), ""


def _traffic(facts: Facts, workload: Workload, recorded: float | None) -> str:
    pace = "all at one time" if recorded is None else f"{recorded:.3g}/s over {workload.span / 1e9:.4g} s"
    ranges = ", ".join(f"{dim} {lo} to {hi}" for dim, (lo, hi) in facts.ranges.items())
    return f"the trace holds {len(workload):,} requests, {pace}; {ranges}"


def _sentence(study: Study, seen: Look) -> str:
    backend, core = study.baseline.compile.backend, study.envelope.worker_cores[0]
    return f"measured on {backend}, core {core}: a request takes {seen}"


def _model(model: Path, home: Path) -> DraftModel:
    network = backends.describe(str(model))
    inputs = tuple(DraftInput(name, axes, _dtype(name, kind, model)) for name, (kind, axes) in network.inputs.items())
    outputs = tuple(DraftOutput(name, axes) for name, axes in network.outputs.items())
    return DraftModel(_from(model, home), inputs, outputs, file_digest(model))


def _dtype(name: str, kind: str, model: Path) -> DType:
    known: tuple[DType, ...] = get_args(DType)
    for each in known:
        if each == kind:
            return each
    raise ModelError(
        f"input {name!r} is of type {kind}",
        where=str(model),
        fix=f"trimtab feeds {', '.join(known)}; convert the input in the network",
    )


def _from(path: Path, home: Path) -> str:
    return os.path.relpath(path.resolve(), home)


def _backend() -> str:
    for name in PREFERRED:
        if backends.info(name).available:
            return name
    raise MachineError(
        "no runtime is installed", where="trimtab backends", fix="pip install 'trimtab[onnx]' or 'trimtab[openvino]'"
    )
