"""Candidates with all that they are judged by in one row: speed, peak memory, quality, executed precision (R29, R32).

The search knows the change of the primary metric, the profiles the peak memory, the quality gate the answers; a
candidate that nobody judged says so by empty cells.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from trimtab.domain.figure import Cell, Findings, Series

QUALITY = {
    "quality_metric": "metric",
    "quality": "value",
    "quality_floor": "floor",
    "quality_status": "status",
    "quality_samples": "samples",
    "payloads": "payloads",
    "executed": "executed",
}
"""Column of the candidates -> column of the quality table."""


def candidates(found: Findings, quality: Series | None, peaks: Mapping[str, float | None]) -> Findings:
    """``found`` with peak memory (MiB by plan) and quality beside each row of its candidates."""
    series = tuple(_with(one, quality, peaks) if one.id == "retune.candidates" else one for one in found.series)
    return replace(found, series=series)


def _with(table: Series, quality: Series | None, peaks: Mapping[str, float | None]) -> Series:
    plans = [str(plan) for plan in table.columns["plan"]]
    judged = {} if quality is None else {str(row["plan"]): row for row in quality.rows}
    more: dict[str, tuple[Cell, ...]] = {"peak_mib": tuple(peaks.get(plan) for plan in plans)}
    for column, source in QUALITY.items():
        more[column] = tuple(judged.get(plan, {}).get(source) for plan in plans)
    return replace(table, columns=table.columns | more, units=table.units | {"peak_mib": "MiB"})
