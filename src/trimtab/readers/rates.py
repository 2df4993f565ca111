"""ServeGen's table of rates: one row for each client and window, with its rate and how bursty its gaps are.

Windows are as wide as the least distance between two of their starts; a client without a row in a window sent nothing
there, as rows of rate 0 are often left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.rates import Rates
from trimtab.errors import DataError
from trimtab.readers._cells import Cells, number_cells, stream_cells
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._spans import report
from trimtab.readers._table import read_table
from trimtab.readers._values import Place

NAME = "ServeGen rates"
_KEY = "the table of rates"
CLIENT, START, RATE, CV = "client", "window_start_s", "rate_rps", "cv"
NO_RATE = "no client, window or rate"
TWICE = "a window that its client has already"
MOST_CELLS = 5_000_000
LATEST = 1e10  # s
UNEVEN = 1e-3


def holds(headers: Sequence[str]) -> bool:
    """Whether a table with these headers holds rates."""
    return {CLIENT, START, RATE} <= set(headers)


def read_rates(path: Path, headers: Sequence[str], *, strict: bool = False) -> tuple[Rates, ReadReport]:
    """The rates of ``path``, which has these ``headers``, and how they were read. DataError where there are none."""
    clients = stream_cells(Place(path, CLIENT, _KEY))
    cells: dict[str, Cells] = {CLIENT: clients}
    cells |= {name: number_cells(Place(path, name, _KEY)) for name in (START, RATE, CV) if name in headers}

    def accept(chunk: Chunk) -> None:
        for name, one in cells.items():
            one.add(chunk.unit, chunk.places, chunk.columns[name])

    rows = read_table(path, Want(dict.fromkeys(cells, _KEY)), _KEY, accept)
    code, start, rate = (cells[name].values() for name in (CLIENT, START, RATE))
    known = (code != NEVER) & (start < LATEST) & np.isfinite(rate)
    at = np.flatnonzero(known)
    _, first = np.unique(np.stack((code[at].astype(np.float64), start[at]), axis=1), axis=0, return_index=True)
    used = at[np.sort(first)]
    told = report(
        path, NAME, rows=rows, used=used.size, unit="rows", strict=strict,
        dropped={NO_RATE: int((~known).sum()), TWICE: at.size - used.size},
        ignored=tuple(name for name in headers if name not in cells),
        notes=("a table that traffic is drawn from: no request is in it, and sizes are in a table of their own",),
    )  # fmt: skip
    cv = cells[CV].values()[used] if CV in cells else np.full(used.size, np.nan)
    return _rates(path, tuple(clients.names), code[used], start[used], rate[used], cv), told


def _rates(
    path: Path, clients: tuple[str, ...], code: np.ndarray, start: np.ndarray, rate: np.ndarray, cv: np.ndarray
) -> Rates:
    begins = np.unique(start)
    if begins.size < 2:
        raise DataError(f"{path.name} holds one window only", where=str(path), fix="give a table of several windows")
    width = float(np.diff(begins).min())
    count = round((begins[-1] - begins[0]) / width) + 1
    if count * len(clients) > MOST_CELLS:
        raise DataError(
            f"{path.name} has windows of {width:g} s over {begins[-1] - begins[0]:g} s: too many to hold",
            where=str(path), fix="give windows of equal width, or a shorter stretch",
        )  # fmt: skip
    place = (start - begins[0]) / width
    if np.any(np.abs(place - np.rint(place)) > UNEVEN):
        raise DataError(f"{path.name} has windows of different widths", where=str(path), fix="give equal ones")
    window = np.rint(place).astype(np.int64)
    rates, spread = np.zeros((len(clients), count)), np.full((len(clients), count), np.nan)
    rates[code, window] = rate
    spread[code, window] = cv
    return Rates(
        clients=clients, starts=begins[0] + width * np.arange(count), width=width, rate=rates, cv=spread
    )  # fmt: skip
