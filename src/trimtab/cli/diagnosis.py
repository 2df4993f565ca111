"""The verb ``diagnose``, and what it prints: the tail first, then the classes with their evidence, then what lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli import timeline
from trimtab.cli.show import grid, lines, plain, quantity, raw_json, terminal
from trimtab.domain.verdict import ROLE_TITLES
from trimtab.errors import UsageError

if TYPE_CHECKING:
    from trimtab.domain.figure import Figure
    from trimtab.domain.imported import ReadReport
    from trimtab.domain.score import Named
    from trimtab.loop.verbs.tables import Answer


GROUPED = ("timeline", "summary")
"""Stages whose figures are printed by group, and whose tables are."""


def diagnose(
    file: Path,
    *more: Path,
    baseline: Path | None = None,
    column: tuple[str, ...] = (),
    fact: tuple[str, ...] = (),
    sla: str | None = None,
    strict: bool = False,
    json: bool = False,
    report: Path | None = None,
    force: bool = False,
) -> int:
    """Name what files that you already have prove (requests, profiles, logs, reports), and what to measure next.

    Parameters
    ----------
    file
        A profile (PyTorch, ONNX Runtime, Chrome), a torch.compile trace or log, what a load tool or server wrote
        (LoadGen, Triton, perf_analyzer, Model Analyzer, AIPerf, benchmark_app, trtexec); or a table of requests: CSV,
        TSV, JSONL or Parquet, one row a request. Each also .gz. docs/diagnose-files.md lists them.
    more
        Further files; each gets an answer of its own. A compiler's log is joined to tables of requests and to
        recordings of its rank on its clock, recordings of several ranks to each other.
    baseline
        A second table to compare it with: the version, plan or setting before.
    column
        role=header, for a column under another name, such as latency_ms=total. May be repeated.
    fact
        name=value, for what a table cannot hold, such as threads=16 or limit_mb=4096. May be repeated.
    sla
        What the tail must hold: p95=100ms, p99=1.5s or goodput=0.99@100ms.
    strict
        Refuse rows and values that cannot be used, instead of counting them.
    json
        Print the result as JSON.
    report
        Write it with charts as one HTML file, too, over an earlier one of this command only.
    force
        Write the report over any file.
    """
    from trimtab.loop.verbs import pages
    from trimtab.loop.verbs.files import diagnose_files
    from trimtab.loop.verbs.tables import parse_sla

    if report is None and force:
        raise UsageError("--force is for --report", fix="leave --force out")
    if report is not None:
        given = (file, *more, *([] if baseline is None else [baseline]))
        pages.require_free(report, "diagnose", given, force=force)
    answers = diagnose_files((file, *more), baseline=baseline, columns=column, facts=fact, sla=sla, strict=strict)
    if report is not None:
        pages.write_diagnosis(report, answers, None if sla is None else parse_sla(sla))
    show(answers, as_json=json)
    if report is not None and not json:
        lines([f"report: {report}"])
    return 0


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
    table = grid("", "", "")
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
    said = [f"left out: {count}, {reason}" for reason, count in report.dropped.items()]
    said += [f"no value: {count} of {name}" for name, count in report.unreadable.items()]
    said += [f"not read: {', '.join(report.ignored)}"] if report.ignored else []
    for line in (*said, *report.notes):
        console.print(plain(f"  {line}"), style="dim")
