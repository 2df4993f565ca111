"""``trimtab init``: a first study from a network's open axes and a trace's columns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

from trimtab import backends
from trimtab.domain.study import DType
from trimtab.errors import MachineError, ModelError, UsageError
from trimtab.readers.traffic import peek
from trimtab.store.draft import DraftInput, DraftModel, DraftTrace, draft_study
from trimtab.store.packet import file_digest, write_bytes

PREFERRED = ("openvino", "onnxruntime")


def write_draft(model: Path, trace: Path, out: Path, *, force: bool) -> tuple[str, ...]:
    """Write the study to ``out``; returns what to say. UsageError if the file is there and ``force`` is not."""
    if out.exists() and not force:
        raise UsageError(f"{out} is there already", where="--out", fix="name another file, or add --force")
    if not model.is_file():
        raise ModelError("there is no model file", where=str(model), fix="give the network's ONNX file")
    home = out.resolve().parent
    draft = draft_study(
        model.stem,
        _model(model, home),
        DraftTrace(_from(trace, home), peek(trace, rows=20_000)),
        tuple(sorted(os.sched_getaffinity(0))),
        _backend(),
    )
    write_bytes(out, draft.encode())
    return (
        f"{out}: written; look at every line marked GUESS or CHOOSE",
        f"next: trimtab run {out}",
    )


def _model(model: Path, home: Path) -> DraftModel:
    network = backends.describe(str(model))
    inputs = tuple(DraftInput(name, sizes, _dtype(name, kind, model)) for name, (kind, sizes) in network.inputs.items())
    return DraftModel(_from(model, home), inputs, network.outputs, file_digest(model))


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
