"""What a verb prints: for people, or as JSON with ``--json``. Faults are printed here and nowhere else."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.domain.verdict import ROLE_TITLES
from trimtab.errors import INTERRUPTED, PacketError, TrimtabError

if TYPE_CHECKING:
    from trimtab.domain.envelope import Envelope, EnvelopeCheck
    from trimtab.domain.figure import Figure, Findings
    from trimtab.domain.packet import Record
    from trimtab.domain.ports import BackendInfo
    from trimtab.domain.signoff import Signed
    from trimtab.loop.loop import Outcome
    from trimtab.report.page import Page
    from trimtab.store.verification import Verification


def outcome(found: Outcome, stage: str, *, as_json: bool) -> None:
    """The result of a run: the report in the terminal after the last stage, one stage's findings before it."""
    from trimtab.report import text
    from trimtab.report.view import view

    if as_json:
        _json(_outcome_json(found, stage))
        return
    console = terminal()
    if stage == "report":
        text.show(view(found.record), console)
        console.print(plain(f"\nreport: {found.folder}/report.html\npacket: {found.folder}"), highlight=False)
        return
    if stage in found.record.findings:
        _findings(found.record.findings[stage], console)
    console.print(plain(f"packet: {found.folder}"), highlight=False)


def _findings(found: Findings, console: Console) -> None:
    """One stage: its headline, its sentences, its figures."""
    console.print(plain(found.headline), style="bold")
    for finding in found.findings:
        if finding.text != found.headline:
            console.print(plain(f"  {finding.text}"))
    table = grid("figure", "value", "interval", "samples", "note")
    for figure in found.figures:
        interval = f"{figure.interval.lo:.4g} to {figure.interval.hi:.4g}" if figure.interval else ""
        table.add_row(*map(plain, (figure.id, quantity(figure), interval, str(figure.samples), figure.note)))
    console.print(table)


def quantity(figure: Figure) -> str:
    """A figure's value and unit. An infinite one is a percentile that falls among failed requests."""
    if figure.value is None:
        return "unknown"
    return "among the failed" if math.isinf(figure.value) else f"{figure.value:.4g} {figure.unit}"


def _outcome_json(found: Outcome, stage: str) -> dict[str, Any]:
    record = found.record
    named = [stage] if stage in record.findings else list(record.findings)
    return {
        "folder": found.folder,
        "ran": found.ran,
        "reused": found.reused,
        "set_aside": found.set_aside,
        "verdict": record.verdict,
        "findings": {name: record.findings[name] for name in named},
    }


def record(found: Record, page: Page, *, as_json: bool) -> int:
    """A whole packet; the exit code says whether it is what was sealed."""
    from trimtab.report import text

    if as_json:
        _json(found)
    else:
        text.show(page, terminal())
    return PacketError.exit_code if found.doubts else 0


def verification(found: Verification, *, as_json: bool) -> int:
    """What a packet's check gave; the exit code says the gravest kind of problem."""
    if as_json:
        _json({"intact": not found.problems, "exit_code": found.exit_code, **msgspec.to_builtins(found)})
        return found.exit_code
    console = terminal()
    for problem in found.problems:
        console.print(plain(str(problem)), soft_wrap=True)
    if found.signatures is not None:
        _signatures(found, console)
    console.print(plain(_summary(found)), style="bold")
    return found.exit_code


def _summary(found: Verification) -> str:
    """The last line: what holds, and what does not."""
    lacking = [problem for problem in found.problems if problem.kind == "sign-off"]
    whole = f"{found.files} files of evidence are what the manifest says"
    if not found.problems:
        return whole
    if len(lacking) == len(found.problems):
        return f"{whole}; the sign-off of this {found.decision} is not complete"
    return f"{len(found.problems)} problem{'s' if len(found.problems) > 1 else ''}: do not rely on this packet"


def _signatures(found: Verification, console: Console) -> None:
    """Who signed, with which key, and by whose word that key is the right one."""
    assert found.signatures is not None
    for one in found.signatures.signed:
        against = f", against it: {one.dissent}" if one.dissent else ""
        who = f"{ROLE_TITLES[one.role]}{f' ({one.name})' if one.name else ''}"
        console.print(
            plain(f"signed by the {who}, {one.signed} until {one.expires}, {one.key}{against}"), soft_wrap=True
        )
    if not found.signatures.signed:
        console.print(plain("nobody has signed"))
    elif not found.trusted:
        console.print(
            plain("the keys are those of the packet's own study; --study holds them against yours"), style="dim"
        )
    if found.signatures.reduced:
        console.print(plain(f"reduced sign-off: {found.signatures.reduced}"))


def signed(packet: Path, found: Signed, *, as_json: bool) -> None:
    """A signature that was just made."""
    if as_json:
        _json(found)
        return
    how = f"against it: {found.dissent}" if found.dissent else "for it"
    print(f"{packet}: signed as {ROLE_TITLES[found.role]}, {how}; holds until {found.expires}; key {found.key}")


def markdown(text: str) -> None:
    """Markdown as it is: to be read, or to be posted."""
    sys.stdout.write(text)


def backends(infos: Iterable[BackendInfo], *, as_json: bool) -> None:
    """Each runtime with + or - and why."""
    if as_json:
        _json(list(infos))
        return
    console = terminal()
    for info in infos:
        versions = ", ".join(f"{name} {version}" for name, version in info.versions.items())
        console.print(Text(f"{'+' if info.available else '-'} {info.name}", style="bold"), Text(versions, style="dim"))
        if info.why:
            console.print(plain(f"    {info.why}"))
        for ability in info.abilities:
            console.print(plain(f"    {'+' if ability.ok else '-'} {ability.name}: {ability.why}"), soft_wrap=True)


def envelope(found: Envelope, checks: Sequence[EnvelopeCheck], *, as_json: bool) -> None:
    """The machine, and the study's assumptions against it."""
    if as_json:
        _json({"envelope": found, "checks": checks})
        return
    table = grid("what", "value")
    for name in found.__struct_fields__:
        table.add_row(plain(name.replace("_", " ")), plain(_value(getattr(found, name))))
    console = terminal()
    console.print(table)
    if checks:
        compared = grid("assumption", "assumed", "probed", "")
        for check in checks:
            compared.add_row(*map(plain, (check.name, check.assumed, check.probed, check.status)))
        console.print()
        console.print(compared)


def _value(value: Any) -> str:
    if value is None or value == "":
        return "does not say"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)


def lines(texts: Iterable[str]) -> None:
    """Plain lines."""
    for line in texts:
        print(line)


def raw_json(value: Any) -> None:
    """Any value as JSON."""
    _json(value)


def error(fault: TrimtabError, *, as_json: bool) -> int:
    """Print what, where and how to fix; returns the exit code of this kind of fault."""
    if as_json:
        kind = type(fault).__name__
        _json({"error": {"kind": kind, "what": fault.what, "where": fault.where, "fix": fault.fix}})
        return fault.exit_code
    console = Terminal(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text("error: ", style="bold red"), plain(fault.what), sep="")
    for name, value in (("where", fault.where), ("  fix", fault.fix)):
        if value:
            console.print(Text(f"{name}: ", style="bold"), plain(value), sep="")
    return fault.exit_code


def interrupted(*, resumes: bool) -> int:
    """After Ctrl-C; ``resumes``: the verb goes on where it stopped."""
    kept = ": everything measured so far is kept; run the same command to go on" if resumes else ""
    print(f"\ninterrupted{kept}", file=sys.stderr)
    return INTERRUPTED


class Terminal(Console):
    """A console that leaves it to its caller what happens when its reader is gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def terminal() -> Console:
    """Standard output; a pipe or a log gets lines of a readable width."""
    console = Terminal()
    return console if console.is_terminal else Terminal(width=120)


def grid(*heads: str) -> Table:
    """A table without lines; what is too wide for its column is folded, never cut."""
    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for head in heads:
        table.add_column(plain(head), overflow="fold")
    return table


def plain(text: str) -> Text:
    """Names from files are text, never markup or control sequences."""
    return Text("".join(c for c in text if c.isprintable() or c == "\n"))


def _json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
