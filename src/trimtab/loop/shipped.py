"""A shipped change, as the packet that shipped it tells it to the run that judges it while it serves."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.domain.verdict import Move, Proposal


@dataclass(frozen=True)
class Shipped:
    """``manifest`` = SHA-256 of the packet's manifest, ``created`` = when it was sealed (ISO 8601)."""

    manifest: str
    created: str
    proposal: Proposal

    @property
    def move(self) -> Move:
        return self.proposal.move
