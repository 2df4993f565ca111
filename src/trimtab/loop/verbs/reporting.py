"""Reporting: the page of a packet, with what makes it doubtful said first, and the manifest of views."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from trimtab import __version__
from trimtab.domain.packet import Record
from trimtab.errors import MachineError, PacketError
from trimtab.report import html
from trimtab.report.page import Page
from trimtab.report.view import view
from trimtab.store.manifest import HOSTILE, MANIFESTS, Problem
from trimtab.store.packet import build_manifest, load_record, verify, write_bytes
from trimtab.store.verification import signatures_of

REPORT = "report.html"
_NAMED = 3


def page_of(folder: Path) -> tuple[Record, Page]:
    """A packet and its page. What differs from the sealed evidence is said on the page before anything else.

    PacketError for a packet that only malice makes (links, paths that leave it): nothing of it is shown.
    """
    record = checked_record(folder)
    return record, view(record)


def write_page(folder: Path, page: Page) -> None:
    """Put the page beside the evidence, and make the manifest of views anew. MachineError where nobody may write."""
    try:
        write_bytes(folder / REPORT, html.render(page).encode())
    except MachineError as error:
        fix = "make room or copy the packet to where you may write; the packet itself is as it was"
        raise MachineError(error.what, where=error.where, fix=fix) from error
    build_manifest(folder, "views", __version__)


def rewrite_report(folder: Path) -> None:
    """Make the page of a packet anew."""
    write_page(folder, page_of(folder)[1])


def checked_record(folder: Path) -> Record:
    """The record of a packet with its doubts and its valid signatures."""
    problems = verify(folder)
    hostile = [problem for problem in problems if problem.kind in HOSTILE]
    if hostile:
        raise PacketError(
            f"this packet is not shown: {hostile[0]}",
            where=str(folder),
            fix="`trimtab verify` lists everything that is wrong with it; do not use it",
        )
    record = _loaded(folder, problems)
    if record.manifest is None:
        return replace(record, doubts=_unsealed(record))
    signatures, wrong = signatures_of(folder, record, datetime.now(UTC))
    return replace(record, doubts=(*_altered(problems), *_unsound(wrong)), signatures=signatures)


def _loaded(folder: Path, problems: list[Problem]) -> Record:
    try:
        return load_record(folder)
    except PacketError as error:
        if not problems:
            raise
        fix = "`trimtab verify` lists everything that differs; take an unaltered copy"
        raise PacketError(f"this packet is not what was sealed: {error.what}", where=error.where, fix=fix) from error


def _unsealed(record: Record) -> tuple[str, ...]:
    """A run that is still on its way has no manifest and no verdict; a verdict without a manifest is another matter."""
    if record.verdict is None:
        return ()
    missing = MANIFESTS["evidence"]
    return (f"This packet has a verdict and no {missing}: nothing that is shown here can be checked.",)


def _altered(problems: list[Problem]) -> tuple[str, ...]:
    if not problems:
        return ()
    return (f"This packet is not what was sealed: {_few(problems)}. Do not act on what is shown here.",)


def _unsound(problems: list[Problem]) -> tuple[str, ...]:
    return (f"A signature does not hold: {_few(problems)}. It is not counted.",) if problems else ()


def _few(problems: list[Problem]) -> str:
    named = "; ".join(str(problem) for problem in problems[:_NAMED])
    return f"{named}; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else named
