"""A Record opened for reading: figures and series by id, whichever stage made them, and the two plans it compares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from trimtab.domain.figure import Cell, Figure, Findings, Series
from trimtab.domain.packet import Record
from trimtab.domain.plan import Plan
from trimtab.domain.verdict import ROLE_TITLES, MatrixCell
from trimtab.report import words

Values = dict[str, Cell]
"""One row of a series, by column."""


class Book:
    """The only way in which a section looks into a Record. What is absent reads as None, or as an empty tuple."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        return {figure.id: figure for found in self.record.findings.values() for figure in found.figures}

    @cached_property
    def _series(self) -> dict[str, Series]:
        return {series.id: series for found in self.record.findings.values() for series in found.series}

    def figure(self, *ids: str) -> Figure | None:
        """The first of these figures that the packet holds with a value."""
        found = (self._figures.get(id_) for id_ in ids)
        return next((figure for figure in found if figure is not None and known(figure.value)), None)

    def absent(self, id_: str) -> Figure | None:
        """A figure that is there but has no value: its note says why."""
        figure = self._figures.get(id_)
        return figure if figure is not None and not known(figure.value) else None

    def series(self, *ids: str) -> Series | None:
        """The first of these series that the packet holds with at least one row."""
        found = (self._series.get(id_) for id_ in ids)
        return next((series for series in found if series is not None and length(series)), None)

    def found(self, stage: str) -> Findings | None:
        return self.record.findings.get(stage)

    def headline(self, stage: str) -> str:
        found = self.found(stage)
        return words.typeset(found.headline) if found else ""

    @property
    def baseline(self) -> Plan:
        return self.record.study.baseline

    @property
    def candidate(self) -> Plan | None:
        """The proposed plan, if one is proposed that differs from the baseline."""
        proposal = self.record.proposal
        return proposal.move.plan if proposal and proposal.move.plan != self.baseline else None

    @property
    def primary(self) -> MatrixCell | None:
        """The one cell that decides."""
        verdict = self.record.verdict
        return next((cell for cell in verdict.cells if cell.role == "primary"), None) if verdict else None

    def slice_of(self, series: Series | None) -> str:
        """The slice of the runs that a series names, empty if it does not say or they differ."""
        named = set(series.columns.get("run", ())) if series else set()
        slices = {run.slice for run in self.record.runs if run.id in named}
        return slices.pop() if len(slices) == 1 else ""

    def arm(self, plan: str) -> str:
        """``static`` for the baseline, ``adapted`` for anything else: the ink a plan is drawn in."""
        return "static" if plan == self.baseline.id else "adapted"

    def owner(self, role: str) -> str:
        """The role's title; the person named in the study stands with the owners, not in every sentence."""
        return ROLE_TITLES.get(role, role)


def known(value: float | None) -> bool:
    """Whether a figure can be printed: infinity can, nan cannot."""
    return value is not None and not math.isnan(value)


def length(series: Series) -> int:
    return len(next(iter(series.columns.values()))) if series.columns else 0


def each(series: Series) -> Iterator[Values]:
    """The rows of a series."""
    for cells in zip(*series.columns.values(), strict=True):
        yield dict(zip(series.columns, cells, strict=True))


def real(cell: Cell) -> float | None:
    """A finite number, or None."""
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return float(cell)


def value(cell: Cell) -> float | None:
    """A number, infinity included, or None."""
    if isinstance(cell, bool) or not isinstance(cell, int | float) or math.isnan(cell):
        return None
    return float(cell)


def source(*parts: str, artifact: str = "") -> str:
    """The one line under a section: what is known of scope, samples and artifact."""
    said = " ".join(part if part.endswith((".", "?")) else f"{part}." for part in parts if part)
    return " ".join(part for part in (said, artifact) if part)
