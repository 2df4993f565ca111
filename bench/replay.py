"""What the replay itself costs: real worker processes, but the null backend, so that every delay is trimtab's own.

  capacity  as many requests as fit, two workers:  at least 5,000 requests/s end to end
  slip      500 requests/s, one worker:            loader slip p99 and added latency p99 below 1 ms
  schedule  500 ms of service at 10/s, one worker: of 8 requests the last takes 3.3 s counted from its schedule

Each figure is measured REPEATS times; the spread over the repeats of the same thing is the A/A spread.
Two workers need three cores; with fewer, one of them shares the driver's core, and that is printed.

Run: python bench/replay.py [repeats]
"""

from __future__ import annotations

import os
import sys

import numpy as np

from trimtab.backends import factory
from trimtab.domain.plan import CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.ports import ModelFile
from trimtab.domain.study import InputSpec, ModelSpec, OutputSpec
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.readers.payload import RandomPayloads
from trimtab.runtime.replay import ReplayRequest, replay

SPEC = ModelSpec(
    path="null",
    revision="none",
    inputs=(InputSpec(name="x", shape=("batch", "width")),),
    outputs=(OutputSpec(name="y"),),
)


def plan_of(workers: int, service_us: float) -> Plan:
    return Plan(
        id="null",
        compile=CompileSpec(
            backend="null",
            entries=(Entry(id="any", kind="dynamic", lo=(1,), hi=(64,)),),
            options={"base_us": str(service_us)},
        ),
        serve=ServePolicy(workers=workers, warm=((1, 16),)),
    )


def even(rate: float, count: int) -> Workload:
    """``count`` requests of one shape and 64 payloads, ``rate`` a second."""
    return Workload(
        id="even", dim_names=("width",), scheduled=np.round(np.arange(count) / rate * 1e9).astype(np.int64),
        dims=np.full((count, 1), 16, dtype=np.int64), stream=np.zeros(count, dtype=np.int32), streams=("all",),
        payload=(np.arange(count) % 64).astype(np.int32), payload_kind="random",
        deadline=np.full(count, -1, dtype=np.int64), provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


def run(rate: float, count: int, workers: int, service_us: float) -> Trace:
    """A replay on the null backend. Worker 0 has a core beside the driver's; where there are more workers than such
    cores, one shares it."""
    cores = sorted(os.sched_getaffinity(0))
    driver, own = cores[0], cores[1:] or cores
    pins = tuple((own + cores[:1])[w % len(cores)] for w in range(workers))
    plan = plan_of(workers, service_us)
    info = RunInfo(
        id="bench", plan=plan.id, slice="all", source="measured", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=0, workers=workers, cores=pins, driver_core=driver,
    )  # fmt: skip
    trace = replay(
        ReplayRequest(
            workload=even(rate, count),
            plan=plan,
            model=ModelFile(path="null", sha256="", spec=SPEC, dim_names=("width",)),
            backend=factory("null"),
            payloads=RandomPayloads(SPEC, ("width",), 0),
            router=Router(plan.compile),
            predictor=CostModel.from_profiles(()),
            cores=pins,
            driver_core=driver,
            run=info,
            hang_s=5.0,
            share_driver_core=driver in pins,
        )
    )
    failed = int((trace.requests["error"] != 0).sum())
    if failed or not trace.run.complete:
        raise SystemExit(f"{failed} requests failed: {trace.run.note}")
    return trace


def capacity() -> dict[str, float]:
    """All arrivals are due at once: how fast is the loop when nothing else limits it?"""
    trace = run(rate=1e6, count=20_000, workers=2, service_us=0.0)
    done = trace.requests["done"]
    return {"requests/s": len(done) / (done.max() / 1e9), "driver CPU share": trace.run.driver_cpu_share}


def slip() -> dict[str, float]:
    trace = run(rate=500.0, count=2_500, workers=1, service_us=200.0)
    req = trace.requests
    own = (req["ended"] - req["started"]) / 1e6
    latency = (req["done"] - req["scheduled"]) / 1e6
    loader = (req["enqueued"] - req["scheduled"]) / 1e6
    return {
        "loader slip p50 ms": float(np.percentile(loader, 50)),
        "loader slip p99 ms": float(np.percentile(loader, 99)),
        "added latency p50 ms": float(np.percentile(latency - own, 50)),
        "added latency p99 ms": float(np.percentile(latency - own, 99)),
        "driver CPU share": trace.run.driver_cpu_share,
    }


def schedule() -> dict[str, float]:
    trace = run(rate=10.0, count=8, workers=1, service_us=500_000.0)
    return {"latency of the last of 8 s": float(trace.latency[-1])}


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.2f}, {repeats} repeats")
    if len(os.sched_getaffinity(0)) < 3:
        print("fewer than 3 cores: of two workers one shares the driver's core")
    for scene in (capacity, slip, schedule):
        runs = [scene() for _ in range(repeats)]
        for name in runs[0]:
            values = sorted(r[name] for r in runs)
            median = values[len(values) // 2]
            print(f"{scene.__name__:9} {name:27} {median:12,.3f}   A/A {values[0]:,.3f} .. {values[-1]:,.3f}")


if __name__ == "__main__":
    main()
