"""What ``trimtab diagnose`` prints of a timeline or a summary: its figures by group, then its tables."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from trimtab.cli.show import grid, plain

if TYPE_CHECKING:
    from rich.console import Console

    from trimtab.domain.figure import Cell, Figure, Findings, Series

HEADINGS = {
    "device": "the device's time, shares of the window",
    "launches": "launches and kernels",
    "precision": "types in which operators compute, shares of time",
    "compiles": "compiles",
    "runs": "runs of the network",
    "load": "the load",
    "latency": "latencies, as the tool added them up",
    "ranks": "ranks side by side",
}
LONGEST = 60


def show(found: Findings, console: Console) -> None:
    """Figures and tables; names out of files are text, and cut where they are long."""
    for number, (group, figures) in enumerate(groupby(found.figures, key=_group)):
        console.print(Text(("\n" if number else "") + HEADINGS.get(group, group), style="bold"))
        console.print(_figures(list(figures)))
    for one in found.series:
        console.print()
        console.print(rows(one))


def _group(figure: Figure) -> str:
    return figure.id.split(".")[1]


def _figures(figures: list[Figure]) -> Table:
    table = grid("", "", "")
    for figure in figures:
        name = figure.id.split(".", 2)[-1].replace("_", " ")
        table.add_row(*map(plain, (f"  {name}", _quantity(figure), figure.note)))
    return table


def _quantity(figure: Figure) -> str:
    """A value and its unit, without powers of ten; shares as per cent."""
    if figure.value is None:
        return "-"
    if figure.unit == "share":
        return f"{figure.value * 100:.3g} %"
    return f"{_number(figure.value)} {figure.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def rows(one: Series) -> Table:
    """A series as a table."""
    table = Table(box=None, pad_edge=False, title_justify="left", caption_justify="left", title_style="bold")
    table.caption = plain(one.note) if one.note else None
    for name in one.columns:
        table.add_column(plain(name), overflow="fold")
    for row in zip(*one.columns.values(), strict=True):
        table.add_row(*(plain(_cell(value)) for value in row))
    return table


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return _number(value)
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
