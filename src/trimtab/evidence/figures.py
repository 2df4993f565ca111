"""How figures and series are put together, the same way in every evidence module."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Cell, Figure, Interval, Scope, Series
from trimtab.evidence.stats.bootstrap import Comparison

MS = 1e3  # seconds -> ms
NS_MS = 1e-6  # ns -> ms
NS_S = 1e-9  # ns -> seconds
MIB = 2**20
WIDE = 0.02
"""An interval of a share, from here on, makes its decimals mean nothing."""


class Desk:
    """Collects one stage's figures: same scope and artifact unless said otherwise."""

    def __init__(self, stage: str, scope: Scope, artifact: str) -> None:
        self.stage = stage
        self.scope = scope
        self.artifact = artifact
        self.figures: list[Figure] = []

    def add(
        self,
        name: str,
        value: float | None,
        unit: str,
        samples: int,
        *,
        interval: Interval | None = None,
        effective: float | None = None,
        note: str = "",
        scope: Scope = "",
        artifact: str = "",
    ) -> Figure:
        """Store ``<stage>.<name>``. nan becomes None: a figure that could not be computed must say why in ``note``."""
        missing = value is None or math.isnan(value)
        figure = Figure(
            id=f"{self.stage}.{name}",
            value=None if value is None or missing else float(value),
            unit=unit,
            samples=samples,
            scope=scope or self.scope,
            artifact=artifact or self.artifact,
            interval=interval,
            effective=None if effective is None else float(effective),
            note=note or ("could not be computed" if missing else ""),
        )
        self.figures.append(figure)
        return figure

    def compare(self, name: str, comparison: Comparison, unit: str, *, note: str = "") -> Figure:
        """Store a bootstrapped ratio with its interval, or with the reason why it has none."""
        words = "; ".join(part for part in (note, comparison.reason, comparison.caution) if part)
        return self.add(name, comparison.value, unit, comparison.samples, interval=comparison.interval, note=words)


def cell(value: Any, digits: int = 6) -> Cell:
    """A plain value for a series: numpy scalars become Python's, nan becomes None, +inf stays."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isinf(value) else float(f"{value:.{digits}g}")
    if value is None or isinstance(value, str | int | bool):
        return value
    raise TypeError(f"a series cannot hold {type(value).__name__}")


def series(
    name: str,
    columns: Mapping[str, Sequence[Any] | NDArray[Any]],
    units: Mapping[str, str],
    artifact: str,
    *,
    scope: Scope = "this run",
    note: str = "",
) -> Series:
    """A series of plain cells; columns must be equally long."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"series {name}: columns of different lengths {sorted(lengths)}")
    return Series(
        id=name,
        columns={key: tuple(cell(value) for value in column) for key, column in columns.items()},
        units=dict(units),
        scope=scope,
        artifact=artifact,
        note=note,
    )


def percent(value: float | None) -> str:
    """``12.3 %``, or ``unknown``."""
    return "unknown" if value is None else f"{value * 100:.1f} %"


def percent_within(value: float, interval: Interval) -> str:
    """``46 % [41 %, 51 %]``: decimals only where the interval is narrow enough for them to say anything."""
    digits = 0 if interval.hi - interval.lo >= WIDE else 1
    estimate, lo, hi = (f"{share * 100:.{digits}f} %" for share in (value, interval.lo, interval.hi))
    return f"{estimate} [{lo}, {hi}]"


def counted(number: int, noun: str) -> str:
    """``1 worker``, ``3 workers``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
