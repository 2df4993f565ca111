"""JSON as other tools write it: what a file begins with, one whole document, and how either may be broken."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from trimtab.errors import DataError

T = TypeVar("T")

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises where text is no JSON, or not of the form that was asked for."""


def opening(head: bytes) -> bytes:
    """``head`` from its first sign on: a byte-order mark and white space may stand before it."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")


def document(path: Path, text: bytes, kind: type[T], name: str, fix: str) -> T:
    """All of ``text``, which is the content of ``path``. DataError where it is no whole ``name``."""
    try:
        return msgspec.json.decode(text, type=kind)
    except BROKEN as error:
        raise DataError(f"{path.name} is no whole {name}: {error}", where=str(path), fix=fix) from error
