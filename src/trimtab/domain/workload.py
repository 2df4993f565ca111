"""A Workload: ordered requests with their provenance, and the named Slices of it."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.noun import NEVER, Noun, Ns

PayloadKind = Literal["real", "rendered", "random"]


class SourceFile(Noun, frozen=True, kw_only=True):
    """One input file as it was read: its name (never its folder), digest, licence note and row counts."""

    name: str
    sha256: str
    rows: int
    used: int
    dropped: dict[str, int] = {}
    licence: str = ""


class Provenance(Noun, frozen=True, kw_only=True):
    """Where a workload comes from and what was done to it; printed in the report.

    ``joined`` says plainly when arrivals and shapes come from different sources.
    """

    files: tuple[SourceFile, ...]
    time_scale: float
    joined: str = ""
    seeds: dict[str, int] = {}


class Slice(Noun, frozen=True, kw_only=True):
    """A named part of a workload: requests ``start <= index < stop``, narrowed by stream and by shape band.

    ``band`` holds inclusive ``(lo, hi)`` per dim name. A slice is counted over requests, in order of arrival.
    """

    name: str
    start: int
    stop: int
    streams: tuple[str, ...] = ()
    band: dict[str, tuple[int, int]] = {}


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Requests in order of their scheduled time.

    ``scheduled`` int64[n], ns from the first arrival, non-decreasing · ``dims`` int64[n, k] · ``stream`` int32[n] into
    ``streams`` · ``payload`` int32[n], an id in the payload bank or a seed offset · ``deadline`` int64[n], ns after
    the scheduled time (NEVER = none).
    """

    id: str
    dim_names: tuple[str, ...]
    scheduled: NDArray[np.int64]
    dims: NDArray[np.int64]
    stream: NDArray[np.int32]
    streams: tuple[str, ...]
    payload: NDArray[np.int32]
    payload_kind: PayloadKind
    deadline: NDArray[np.int64]
    provenance: Provenance
    slices: tuple[Slice, ...] = ()

    def __len__(self) -> int:
        return int(self.scheduled.shape[0])

    @property
    def due(self) -> NDArray[np.int64]:
        """int64[n]: each request's deadline on the clock of ``scheduled``; NEVER = none."""
        return np.where(self.deadline == NEVER, NEVER, self.scheduled + self.deadline)

    @property
    def span(self) -> Ns:
        """Time from the first to the last arrival, ns."""
        return int(self.scheduled[-1] - self.scheduled[0]) if len(self) else 0

    def index(self, part: Slice) -> NDArray[np.int64]:
        """Positions of the requests that belong to ``part``."""
        keep = np.zeros(len(self), dtype=bool)
        keep[part.start : part.stop] = True
        if part.streams:
            wanted = [i for i, name in enumerate(self.streams) if name in part.streams]
            keep &= np.isin(self.stream, wanted)
        for name, (lo, hi) in part.band.items():
            column = self.dims[:, self.dim_names.index(name)]
            keep &= (column >= lo) & (column <= hi)
        return np.flatnonzero(keep)

    def take(self, part: Slice) -> Workload:
        """The workload of one slice, its clock starting at its own first arrival."""
        rows = self.index(part)
        scheduled = self.scheduled[rows]
        return msgspec.structs.replace(
            self,
            id=f"{self.id}/{part.name}",
            scheduled=scheduled - (scheduled[0] if rows.size else 0),
            dims=self.dims[rows],
            stream=self.stream[rows],
            payload=self.payload[rows],
            deadline=self.deadline[rows],
            slices=(),
        )
