"""Small literal traces and profiles for the evidence tests. Times are given in ms, as a reader thinks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parts import run_info
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, Operator, ShapeTiming
from trimtab.domain.route import ROUTE_KINDS
from trimtab.domain.study import Sla
from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    RunInfo,
    Table,
    Trace,
    empty,
)

MS = 1_000_000
SLA = Sla(metric="p95", bound_ms=50)


@dataclass(frozen=True)
class Ran:
    """One batch: members' widths, when it started, how long it ran, what was promised (ms), and how it ran."""

    widths: tuple[int, ...]
    wall: float
    promised: float = 0.0
    executed: int = 0  # 0 = the largest member
    arrived: float = 0.0
    started: float | None = None  # None = at arrival
    runqueue: float = 0.0
    first: bool = False
    route: str = "dynamic"
    error: str = "none"
    slip: float = 0.0
    core: int = 0
    entry: str = "dyn"
    peak: int = -1


def ns(ms: float) -> int:
    return round(ms * MS)


def run(**named: Any) -> RunInfo:
    base = {"id": "r1", "plan": "base", "slice": "tune", "source": "measured", "start_state": "fresh"}
    return run_info(**(base | named))


def trace(batches: Sequence[Ran], samples: Table | None = None, marks: Table | None = None, **info: Any) -> Trace:
    """A trace with one dynamic dim W; requests in the order of their batches' arrival."""
    order = sorted(range(len(batches)), key=lambda i: batches[i].arrived)
    batches = [batches[i] for i in order]
    entries = tuple(dict.fromkeys(one.entry for one in batches))
    n = sum(len(one.widths) for one in batches)
    req, bat = empty(REQUEST_COLUMNS, n), empty(BATCH_COLUMNS, len(batches))
    widths, executed = np.zeros(n, dtype=np.int64), np.zeros(len(batches), dtype=np.int64)
    at = 0
    for row, one in enumerate(batches):
        start = ns(one.arrived if one.started is None else one.started)
        end, many = start + ns(one.wall), slice(at, at + len(one.widths))
        executed[row] = one.executed or max(one.widths)
        values: dict[str, Any] = {
            "id": row, "worker": one.core, "core": one.core, "entry": entries.index(one.entry),
            "size": len(one.widths), "executed_size": len(one.widths), "route": ROUTE_KINDS.index(one.route),
            "first_seen": one.first, "changed": False, "outside": False, "compile_events": 0, "dispatched": start,
            "started": start, "ended": end, "done": end, "promised": ns(one.promised), "expected": ns(one.promised),
            "on_cpu": end - start - ns(one.runqueue), "runqueue": ns(one.runqueue), "peak_bytes": one.peak,
            "error": ERROR_KINDS.index(one.error),
        }  # fmt: skip
        for name, value in values.items():
            bat[name][row] = value
        widths[many] = one.widths
        values = {
            "id": range(at, at + len(one.widths)), "stream": 0, "scheduled": ns(one.arrived),
            "enqueued": ns(one.arrived + one.slip), "batched": start, "dispatched": start, "started": start,
            "ended": end, "done": end, "batch": row, "route": ROUTE_KINDS.index(one.route),
            "predicted_at_compile": ns(one.promised), "predicted_at_dispatch": ns(one.promised),
            "error": ERROR_KINDS.index(one.error),
        }  # fmt: skip
        for name, value in values.items():
            req[name][many] = value
        at += len(one.widths)
    return Trace(
        run=run(**info),
        dim_names=("W",),
        streams=("a",),
        entries=entries,
        details=(),
        requests=Table(req.columns | {"dim.W": widths}),
        batches=Table(bat.columns | {"exec.W": executed}),
        marks=marks or empty(MARK_COLUMNS),
        samples=samples or empty(SAMPLE_COLUMNS),
    )


class Line:
    """A predictor: fixed + slope x rows x width, in ms, the same for every entry but ``factor`` of some."""

    def __init__(self, fixed: float = 1.0, slope: float = 0.01, **factor: float) -> None:
        self.fixed, self.slope, self.factor = fixed, slope, factor

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return ns((self.fixed + self.slope * executed[0] * executed[1]) * self.factor.get(entry, 1.0))

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return self.warm(entry, executed)


class Silent:
    """A predictor that promises nothing."""

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return 0

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return 0


def dynamic(name: str = "dyn", hi: int = 1000, batch: tuple[int, int] = (1, 8)) -> Entry:
    return Entry(id=name, kind="dynamic", lo=(1,), hi=(hi,), batch=batch)


def bucket(hi: int, lo: int = 1, batch: tuple[int, int] = (1, 8)) -> Entry:
    return Entry(id=f"b{hi}", kind="bucket", lo=(lo,), hi=(hi,), batch=batch)


def profile(
    timings: dict[tuple[int, ...], Sequence[float]],
    entry: str = "dyn",
    plan: str = "base",
    first: float = 20.0,
    precision: str = "default",
    operators: Sequence[tuple[str, str, int]] = (("Conv", "f32", 100),),
    before: int = 5,
) -> CompileProfile:
    """Warm times in ms by executed shape; operators as (kind, precision, ns)."""
    return CompileProfile(
        plan=plan,
        entry=entry,
        backend="null",
        versions={},
        options=CompileOptions(precision=precision),  # type: ignore[arg-type]
        compile_ns=ns(250),
        memory_bytes=3 * 2**20,
        peak_bytes=8 * 2**20,
        inspection=Inspection(
            executed=next(iter(timings), (1, 1)),
            operators=tuple(
                Operator(name=f"op{i}", kind=kind, kernel=f"k_{kind}", precision=kept, ns=time)
                for i, (kind, kept, time) in enumerate(operators)
            ),
            operators_before=before,
        ),
        timings=tuple(
            ShapeTiming(
                executed=executed,
                first_ns=ns(first),
                wall_ns=tuple(ns(w) for w in walls),
                cpu_ns=tuple(ns(w) for w in walls),
            )
            for executed, walls in timings.items()
        ),
    )
