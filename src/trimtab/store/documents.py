"""The owners' documents of a packet: drafts are put beside the evidence, never over an owner's text, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trimtab.domain import quote
from trimtab.domain.packet import Record
from trimtab.domain.verdict import ROLES, Role
from trimtab.errors import PacketError
from trimtab.store._regular import read_regular
from trimtab.store._write import write_bytes
from trimtab.store.manifest import Problem
from trimtab.store.sign import DOCUMENTS, LARGEST_DOCUMENT, document_of

_MOST_FAULTS = 20


def write_drafts(folder: Path, record: Record, drafts: Mapping[Role, str]) -> dict[str, str]:
    """Write the drafts that are not there yet; in those that are, fill in ``{{...}}`` and leave all else alone.

    Returns path inside the packet -> ``written``, ``filled in`` or ``kept``.
    """
    _refuse_link(folder)
    quotes, done = quote.Quotes(record), {}
    for role, draft in drafts.items():
        path = folder / document_of(role)
        if not path.exists() and not path.is_symlink():
            write_bytes(path, draft.encode())
            done[document_of(role)] = "written"
            continue
        before = _text(folder, role)
        after = quote.fill(before, quotes)
        if after != before:
            write_bytes(path, after.encode())
        done[document_of(role)] = "kept" if after == before else "filled in"
    return done


def document_problems(folder: Path, record: Record) -> list[Problem]:
    """Where the documents that are there do not say what the packet says."""
    if (folder / DOCUMENTS).is_symlink():
        return [Problem(path=DOCUMENTS, kind="link", text="is a link; not followed")]
    problems: list[Problem] = []
    quotes: quote.Quotes | None = None
    for role in ROLES:
        path = folder / document_of(role)
        if not path.exists() and not path.is_symlink():
            continue
        quotes = quotes or quote.Quotes(record)
        try:
            faults = quote.check(_text(folder, role), quotes)
        except PacketError as error:
            problems.append(_problem(role, error.what))
            continue
        problems += [_problem(role, f"line {fault.line}: {fault.text}") for fault in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            problems.append(_problem(role, f"and {len(faults) - _MOST_FAULTS} more such lines"))
    return problems


def _text(folder: Path, role: Role) -> str:
    data = read_regular(folder / document_of(role), LARGEST_DOCUMENT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PacketError(
            f"{role}.md is not UTF-8 text: byte {error.start}", where=document_of(role), fix="save it as UTF-8"
        ) from error


def _refuse_link(folder: Path) -> None:
    if (folder / DOCUMENTS).is_symlink():
        raise PacketError(
            "the folder of documents is a link", where=str(folder / DOCUMENTS), fix="replace it by a real folder"
        )


def _problem(role: Role, text: str) -> Problem:
    return Problem(path=document_of(role), kind="document", text=text)
