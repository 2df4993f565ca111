"""Headers of a table of requests: which role each one plays, and in what unit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trimtab.domain.imported import DURATIONS, NUMBERS, TEXTS
from trimtab.errors import DataError, UsageError
from trimtab.readers._file import near

UNITS = ("s", "ms", "us", "ns")
TIMES = {"start": "start", "scheduled": "start", "issued": "issued", "end": "end", "done": "end"}
"""Absolute times; ``scheduled`` is another word for ``start``, ``done`` for ``end``."""
ALIASES = {"throttled": "throttled_share"}
PLAIN = ("stream", "batch", "worker", "size", "ok", "route")
SHAPE, EXECUTED = "shape.", "executed."
_SUMMARY = re.compile(r"(^|[^a-z])(mean|avg|average|median|p\d\d?(\.\d+)?|stddev|std)([^a-z]|$)")


class Role(NamedTuple):
    """What a column means: ``name`` (start, latency, queue, shape.width, ...), its unit, and its header."""

    name: str
    unit: str
    header: str


def role_of(word: str) -> tuple[str, str] | None:
    """(name, unit) of a header or of a role on the command line; None if it means nothing."""
    word = ALIASES.get(word.strip(), word.strip())
    for prefix in (SHAPE, EXECUTED):
        if word.startswith(prefix) and len(word) > len(prefix):
            return word, ""
    if word in PLAIN or word in NUMBERS or word in TEXTS:
        return word, ""
    if word in TIMES:
        return TIMES[word], "iso"
    stem, _, unit = word.rpartition("_")
    if unit in UNITS and stem in TIMES:
        return TIMES[stem], unit
    if unit in UNITS and (stem == "latency" or stem in DURATIONS):
        return stem, unit
    return None


def known_roles() -> list[str]:
    """Every role as it may be written, dims apart."""
    timed = [f"{stem}_{unit}" for stem in (*TIMES, "latency", *DURATIONS) for unit in UNITS]
    return [*TIMES, *timed, *PLAIN, *NUMBERS, *TEXTS]


def assign(path: Path, headers: Sequence[str], mapped: Mapping[str, str]) -> tuple[dict[str, Role], list[str]]:
    """Role name -> column, and the headers that mean nothing. ``mapped`` = role as written -> header.

    UsageError for a role that does not exist; DataError for a header that does not, for two columns of one role, and
    for a column of averages.
    """
    found: dict[str, Role] = {}
    for word, header in mapped.items():
        meant = role_of(word)
        if meant is None:
            raise UsageError(f"there is no role {word!r}", where="--column", fix=_role_fix(word))
        if header not in headers:
            raise DataError(
                f"there is no column {header!r} in {path.name}", where=f"{path}; --column", fix=near(header, headers)
            )
        _add(path, found, Role(*meant, header))
    taken = {role.header for role in found.values()}
    ignored = []
    for header in headers:
        if header in taken:
            continue
        meant = role_of(header)
        if meant is None or any(meant[0] == name and role.header in mapped.values() for name, role in found.items()):
            ignored.append(header)
            continue
        _add(path, found, Role(*meant, header))
    return found, ignored


def require(path: Path, found: Mapping[str, Role], ignored: Sequence[str]) -> None:
    """DataError where the table has no time or no latency, or holds summaries instead of requests."""
    for role in found.values():
        _refuse_average(path, role)
    if "latency" not in found and "end" not in found:
        averages = [header for header in ignored if _SUMMARY.search(header.lower())]
        if averages:
            raise DataError(
                f"{path.name} holds summaries ({', '.join(averages[:3])}), not requests",
                where=str(path),
                fix="averages and percentiles cannot be taken apart; give one row a request",
            )
        raise _absent(path, "latency", "latency_ms", ignored)
    if "start" not in found:
        raise _absent(path, "start", "start_s", ignored)


def misspelt(ignored: Iterable[str]) -> dict[str, str]:
    """Ignored header -> the role that was probably meant."""
    roles = known_roles()
    out = {}
    for header in ignored:
        close = difflib.get_close_matches(header.lower(), roles, n=1, cutoff=0.8)
        if close:
            out[header] = close[0]
    return out


def _add(path: Path, found: dict[str, Role], role: Role) -> None:
    other = found.get(role.name)
    if other is not None:
        raise DataError(
            f"{other.header!r} and {role.header!r} both say {role.name}",
            where=str(path),
            fix=f"choose one: --column {role.name}_{role.unit or 'ms'}=<header>, or remove the other",
        )
    found[role.name] = role


def _refuse_average(path: Path, role: Role) -> None:
    if role.name in ("latency", *DURATIONS) and _SUMMARY.search(role.header.lower()):
        raise DataError(
            f"{role.header!r} looks like an average or a percentile, not one request's {role.name}",
            where=f"{path}, column {role.header!r}",
            fix="averages never decide; give one row a request",
        )


def _absent(path: Path, name: str, example: str, ignored: Sequence[str]) -> DataError:
    close = [header for header, role in misspelt(ignored).items() if role.startswith(name)]
    meant = f"did you mean `{close[0]}`? " if close else ""
    return DataError(
        f"{path.name} has no column for the {name} of a request",
        where=str(path),
        fix=f"{meant}name it {example}, or map it: --column {example}={close[0] if close else '<header>'}"
        + (f"; found there: {', '.join(ignored[:20])}" if ignored else ""),
    )


def _role_fix(word: str) -> str:
    bare = [role for role in known_roles() if role.startswith(f"{word}_")]
    if bare:
        return f"say the unit: {', '.join(bare)}"
    return near(word, [*known_roles(), "shape.<dim>", "executed.<dim>"])
