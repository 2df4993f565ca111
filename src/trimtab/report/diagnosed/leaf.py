"""One diagnosed file, opened for reading, and its tables as grids."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trimtab.domain.figure import Cell as Value
from trimtab.domain.figure import Figure, Findings, Series
from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import Noun
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.domain.verdict import ROLE_TITLES
from trimtab.report import words
from trimtab.report.arms import Scale
from trimtab.report.book import known, length, real
from trimtab.report.page import Block, Cell, Column, Grid, Mark, Row, Section, Strip

GROUPS = {"diagnose": "diagnose", "timeline": "timeline.runs", "summary": "summary.latency"}
"""Where the percentiles stand, by stage."""
LONGEST = 72
"""Signs of a name or a reason that a table shows; names of kernels are much longer."""
_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")


class Source(Noun, frozen=True, kw_only=True):
    """What one file says: its classes, its figures and tables, how it was read, and the series of its charts. ``sla`` =
    what its tail was held to; ``baseline`` = how the table beside it was read."""

    diagnosis: Diagnosis
    found: Findings
    read: ReadReport
    charts: tuple[Series, ...] = ()
    sla: Sla | None = None
    baseline: ReadReport | None = None


class Leaf:
    """A source as sections look into it. Beside others, its sections and charts bear its number in their ids."""

    def __init__(self, source: Source, number: int, *, alone: bool) -> None:
        self.source = source
        self._number = number
        self._alone = alone
        self._series = {one.id: one for one in (*source.found.series, *source.charts)}

    def series(self, id_: str) -> Series | None:
        """The series, if it is there and has a row."""
        found = self._series.get(id_)
        return found if found is not None and length(found) else None

    def figure(self, id_: str) -> Figure | None:
        """The figure, if it has a value."""
        found = self.source.found.figure(id_)
        return found if found is not None and known(found.value) else None

    def group(self, name: str) -> tuple[Figure, ...]:
        """The figures ``<name>.<anything>`` that have a value, in their order."""
        named = (one for one in self.source.found.figures if one.id.rpartition(".")[0] == name)
        return tuple(one for one in named if known(one.value))

    def percentiles(self) -> tuple[tuple[str, Figure], ...]:
        """p50 and above, as far as the file proves them."""
        prefix = f"{GROUPS[self.source.found.stage]}."
        named = ((one.id.removeprefix(prefix), one) for one in self.source.found.figures if one.id.startswith(prefix))
        return tuple((name, one) for name, one in named if _PERCENTILE.fullmatch(name) and known(one.value))

    def owner(self, role: str) -> str:
        """Whose matter a class is."""
        return ROLE_TITLES.get(role, role)

    def chart_id(self, name: str) -> str:
        return name if self._alone else f"{name}-{self._number}"

    def section(
        self, id_: str, nav: str, eyebrow: str, heading: str, blocks: Sequence[Block | None], *, lead: str = "",
        source: str = "",
    ) -> Section | None:  # fmt: skip
        """A section of this file; None where it has nothing to show. Of several files it names this one."""
        kept = tuple(block for block in blocks if block is not None)
        if not kept:
            return None
        beside = "" if self._alone else f"{self.source.read.file} · "
        return Section(
            id=self.chart_id(id_), nav=nav if self._alone else f"{nav} {self._number}", eyebrow=f"{beside}{eyebrow}",
            heading=heading, blocks=kept, lead=lead, source=source or words.ended(self.source.read.file),
        )  # fmt: skip


def grid(series: Series | None, *, bar: str = "", title: str = "") -> Grid | None:
    """A stored table as it is; ``bar`` = the column that is drawn, too, as long as it is large. None without a row."""
    if series is None or not length(series):
        return None
    numbers = {
        name: all(one is None or real(one) is not None for one in cells) for name, cells in series.columns.items()
    }
    most = max((real(one) or 0.0 for one in series.columns.get(bar, ())), default=0.0)
    to = Scale(lo=0.0, hi=most or 1.0)
    columns: list[Column] = []
    for name in series.columns:
        columns.append(Column(label=name, align="right" if numbers[name] or name == "share" else "left"))
        columns += [Column(label="")] if name == bar else []
    rows = []
    for cells in zip(*series.columns.values(), strict=True):
        made: list[Cell] = []
        for name, value in zip(series.columns, cells, strict=True):
            text = words.percent(real(value)) if series.units.get(name) == "share" else said(value)
            made.append(Cell(text=text))
            made += [Cell(strip=bar_strip(to, real(value), f"{name} {text}"))] if name == bar else []
        rows.append(Row(cells=tuple(made)))
    note = f" ({series.note})" if series.note else ""
    return Grid(columns=tuple(columns), rows=tuple(rows), title=f"{title}{note}" if title else "")


def said(value: Value) -> str:
    """A stored cell as a reader writes it."""
    if value is None or value == "":
        return words.NOTHING
    if isinstance(value, str | bool):
        return words.short(" ".join(str(value).split()), LONGEST)
    return words.count(value) if isinstance(value, int) else words.number(value)


def bar_strip(to: Scale, value: float | None, alt: str, look: str = "neutral") -> Strip:
    """A bar from zero; nothing where the value is not known."""
    marks = () if value is None else (Mark(form="bar", x=to.at(0.0), x2=to.at(value), look=look),)
    return Strip(marks=marks, alt=alt)
