"""A small sealed packet with a decision, its owners' throwaway keys, and their documents. No measurement is in it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from store_examples import STUDY, trace, workload

from trimtab.domain.figure import Figure, Findings, Interval
from trimtab.domain.study import Study
from trimtab.domain.verdict import ROLES, MatrixCell, Move, Proposal, Role, Verdict
from trimtab.store import sign
from trimtab.store.packet import Packet, build_manifest
from trimtab.store.study import parse_study

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=30)
EFFECT = Figure(
    id="validate.primary",
    value=-0.766,
    unit="share",
    samples=900,
    scope="held-out",
    artifact="traces",
    interval=Interval(lo=-0.848, hi=-0.673),
)
CELL = MatrixCell(
    id="primary", slice="held-out", condition="normal", metric="p95", role="primary", status="pass", change=-0.766
)


def key(name: str) -> Ed25519PrivateKey:
    """The throwaway key of ``name``: always the same, so that a failing example can be repeated."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def public(private: Ed25519PrivateKey, comment: str = "") -> str:
    line = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return f"{line} {comment}".strip()


def write_key(path: Path, private: Ed25519PrivateKey, passphrase: bytes | None = None) -> Path:
    """The private key as ssh-keygen writes it."""
    lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, lock))
    return path


def study_text(owners: dict[Role, str] | None = None, require: tuple[Role, ...] = ROLES) -> str:
    """The examples' study with an owner and a key for each role; ``owners`` maps a role to whose key it is."""
    named = owners or {role: f"{role}-person" for role in ROLES}
    lines = ["[owners]", *(f'{role} = "{name}"' for role, name in named.items()), "", "[signoff]"]
    lines += [f"require = {list(require)}", 'expires = "30d"', "[signoff.keys]"]
    lines += [f'{role} = "{public(key(name), name)}"' for role, name in named.items()]
    return STUDY + "\n" + "\n".join(lines).replace("'", '"') + "\n"


def proposal(study: Study) -> Proposal:
    move = Move(kind="warm", sentence="Warm 8 shapes at start.", owner="runtime", plan=study.baseline, size=108)
    return Proposal(
        move=move, baseline="today", expected=EFFECT, measured=EFFECT, rollback="Go back to plan today.", rejected=()
    )


def verdict(decision: str = "ship") -> Verdict:
    return Verdict(
        decision=decision,  # type: ignore[arg-type]
        reason="" if decision == "ship" else "inconclusive",
        sentence="Ship: warm 8 shapes at start.",
        deciding=("primary",),
        cells=(CELL,),
        scope=("held-out",),
        not_covered=(),
        risks=(),
    )


def sealed(folder: Path, text: str | None = None, decision: str = "ship") -> Path:
    """A packet with documents, sealed and unsigned."""
    text = text or study_text()
    packet, study = Packet(folder), parse_study(text)
    packet.write_study(text.encode(), study)
    packet.write_plan(study.baseline)
    packet.write_findings(Findings(stage="validate", headline="The primary cell passes.", figures=(EFFECT,)))
    packet.write_workload(workload())
    packet.write_trace(trace())
    packet.write_proposal(proposal(study))
    packet.write_verdict(verdict(decision))
    (folder / "report.html").write_text("<p>view</p>")
    (folder / "documents").mkdir()
    for role in ROLES:
        told = "p95 changes by −76.6 % [−84.8, −67.3]<!-- validate.primary -->."
        (folder / "documents" / f"{role}.md").write_text(f"# {role}\n\n{told}\n")
    build_manifest(folder, "evidence", "0.1", created="2030-01-01T00:00:00+00:00")
    build_manifest(folder, "views", "0.1", created="2030-01-01T00:00:00+00:00")
    return folder


def sign_as(folder: Path, role: Role, private: Ed25519PrivateKey, dissent: str = "") -> None:
    study = parse_study((folder / "study.toml").read_text())
    sign.sign(folder, study, role, private, now=NOW, expires=LATER, dissent=dissent)


def signed(folder: Path) -> Path:
    """The same, signed by all three."""
    sealed(folder)
    for role in ROLES:
        sign_as(folder, role, key(f"{role}-person"))
    return folder
