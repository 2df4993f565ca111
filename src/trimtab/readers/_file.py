"""Input files, plain or gzipped, as streams; every way in which they can be broken becomes a DataError."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from trimtab.errors import DataError, did_you_mean

LONGEST_LINE = 4 << 20
"""Bytes. A longer line is not a row of a trace, and a small gzip file may hold one that fills the memory."""
BLOCK = 1 << 20
HARMLESS = 256 << 20
MOST_PACKED = 200
"""Text of machines packs 10 to 50 times. What grows beyond both of these was made to fill a disk or a day."""
_GZIP = b"\x1f\x8b"


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes, hex."""
    with data_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_file(path: Path, key: str) -> None:
    """DataError if ``path`` is not a file that holds something; ``key`` is the study's key that names it."""
    if not path.is_file():
        names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"there is no file {path.name}", where=f"{path}; {key}", fix=near(path.name, names))
    if path.stat().st_size == 0:
        raise DataError(f"{path.name} is empty", where=f"{path}; {key}", fix="give a file that holds rows")


def near(word: str, known: Iterable[str]) -> str:
    """A sentence that names what was probably meant."""
    names = list(known)
    listed = f"found there: {', '.join(names[:20])}" if names else "check the path"
    return did_you_mean(word, names) or listed


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of ``path``, decompressed if its name ends with .gz or its content says so."""
    with data_errors(path), path.open("rb") as plain:
        if path.suffix != ".gz" and plain.read(len(_GZIP)) != _GZIP:
            plain.seek(0)
            yield plain
            return
        plain.seek(0)
        with gzip.open(plain, "rb") as packed:
            yield cast(BinaryIO, packed)


def first_bytes(path: Path, most: int) -> bytes:
    """The first bytes, at most ``most``, decompressed."""
    with open_bytes(path) as file:
        return file.read(most)


def blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The bytes in blocks. DataError for a gzip file that unpacks to absurdly much."""
    size, total = path.stat().st_size, 0
    while block := file.read(BLOCK):
        total += len(block)
        _refuse_bomb(path, size, total)
        yield block


def _refuse_bomb(path: Path, size: int, total: int) -> None:
    if total > HARMLESS and total > MOST_PACKED * size:
        raise DataError(
            f"{path.name} unpacks to more than {MOST_PACKED} times its size",
            where=str(path),
            fix="unpack it yourself if you trust it, and give the unpacked file",
        )


@contextmanager
def data_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system or the decompressor raises into a DataError that names ``path``."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            "the gzip file ends too early", where=str(path), fix="copy or download it again; check it with gzip -t"
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"not a valid gzip file: {error}", where=str(path), fix="check it with gzip -t, or remove .gz from its name"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot read the file: {error.strerror or error}", where=str(path), fix="check the path, its permissions"
        ) from error


def byte_lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends. DataError for one that is too long to be a row."""
    number, size, total = 0, path.stat().st_size, 0
    while line := file.readline(LONGEST_LINE + 1):
        number, total = number + 1, total + len(line)
        _refuse_bomb(path, size, total)
        if len(line) > LONGEST_LINE:
            raise _too_long(path, number)
        yield line


class Lines(Iterator[bytes]):
    """The same lines one by one or, between them, in blocks of whole ones; ``number`` = how many were read."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.number = 0
        self._path, self._file = path, file
        self._size, self._total = path.stat().st_size, 0

    def __next__(self) -> bytes:
        line = self._file.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        if len(line) > LONGEST_LINE:
            raise _too_long(self._path, self.number + 1)
        return self._counted(line)

    def block(self) -> bytes:
        """The next lines, about BLOCK bytes of them; empty at the end."""
        block = self._file.read(BLOCK)
        tail = b"" if block.endswith(b"\n") else self._file.readline(LONGEST_LINE + 1)
        begun = len(block) - block.rfind(b"\n") - 1
        if begun + len(tail) > LONGEST_LINE:
            raise _too_long(self._path, self.number + block.count(b"\n") + 1)
        return self._counted(block + tail)

    def _counted(self, data: bytes) -> bytes:
        self.number += data.count(b"\n") + (data[-1:] not in (b"\n", b""))
        self._total += len(data)
        _refuse_bomb(self._path, self._size, self._total)
        return data


def _too_long(path: Path, number: int) -> DataError:
    return DataError(
        f"line {number} is longer than {LONGEST_LINE >> 20} MiB",
        where=str(path),
        fix="is this a text file with one row a line?",
    )


def whole(path: Path, most: int) -> bytes:
    """All bytes of a file that must be small enough to hold: DataError beyond ``most``."""
    out = bytearray()
    with open_bytes(path) as file:
        for block in blocks(path, file):
            out += block
            if len(out) > most:
                raise DataError(
                    f"{path.name} is larger than {most >> 20} MiB", where=str(path), fix="give the file of one run"
                )
    return bytes(out)
