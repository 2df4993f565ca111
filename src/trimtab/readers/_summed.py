"""Numbers of summaries as text: what is no number, or none that a time can be, is nothing."""

from __future__ import annotations

import math
from pathlib import Path

from trimtab.domain.noun import NEVER, Ns
from trimtab.errors import DataError
from trimtab.readers import _csv
from trimtab.readers._rows import Chunk, Text, Want

US, MS = 1e3, 1e6
"""ns of a microsecond and of a millisecond, as scales of :func:`duration`."""
MOST_ROWS = 20_000
_LATEST_NS = 4e18


def number(text: object) -> float | None:
    """A finite number that is not negative; None for anything else."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def duration(text: object, scale: float) -> Ns:
    """``text`` times ``scale`` ns; NEVER for what is no time."""
    value = number(text)
    return NEVER if value is None or value * scale > _LATEST_NS else round(value * scale)


def count(text: object) -> int | None:
    """A whole number above 0."""
    value = number(text)
    return int(value) if value is not None and 1 <= value < 2**53 and value.is_integer() else None


def table_rows(path: Path, what: str) -> tuple[list[str], list[dict[str, Text]]]:
    """The headers of a CSV file, and its rows by header. DataError for more rows than ``what`` can have."""
    names = _csv.columns(path)
    rows: list[dict[str, Text]] = []

    def accept(chunk: Chunk) -> None:
        if len(rows) + len(chunk.places) > MOST_ROWS:
            raise DataError(
                f"{path.name} holds more than {MOST_ROWS} rows", where=str(path), fix=f"give {what}, not requests"
            )
        rows.extend(
            dict(zip(chunk.columns, values, strict=True)) for values in zip(*chunk.columns.values(), strict=True)
        )

    _csv.read(path, Want(dict.fromkeys(names, what)), accept)
    return names, rows
