"""The types in which a layer or an operator may compute: one name each, and how tools and people write it."""

from __future__ import annotations

DTYPES: dict[str, tuple[str, ...]] = {
    "float64": ("fp64", "f64", "double"),
    "float32": ("fp32", "f32", "float", "single"),
    "bfloat16": ("bf16",),
    "float16": ("fp16", "f16", "half"),
    "float8": ("fp8", "f8", "fp8e4m3", "fp8e5m2", "f8e4m3", "f8e5m2"),
    "int8": ("i8",),
    "uint8": ("u8",),
}
_BY_WORD = {word: name for name, words in DTYPES.items() for word in (name, *words)}


def dtype_name(text: str) -> str:
    """The name of a type as somebody writes it; "" for any other word."""
    return _BY_WORD.get(text.strip().lower(), "")
