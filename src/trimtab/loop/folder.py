"""A packet's folder: nobody else's, and one run at a time in it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trimtab.errors import MachineError, UsageError
from trimtab.store.checkpoint import PROGRESS


def refuse_foreign(folder: Path, home: Path) -> None:
    """A packet has a folder of its own: what is there and is not a packet stays untouched. ``home`` is the study's."""
    if folder.is_dir() and folder.resolve() == home.resolve():
        raise UsageError("the study lies in this folder", where=str(folder), fix="give a folder of its own with --out")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PROGRESS).is_dir():
        raise UsageError(
            "this folder holds other files and no packet", where=str(folder), fix="give an empty folder with --out"
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One loop at a time in a folder: two would measure each other."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PROGRESS / "lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(
                "another trimtab is running in this folder", where=str(folder), fix="wait for it, or give another --out"
            ) from None
        yield
