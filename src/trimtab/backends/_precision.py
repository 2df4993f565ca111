"""Which precision an operator computes in, read from what it is and from the element types that it touches.

1. Kernels that multiply 8-bit integers say so by name, whatever the type of their first input: ``int8``.
2. A conversion (cast, quantise, dequantise) computes in the widest type that it touches: scaling is float arithmetic,
   so data that is dequantised before it is used never counts as int8.
3. Else it is the element type of the first input; bytes are ``int8``.

Limit: a network that moves bytes about for its own reasons (images, masks) shows them as int8 too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

INTEGER_KERNELS = ("QLinear", "QGemm", "QAttention", "ConvInteger", "MatMulInteger", "DynamicQuantize")
CONVERSIONS = ("Cast", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
BYTES = ("i8", "u8")
WIDTH = ("bool", "int8", "u16", "i16", "u32", "i32", "u64", "i64", "bf16", "f16", "f32", "f64")
"""Element types, the narrowest first; a float is wider than any integer."""


def named(element: str) -> str:
    """An element type as a precision: bytes are ``int8``, others as they are."""
    return "int8" if element in BYTES else element


def precision(kind: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """The precision of an operator ``kind`` with these element types (in a study's words); "none" without any."""
    if kind in CONVERSIONS:
        return widest((*inputs, *outputs))
    if kind.startswith(INTEGER_KERNELS):
        return "int8"
    return next((named(element) for element in (*inputs, *outputs)), "none")


def widest(elements: Iterable[str]) -> str:
    """The widest of some element types, as a precision; "none" without any."""
    return max(map(named, elements), key=lambda name: WIDTH.index(name) if name in WIDTH else -1, default="none")
