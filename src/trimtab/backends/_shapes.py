"""From an Entry to the shapes of a network's inputs, and back from arrays to executed dims.

An axis of an input is a size, ``batch``, or the name of a dynamic dim. A static or bucket entry fixes every dim at its
``hi``; a dynamic one leaves ``lo..hi`` open. The batch axis is open exactly where ``Entry.batch`` has two ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from trimtab.backends._options import suggest
from trimtab.domain.noun import BATCH, Dims, Executed
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Arrays, ModelFile
from trimtab.errors import ModelError, StudyError

Range: TypeAlias = tuple[int, int]


def check_entry(model: ModelFile, entry: Entry) -> None:
    """Raise StudyError where entry and model do not speak of the same dims."""
    where = f"entry {entry.id!r}"
    count = len(model.dim_names)
    if len(entry.lo) != count or len(entry.hi) != count:
        raise StudyError(
            f"the entry gives {len(entry.lo)} lower and {len(entry.hi)} upper dims, the model has {count}",
            where=where,
            fix=f"give lo and hi for: {', '.join(model.dim_names) or 'no dim at all'}",
        )
    if entry.kind == "static" and entry.lo != entry.hi:
        raise StudyError("a static entry covers one shape, but lo and hi differ", where=where, fix="set lo = hi")
    for name, (lo, hi) in _ranges(model, entry).items():
        if not 1 <= lo <= hi:
            raise StudyError(f"{name} runs from {lo} to {hi}", where=where, fix="give 1 <= lo <= hi")
    known = (BATCH, *model.dim_names)
    for spec in model.spec.inputs:
        for axis in spec.shape:
            if isinstance(axis, str) and axis not in known:
                raise StudyError(
                    f"input {spec.name!r} uses the dim {axis!r}, which the study does not define",
                    where="model.inputs",
                    fix=f"add dims.{axis}, or use one of: {', '.join(known)}",
                )
    used = {axis for spec in model.spec.inputs for axis in spec.shape}
    for name in model.dim_names:
        if name not in used:
            raise StudyError(f"the dim {name!r} is on no input", where="dims", fix="name it in model.inputs or drop it")


def input_ranges(model: ModelFile, entry: Entry) -> dict[str, tuple[Range, ...]]:
    """Input name -> inclusive (lo, hi) of each axis in the compiled program; ``lo == hi`` means fixed."""
    by_name = _ranges(model, entry)
    if entry.kind != "dynamic":
        by_name |= {name: (hi, hi) for name, hi in zip(model.dim_names, entry.hi, strict=True)}
    return {
        spec.name: tuple(by_name[a] if isinstance(a, str) else (a, a) for a in spec.shape) for spec in model.spec.inputs
    }


def executed_of(model: ModelFile, inputs: Arrays) -> Executed:
    """``(batch size, *dims)`` of arrays; raises ValueError where they contradict the study or one another."""
    seen: dict[str, int] = {}
    for spec in model.spec.inputs:
        if spec.name not in inputs:
            raise ValueError(f"input {spec.name!r} is missing; given: {', '.join(inputs)}")
        shape = inputs[spec.name].shape
        if len(shape) != len(spec.shape):
            raise ValueError(f"input {spec.name!r} has rank {len(shape)}, the study says {len(spec.shape)}")
        for axis, size in zip(spec.shape, shape, strict=True):
            expected = seen.setdefault(axis, size) if isinstance(axis, str) else axis
            if size != expected:
                raise ValueError(f"input {spec.name!r} has shape {shape}: {axis} should be {expected}")
    dims: Dims = tuple(seen[name] for name in model.dim_names)
    return (seen.get(BATCH, 1), *dims)


def refuse_fixed(model: ModelFile, entry: Entry, executed: Executed) -> None:
    """Raise ValueError where ``executed`` differs from what the entry fixes; open axes are the runtime's business."""
    fixed = [entry.batch[0] if entry.batch[0] == entry.batch[1] else None]
    fixed += [None if entry.kind == "dynamic" else hi for hi in entry.hi]
    for name, want, size in zip((BATCH, *model.dim_names), fixed, executed, strict=True):
        if want is not None and want != size:
            raise ValueError(f"entry {entry.id!r} was compiled for {name} = {want}, not {size}")


def _ranges(model: ModelFile, entry: Entry) -> dict[str, Range]:
    dims = {name: (lo, hi) for name, lo, hi in zip(model.dim_names, entry.lo, entry.hi, strict=True)}
    return {BATCH: entry.batch} | dims


def check_network(model: ModelFile, entry: Entry, found: Mapping[str, tuple[str, tuple[int | None, ...]]]) -> None:
    """Raise ModelError where the study's inputs differ from those of the network.

    ``found``: input name -> (element type in the study's words, size of each axis; None = open).
    """
    where = model.path
    for spec in model.spec.inputs:
        if spec.name not in found:
            raise ModelError(f"the network has no input {spec.name!r}", where=where, fix=suggest(spec.name, found))
        dtype, sizes = found[spec.name]
        if dtype != spec.dtype:
            raise ModelError(
                f"input {spec.name!r} is {dtype}, the study says {spec.dtype}", where=where, fix=f'dtype = "{dtype}"'
            )
        if len(sizes) != len(spec.shape):
            raise ModelError(
                f"input {spec.name!r} has rank {len(sizes)}, the study gives {len(spec.shape)} axes",
                where=where,
                fix=f"the network's shape is {_text(sizes)}",
            )
        for axis, (name, size, wanted) in enumerate(
            zip(spec.shape, sizes, input_ranges(model, entry)[spec.name], strict=True)
        ):
            if size is not None and wanted != (size, size):
                raise ModelError(
                    f"the network fixes axis {axis} of input {spec.name!r} at {size}; entry {entry.id!r} wants "
                    f"{name} = {_span(wanted)}",
                    where=where,
                    fix=f"write {size} in the study, or export the network with that axis open",
                )
    for name in found:
        if name not in {spec.name for spec in model.spec.inputs}:
            raise ModelError(
                f"the network's input {name!r} is not in the study",
                where=where,
                fix=f"add an input with shape {_text(found[name][1])}",
            )


def check_outputs(model: ModelFile, found: Iterable[str]) -> None:
    """Raise ModelError where the study names an output that the network does not have."""
    names = tuple(found)
    for spec in model.spec.outputs:
        if spec.name not in names:
            raise ModelError(
                f"the network has no output {spec.name!r}", where=model.path, fix=suggest(spec.name, names)
            )


def check_file(model: ModelFile) -> None:
    """Raise ModelError where the study names no such network, or its file is missing or empty."""
    if not model.path:
        raise ModelError(
            "the study names no network that this runtime reads",
            where="model.path",
            fix="export it to ONNX and give path",
        )
    path = Path(model.path)
    if not path.is_file():
        raise ModelError("the network's file does not exist", where=model.path, fix="correct model.path in the study")
    if path.stat().st_size == 0:
        raise ModelError("the network's file is empty", where=model.path, fix="export or download it again")


def _span(wanted: Range) -> str:
    return str(wanted[0]) if wanted[0] == wanted[1] else f"{wanted[0]}..{wanted[1]}"


def _text(sizes: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("open" if size is None else str(size) for size in sizes) + "]"
