"""Studies and files that the tests of the readers share."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import msgspec

from trimtab.domain.envelope import Assumptions
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.study import (
    ArrivalSource,
    DimSpec,
    InputSpec,
    ModelSpec,
    OutputSpec,
    ShapeSource,
    Sla,
    Study,
    WorkloadSpec,
)


def study(**changes: object) -> Study:
    """A study of ``trace.csv`` with columns t (seconds) and w. ``arrivals``, ``shapes``, ``sla`` and ``dims`` replace
    those parts; anything else replaces a field of the workload."""
    parts = {name: changes.pop(name) for name in ("dims", "sla", "model") if name in changes}
    workload = WorkloadSpec(
        arrivals=ArrivalSource(file="trace.csv", time="t"),
        shapes=ShapeSource(dims={"width": "w"}),
    )
    base = Study(
        name="lines",
        model=ModelSpec(
            path="net.onnx",
            revision="1",
            inputs=(InputSpec(name="x", shape=("batch", 3, 4, "width")),),
            outputs=(OutputSpec(name="y"),),
        ),
        dims={"width": DimSpec(lo=1, hi=1000)},
        workload=msgspec.structs.replace(workload, **changes),
        sla=Sla(metric="p95", bound_ms=100),
        envelope=Assumptions(cores=(0, 1)),
        baseline=Plan(
            id="today",
            compile=CompileSpec(backend="null", entries=(Entry(id="any", kind="dynamic", lo=(1,), hi=(1000,)),)),
        ),
    )
    return msgspec.structs.replace(base, **parts)


def arrivals(file: str = "trace.csv", time: str = "t", unit: str = "s") -> ArrivalSource:
    return ArrivalSource(file=file, time=time, unit=unit)  # type: ignore[arg-type]


def write(path: Path, text: str) -> Path:
    """``text`` as a file, gzipped if its name says so."""
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_parquet(path: Path, select: str) -> Path:
    """The rows of an SQL ``select`` as Parquet, gzipped if its name says so."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    duckdb.sql(f"COPY ({select}) TO '{plain}' (FORMAT parquet)")
    if plain != path:
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return path
