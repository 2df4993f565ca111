"""What ``trimtab diagnose`` prints: the tail first, then the classes with their evidence, then what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli import timeline
from trimtab.cli.show import plain, quantity, raw_json, terminal
from trimtab.domain.verdict import ROLE_TITLES

if TYPE_CHECKING:
    from trimtab.domain.figure import Figure
    from trimtab.domain.imported import ReadReport
    from trimtab.domain.score import Named
    from trimtab.loop.tables import Answer


GROUPED = ("timeline", "summary")
"""Stages whose figures are printed by group, and whose tables are."""


def show(answers: Sequence[Answer], *, as_json: bool) -> None:
    """The answers for people, or as JSON: that of one file, or a list of them under ``files``."""
    if as_json:
        bodies = [_body(answer) for answer in answers]
        raw_json(bodies[0] if len(bodies) == 1 else {"files": bodies})
        return
    console = terminal()
    for answer in answers:
        if len(answers) > 1:
            console.print(plain(f"== {answer.read.file} =="), style="bold")
        _answer(answer, console)


def _body(answer: Answer) -> dict[str, Any]:
    """The diagnosis' own keys, the figures, how the file was read; of a timeline or a summary its tables, too."""
    found = answer.diagnosis
    body = {"classes": found.classes, "missing": found.missing, "next_measurement": found.next_measurement}
    body |= {"failures": found.failures, "tail": answer.tail.figures}
    body |= {"tables": answer.tail.series} if answer.tail.stage in GROUPED else {}
    return body | {"read": answer.read} | ({} if answer.baseline is None else {"baseline": answer.baseline})


def _answer(answer: Answer, console: Console) -> None:
    found = answer.diagnosis
    console.print(Text("read as: ", style="bold"), plain(answer.read.format), "\n", sep="")
    if found.failures:
        console.print(Text("failures: ", style="bold"), plain(found.failures), "\n", sep="")
    if answer.tail.stage in GROUPED:
        timeline.show(answer.tail, console)
    else:
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
            reading(report, console)


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
        value = quantity(figure) if figure.value is not None else "-"
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


def reading(report: ReadReport, console: Console) -> None:
    """How a file was read: what was left out, and what to know of it."""
    console.print(plain(f"{report.file}: {report.used} of {report.rows} {report.unit} used"), style="dim")
    lines = [f"left out: {count}, {reason}" for reason, count in report.dropped.items()]
    lines += [f"no value: {count} of {name}" for name, count in report.unreadable.items()]
    lines += [f"not read: {', '.join(report.ignored)}"] if report.ignored else []
    for line in (*lines, *report.notes):
        console.print(plain(f"  {line}"), style="dim")
