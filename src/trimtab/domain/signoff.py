"""Sign-off: who has signed a packet, and what the study's policy still asks for (R20, R25-R27)."""

from __future__ import annotations

from trimtab.domain.noun import Noun
from trimtab.domain.study import Study
from trimtab.domain.verdict import ROLE_TITLES, ROLES, Role


class Signed(Noun, frozen=True, kw_only=True):
    """One valid signature. ``key`` is the fingerprint that ``ssh-keygen -l`` prints; ``signed`` and ``expires`` are the
    signer's own clock (UTC, ISO 8601). A ``dissent`` is a signature against: it is kept, and does not count for."""

    role: Role
    name: str
    key: str
    signed: str
    expires: str
    dissent: str = ""


class Signatures(Noun, frozen=True, kw_only=True):
    """The valid signatures of a packet against its policy. ``reduced`` says why this is less than three owners."""

    required: tuple[Role, ...]
    signed: tuple[Signed, ...]
    reduced: str = ""

    @property
    def missing(self) -> tuple[Role, ...]:
        """Required roles that have not signed at all."""
        there = {one.role for one in self.signed}
        return tuple(role for role in self.required if role not in there)

    @property
    def against(self) -> tuple[Signed, ...]:
        """Those who signed with a dissent, required or not."""
        return tuple(one for one in self.signed if one.dissent)

    @property
    def complete(self) -> bool:
        """Every required role has signed, and none of them dissents."""
        return not self.missing and not any(one.role in self.required for one in self.against)


def reduced(study: Study) -> str:
    """Why the policy of ``study`` asks for less than three people; empty where it does not."""
    required = tuple(dict.fromkeys(study.signoff.require))
    words = []
    if len(required) < len(ROLES):
        asked = " and ".join(ROLE_TITLES[role] for role in required) or "nobody"
        words.append(f"only {asked} must sign")
    for group in _one_key(study):
        words.append(f"one person signs as {' and '.join(ROLE_TITLES[role] for role in group)}")
    return "; ".join(words)


def shared_keys(study: Study) -> tuple[tuple[Role, Role], ...]:
    """Pairs of roles with one key although the study does not name the same person for both."""
    pairs = [(group[0], role) for group in _one_key(study) for role in group[1:]]
    named = study.owners
    return tuple((a, b) for a, b in pairs if not named.get(a) or named.get(a) != named.get(b))


def _one_key(study: Study) -> list[list[Role]]:
    """Groups of roles that share a key; the comment after a key means nothing."""
    groups: dict[tuple[str, ...], list[Role]] = {}
    for role, key in study.signoff.keys.items():
        groups.setdefault(tuple(key.split()[:2]), []).append(role)
    return [group for group in groups.values() if len(group) > 1]
