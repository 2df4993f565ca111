"""What an owner signs: an in-toto Statement in a DSSE envelope, written one way only, so that any altered byte is
found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error as LibraryError
from securesystemslib.signer import Signer, SSlibKey  # type: ignore[attr-defined]  # re-exported without a mark

from trimtab.domain.noun import Noun
from trimtab.domain.verdict import Role
from trimtab.errors import PacketError, SignatureError
from trimtab.store._json import from_json
from trimtab.store.manifest import MANIFESTS

PAYLOAD = "application/vnd.in-toto+json"
DECISION = "proposal.json + verdict.json"
SKEW = timedelta(minutes=5)
"""How far a signer's clock may be ahead of ours."""


class _Digest(Noun, frozen=True, kw_only=True):
    sha256: str


class _Subject(Noun, frozen=True, kw_only=True):
    name: str
    digest: _Digest


class Terms(Noun, frozen=True, kw_only=True):
    """Who signs as what, when and until when (UTC, ISO 8601), and, for a signature against the decision, why."""

    study: str
    role: Role
    name: str
    signed: str
    expires: str
    dissent: str = ""


class _Statement(Noun, frozen=True, kw_only=True):
    type: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(
        name="_type", default="https://in-toto.io/Statement/v1"
    )
    subject: tuple[_Subject, ...]
    predicate_type: Literal["urn:trimtab:sign-off:1"] = msgspec.field(
        name="predicateType", default="urn:trimtab:sign-off:1"
    )
    predicate: Terms


class _Form(Noun, frozen=True, kw_only=True):
    """What an envelope's JSON must look like before a library looks at it."""

    payload: str
    payloadType: str  # noqa: N815 - DSSE's own word
    signatures: tuple[dict[str, str], ...]


def seal(subjects: Mapping[str, str], terms: Terms, signer: Signer) -> bytes:
    """The envelope's file: ``subjects`` (name -> SHA-256) and ``terms``, signed."""
    subject = tuple(_Subject(name=name, digest=_Digest(sha256=sha)) for name, sha in subjects.items())
    envelope = Envelope(msgspec.json.encode(_Statement(subject=subject, predicate=terms)), PAYLOAD, {})
    envelope.sign(signer)
    return _bytes(envelope)


def unseal(data: bytes, key: SSlibKey) -> tuple[dict[str, str], Terms]:
    """The subjects and the terms of an envelope that ``key`` really signed. SignatureError says why not."""
    try:
        from_json(data, _Form)
        envelope = Envelope.from_dict(msgspec.json.decode(data))
        altered = _bytes(envelope) != data or envelope.payload_type != PAYLOAD
        named = sorted(map(str, envelope.signatures))
    except (PacketError, LibraryError, ValueError, KeyError, TypeError) as error:
        raise SignatureError("is not a signature: it was altered") from error
    if altered:
        raise SignatureError("is not written as trimtab writes it: it was altered")
    if named != [key.keyid]:
        raise SignatureError(f"was made with a foreign key, {' and '.join(named) or 'none'}; expected {key.keyid}")
    try:
        envelope.verify([key], 1)
        statement = msgspec.json.decode(envelope.payload, type=_Statement)
    except LibraryError as error:
        raise SignatureError("does not fit what it signs: signature or statement was altered") from error
    except msgspec.DecodeError as error:
        raise SignatureError("signs something that is no statement about a packet") from error
    return {one.name: one.digest.sha256 for one in statement.subject}, statement.predicate


def compare(stated: Mapping[str, str], present: Mapping[str, str]) -> None:
    """SignatureError says which of the three things that were signed has changed since."""
    said = {
        MANIFESTS["evidence"]: "other evidence was signed: manifest.json has changed since",
        DECISION: "another decision was signed: proposal or verdict has changed since",
    }
    for name, sha256 in present.items():
        if stated.get(name) != sha256:
            raise SignatureError(said.get(name, f"{name} was edited after it was signed"))
    if len(stated) != len(present):
        raise SignatureError("signs more than evidence, decision and document")


def in_time(terms: Terms, now: datetime) -> None:
    """SignatureError if it was made in the future, has expired, or says neither."""
    try:
        signed, expires = datetime.fromisoformat(terms.signed), datetime.fromisoformat(terms.expires)
        early, late = signed > now + SKEW, expires <= now
    except (ValueError, TypeError) as error:
        raise SignatureError("does not say when it was made, or until when it holds") from error
    if early:
        raise SignatureError(f"was made in the future, at {terms.signed}")
    if late:
        raise SignatureError(f"expired at {terms.expires}")


def _bytes(envelope: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(envelope.to_dict()), indent=2) + b"\n"
