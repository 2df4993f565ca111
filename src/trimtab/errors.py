"""What can go wrong for a user, as one exception type per kind of fault.

Every sentence an engineer reads when something fails has three parts: *what* happened, *where* (file, key,
row, worker), and *how to fix it*. Only :mod:`trimtab.cli` prints these and exits; each kind has its own exit code,
so that a script can tell a typing mistake from a broken trace.
"""

from __future__ import annotations

from collections.abc import Iterable


class TrimtabError(Exception):
    """A fault that the user can understand and act on.

    ``what`` is one sentence; ``where`` names the file, key, row or process; ``fix`` says what to do next.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"where: {self.where}")
        if self.fix:
            parts.append(f"fix: {self.fix}")
        return "\n".join(parts)


class UsageError(TrimtabError):
    """The command line asks for something that does not exist."""

    exit_code = 2


class StudyError(TrimtabError):
    """The study file is wrong: an unknown key, a wrong type, a core that does not exist."""

    exit_code = 3


class DataError(TrimtabError):
    """A trace, payload bank or other input file cannot be used."""

    exit_code = 4


class ModelError(TrimtabError):
    """The network is missing, broken, or does not have the inputs that the study names."""

    exit_code = 5


class MissingTool(TrimtabError):  # noqa: N818 - reads as the fact it states
    """A runtime or an optional package is not installed."""

    exit_code = 6


class MachineError(TrimtabError):
    """This machine refused: full disk, core outside the affinity mask, no permission, out of memory."""

    exit_code = 7


class PacketError(TrimtabError):
    """A packet is incomplete, altered, or written by an incompatible version."""

    exit_code = 8


class RunError(TrimtabError):
    """A stage could not finish, although its inputs were fine (every worker died, every request failed)."""

    exit_code = 9


class SignatureError(TrimtabError):
    """A signature is not what it claims: foreign key, other evidence, edited document, expired; or a key of no use."""

    exit_code = 10


class SignOffError(TrimtabError):
    """The packet is intact, but the owners whom its policy asks for have not all signed, or one of them dissents."""

    exit_code = 11


class DocumentError(TrimtabError):
    """An owner's document says something else than the packet, or is missing."""

    exit_code = 12


INTERRUPTED = 130
"""The exit code after Ctrl-C, which is nobody's fault."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean `queue` or `queued`?``: up to three known words near ``word``; empty where none is near."""
    from difflib import get_close_matches  # not at start-up: only a mistake needs it

    close = get_close_matches(word, list(known), n=3)
    return f"did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else ""


def said(error: BaseException) -> str:
    """What an error that is none of ours says, after the name of its type: many say nothing without it."""
    return f"{type(error).__name__}: {error}"
