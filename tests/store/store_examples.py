"""A small study, trace and workload that the tests of the store share."""

from __future__ import annotations

import numpy as np

from trimtab.domain.events import ERROR_KINDS
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
from trimtab.domain.workload import Provenance, Slice, SourceFile, Workload

STUDY = """\
name = "Receipt lines"

[model]
path = "net.onnx"
revision = "4"

[[model.inputs]]
name = "x"
shape = ["batch", 3, 48, "width"]

[[model.outputs]]
name = "y"

[dims.width]
lo = 16
hi = 640

[workload.arrivals]
file = "trace.csv"
time = "t"

[workload.shapes]
dims = { width = "w" }

[sla]
metric = "p95"
bound_ms = 150

[envelope]
cores = [0, 1]

[baseline]
id = "today"

[baseline.compile]
backend = "null"
entries = [{ id = "any", kind = "dynamic", lo = [16], hi = [640] }]

[baseline.serve]
workers = 1
"""

AWKWARD = ("plain", 'quo"te', "semi;colon' OR 1=1 --", "zero\0byte", "", "line\nbreak", "é漢🙂")
"""Stream names, entry ids and messages as a hostile trace may hold them."""


def run_info(run: str = "today-1") -> RunInfo:
    return RunInfo(
        id=run,
        plan="today",
        slice="tune",
        source="simulated",
        workload_sha256="a" * 64,
        envelope_sha256="b" * 64,
        start_state="fresh workers",
        seed=3,
        workers=1,
        cores=(0,),
        driver_core=1,
    )


def trace(requests: int = 5, seed: int = 1) -> Trace:
    """A trace whose columns hold every code, NEVER, nan, and int64 values that a float could not hold."""
    generator = np.random.default_rng(seed)
    req = empty(REQUEST_COLUMNS | {"dim.width": "int64"}, requests)
    req["id"][:] = np.arange(requests)
    req["scheduled"][:] = 2**60 + np.arange(requests)
    req["stream"][:] = generator.integers(0, len(AWKWARD), requests)
    req["error"][:] = np.arange(requests) % len(ERROR_KINDS)
    req["route"][:] = generator.integers(-1, 5, requests)
    batches = empty(BATCH_COLUMNS | {"exec.width": "int64"}, requests)
    batches["entry"][:] = generator.integers(0, 2, requests)
    batches["route"][:] = generator.integers(0, 5, requests)
    batches["error"][:] = 0
    batches["first_seen"][:] = generator.integers(0, 2, requests).astype(bool)
    marks = empty(MARK_COLUMNS, 2)
    marks["kind"][:] = (4, 6)
    marks["detail"][:] = (-1, 3)
    marks["value"][:] = (1.5, np.nan)
    return Trace(
        run=run_info(),
        dim_names=("width",),
        streams=AWKWARD,
        entries=("any", "wide"),
        details=AWKWARD,
        requests=req,
        batches=batches,
        marks=marks,
        samples=empty(SAMPLE_COLUMNS, 3),
    )


def workload() -> Workload:
    return Workload(
        id="Receipt lines",
        dim_names=("width", "height"),
        scheduled=np.array([0, 5, 5, 2**61], dtype=np.int64),
        dims=np.array([[16, 1], [17, 1], [640, 2], [99, 3]], dtype=np.int64),
        stream=np.array([0, 1, 0, 6], dtype=np.int32),
        streams=AWKWARD,
        payload=np.array([0, 1, 2, 3], dtype=np.int32),
        payload_kind="random",
        deadline=np.full(4, -1, dtype=np.int64),
        provenance=Provenance(
            files=(SourceFile(name="nan", sha256="c" * 64, rows=9, used=4),), time_scale=0.25, joined="two 'sources'"
        ),
        slices=(Slice(name="tune", start=0, stop=2, band={"width": (16, 640)}),),
    )


def same_table(a: Table, b: Table) -> bool:
    """Equal names, dtypes, order and values, nan equal to nan."""
    if list(a.columns) != list(b.columns):
        return False
    pairs = [(a[name], b[name]) for name in a.columns]
    return all(x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in pairs)
