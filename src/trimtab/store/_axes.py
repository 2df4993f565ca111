"""Which axis of a network's inputs is the batch, which are dims, and which axes of its outputs follow them.

An ONNX file may give an open axis a name. One name is one size, in whichever inputs and outputs it stands; what the
name says is of use only where a person wrote it, and exporters make up many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.domain.noun import BATCH

Axis = int | str | None
"""A size; the name that the file gives to an open axis; None: an open axis without a name."""

BATCHES = ("batch", "batch_size", "batchsize", "bs", "n", "b")
_MADE_UP = re.compile(r"(.*dynamic_?dimension|dynamic_axes|axis|dim|unk|unknown|s|d)?_*\d*")
_USUAL = {(4, 2): "height", (4, 3): "width", (2, 1): "length", (3, 1): "length"}
"""(axes of the input, axis) -> what it usually is."""


class Follows(NamedTuple):
    """An axis of an output that is as long as a dim, one for one; ``dim`` empty: open, and the file does not say how
    its size comes about."""

    axis: int
    dim: str


class Named(NamedTuple):
    """The inputs' shapes in a study's words, and for each output its open axes behind the batch (None: unknown)."""

    inputs: tuple[tuple[int | str, ...], ...]
    outputs: tuple[tuple[Follows, ...] | None, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        """Every dim, in the order of its first appearance."""
        found = (size for shape in self.inputs for size in shape if isinstance(size, str) and size != BATCH)
        return tuple(dict.fromkeys(found))


def named(inputs: Sequence[Sequence[Axis]], outputs: Sequence[Sequence[Axis] | None] = ()) -> Named:
    """Names for the open axes of a network, from its file's names where they say something, else by usual layouts. An
    output of which the file gives no shape is None."""
    given = [tuple(map(_said, shape)) for shape in inputs]
    batches = _batch_names(given)
    known: dict[str, str] = dict.fromkeys(batches, BATCH)
    shapes = tuple(tuple(_size(shape, axis, known, bool(batches)) for axis in range(len(shape))) for shape in given)
    followed = tuple(None if shape is None else _followed(tuple(map(_said, shape)), known) for shape in outputs)
    return Named(shapes, followed)


def dim_name(given: str, axis: int, axes: int) -> str:
    """A plain name for an open axis: the file's own, made safe, or one by the usual layouts."""
    plain = _plain(given)
    if _MADE_UP.fullmatch(plain) or plain in BATCHES:
        return _USUAL.get((axes, axis), f"axis{axis}")
    return plain


def _plain(given: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", given.lower()).strip("_")


def _said(size: Axis) -> Axis:
    """An axis; a name without a letter or a digit, such as ``?``, is none: it stands for any size."""
    return None if isinstance(size, str) and not _plain(size) else size


def _is_open(size: Axis) -> bool:
    return not (isinstance(size, int) and size > 0)


def _batch_names(inputs: Sequence[Sequence[Axis]]) -> set[str]:
    """The file's names of the batch axis: those that say so, else those of open first axes."""
    given = {size for shape in inputs for size in shape if isinstance(size, str) and size}
    said = {name for name in given if _plain(name) in BATCHES}
    return said or {shape[0] for shape in inputs if len(shape) > 1 and isinstance(shape[0], str) and shape[0]}


def _size(shape: Sequence[Axis], axis: int, known: dict[str, str], named_batch: bool) -> int | str:
    size = shape[axis]
    if isinstance(size, int) and size > 0:
        return size
    if isinstance(size, str) and size in known:
        return known[size]
    if axis == 0 and len(shape) > 1 and not (named_batch and size):
        return BATCH
    name = dim_name(size if isinstance(size, str) else "", axis, len(shape))
    if not isinstance(size, str) or not size:
        return name
    known[size] = _free(name, known)
    return known[size]


def _free(name: str, known: dict[str, str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3`` ... that no other name of the file has become."""
    taken, number = set(known.values()), 2
    if name not in taken:
        return name
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _followed(shape: Sequence[Axis], known: dict[str, str]) -> tuple[Follows, ...]:
    """Axis 0 of an output is the batch."""
    return tuple(Follows(axis, _dim_of(size, known)) for axis, size in enumerate(shape) if axis and _is_open(size))


def _dim_of(size: Axis, known: dict[str, str]) -> str:
    found = known.get(size, "") if isinstance(size, str) else ""
    return "" if found == BATCH else found
