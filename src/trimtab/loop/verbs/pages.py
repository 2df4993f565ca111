"""``--report``: what a command found in files as one HTML page, written whole or not at all, over nothing that is not
such a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trimtab.domain.study import Sla
from trimtab.errors import MachineError, UsageError
from trimtab.loop.verbs.arrivals import Traffic
from trimtab.loop.verbs.tables import Answer
from trimtab.report import diagnosis, html, traffic
from trimtab.report.diagnosed.leaf import Source
from trimtab.report.page import Page
from trimtab.store.packet import write_bytes

SAYS = '<meta name="generator" content="trimtab {kind}">'
HEAD = 8192
"""How, and within how many bytes, a page says whose it is."""
FIX = "name another file"


def require_free(out: Path, kind: str, sources: Sequence[Path], *, force: bool) -> None:
    """UsageError if ``out`` is one of the ``sources``, a folder, or a file that is no earlier page of this ``kind``;
    the last only without ``force``."""
    if any(source.exists() and out.exists() and out.samefile(source) for source in sources):
        raise UsageError(f"{out} is one of the files that are read", where="--report", fix=FIX)
    if out.is_dir():
        raise UsageError(f"{out} is a folder", where="--report", fix="name a file in it, such as report.html")
    if out.exists() and not force and not _is_page(out, kind):
        fix = f"{FIX}, or add --force"
        raise UsageError(f"{out} is there already, and is no earlier report of this command", where="--report", fix=fix)


def _is_page(path: Path, kind: str) -> bool:
    with path.open("rb") as file:
        return SAYS.format(kind=kind).encode() in file.read(HEAD)


def write_diagnosis(out: Path, answers: Sequence[Answer], sla: Sla | None) -> None:
    """The page of all ``answers``, whose tails were held to ``sla``."""
    _write(out, diagnosis_page(answers, sla))


def diagnosis_page(answers: Sequence[Answer], sla: Sla | None) -> Page:
    """What :func:`write_diagnosis` writes."""
    return diagnosis.view([_source(one, sla) for one in answers])


def _source(one: Answer, sla: Sla | None) -> Source:
    return Source(
        diagnosis=one.diagnosis, found=one.tail, read=one.read, charts=one.charts(), sla=sla, baseline=one.baseline
    )


def write_traffic(out: Path, found: Traffic) -> None:
    """The page of one file's traffic."""
    _write(out, traffic.view(found.found, found.read))


def _write(out: Path, page: Page) -> None:
    try:
        write_bytes(out, html.render(page).encode())
    except MachineError as error:
        fix = "name another file with --report, or make room or a folder for this one"
        raise MachineError(error.what, where=error.where, fix=fix) from error
