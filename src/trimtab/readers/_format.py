"""What a reader says of itself, so that a file finds it by its content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.spans import Spans
from trimtab.domain.summary import Summary

Held = Spans | Imported | Summary
Read = Callable[[Path, bool], tuple[Held, ReadReport]]
"""(path, strict) -> what the file holds and how it was read. DataError for a file that cannot be used."""


class Format(NamedTuple):
    """One foreign format. ``holds`` tells it by the first bytes of a file, decompressed; a name never decides."""

    name: str
    holds: Callable[[bytes], bool]
    read: Read
