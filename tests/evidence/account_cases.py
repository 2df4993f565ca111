"""A small queue simulator that writes traces: its own code, so that the account is not checked against itself.

Every cause can be switched off, so that the truth of a counterfactual is one more simulation. Draws belong to request
ids, never to the order of calls.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from parts import run_info
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    Table,
    Trace,
    empty,
)

Int = NDArray[np.int64]
ENTRY = Entry(id="entry", kind="dynamic", lo=(1,), hi=(1_000_000,), batch=(1, 64))
EVERYTHING = ("padding", "premium", "interference", "off_core", "cold", "dispatch", "imbalance", "hold")


@dataclass(frozen=True)
class Formula:
    """T_e and T_ref in ns: fixed + slope x n x dim; ``premium`` is the factor of the plan's own entry."""

    fixed: int = 2_000_000
    slope: int = 20_000
    factor: float = 1.0

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return int((self.fixed + self.slope * executed[0] * executed[1]) * self.factor)

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return self.warm(entry, executed)


@dataclass(frozen=True)
class Scene:
    """Traffic and what may go wrong. Per-request ns arrays apply to the batch whose first member the request is;
    ``lag`` is how long the scheduler sleeps before it sends that batch.

    ``padded`` False: batches still run, and are first seen, at the bucket's dims, but cost what their members' true
    dims would.
    """

    arrivals: Int
    dims: Int
    workers: int = 1
    streams: Int | None = None
    eligible: tuple[tuple[int, ...], ...] = ()
    max_size: int = 1
    hold: int = 0
    bucket: int = 1
    padded: bool = True
    premium: float = 1.0
    cold: int = 0
    interference: Int | None = None
    off_core: Int | None = None
    dispatch: Int | None = None
    lag: Int | None = None
    reference: Formula = field(default_factory=Formula)

    def without(self, absent: Collection[str]) -> Scene:
        """The same traffic with the causes ``absent`` taken away."""
        gone: dict[str, object] = {
            "padding": {"padded": False},
            "premium": {"premium": 1.0},
            "interference": {"interference": None},
            "off_core": {"off_core": None},
            "cold": {"cold": 0},
            "dispatch": {"dispatch": None, "lag": None},
            "imbalance": {"eligible": ()},
            "hold": {"hold": 0},
        }
        change: dict[str, object] = {}
        for cause in absent:
            change |= gone[cause]  # type: ignore[arg-type]
        return replace(self, **change)  # type: ignore[arg-type]

    @property
    def promise(self) -> Formula:
        return replace(self.reference, factor=self.premium)

    @property
    def plan(self) -> Plan:
        policy = BatchPolicy(
            kind="none" if self.max_size == 1 else "hold", max_size=self.max_size, hold_ms=self.hold / 1e6
        )
        return Plan(
            id="plan",
            compile=CompileSpec(backend="null", entries=(ENTRY,)),
            serve=ServePolicy(batch=policy, workers=self.workers),
        )

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """Eligible workers of each stream."""
        count = 1 if self.streams is None else int(self.streams.max()) + 1
        return self.eligible or (tuple(range(self.workers)),) * count

    @property
    def by_entry(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The same by stream and entry; there is one entry."""
        return tuple((workers,) for workers in self.sets)


def _drawn(draws: Int | None, request: int) -> int:
    return 0 if draws is None else int(draws[request])


class _Classes:
    """FIFO queues, one for each distinct set of eligible workers."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.sets = list(dict.fromkeys(scene.sets))
        stream = np.zeros(len(scene.arrivals), dtype=np.int64) if scene.streams is None else scene.streams
        kind = np.array([self.sets.index(s) for s in scene.sets])[stream]
        self.queues = [np.flatnonzero(kind == k).tolist() for k in range(len(self.sets))]
        self.heads = [0] * len(self.sets)
        self.arrivals = scene.arrivals.tolist()

    def next(self, free: list[int]) -> tuple[int, int, int] | None:
        """(start, ready, class) of the batch that can start first."""
        best: tuple[int, int, int, int] | None = None
        for k, queue in enumerate(self.queues):
            head = self.heads[k]
            if head == len(queue):
                continue
            arrived = self.arrivals[queue[head]]
            full = head + self.scene.max_size - 1
            ready = arrived + self.scene.hold
            if full < len(queue):
                ready = min(ready, self.arrivals[queue[full]])
            start = max(min(free[w] for w in self.sets[k]), ready)
            if best is None or (start, arrived) < best[:2]:
                best = (start, arrived, ready, k)
        return None if best is None else (best[0], best[2], best[3])

    def take(self, k: int, start: int) -> list[int]:
        """The members of the batch of class ``k`` that starts at ``start``."""
        queue, head = self.queues[k], self.heads[k]
        stop = head + 1
        while stop < len(queue) and stop - head < self.scene.max_size and self.arrivals[queue[stop]] <= start:
            stop += 1
        self.heads[k] = stop
        return queue[head:stop]


def simulate(scene: Scene) -> Trace:
    """Run ``scene``: shared or split FIFO queues, batches up to max_size, hold until full or ``hold`` ns."""
    classes, promise = _Classes(scene), scene.promise
    free = [int(scene.arrivals[0])] * scene.workers
    seen: list[set[tuple[int, int]]] = [set() for _ in range(scene.workers)]
    members: list[list[int]] = []
    rows: list[tuple[int, ...]] = []
    while (chosen := classes.next(free)) is not None:
        start, ready, k = chosen
        worker = min(classes.sets[k], key=free.__getitem__)
        batch = classes.take(k, start)
        size, head = len(batch), batch[0]
        start += _drawn(scene.lag, head)
        dim = max(int(scene.dims[i]) for i in batch)
        dim = -(-dim // scene.bucket) * scene.bucket
        first = scene.cold > 0 and (size, dim) not in seen[worker]
        seen[worker].add((size, dim))
        off = _drawn(scene.off_core, head)
        widths = [dim] if scene.padded else [int(scene.dims[i]) for i in batch]
        warm = sum(promise.warm("entry", (size, width)) for width in widths) // len(widths)
        run = warm + _drawn(scene.interference, head) + first * scene.cold
        began = start + _drawn(scene.dispatch, head)
        free[worker] = began + run + off
        members.append(batch)
        rows.append((worker, size, dim, first, start, began, free[worker], off, ready))
    return _trace(scene, members, rows)


def _trace(scene: Scene, members: list[list[int]], rows: list[tuple[int, ...]]) -> Trace:
    table = np.array(rows, dtype=np.int64).reshape(-1, 9)
    order = np.argsort(table[:, 4], kind="stable")
    table, members = table[order], [members[i] for i in order]
    batches = empty({**BATCH_COLUMNS, "exec.w": "int64"}, len(rows)).columns
    names = ("worker", "size", "exec.w", "first_seen", "dispatched", "started", "ended", "runqueue")
    for name, column in zip(names, table.T, strict=False):
        batches[name] = column.astype(batches[name].dtype)
    batches |= {
        "id": np.arange(len(rows)),
        "entry": np.zeros(len(rows), dtype=np.int32),
        "executed_size": batches["size"],
        "done": batches["ended"],
        "error": np.zeros(len(rows), dtype=np.int8),
    }
    requests = empty({**REQUEST_COLUMNS, "dim.w": "int64"}, len(scene.arrivals)).columns
    batch = np.empty(len(scene.arrivals), dtype=np.int64)
    batch[np.concatenate([np.array(m) for m in members])] = np.repeat(np.arange(len(rows)), batches["size"])
    requests |= {
        "id": np.arange(len(scene.arrivals)),
        "stream": np.zeros(len(batch), dtype=np.int32) if scene.streams is None else scene.streams.astype(np.int32),
        "scheduled": scene.arrivals,
        "enqueued": scene.arrivals,
        "batched": np.clip(table[batch, 8], scene.arrivals, table[batch, 4]),
        "batch": batch,
        "error": np.zeros(len(batch), dtype=np.int8),
        "dim.w": scene.dims,
    }
    requests |= {name: batches[name][batch] for name in ("dispatched", "started", "ended", "done")}
    return assemble(requests, batches, scene.workers, len(scene.sets))


def assemble(
    requests: dict[str, NDArray[np.generic]], batches: dict[str, NDArray[np.generic]], workers: int, streams: int
) -> Trace:
    """A trace of one entry and one dim ``w`` from its columns."""
    return Trace(
        run=run_info(plan="plan", start_state="fresh", seed=0, workers=workers),
        dim_names=("w",),
        streams=tuple(f"s{i}" for i in range(streams)),
        entries=("entry",),
        details=(),
        requests=Table(requests),
        batches=Table(batches),
        marks=empty(MARK_COLUMNS),
        samples=empty(SAMPLE_COLUMNS),
    )


def poisson(rng: np.random.Generator, n: int, gap: float) -> Int:
    """Arrival times with exponential gaps of mean ``gap`` ns, from 0."""
    times: Int = np.cumsum(rng.exponential(gap, n)).astype(np.int64)
    return times - times[0]
