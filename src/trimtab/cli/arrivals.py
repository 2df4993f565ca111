"""What ``trimtab workload FILE`` prints: sentences, figures, the windows with a bar for each rate, the streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from rich.table import Table
from rich.text import Text

from trimtab.cli import diagnosis
from trimtab.cli.show import plain, quantity, raw_json, terminal
from trimtab.cli.timeline import rows

if TYPE_CHECKING:
    from trimtab.domain.figure import Series
    from trimtab.loop.arrivals import Traffic

WIDTH = 10
RATE = "rate, 1/s"


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
    table = Table("", "", "", box=None, pad_edge=False, show_header=False)
    for figure in found.figures:
        value = quantity(figure) if figure.value is not None else "-"
        table.add_row(*map(plain, (f"  {figure.id.split('.', 1)[1].replace('_', ' ')}", value, figure.note)))
    console.print()
    console.print(table)
    for name in ("windows", "streams"):
        one = found.table(f"workload.{name}")
        if one is not None:
            console.print()
            console.print(rows(_with_bars(one)))
    console.print()
    diagnosis.reading(traffic.read, console)


def _with_bars(one: Series) -> Series:
    """The series with a bar behind each rate, as long as it is large."""
    if RATE not in one.columns:
        return one
    rates = [value if isinstance(value, int | float) else 0.0 for value in one.columns[RATE]]
    most = max(rates, default=0.0) or 1.0
    bars = tuple("█" * round(WIDTH * rate / most) for rate in rates)
    columns = {}
    for name, cells in one.columns.items():
        columns[name] = cells
        if name == RATE:
            columns[""] = bars
    return msgspec.structs.replace(one, columns=columns)
