"""On which line of a TOML text a key stands. A convenience: where it is not sure, it says nothing."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_BARE = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY = re.compile(rf"\s*(?P<key>{_BARE}(?:\s*\.\s*{_BARE})*)\s*=(?P<value>.*)", re.DOTALL)
_HEADER = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<key>{_BARE}(?:\s*\.\s*{_BARE})*)\s*\]")

Path = tuple[str | int, ...]


def line_of(text: str, path: Path) -> int | None:
    """The line, counted from 1, of the key at ``path``, or of the nearest table or array that holds it."""
    known = _index(text)
    for length in range(len(path), 0, -1):
        if path[:length] in known:
            return known[path[:length]]
    return None


def _index(text: str) -> dict[Path, int]:
    known: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    pending = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if pending:
            pending = _still_open(f"{pending}\n{line}")
            continue
        header = _HEADER.match(line)
        if header:
            table = _enter(header, counts)
            known.setdefault(table, number)
            continue
        pair = _KEY.match(line)
        if pair:
            known.setdefault((*table, *_split(pair["key"])), number)
            pending = _still_open(line)
    return known


def _enter(header: re.Match[str], counts: dict[Path, int]) -> Path:
    """The path of a table header; a step through an array of tables takes its latest element."""
    path: Path = ()
    parts = _split(header["key"])
    for depth, part in enumerate(parts):
        path = (*path, part)
        last = depth == len(parts) - 1
        if last and header["open"] == "[[":
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _still_open(text: str) -> str:
    """``text`` if its value goes on in the next line, else nothing."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text if len(text) < 20_000 else ""
    return ""


def _split(key: str) -> tuple[str, ...]:
    """``a."b.c".d`` as its parts."""
    node: Any = tomllib.loads(f"{key} = 0")
    parts: list[str] = []
    while isinstance(node, dict):
        (part,) = node
        parts.append(part)
        node = node[part]
    return tuple(parts)
