"""Names that may become files, and writes that either happen whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trimtab.errors import MachineError, PacketError

_SAFE = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,95}")
_TEMPORARY = ".part"


def is_safe(name: str) -> bool:
    """Whether ``name`` may be a file name: a-z, 0-9, ``.``, ``_``, ``-``; no leading dot; at most 96 characters."""
    return _SAFE.fullmatch(name) is not None and not name.endswith(_TEMPORARY)


def safe_name(name: str) -> str:
    """``name`` itself, if it may be a file name. PacketError otherwise: nothing outside a packet is ever written."""
    if is_safe(name):
        return name
    raise PacketError(
        f"{name!r} cannot be a file name",
        where="a packet's file names",
        fix="use a-z, 0-9, '.', '_' and '-', not starting with a dot, at most 96 characters",
    )


def write_bytes(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` at once. On failure (MachineError) what was there stays as it was."""

    def fill(temporary: Path) -> None:
        temporary.write_bytes(data)

    replace_file(path, fill)


def replace_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Let ``fill`` write a temporary neighbour of ``path``, make it durable, and rename it over ``path``."""
    with machine_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}{_TEMPORARY}")
        try:
            fill(temporary)
            _sync(temporary)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)


def is_temporary(path: Path) -> bool:
    """Whether ``path`` is what a write that was killed half-way left behind."""
    return path.name.endswith(_TEMPORARY)


@contextmanager
def machine_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into a MachineError that names ``path`` and says what to do."""
    try:
        yield
    except OSError as error:
        raise MachineError(_reason(error), where=str(path), fix=_fix(error)) from error


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full; what was on it before is kept"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "no permission to write here"
    return f"cannot write: {error.strerror or error}"


def _fix(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space, or choose another folder with --out, and run the same command again: it resumes"
    return "choose another folder with --out"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
