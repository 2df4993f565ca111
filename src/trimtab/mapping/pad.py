"""How requests become one batch of arrays, and how a batch's outputs become the requests' own again.

The rule is the study's: an axis that carries a dynamic dim is filled up to the executed dim with the input's ``pad``
value, behind the true data; an output is cropped by its :class:`~trimtab.domain.study.Crop` rules. Rows that only fill
a batch up to its executed size repeat the last member: a row of nothing but padding can make a network divide by zero,
a repeated row cannot, and its result is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import BATCH, Dims, Executed
from trimtab.domain.ports import Arrays
from trimtab.domain.study import Crop, InputSpec, ModelSpec, OutputSpec
from trimtab.errors import DataError, ModelError

DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32,
    "f16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "u8": np.uint8,
    "bool": np.bool_,
}


def assemble(
    spec: ModelSpec, dim_names: tuple[str, ...], members: Sequence[Arrays], executed: Executed
) -> dict[str, NDArray[Any]]:
    """One array an input, at ``executed`` = (batch size, *dims). Each member holds one request at its true dims.

    A lone member that already has the executed shape is passed on uncopied. Raises DataError where a member does not
    fit: an input that is missing, of another dtype, rank or fixed size, or larger than the executed dims.
    """
    if not 1 <= len(members) <= executed[0]:
        raise DataError(
            f"{len(members)} members cannot form a batch of {executed[0]}",
            where="batch assembly",
            fix="give at least one member and at most the executed batch size",
        )
    sizes = dict(zip((BATCH, *dim_names), executed, strict=True))
    return {item.name: _input(item, members, sizes) for item in spec.inputs}


def filler(spec: ModelSpec, dim_names: tuple[str, ...], executed: Executed) -> dict[str, NDArray[Any]]:
    """Inputs at ``executed`` dims that hold nothing but each input's pad value: they warm a shape and judge nothing."""
    sizes = dict(zip((BATCH, *dim_names), executed, strict=True))
    return {i.name: np.full(_shape(i, sizes), i.pad, dtype=DTYPES[i.dtype]) for i in spec.inputs}


def split(
    spec: ModelSpec, dim_names: tuple[str, ...], outputs: Arrays, members: Sequence[Dims]
) -> list[dict[str, NDArray[Any]]]:
    """The outputs of each member (views, batch axis of length 1), cropped to what its true dims account for.

    Axis 0 of every output is the batch. Raises ModelError where an output is missing or has fewer rows than members.
    """
    results: list[dict[str, NDArray[Any]]] = [{} for _ in members]
    for out in spec.outputs:
        whole = _output(outputs, out.name, len(members))
        for row, (dims, result) in enumerate(zip(members, results, strict=True)):
            true = dict(zip(dim_names, dims, strict=True))
            result[out.name] = _crop(out, whole[row : row + 1], true)
    return results


def kept(crop: Crop, true: int) -> int:
    """How many positions of the output's axis a true dim accounts for: floor(ceil(true / up) / down), at least 1."""
    return max(1, -(-true // crop.up) // crop.down)


def _shape(item: InputSpec, sizes: dict[str, int]) -> tuple[int, ...]:
    return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in item.shape)


def _input(item: InputSpec, members: Sequence[Arrays], sizes: dict[str, int]) -> NDArray[Any]:
    shape, dtype = _shape(item, sizes), np.dtype(DTYPES[item.dtype])
    parts = [_part(item, member, shape, dtype) for member in members]
    if len(parts) == 1 and parts[0].shape == shape:
        return np.ascontiguousarray(parts[0])
    if BATCH not in item.shape:
        return _shared(item, parts, shape, dtype)
    axis = item.shape.index(BATCH)
    whole = np.full(shape, item.pad, dtype=dtype)
    rows = np.moveaxis(whole, axis, 0)
    for row in range(shape[axis]):
        part = np.moveaxis(parts[min(row, len(parts) - 1)], axis, 0)[0]
        rows[row][tuple(slice(0, n) for n in part.shape)] = part
    return whole


def _shared(item: InputSpec, parts: list[NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An input without a batch axis is one for the whole batch, so its members must agree on it."""
    first = parts[0]
    if any(part.shape != first.shape or not np.array_equal(part, first) for part in parts[1:]):
        raise DataError(
            f"input {item.name!r} has no batch axis, but the members of one batch bring different values",
            where="batch assembly",
            fix=f"give {item.name!r} a {BATCH!r} axis, or serve with batch size 1",
        )
    whole = np.full(shape, item.pad, dtype=dtype)
    whole[tuple(slice(0, n) for n in first.shape)] = first
    return whole


def _part(item: InputSpec, member: Arrays, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if item.name not in member:
        raise DataError(
            f"a payload has no input {item.name!r}; it has {', '.join(member) or 'none'}",
            where="payloads",
            fix="name the arrays as the study's inputs are named",
        )
    part = member[item.name]
    fits = part.ndim == len(shape) and all(
        size == 1 if axis == BATCH else (size <= room if isinstance(axis, str) else size == room)
        for axis, size, room in zip(item.shape, part.shape, shape, strict=True)
    )
    if part.dtype == dtype and fits:
        return part
    raise DataError(
        f"a payload's input {item.name!r} is {part.dtype}{list(part.shape)} and does not fit {dtype}{list(shape)}",
        where="payloads",
        fix="check the input's dtype and shape in the study, and that the payload has the request's dims",
    )


def _output(outputs: Arrays, name: str, members: int) -> NDArray[Any]:
    if name not in outputs:
        raise ModelError(
            f"the network gave no output {name!r}; it gave {', '.join(outputs) or 'none'}",
            where="model.outputs",
            fix="name the outputs as the network names them",
        )
    whole = outputs[name]
    if whole.ndim and whole.shape[0] >= members:
        return whole
    raise ModelError(
        f"output {name!r} has shape {list(whole.shape)}, which holds no row for each of {members} members",
        where="model.outputs",
        fix="axis 0 of every output must be the batch",
    )


def _crop(out: OutputSpec, part: NDArray[Any], true: dict[str, int]) -> NDArray[Any]:
    for crop in out.crop:
        keep = kept(crop, true[crop.dim])
        if not 1 <= crop.axis < part.ndim or keep > part.shape[crop.axis]:
            raise ModelError(
                f"output {out.name!r} has shape {list(part.shape)}; its crop keeps {keep} of axis {crop.axis}",
                where=f"model.outputs crop of {crop.dim!r}",
                fix="check axis, up and down: kept positions are floor(ceil(dim / up) / down)",
            )
        part = part[(slice(None),) * crop.axis + (slice(0, keep),)]
    return part
