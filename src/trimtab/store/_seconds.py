"""Lengths of time as people write them."""

from __future__ import annotations

import re

from trimtab.errors import StudyError, UsageError

_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_UNITS = (86400, 3600, 60, 1)


def seconds(text: str, where: str = "budget.time") -> float:
    """``"90s"``, ``"5m"``, ``"2h"``, ``"1h30m"``, ``"30d"`` as seconds. For anything else, and for nothing, a
    StudyError; a UsageError where ``where`` is an option of the command line."""
    found = _PARTS.fullmatch(text.strip().lower())
    total = sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part) if found else 0
    if not 0 < total < 1e9:
        kind = UsageError if where.startswith("--") else StudyError
        raise kind(f"{text!r} is not a length of time", where=where, fix='write "90s", "5m", "1h30m" or "30d"')
    return total
