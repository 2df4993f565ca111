"""What a run must not be disturbed by while it is measured: garbage collection, and Ctrl-C in the middle of a step."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Nothing is collected until the end."""
    enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


@contextlib.contextmanager
def ctrl_c() -> Iterator[threading.Event]:
    """The first Ctrl-C only sets the event; the second is a KeyboardInterrupt. Elsewhere than in the main thread,
    where no handler can be set, Ctrl-C keeps its meaning."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
