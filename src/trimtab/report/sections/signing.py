"""Who answers for what, what each closes with, and whose signature is there. Only valid signatures count as signed."""

from __future__ import annotations

from trimtab.domain.packet import Record
from trimtab.domain.signoff import Signatures, Signed, reduced
from trimtab.domain.verdict import ROLES, Role
from trimtab.report import words
from trimtab.report.book import Book
from trimtab.report.documents import TITLES
from trimtab.report.page import Block, Cell, Column, Grid, Prose, Row, Section


def short(record: Record) -> str:
    """The state of the signatures in a word or two."""
    found = signatures(record)
    if not found.signed:
        return "unsigned"
    if found.against:
        return "signed with dissent"
    return "signed" if found.complete else "not fully signed"


def pending(book: Book, word: str) -> str:
    """What still stands between ``word``, the decision, and doing it; empty where nothing does."""
    found = signatures(book.record)
    against = [f"The {book.owner(one.role)} signed against it: {words.ended(one.dissent)}" for one in found.against]
    asked = [book.owner(role) for role in found.missing]
    once = [f"{word}, once the {words.listed(asked)} {'sign' if len(asked) > 1 else 'signs'}."] if asked else []
    why = [f"Reduced sign-off: {found.reduced}."] if found.reduced else []
    return " ".join((*against, *once, *why))


def signatures(record: Record) -> Signatures:
    """The signatures of the record; none where nobody looked for any."""
    if record.signatures is not None:
        return record.signatures
    required = tuple(dict.fromkeys(record.study.signoff.require))
    return Signatures(required=required, signed=(), reduced=reduced(record.study))


def owners(book: Book) -> Section | None:
    """One row a role, and whose the change is."""
    if book.record.verdict is None:
        return None
    found = signatures(book.record)
    columns = (
        Column(label="Owner"),
        Column(label="Name in the study"),
        Column(label="Closes with"),
        Column(label="Sign-off"),
    )
    blocks: list[Block] = [Grid(columns=columns, rows=tuple(_row(book, found, role) for role in ROLES))]
    proposal = book.record.proposal
    if proposal is not None:
        move = words.ended(proposal.move.sentence)
        blocks.append(Prose(paragraphs=((f"{words.opened(book.owner(proposal.move.owner))}:", move),)))
    return Section(
        id="owners",
        nav="Owners",
        eyebrow="Packet",
        heading=_heading(book, found),
        blocks=tuple(blocks),
        source="A name in this table is an owner, not a signature. A signature attests the record, not the machine.",
    )


def _heading(book: Book, found: Signatures) -> str:
    if not found.signed:
        return "Nobody has signed this record."
    said = f"Signed by the {words.listed([book.owner(one.role) for one in found.signed])}"
    against = words.listed([book.owner(one.role) for one in found.against])
    return f"{said}; the {against} dissents." if found.against else f"{said}."


def _row(book: Book, found: Signatures, role: Role) -> Row:
    signed = next((one for one in found.signed if one.role == role), None)
    missing = "required, not signed" if role in found.required else "not required"
    return Row(
        cells=(
            Cell(text=words.opened(book.owner(role))),
            Cell(text=book.record.study.owners.get(role, "nobody is named")),
            Cell(text=TITLES[role]),
            Cell(text=missing, look="muted") if signed is None else _signature(signed),
        )
    )


def _signature(signed: Signed) -> Cell:
    until = f"{words.moment(signed.signed)}, holds until {words.moment(signed.expires)}; key {signed.key}"
    if signed.dissent:
        return Cell(text=f"against: {signed.dissent}", sub=until, look="fail")
    return Cell(text="signed", sub=until, look="pass")
