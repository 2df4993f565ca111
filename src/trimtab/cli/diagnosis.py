"""What ``trimtab diagnose`` prints: the tail first, then the classes with their evidence, then what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.show import plain, raw_json, terminal
from trimtab.domain.verdict import ROLE_TITLES

if TYPE_CHECKING:
    from trimtab.domain.figure import Figure
    from trimtab.domain.imported import ReadReport
    from trimtab.domain.score import Named
    from trimtab.loop.tables import Answer


def show(answer: Answer, *, as_json: bool) -> None:
    """The answer for people, or as JSON with the diagnosis' own keys and ``read``."""
    found = answer.diagnosis
    if as_json:
        body = {"classes": found.classes, "missing": found.missing, "next_measurement": found.next_measurement}
        raw_json(body | {"read": answer.read} | ({} if answer.baseline is None else {"baseline": answer.baseline}))
        return
    console = terminal()
    _tail(answer, console)
    for one in found.classes:
        _class(one, console)
    if found.missing:
        console.print(Text("\nmissing", style="bold"))
        for what in found.missing:
            console.print(plain(f"  - {what}"))
    if found.next_measurement:
        console.print(Text("\nnext measurement: ", style="bold"), plain(found.next_measurement), sep="")
    console.print()
    for report in (answer.read, answer.baseline):
        if report is not None:
            _read(report, console)


def _tail(answer: Answer, console: Console) -> None:
    """Percentiles over all requests, and the stages of the slowest."""
    figures = answer.tail.figures
    known = [figure for figure in figures if ".stage." not in figure.id]
    console.print(Text("tail, over all requests", style="bold"))
    console.print(_figures(known))
    stages = [figure for figure in figures if ".stage." in figure.id]
    if stages:
        console.print(Text("\nstages of the slowest 5 % that ended, mean", style="bold"))
        console.print(_figures(stages))


def _figures(figures: list[Figure]) -> Table:
    table = Table("", "", "", box=None, pad_edge=False, show_header=False)
    for figure in figures:
        name = figure.id.rsplit(".", 1)[-1].replace("_", " ")
        value = "-" if figure.value is None else f"{figure.value:.4g} {figure.unit}"
        table.add_row(*map(plain, (f"  {name}", value, figure.note)))
    return table


def _class(one: Named, console: Console) -> None:
    share = ""
    if one.share is not None:
        share = f", {one.share * 100:.0f} % of what removing every cause would change"
        share += f" [{one.interval[0] * 100:.0f}, {one.interval[1] * 100:.0f}]" if one.interval else ""
    head = Text("\nclass: ", style="bold")
    console.print(head, Text(one.id, style="bold"), plain(f" ({ROLE_TITLES[one.owner]}){share}"), sep="")
    for line in one.evidence:
        console.print(plain(f"  + {line}"))
    for line in one.ruled_out:
        console.print(plain(f"  - ruled out: {line}"), style="dim")


def _read(report: ReadReport, console: Console) -> None:
    console.print(plain(f"{report.file}: {report.used} of {report.rows} rows used"), style="dim")
    lines = [f"left out: {count} rows, {reason}" for reason, count in report.dropped.items()]
    lines += [f"no value: {count} of {name}" for name, count in report.unreadable.items()]
    lines += [f"not read: {', '.join(report.ignored)}"] if report.ignored else []
    for line in (*lines, *report.notes):
        console.print(plain(f"  {line}"), style="dim")
