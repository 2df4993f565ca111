"""Networks that were made here, kept on a shelf for whoever needs the same one again.

``<key>.json`` says what was made of what the key stands for, and names the network by the digest of its bytes;
``<digest>.onnx`` is the network. Both appear at once or not at all. A network is believed only if its bytes still have
their digest: what is missing, cut off or altered is simply not there, and is made again. Two workers that make the same
one at once write the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from trimtab.domain.noun import Noun


class Made(Noun, frozen=True, kw_only=True):
    """A network that was made. ``note``: what has to be known to make it again."""

    sha256: str
    note: str


def find(shelf: Path, key: str) -> tuple[Path, str] | None:
    """The file and the note of what is kept under ``key``; None where nothing is, or not what was put there."""
    try:
        made = msgspec.json.decode(_index(shelf, key).read_bytes(), type=Made)
        path = shelf / f"{made.sha256}.onnx"
        whole = _digest(path) == made.sha256
    except (OSError, msgspec.DecodeError):
        return None
    return (path, made.note) if whole else None


def keep(shelf: Path, key: str, file: Path, note: str) -> Path:
    """Move ``file`` onto the shelf (it lies in the same file system) and return where it is now."""
    made = Made(sha256=_digest(file), note=note)
    target = shelf / f"{made.sha256}.onnx"
    file.replace(target)
    index = part(shelf, key)
    index.write_bytes(msgspec.json.encode(made))
    index.replace(_index(shelf, key))
    return target


def part(shelf: Path, name: str) -> Path:
    """Where this process may write what it then moves to its place."""
    return shelf / f"{name}.{os.getpid()}.part"


def _index(shelf: Path, key: str) -> Path:
    return shelf / f"{key}.json"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
