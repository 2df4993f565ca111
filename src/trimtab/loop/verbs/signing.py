"""Signing: an owner's own signature under a packet, and the drafts of what the owners close with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trimtab import __version__
from trimtab.domain.packet import Record
from trimtab.domain.signoff import Signed
from trimtab.domain.verdict import ROLE_TITLES, Role
from trimtab.errors import DocumentError, PacketError, UsageError
from trimtab.loop.verbs.comparing import sealed_record
from trimtab.report.documents import drafts
from trimtab.store import sign
from trimtab.store.documents import document_problems, write_drafts
from trimtab.store.manifest import MANIFESTS, renew_view
from trimtab.store.packet import build_manifest, verify
from trimtab.store.study import load_study, seconds
from trimtab.store.verification import Verification, examine


def draft_documents(packet: Path) -> dict[str, str]:
    """Put the owners' documents beside the evidence; what is there is kept. Returns path -> what was done."""
    record = sealed_record(packet)
    if record.verdict is None:
        raise _undecided(packet, record)
    if not (packet / MANIFESTS["views"]).exists():
        build_manifest(packet, "views", __version__)
    done = write_drafts(packet, record, drafts(record))
    for path, what in done.items():
        if what != "kept":
            renew_view(packet, path)
    return done


def _undecided(packet: Path, record: Record) -> PacketError:
    if record.study.workload.target:
        what, fix = (
            "one server alone gives no verdict",
            "hold two packets against each other: trimtab compare OLD NEW --gate",
        )
        return PacketError(what, where=str(packet), fix=fix)
    return PacketError("nothing is decided yet", where=str(packet), fix="run the study to its end first")


def verify_packet(packet: Path, study: Path | None) -> Verification:
    """Everything that can be checked offline. With ``study`` its keys and policy count, not the packet's own."""
    return examine(packet, datetime.now(UTC), load_study(study) if study else None)


def sign_packet(
    packet: Path,
    role: Role,
    key: Path,
    *,
    passphrase: Callable[[], str],
    dissent: str = "",
    expires: str | None = None,
) -> Signed:
    """Sign ``packet`` as ``role`` with the private key in the file ``key``; ``passphrase`` is asked only if it is
    locked.

    Refused: a packet that is not as it was sealed, an undecided one, a missing document, one that says something else
    than the packet, a key that is not the role's, a role that has signed. The own document's present text is signed and
    becomes part of the manifest of views.
    """
    record = sealed_record(packet)
    if record.verdict is None or record.proposal is None:
        raise _undecided(packet, record)
    _check_document(packet, record, role)
    _check_views(packet)
    length = seconds(expires or record.study.signoff.expires, "--expires" if expires else "signoff.expires")
    if dissent and not dissent.isprintable():
        raise UsageError(
            "a reason is one line of printable text", where="--dissent", fix="write it in plain characters"
        )
    private = sign.load_key(key, passphrase() if sign.is_locked(key) else None)
    now = datetime.now(UTC)
    signed = sign.sign(
        packet, record.study, role, private, now=now, expires=now + timedelta(seconds=length), dissent=dissent
    )
    renew_view(packet, sign.document_of(role))
    return signed


def _check_document(packet: Path, record: Record, role: Role) -> None:
    path = sign.document_of(role)
    if not (packet / path).exists():
        raise DocumentError(
            f"the {ROLE_TITLES[role]} closes with a document, and there is none",
            where=f"{packet / path}",
            fix=f"`trimtab draft {packet}` writes a draft; edit it, then sign",
        )
    wrong = [problem for problem in document_problems(packet, record) if problem.path == path]
    if wrong:
        raise DocumentError(
            f"the document does not say what the packet says: {wrong[0].text}",
            where=f"{packet / path}",
            fix="`trimtab verify` lists every such line; correct them, then sign",
        )


def _check_views(packet: Path) -> None:
    """Every view must be as it was made, but for the documents: their owners are at work on them."""
    if not (packet / MANIFESTS["views"]).exists():
        build_manifest(packet, "views", __version__)
    documents = f"{sign.DOCUMENTS}/"
    others = [problem for problem in verify(packet, "views") if not problem.path.startswith(documents)]
    if others:
        raise PacketError(
            f"a view is not as it was made: {others[0]}",
            where=str(packet),
            fix="`trimtab report` makes the page and the manifest of views anew",
        )
