"""Figures and series: the only numbers that a report may print.

A stage ends with :class:`Findings`. Whatever a person reads later, thinned chart series included, is in there, with
its interval, its samples, its scope, and the artifact that proves it.
"""

from __future__ import annotations

from typing import Literal

from trimtab.domain.noun import Noun

Scope = str
"""``this run``, or the name of a slice: where the figure holds."""

Cell = str | int | float | bool | None


class Interval(Noun, frozen=True, kw_only=True):
    """``lo <= value <= hi`` at ``level``; ``method`` says how it was made (``beta``, ``paired block bootstrap``)."""

    lo: float
    hi: float
    level: float = 0.95
    method: str = ""


class Figure(Noun, frozen=True, kw_only=True):
    """A stored number. ``value`` None = it could not be computed and ``note`` says why; +inf = among the failed.

    ``samples`` counts raw samples behind it, ``effective`` the independent ones they are worth (None: not assessed).
    ``artifact`` is the path, inside the packet, of the evidence.
    """

    id: str
    value: float | None
    unit: str
    samples: int
    scope: Scope
    artifact: str
    interval: Interval | None = None
    effective: float | None = None
    note: str = ""


class Series(Noun, frozen=True, kw_only=True):
    """Columns for one chart or table; equal lengths. ``units`` by column."""

    id: str
    columns: dict[str, tuple[Cell, ...]]
    units: dict[str, str] = {}
    scope: Scope = "this run"
    artifact: str = ""
    note: str = ""

    @property
    def rows(self) -> list[dict[str, Cell]]:
        """Its rows, by column."""
        return [dict(zip(self.columns, cells, strict=True)) for cells in zip(*self.columns.values(), strict=True)]


class Finding(Noun, frozen=True, kw_only=True):
    """One sentence that is true of the data, and the figures that carry it."""

    text: str
    figures: tuple[str, ...] = ()
    owner: str = ""


class Findings(Noun, frozen=True, kw_only=True):
    """What one stage found. ``headline`` first, then figures and series by id."""

    stage: str
    headline: str
    findings: tuple[Finding, ...] = ()
    figures: tuple[Figure, ...] = ()
    series: tuple[Series, ...] = ()
    status: Literal["done", "partial"] = "done"

    def figure(self, id: str) -> Figure | None:  # noqa: A002 - the word of the noun
        """The figure named ``id``, or None."""
        return next((f for f in self.figures if f.id == id), None)

    def table(self, id: str) -> Series | None:  # noqa: A002
        """The series named ``id``, or None."""
        return next((s for s in self.series if s.id == id), None)
