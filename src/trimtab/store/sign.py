"""Signatures of owners: one DSSE envelope a role, made with the owner's own OpenSSH ed25519 key.

An owner signs three digests: of ``manifest.json`` (the evidence), of the decision (the digests of ``proposal.json`` and
``verdict.json``, one a line), and of the own document; the first two are therefore the same for all. The statement
also says who signs as what, when, until when, and, for a signature against the decision, why. A role's public key is in
the study, which is evidence: whoever wants more than the packet's own word for the keys gives a study of his own.

A signature attests that the owner stands by this record. It does not attest the machine that measured it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from msgspec.structs import replace
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # re-exported without a mark

from trimtab.domain.signoff import Signed, shared_keys
from trimtab.domain.study import Study
from trimtab.domain.verdict import ROLE_TITLES, ROLES, Role
from trimtab.errors import PacketError, SignatureError
from trimtab.store._keys import fingerprint, raw_key
from trimtab.store._regular import read_regular
from trimtab.store._statement import DECISION, Terms, compare, in_time, seal, unseal
from trimtab.store._write import is_temporary, write_bytes
from trimtab.store.manifest import MANIFESTS, Problem

FOLDER = "signatures"
DOCUMENTS = "documents"
LARGEST_DOCUMENT = 4 << 20
_LARGEST = 64 << 10
_MOST = 64


def document_of(role: Role) -> str:
    """The path, inside a packet, of the document that ``role`` closes with."""
    return f"{DOCUMENTS}/{role}.md"


def signature_of(role: Role) -> str:
    """The path, inside a packet, of the signature of ``role``."""
    return f"{FOLDER}/{role}.json"


def load_key(path: Path, passphrase: str | None) -> Ed25519PrivateKey:
    """The OpenSSH ed25519 private key in ``path``. SignatureError says what is wrong with it."""
    data = _key_bytes(path)
    try:
        key = load_ssh_private_key(data, passphrase.encode() if passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        closed = passphrase and not isinstance(error, UnsupportedAlgorithm)
        raise SignatureError(
            "the passphrase does not open this private key, or the key is damaged"
            if closed
            else f"cannot read the private key: {error}",
            where=str(path),
            fix="give an OpenSSH ed25519 key (ssh-keygen -t ed25519) and its passphrase",
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(
            "this is no ed25519 key",
            where=str(path),
            fix="make one with ssh-keygen -t ed25519; its .pub goes into the study",
        )
    return key


def is_locked(path: Path) -> bool:
    """Whether the private key in ``path`` is protected by a passphrase."""
    try:
        load_ssh_private_key(_key_bytes(path), None)
    except TypeError:
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False  # no key at all: loading it says so
    return False


def sign(
    folder: Path,
    study: Study,
    role: Role,
    key: Ed25519PrivateKey,
    *,
    now: datetime,
    expires: datetime,
    dissent: str = "",
) -> Signed:
    """Write the signature of ``role``. SignatureError if the key is not the one that the study names for it, or if the
    role has signed already. Whether the packet is worth signing is for the caller to check first."""
    public = _named(study, role)
    if key.public_key().public_bytes_raw().hex() != public.keyval["public"]:
        raise SignatureError(
            f"this is not the key that the study names for the {ROLE_TITLES[role]}, {public.keyid}",
            where=f"signoff.keys.{role}",
            fix="sign with that key, or correct the study and run it again (only the decision is made anew)",
        )
    path = folder / signature_of(role)
    if path.is_symlink() or path.parent.is_symlink() or path.exists():
        raise SignatureError(
            f"the {ROLE_TITLES[role]} has signed already",
            where=str(path),
            fix="remove that file if the signature is withdrawn, then sign again",
        )
    terms = Terms(
        study=study.name,
        role=role,
        name=study.owners.get(role, ""),
        signed=_iso(now),
        expires=_iso(expires),
        dissent=dissent,
    )
    write_bytes(path, seal(subjects(folder, role), terms, CryptoSigner(key, public)))
    return _signed(terms, public.keyid)


def subjects(folder: Path, role: Role) -> dict[str, str]:
    """What ``role`` signs: name -> SHA-256 of the evidence, of the decision, of the own document. PacketError if one
    of them is missing."""
    decision = "".join(f"{_sha(folder / name)}\n" for name in ("proposal.json", "verdict.json"))
    document = document_of(role)
    return {
        MANIFESTS["evidence"]: _sha(folder / MANIFESTS["evidence"]),
        DECISION: hashlib.sha256(decision.encode()).hexdigest(),
        document: hashlib.sha256(read_regular(folder / document, LARGEST_DOCUMENT)).hexdigest(),
    }


def examine(folder: Path, study: Study, keys: Mapping[Role, str], now: datetime) -> tuple[list[Signed], list[Problem]]:
    """The signatures of a packet that hold for it as it is now, and what is wrong with the others.

    ``keys`` are the public keys to trust: those of the packet's own study, or of a study that the reader trusts.
    """
    if (folder / FOLDER).is_symlink():
        return [], [Problem(path=FOLDER, kind="link", text="is a link; not followed")]
    valid: list[Signed] = []
    problems = [
        _problem(
            f"signoff.keys.{b}", f"is the key of the {ROLE_TITLES[a]} too, and the study names no one person for both"
        )
        for a, b in shared_keys(study)
    ]
    for path in _present(folder):
        role = next((role for role in ROLES if path == signature_of(role)), None)
        if role is None:
            problems.append(_problem(path, "belongs to no role"))
            continue
        try:
            valid.append(_checked(folder, study, role, keys, now))
        except (SignatureError, PacketError) as error:
            problems.append(_problem(path, error.what))
    return valid, problems


def _checked(folder: Path, study: Study, role: Role, keys: Mapping[Role, str], now: datetime) -> Signed:
    data = read_regular(folder / signature_of(role), _LARGEST)
    key = _public(keys.get(role, ""))
    if key is None:
        raise SignatureError(f"no key is known for the {ROLE_TITLES[role]}")
    stated, terms = unseal(data, key)
    here = Terms(study=study.name, role=role, name=study.owners.get(role, ""), signed="", expires="")
    if replace(terms, signed="", expires="", dissent="") != here:
        raise SignatureError(f"was made by the {ROLE_TITLES[terms.role]} of study {terms.study}, not for this")
    compare(stated, subjects(folder, role))
    in_time(terms, now)
    return _signed(terms, key.keyid)


def _named(study: Study, role: Role) -> SSlibKey:
    """The key that the study names for ``role``. SignatureError if it names none."""
    key = _public(study.signoff.keys.get(role, ""))
    if key is None:
        raise SignatureError(
            f"the study names no ed25519 key for the {ROLE_TITLES[role]}",
            where=f"signoff.keys.{role}",
            fix="put the line of the .pub file there and run the study again (only the decision is made anew)",
        )
    return key


def _public(text: str) -> SSlibKey | None:
    raw = raw_key(text)
    return None if raw is None else SSlibKey(fingerprint(text), "ed25519", "ed25519", {"public": raw.hex()})


def _present(folder: Path) -> list[str]:
    """What lies in the folder of signatures; of a great many only some, each of which is a problem anyway."""
    home = folder / FOLDER
    if not home.is_dir():
        return []
    listed = (f"{FOLDER}/{path.name}" for path in home.iterdir() if not is_temporary(path))
    return sorted(islice(listed, _MOST))


def _key_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST)
    except OSError as error:
        raise SignatureError(
            f"cannot read the private key: {error.strerror}", where=str(path), fix="check the path and its permissions"
        ) from error


def _sha(path: Path) -> str:
    return hashlib.sha256(read_regular(path)).hexdigest()


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _signed(terms: Terms, keyid: str) -> Signed:
    return Signed(
        role=terms.role,
        name=terms.name,
        key=keyid,
        signed=terms.signed,
        expires=terms.expires,
        dissent=terms.dissent,
    )


def _problem(path: str, text: str) -> Problem:
    return Problem(path=path, kind="signature", text=text)
