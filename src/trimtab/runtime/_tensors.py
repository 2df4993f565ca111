"""Arrays as KServe v2 tensors and back, and whether a server's model takes what a study sends."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import BATCH
from trimtab.domain.ports import Arrays
from trimtab.domain.study import InputSpec, ModelSpec
from trimtab.errors import DataError, ModelError

DATATYPES = {"f32": "FP32", "f16": "FP16", "i64": "INT64", "i32": "INT32", "u8": "UINT8", "bool": "BOOL"}
"""A study's element types in the protocol's words."""
_NUMPY = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip
_CONTENTS = {
    "BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents",
}  # fmt: skip
"""The field that holds a tensor which was not sent as raw bytes."""


def encoded(item: InputSpec, arrays: Arrays) -> tuple[str, tuple[int, ...], bytes]:
    """Datatype, shape and bytes of one input. DataError where a payload has no such array."""
    if item.name not in arrays:
        raise DataError(
            f"a payload has no input {item.name!r}; it has {', '.join(arrays) or 'none'}",
            where="payloads",
            fix="name the arrays as the study's inputs are named",
        )
    array = arrays[item.name]
    return DATATYPES[item.dtype], array.shape, np.ascontiguousarray(array).tobytes()


def decoded(response: Any) -> dict[str, NDArray[Any]]:
    """The outputs of a response by name. ValueError, with what is wrong, for one that holds no numbers."""
    raw = response.raw_output_contents
    if raw and len(raw) != len(response.outputs):
        raise ValueError(f"{len(response.outputs)} outputs are named and {len(raw)} were sent")
    made = {}
    for position, output in enumerate(response.outputs):
        kind = _NUMPY.get(output.datatype)
        if kind is None or (not raw and output.datatype not in _CONTENTS):
            raise ValueError(
                f"output {output.name!r} is {output.datatype or 'of no type'}, which holds no numbers here"
            )
        shape = tuple(output.shape)
        made[output.name] = _array(output, kind, shape, raw[position] if raw else None)
    return made


def _array(output: Any, kind: str, shape: tuple[int, ...], raw: bytes | None) -> NDArray[Any]:
    if raw is None:
        flat = np.array(getattr(output.contents, _CONTENTS[output.datatype]), dtype=kind)
    elif len(raw) % np.dtype(kind).itemsize:
        raise ValueError(f"output {output.name!r} has {len(raw)} bytes, no whole number of {output.datatype}")
    else:
        flat = np.frombuffer(raw, dtype=kind)
    if flat.size != math.prod(shape):
        raise ValueError(f"output {output.name!r} has {flat.size} values for the shape {list(shape)}")
    return flat.reshape(shape)


def mismatch(spec: ModelSpec, metadata: Any, where: str) -> None:
    """ModelError with the first thing in which the server's model differs from the study's."""
    theirs = {tensor.name: tensor for tensor in metadata.inputs}
    for item in spec.inputs:
        if item.name not in theirs:
            raise _refused(f"the server's model has no input {item.name!r}", where, _near(item.name, theirs))
        _same(item, theirs[item.name], where)
    ours = {item.name for item in spec.inputs}
    unknown = [name for name in theirs if name not in ours]
    if unknown:
        raise _refused(f"the server's model also has the input {unknown[0]!r}", where, "name it under model.inputs")
    outputs = {tensor.name for tensor in metadata.outputs}
    for output in spec.outputs:
        if output.name not in outputs:
            raise _refused(f"the server's model has no output {output.name!r}", where, _near(output.name, outputs))


def _same(item: InputSpec, tensor: Any, where: str) -> None:
    """ModelError unless type, rank and fixed sizes agree. A size that the server fixes is no dynamic dim."""
    if tensor.datatype != DATATYPES[item.dtype]:
        wanted = next((ours for ours, name in DATATYPES.items() if name == tensor.datatype), "")
        fix = f'write dtype = "{wanted}"' if wanted else "no study can send this type"
        raise _refused(f"input {item.name!r} is {tensor.datatype} at the server, {item.dtype} in the study", where, fix)
    theirs, ours = list(tensor.shape), list(item.shape)
    fits = len(theirs) == len(ours) and all(
        there < 0 or here == there or (here == BATCH and there == 1) for here, there in zip(ours, theirs, strict=True)
    )
    if not fits:
        text = f"input {item.name!r} has the shape {theirs} at the server, {ours} in the study"
        raise _refused(text, where, "write the shape as the server has it, a name for each -1")


def _near(name: str, known: Any) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(sorted(known)) or 'none'}"


def _refused(what: str, where: str, fix: str) -> ModelError:
    return ModelError(what, where=where, fix=fix)
