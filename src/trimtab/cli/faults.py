"""Faults that are not raised as ours: what the command line's parser and the operating system refuse, in our words."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from trimtab.errors import MachineError, UsageError

_FIXES = {
    errno.ENOSPC: "free some room; everything written so far is kept, so run the same command again",
    errno.EDQUOT: "the quota is used up; free some room and run the same command again",
    errno.EACCES: "check the permissions of that path",
    errno.EPERM: "check the permissions of that path",
    errno.EROFS: "choose a folder that can be written with --out",
    errno.ENOENT: "check the path",
    errno.EEXIST: "that path is a file; name a folder",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "a part of that path is a file",
    errno.ENAMETOOLONG: "a part of that path is too long for a file name; name a shorter one",
    errno.ELOOP: "that path is a link that leads back to itself",
    errno.EIO: "the disk does not answer as it should; choose another one with --out",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.ENOMEM: "free some memory, or take fewer requests: workload.limit in the study",
}
OUT_OF_MEMORY = MachineError("out of memory", fix=_FIXES[errno.ENOMEM])


def require_text(argv: Sequence[str]) -> None:
    """UsageError for a name whose bytes are no UTF-8: no JSON, page or table could hold it."""
    for word in argv:
        shown = word.encode(errors="replace").decode()
        if shown != word:
            raise UsageError("this name is not UTF-8 text", where=shown, fix="rename the file or the folder")


def of_command(error: CycloptsError) -> UsageError:
    """What the parser does not understand, and whose help says more."""
    verb = " ".join(error.command_chain or ())
    return UsageError(_said(error, verb), fix=f"trimtab {verb} --help" if verb else "trimtab --help")


def _said(error: CycloptsError, verb: str) -> str:
    if isinstance(error, UnusedCliTokensError):
        return f"{verb} takes nothing more, and was given {' '.join(error.unused_tokens or ())}"
    if isinstance(error, MissingArgumentError) and error.keyword:
        return f"{error.keyword} needs a value"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name, option = error.argument.name, not error.argument.field_info.is_positional
        return f"{verb} needs {name if option else name.lstrip('-').upper()}"
    return str(error)


def of_system(error: OSError) -> MachineError:
    """The operating system's refusal in our three parts; anything that is not one of these is a bug and is raised."""
    if error.errno not in _FIXES:
        raise error
    return MachineError(error.strerror or str(error), where=str(error.filename or ""), fix=_FIXES[error.errno])
