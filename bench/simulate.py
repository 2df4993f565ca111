"""How fast the virtual-clock driver is: events per second of CPU, serving machine and recorder together, plain Python.

Traffic is made like production's: bursty arrivals (a Poisson process whose rate switches between a calm and a busy
spell), log-normal widths between 25 and 1630, eight clients of unequal size. Every event that the machine handles
counts: arrivals, ends of batches, timers. The driver has one thread, so its CPU time is what a quiet machine takes by
the clock; the spread over repeats is printed beside the median. Goal: at least 100,000 events/s on each plan.

    python bench/simulate.py [--requests 10000] [--repeats 7] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time

import numpy as np

from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.serving.machine import Machine
from trimtab.serving.simulate import simulate

GOAL = 100_000
DYNAMIC = Entry(id="any", kind="dynamic", lo=(1,), hi=(2000,), batch=(1, 8))
BUCKETS = tuple(
    Entry(id=f"w{w}", kind="bucket", lo=(1,), hi=(w,), batch=(1, 8)) for w in (96, 160, 224, 320, 448, 640, 960)
)
HOLD = BatchPolicy(kind="size-hold", max_size=8, hold_ms=2.0)


def plan(name: str, entries: tuple[Entry, ...], serve: ServePolicy) -> Plan:
    return Plan(id=name, compile=CompileSpec(backend="null", entries=entries, fallback="any"), serve=serve)


PLANS = (
    plan("one worker, dynamic, no batching", (DYNAMIC,), ServePolicy()),
    plan("one worker, 7 buckets, size+hold", (*BUCKETS, DYNAMIC), ServePolicy(batch=HOLD)),
    plan("four workers, 7 buckets, size+hold", (*BUCKETS, DYNAMIC), ServePolicy(batch=HOLD, workers=4)),
    plan(
        "four workers by stream, size+hold",
        (*BUCKETS, DYNAMIC),
        ServePolicy(batch=HOLD, workers=4, placement="stream-affinity"),
    ),
)


def traffic(requests: int, rate: float) -> Workload:
    rng = np.random.default_rng(5)
    busy = np.repeat(rng.random(requests // 50 + 1) < 0.3, 50)[:requests]
    gaps = rng.exponential(1e9 / rate, requests) * np.where(busy, 0.4, 1.26)
    widths = np.clip(rng.lognormal(np.log(192), 0.6, requests), 25, 1630).astype(np.int64)
    return Workload(
        id="bench",
        dim_names=("width",),
        scheduled=(np.cumsum(gaps) - gaps[0]).astype(np.int64),
        dims=widths[:, None],
        stream=rng.choice(8, requests, p=np.arange(1, 9) / 36).astype(np.int32),
        streams=tuple(f"client{i}" for i in range(8)),
        payload=np.zeros(requests, dtype=np.int32),
        payload_kind="random",
        deadline=np.full(requests, -1, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=1.0),
    )


def profile(entry: Entry) -> CompileProfile:
    """Times of a line recogniser: 0.8 ms and 13 us a pixel, sublinear in the batch, with scatter."""
    widths = (25, 96, 192, 320, 640, 1630) if entry.kind == "dynamic" else entry.hi
    rng = np.random.default_rng(9)
    timings = []
    for n in (1, 2, 4, 8):
        for width in widths:
            warm = (0.8e6 + 13e3 * width) * n**0.9
            walls = tuple(int(warm * ratio) for ratio in rng.gamma(100, 0.01, 12))
            timings.append(ShapeTiming(executed=(n, width), first_ns=int(warm + 15e6), wall_ns=walls, cpu_ns=walls))
    return CompileProfile(
        plan="bench",
        entry=entry.id,
        backend="null",
        versions={},
        options=CompileOptions(),
        compile_ns=1,
        memory_bytes=1,
        peak_bytes=1,
        inspection=Inspection(executed=(1, 1), operators=(), operators_before=0),
        timings=tuple(timings),
    )


def once(workload: Workload, chosen: Plan, costs: CostModel) -> tuple[float, int, Trace]:
    """CPU seconds, events and the trace of one run; building router and machine is inside the time."""
    cores = tuple(range(chosen.serve.workers))
    run = RunInfo(
        id="bench", plan=chosen.id, slice="all", source="simulated", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=3, workers=len(cores), cores=cores, driver_core=0,
    )  # fmt: skip
    begin = time.process_time()
    router = Router(chosen.compile)
    machine = Machine(chosen, router, costs, cores)
    service = ProfileService(costs, 3)
    trace = simulate(workload, chosen, router, costs, service, run, machine=machine, handling=service.handling)
    return time.process_time() - begin, machine.handled, trace


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--requests", type=int, default=10_000)
    args.add_argument("--repeats", type=int, default=7)
    args.add_argument("--profile", action="store_true", help="print where the time goes")
    given = args.parse_args()
    print(f"{given.requests} requests, {given.repeats} repeats; goal {GOAL:,} events/s")
    for chosen in PLANS:
        workload = traffic(given.requests, rate=140.0 * chosen.serve.workers)
        costs = CostModel.from_profiles([profile(e) for e in chosen.compile.entries], chosen.compile.entries)
        runs = [once(workload, chosen, costs) for _ in range(given.repeats)]
        rates = sorted(events / seconds for seconds, events, _ in runs)
        _, events, trace = runs[0]
        size = len(workload) / len(trace.batches)
        verdict = "met" if statistics.median(rates) >= GOAL else "NOT met"
        print(
            f"{chosen.id:36s} {statistics.median(rates):9,.0f} events/s "
            f"({rates[0]:,.0f} .. {rates[-1]:,.0f}) {verdict}; "
            f"{events} events, mean batch {size:.2f}, p95 {np.quantile(trace.latency, 0.95) * 1e3:.1f} ms, "
            f"{1e3 * statistics.median(s for s, _, _ in runs):.0f} ms a run"
        )
        if given.profile:
            watch = cProfile.Profile()
            watch.runcall(once, workload, chosen, costs)
            pstats.Stats(watch).sort_stats("tottime").print_stats(18)


if __name__ == "__main__":
    main()
