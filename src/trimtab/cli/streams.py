"""The process's own output: signs that a terminal does not have, readers that are gone, disks that are full."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import select
import sys
from pathlib import Path

NOBODY_READS = 141
"""The exit code that a shell gives to a process whose reader is gone."""
_SUBSTITUTES = "trimtab-nearest"
_NEAREST = {
    "−": "-", "–": "-", "…": "...", "→": "->", "×": "x", "µ": "u", "·": "-", "±": "+/-", "∞": "inf",
    "✓": "+", "✗": "x", "✕": "x", "●": "*", "○": "o", "│": "|", "─": "-", "░": ".", "▒": ":", "█": "#",
    "▁": "1", "▂": "2", "▃": "3", "▄": "4", "▅": "5", "▆": "6", "▇": "7",
}  # fmt: skip
"""A minus that became a question mark would be another figure."""


def prepare() -> None:
    """From now on no sign is too many (the nearest that the encoding has is printed), and a closed stream takes all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before we began; the next file would take its place
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - it lives as long as the process
    codecs.register_error(_SUBSTITUTES, _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_SUBSTITUTES)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_NEAREST.get(sign, "?") for sign in signs), error.end


def nobody_reads() -> bool:
    """Whether the reader of standard output or of standard error is gone, as ``head`` is when it has had enough."""
    streams = select.poll()
    for descriptor in (1, 2):
        streams.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in streams.poll(0))


def finish() -> None:
    """Write out what is left; what cannot be written any more is dropped, or Python's own end would complain of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, stream.fileno())
                os.close(nothing)
