"""What a study must hold about the inputs and outputs of its network: axes that exist, numbers that fit."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.domain.noun import BATCH
from trimtab.domain.study import InputSpec, Study
from trimtab.store._strict import Fault, Path, meant, unique

_RANGES = {"i64": (-(2**63), 2**63 - 1), "i32": (-(2**31), 2**31 - 1), "u8": (0, 255)}


def tensor_faults(study: Study) -> Iterator[Fault]:
    """Every broken rule about inputs, outputs and how these are cropped."""
    for position, spec in enumerate(study.model.inputs):
        yield from _shape(study, spec, ("model", "inputs", position, "shape"))
        yield from _random(spec, ("model", "inputs", position, "random"))
    for key, names in (
        ("inputs", [spec.name for spec in study.model.inputs]),
        ("outputs", [spec.name for spec in study.model.outputs]),
    ):
        if not names:
            yield Fault(("model", key), "is empty", f"name the network's {key}")
        yield from unique(names, ("model", key), "is named twice")
    yield from _crops(study)


def _shape(study: Study, spec: InputSpec, path: Path) -> Iterator[Fault]:
    known = (*study.dims, BATCH)
    for axis, size in enumerate(spec.shape):
        if isinstance(size, str) and size not in known:
            yield Fault((*path, axis), f"there is no dim {size!r}", meant(size, known))
        if isinstance(size, int) and size < 1:
            yield Fault((*path, axis), f"a size is at least 1, got {size}", "write the size, or the name of a dim")
    if spec.shape.count(BATCH) > 1:
        yield Fault(path, f"{BATCH!r} is named twice", "keep one batch axis")


def _random(spec: InputSpec, path: Path) -> Iterator[Fault]:
    if spec.random is None:
        return
    allowed = _RANGES.get(spec.dtype)
    if allowed is None:
        yield Fault(path, f"is for inputs of integers, and this one is {spec.dtype}", "remove it")
    elif not allowed[0] <= spec.random[0] <= spec.random[1] <= allowed[1]:
        text = f"{list(spec.random)} is no range of {spec.dtype}"
        yield Fault(path, text, f"write [lowest, highest] within {allowed[0]} to {allowed[1]}")


def _crops(study: Study) -> Iterator[Fault]:
    for position, output in enumerate(study.model.outputs):
        for place, crop in enumerate(output.crop):
            if crop.dim not in study.dims:
                path = ("model", "outputs", position, "crop", place, "dim")
                yield Fault(path, f"there is no dim {crop.dim!r}", meant(crop.dim, study.dims))
