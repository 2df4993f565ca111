"""Nouns as JSON, exactly.

JSON has no infinities and no nan, but a percentile among the failed is +inf. Rule: a float that is not finite is
written as the string ``"inf"``, ``"-inf"`` or ``"nan"``; a text that would read as one of these gets a leading ``=``
(one more, if it already has some). Both ways are exact. Keys keep their order, because the order of a study's dims has
a meaning.
"""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trimtab.errors import PacketError
from trimtab.store._regular import LARGEST_JSON, open_regular
from trimtab.store._write import write_bytes

T = TypeVar("T")

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_ESCAPED = re.compile(r"=*(inf|-inf|nan)")


def to_json(noun: object) -> bytes:
    """``noun`` as indented JSON with a final newline; the same noun gives the same bytes."""
    return msgspec.json.format(_compact(noun), indent=2) + b"\n"


def from_json(data: bytes, kind: type[T], where: str = "") -> T:
    """The noun of type ``kind`` that :func:`to_json` wrote. PacketError if it is broken or from another version."""
    try:
        return msgspec.convert(_revive(msgspec.json.decode(data)), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PacketError(
            f"not a valid {getattr(kind, '__name__', kind)}: {error}",
            where=where,
            fix="make the packet again with this version of trimtab, or read it with the version that wrote it",
        ) from error


def write_json(path: Path, noun: object) -> Path:
    """Replace ``path`` by ``noun`` as JSON, at once or not at all; returns ``path``."""
    write_bytes(path, to_json(noun))
    return path


def read_json(path: Path, kind: type[T]) -> T:
    """Read what :func:`write_json` wrote. PacketError if it is missing, broken, no regular file, or absurdly large."""
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_JSON + 1)
    except OSError as error:
        raise PacketError(
            f"cannot read {path.name}: {error.strerror}",
            where=str(path),
            fix="run the stage that writes it (`trimtab run` resumes)",
        ) from error
    if len(data) > LARGEST_JSON:
        raise PacketError(
            f"{path.name} is larger than {LARGEST_JSON} bytes", where=str(path), fix="do not use this packet"
        )
    return from_json(data, kind, where=str(path))


def digest(noun: object) -> str:
    """SHA-256 of a noun's JSON, hex; equal nouns have equal digests, and so has what they become on disk."""
    return hashlib.sha256(_compact(noun)).hexdigest()


def _compact(noun: object) -> bytes:
    return msgspec.json.encode(_tame(msgspec.to_builtins(noun)))


def _tame(value: Any) -> Any:
    """Replace what JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return f"={value}" if _ESCAPED.fullmatch(value) else value
    if isinstance(value, dict):
        return {key: _tame(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_tame(item) for item in value]
    return value


def _revive(value: Any) -> Any:
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        return value[1:] if _ESCAPED.fullmatch(value) else value
    if isinstance(value, dict):
        return {key: _revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revive(item) for item in value]
    return value
