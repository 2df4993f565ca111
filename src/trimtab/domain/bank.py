"""How the arrays of a bank become the inputs of one request: full size, scaled, in the input's element type.

A bank is an .npz file of plain arrays named ``<input>/<key>``; those of one key belong to one request. An array may
leave out leading axes, or hold 1 where it repeats. Whoever opens the file looks after what it may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import BATCH
from trimtab.domain.study import InputSpec

DTYPES = {"f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "u8": "uint8", "bool": "bool"}
"""A study's element types in numpy's words."""


def keys_of(names: Iterable[str], inputs: Iterable[InputSpec]) -> tuple[str, ...]:
    """The keys of the arrays ``names`` that belong to an input, in sorted order."""
    known = {spec.name for spec in inputs}
    parted = (name.partition("/") for name in names)
    return tuple(sorted({key for head, slash, key in parted if slash and head in known}))


def sizes_of(arrays: Mapping[str, NDArray[Any]], inputs: Iterable[InputSpec]) -> dict[str, int]:
    """The size of each dim in one request's arrays (input name -> array); the batch axis is 1."""
    sizes = {BATCH: 1}
    for spec in inputs:
        for axis, size in zip(reversed(spec.shape), reversed(arrays[spec.name].shape), strict=False):
            if isinstance(axis, str) and axis != BATCH:
                sizes[axis] = max(size, sizes.get(axis, 1))
    return sizes


def shape_of(spec: InputSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input where its dims have ``sizes``."""
    return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in spec.shape)


def filled(raw: NDArray[Any], spec: InputSpec, shape: tuple[int, ...], scale: float, offset: float) -> NDArray[Any]:
    """``scale * raw + offset`` at ``shape``, in the input's element type. ValueError where ``raw`` does not fit."""
    full = np.broadcast_to(raw, shape)
    if scale == 1.0 and offset == 0.0:
        return full.astype(DTYPES[spec.dtype])
    scaled = full.astype(np.float64) * scale + offset
    return scaled.astype(DTYPES[spec.dtype])
