"""Rates: how often each client sent, window by window. A table that traffic is drawn from; no request is in it."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """``rate`` and ``cv`` float64[clients, windows]: requests a second, and the coefficient of variation of the gaps
    within that window (nan = not said). ``starts`` float64[windows] and ``width`` in seconds. A window without a row
    has the rate 0."""

    clients: tuple[str, ...]
    starts: NDArray[np.float64]
    width: float
    rate: NDArray[np.float64]
    cv: NDArray[np.float64]
