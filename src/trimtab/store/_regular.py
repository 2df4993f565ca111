"""Reading files that a stranger may have made: regular ones only, never through a link, never more than is allowed.

A device, a pipe or a link that lies where a file should be is refused before a byte is read. The checks are made on the
opened file, so that it cannot be exchanged in between.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

from trimtab.errors import PacketError

LARGEST_JSON = 256 << 20
LARGEST_FILE = 16 << 30
LARGEST_PACKET = 64 << 30
MOST_FILES = 100_000


def open_regular(path: Path) -> BufferedReader:
    """``path`` opened for reading. OSError if it cannot be opened, is a link, or is no regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(handle, "rb")


def read_regular(path: Path, most: int = LARGEST_JSON) -> bytes:
    """The bytes of a regular file of at most ``most`` bytes. PacketError says why not."""
    try:
        with open_regular(path) as file:
            data = file.read(most + 1)
    except OSError as error:
        why = f"{path.name} is a link" if error.errno == errno.ELOOP else f"cannot read {path.name}: {error.strerror}"
        raise PacketError(why, where=str(path), fix="copy the packet again") from error
    if len(data) > most:
        raise PacketError(f"{path.name} is larger than {most} bytes", where=str(path), fix="do not use this packet")
    return data


def digest_regular(path: Path) -> str:
    """SHA-256 of a regular file, hex. OSError as for :func:`open_regular`."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
