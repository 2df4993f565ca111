"""The verbs of a release: draft, sign, verify, reproduce, compare.

``verify``, ``reproduce`` and ``compare --gate`` say their outcome with the exit code too, for scripts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trimtab.cli import show
from trimtab.domain.verdict import Role
from trimtab.errors import UsageError

PASSPHRASE = "TRIMTAB_PASSPHRASE"
REPEATED = {"agree": 0, "differ": 1, "inconclusive": 2, "not comparable": 2}
GATED = {"pass": 0, "fail": 1, "inconclusive": 2}


def draft(packet: Path, *, json: bool = False) -> int:
    """Write the owners' documents into a packet: drafts to edit, whose figures are quoted from the evidence.

    A document that is there is never overwritten; only what stands in {{double braces}} is filled in.

    Parameters
    ----------
    packet
        The packet's folder.
    json
        Print the result as JSON.
    """
    from trimtab.loop.verbs.signing import draft_documents

    done = draft_documents(packet)
    if json:
        show.raw_json(done)
    else:
        show.lines(f"{packet / path}: {what}" for path, what in done.items())
    return 0


def sign(
    packet: Path,
    *,
    role: Role,
    key: Path,
    dissent: str = "",
    expires: str | None = None,
    json: bool = False,
) -> int:
    """Sign a packet as one of its owners: evidence, decision, and your own document as it is now.

    A locked key's passphrase is asked for on the terminal, or taken from the environment variable TRIMTAB_PASSPHRASE.

    Parameters
    ----------
    packet
        The packet's folder.
    role
        As whom you sign.
    key
        Your OpenSSH ed25519 private key; its public half stands in the study under signoff.keys.
    dissent
        Sign against the decision, with this reason. It is kept in the packet, and the sign-off is not complete.
    expires
        How long the signature holds, such as 30d or 12h. Default: the study's.
    json
        Print the result as JSON.
    """
    from trimtab.loop.verbs.signing import sign_packet

    signed = sign_packet(packet, role, key, passphrase=_passphrase, dissent=dissent, expires=expires)
    show.signed(packet, signed, as_json=json)
    return 0


def verify(packet: Path, *, study: Path | None = None, json: bool = False) -> int:
    """Check all of a packet, offline: hashes, schema, documents, signatures, policy. Nothing in it is run.

    Exit codes: 0 all holds, 8 altered or broken, 12 a document says something else, 10 a signature does not hold, 11
    the sign-off of a ship is not complete.

    Parameters
    ----------
    packet
        The packet's folder.
    study
        A study's TOML file that you trust: its keys and its policy count instead of those in the packet.
    json
        Print the result as JSON.
    """
    from trimtab.loop.verbs.signing import verify_packet

    return show.verification(verify_packet(packet, study), as_json=json)


def reproduce(
    packet: Path,
    *,
    inputs: Path = Path(),
    out: Path | None = None,
    budget: str | None = None,
    trust: bool = False,
    json: bool = False,
) -> int:
    """Replay a packet's baseline and proposal again, from the same seeds, and hold them against it.

    Exit codes: 0 all primary figures agree, 1 one differs, 2 inconclusive or not comparable.

    Parameters
    ----------
    packet
        The packet's folder.
    inputs
        The folder that the study names its model and payloads from. Default: the working directory.
    out
        Where the new runs go. Default: out/<study name>-again.
    budget
        Wall-clock aim, such as 2m: fewer replays. Default: as many as then.
    trust
        Run code that the packet's study names, such as a function that builds the network.
    json
        Print the result as JSON.
    """
    from trimtab.cli.progress import progress
    from trimtab.loop.verbs.reproducing import reproduce as repeat
    from trimtab.report.comparison import reproduction

    with progress() as meter:
        found = repeat(packet, inputs=inputs, out=out, budget=budget, trust=trust, progress=meter)
    if json:
        show.raw_json(found)
    else:
        show.markdown(reproduction(found))
    return REPEATED[found.outcome]


def compare(old: Path, new: Path, *, gate: bool = False, json: bool = False) -> int:
    """Whether what runs today got worse from one packet to another, as Markdown for a pull request.

    Exit codes with --gate: 0 pass, 1 fail, 2 inconclusive or not comparable. Without it: 0.

    Parameters
    ----------
    old
        The folder of the packet before.
    new
        The folder of the packet after.
    gate
        Say the outcome with the exit code.
    json
        Print the result as JSON.
    """
    from trimtab.loop.verbs.comparing import compare_packets
    from trimtab.report.comparison import gate as summary

    found = compare_packets(old, new)
    if json:
        show.raw_json(found)
    else:
        show.markdown(summary(found))
    return GATED[found.outcome] if gate else 0


VERBS = (draft, sign, verify, reproduce, compare)


def _passphrase() -> str:
    given = os.environ.get(PASSPHRASE)
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise UsageError(
            "the key is locked, and there is no terminal to ask for its passphrase",
            where="--key",
            fix=f"set the environment variable {PASSPHRASE}",
        )
    from getpass import getpass

    return getpass("passphrase of the key: ")
