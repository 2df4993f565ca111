"""Shapes and types of a span's inputs, as two tools write them; the same text is understood once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER, Dims
from trimtab.domain.spans import Shapes
from trimtab.readers._events import value_of
from trimtab.readers._spans import MOST_CODES, Codes

NOTHING = msgspec.Raw(b"")
MOST_INPUTS = 64
_COMPUTED = ("float64", "float32", "bfloat16", "float16", "float8", "int8", "uint8")
_SAME = {
    "float": "float32", "double": "float64", "half": "float16", "c10::half": "float16", "c10::bfloat16": "bfloat16",
    "signed char": "int8", "unsigned char": "uint8", "c10::float8_e4m3fn": "float8", "c10::float8_e5m2": "float8",
    "float8e4m3fn": "float8", "float8e5m2": "float8", "long int": "int64", "long": "int64", "int": "int32",
}  # fmt: skip

Inputs = tuple[Shapes, tuple[str, ...]]
"""The dims of each input, and their types as the tool names them."""


class Written:
    """Columns ``shape`` and ``dtype`` from pieces of JSON. ``understand`` reads one; the empty piece says nothing."""

    def __init__(self, understand: Callable[[bytes], Inputs]) -> None:
        self._codes: Codes[bytes] = Codes()
        self._codes[b""] = 0
        self._understand = understand

    def add(self, pieces: Sequence[bytes]) -> NDArray[np.int32]:
        """A code for each piece."""
        codes = self._codes
        return np.array([codes[piece] for piece in pieces], dtype=np.int32)

    def columns(
        self, codes: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[Shapes, ...], tuple[str, ...]]:
        """Codes of shapes and of dtypes (NEVER = not said), and what they stand for."""
        shapes: Codes[Shapes] = Codes()
        dtypes: Codes[str] = Codes()
        to_shape = np.full(MOST_CODES + 1, NEVER, dtype=np.int32)
        to_dtype = np.full(MOST_CODES + 1, NEVER, dtype=np.int32)
        for piece, code in self._codes.items():
            dims, types = self._understand(piece) if piece else ((), ())
            if any(dims):
                to_shape[code] = shapes[dims]
            dtype = computed_in(types)
            if dtype:
                to_dtype[code] = dtypes[dtype]
        return to_shape[codes], to_dtype[codes], shapes.names(), dtypes.names()


def computed_in(types: Sequence[str]) -> str:
    """The type that an operator computes in: that of its first input of a floating or 8-bit type; "" if none is."""
    named = (_SAME.get(name.lower(), name.lower()) for name in types)
    return next((name for name in named if name in _COMPUTED), "")


def kineto_inputs(piece: bytes) -> Inputs:
    """``<Input Dims>\\0<Input type>``: ``[[2, 3], []]`` and ``["float", "Scalar"]``; a list of tensors is one level
    deeper."""
    dims, _, types = piece.partition(b"\0")
    shapes: list[Dims] = []
    for given in _list(dims):
        shapes += [_dims(given)] if _is_dims(given) else [_dims(one) for one in _list_of(given) if _is_dims(one)]
    return tuple(shapes[:MOST_INPUTS]), tuple(name for name in _list(types)[:MOST_INPUTS] if isinstance(name, str))


def ort_inputs(piece: bytes) -> Inputs:
    """``[{"float": [1, 3, 32, 32]}, {"int64": []}]``."""
    pairs = [pair for given in _list(piece)[:MOST_INPUTS] if isinstance(given, dict) for pair in given.items()]
    return tuple(_dims(dims) if _is_dims(dims) else () for _, dims in pairs), tuple(name for name, _ in pairs)


def _list(piece: bytes) -> list[object]:
    return _list_of(value_of(msgspec.Raw(piece)))


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_dims(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(size, int) and abs(size) < 1 << 31 for size in value)


def _dims(value: object) -> Dims:
    return tuple(value) if isinstance(value, list) else ()
