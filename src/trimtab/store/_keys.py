"""OpenSSH ed25519 public keys as texts: ``ssh-ed25519 AAAA... comment``. No cryptography is needed to read one."""

from __future__ import annotations

import base64
import binascii
import hashlib

KIND = "ssh-ed25519"
_HEAD = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"
_LENGTH = 32


def raw_key(text: str) -> bytes | None:
    """The 32 bytes of the public key in ``text``; None if that is not an ed25519 key as OpenSSH writes it."""
    blob = _blob(text)
    if blob is None or not blob.startswith(_HEAD) or len(blob) != len(_HEAD) + _LENGTH:
        return None
    return blob[len(_HEAD) :]


def fingerprint(text: str) -> str:
    """``SHA256:...``, as ``ssh-keygen -l`` prints it; empty for what is no key."""
    blob = _blob(text)
    if blob is None:
        return ""
    return f"SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}"


def _blob(text: str) -> bytes | None:
    parts = text.split(maxsplit=2)
    if len(parts) < 2 or parts[0] != KIND:
        return None
    try:
        return base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        return None
