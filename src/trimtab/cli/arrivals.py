"""What ``trimtab workload FILE`` prints: sentences, figures, small charts, the windows and the streams with bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.table import Table
from rich.text import Text

from trimtab.cli import diagnosis
from trimtab.cli.show import grid, plain, quantity, raw_json, terminal
from trimtab.cli.timeline import rows

if TYPE_CHECKING:
    from trimtab.domain.figure import Cell, Findings, Series
    from trimtab.loop.verbs.arrivals import Traffic

WIDTH = 10
LINE = 48
LEVELS = "▁▂▃▄▅▆▇█"
BARS = {"workload.windows": "rate, 1/s", "workload.streams": "requests", "workload.bursts": "dispersion"}
"""Table -> the column that has a bar behind it."""
CLIENTS = "mean rate, 1/s"


def show(traffic: Traffic, *, as_json: bool) -> None:
    """One file's traffic for people, or as JSON with every series."""
    found = traffic.found
    if as_json:
        raw_json({
            "headline": found.headline, "findings": found.findings, "figures": found.figures, "series": found.series,
            "read": traffic.read,
        })  # fmt: skip
        return
    console = terminal()
    console.print(Text("read as: ", style="bold"), plain(traffic.read.format), "\n", sep="")
    for finding in found.findings:
        console.print(plain(finding.text))
    table = grid("", "", "")
    for figure in found.figures:
        value = quantity(figure) if figure.value is not None else "-"
        table.add_row(*map(plain, (f"  {figure.id.split('.', 1)[1].replace('_', ' ')}", value, figure.note)))
    console.print()
    console.print(table)
    drawn = _drawn(found)
    if drawn.row_count:
        console.print()
        console.print(drawn)
    for name, bar in BARS.items():
        one = found.table(name)
        if one is not None:
            console.print()
            console.print(rows(with_bars(one, bar if bar in one.columns else CLIENTS)))
    console.print()
    diagnosis.reading(traffic.read, console)


def _drawn(found: Findings) -> Table:
    """Arrivals over time and the sizes of requests, a line each."""
    table = grid("", "", "")
    for one in found.series:
        if one.id == "workload.arrivals":
            seconds = f"0 to {one.columns['start'][-1]:g} s, 1/s"
            table.add_row(
                "arrivals", sparkline(one.columns["peak"]), plain(f"{seconds}: the busiest second of each stretch")
            )
        elif "hi" in one.columns:
            lo, hi = one.columns["lo"][0], one.columns["hi"][-1]
            name = plain(one.id.removeprefix("workload.").replace("_", " "))
            table.add_row(name, sparkline(one.columns["requests"]), plain(f"{lo:g} to {hi:g}: requests by size"))
    return table


def sparkline(cells: Sequence[Cell]) -> str:
    """At most LINE signs, each as high as the largest value of its stretch; what is 0 is a blank."""
    values = [float(cell) if isinstance(cell, int | float) else 0.0 for cell in cells]
    step = max(1, -(-len(values) // LINE))
    tops = [max(values[k : k + step]) for k in range(0, len(values), step)]
    most = max(tops, default=0.0) or 1.0
    return "".join(LEVELS[min(int(top / most * len(LEVELS)), len(LEVELS) - 1)] if top > 0 else " " for top in tops)


def with_bars(one: Series, column: str) -> Series:
    """The series with a bar behind each value of ``column``, as long as it is large."""
    values = [value if isinstance(value, int | float) else 0.0 for value in one.columns[column]]
    most = max(values, default=0.0) or 1.0
    bars = tuple("█" * round(WIDTH * value / most) for value in values)
    columns: dict[str, tuple[Cell, ...]] = {}
    for name, cells in one.columns.items():
        columns[name] = cells
        if name == column:
            columns[""] = bars
    return msgspec.structs.replace(one, columns=columns)
