"""The row log of a running replay: what happened so far survives the death of the process.

One frame a row: length and CRC-32 (little-endian, 4 bytes each), then the row as msgpack. A row is handed to the
operating system before :meth:`TelemetrySink.append` returns, so killing the process loses nothing that was appended; a
power cut may lose what the system had not yet written. A frame that was cut off in the middle ends the log.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from trimtab.errors import PacketError
from trimtab.store._write import machine_errors

_HEAD = struct.Struct("<II")
_LARGEST = 1 << 26
Row = tuple[Any, ...]


class Recovered(NamedTuple):
    """Whole rows, in the order they were logged, and the bytes after the last whole one (0: the log ends cleanly)."""

    rows: list[Row]
    torn_bytes: int


class TelemetrySink:
    """Logs plain tuples into the file ``path``. Opening starts a new log. MachineError if the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.msgpack.Encoder()
        with machine_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)

    def __enter__(self) -> TelemetrySink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, row: Row) -> None:
        """Log one row of plain values (None, bool, int, float, str)."""
        self._write(self._frame(row))

    def extend(self, rows: Sequence[Row]) -> None:
        """Log several rows with one write."""
        if rows:
            self._write(b"".join(map(self._frame, rows)))

    def close(self) -> None:
        """Make the log durable and close it; a second call does nothing."""
        if self._file.closed:
            return
        with machine_errors(self._path):
            os.fsync(self._file.fileno())
            self._file.close()

    def _frame(self, row: Row) -> bytes:
        body = self._encoder.encode(row)
        if len(body) > _LARGEST:
            raise ValueError(f"a row of {len(body)} bytes is not telemetry")
        return _HEAD.pack(len(body), zlib.crc32(body)) + body

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with machine_errors(self._path):
            try:
                while view:
                    view = view[self._file.write(view) :]
            except OSError:
                self._file.close()  # nothing can follow a torn frame
                raise


def recover(path: Path) -> Recovered:
    """What a log holds, up to the first frame that is torn or altered. PacketError if there is no log."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PacketError(
            f"cannot read the telemetry: {error.strerror}", where=str(path), fix="run the replay again"
        ) from error
    decoder = msgspec.msgpack.Decoder(list[Any])
    rows: list[Row] = []
    at = 0
    while (body := _body(data, at)) is not None:
        rows.append(tuple(decoder.decode(body)))
        at += _HEAD.size + len(body)
    return Recovered(rows, len(data) - at)


def _body(data: bytes, at: int) -> bytes | None:
    start = at + _HEAD.size
    if start > len(data):
        return None
    length, crc = _HEAD.unpack_from(data, at)
    if length > _LARGEST or start + length > len(data) or length == 0:
        return None
    body = data[start : start + length]
    return body if zlib.crc32(body) == crc else None
