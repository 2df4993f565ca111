"""What tests of several rooms need."""

from __future__ import annotations

import ctypes

import pytest

SS_DISABLE = 2


class _Stack(ctypes.Structure):
    """stack_t of signal.h."""

    _fields_ = (("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@pytest.fixture
def own_stack() -> None:
    """Let this thread take signals on its own stack; for tests that send one to their own process.

    OpenVINO leaves the thread that ran a network with another stack for signals, which is gone once the network is
    closed. The next signal is then a segmentation fault. No worker of ours takes any, but this process runs networks of
    other tests.
    """
    libc = ctypes.CDLL(None)
    assert libc.sigaltstack(ctypes.byref(_Stack(None, SS_DISABLE, 0)), None) == 0
