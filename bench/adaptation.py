"""What the online controller wins while it serves: static, adapted and clairvoyant, simulated on shifting traffic.

Four workloads, each on one worker beside one spare core, arrivals as recorded (Azure, conversation), scaled to a rate:

OCR shift       widths of receipt lines at height 48: the narrower half of them, in random order, then the wider half;
                half of the requests each. Static: buckets fitted to the narrower half.
OCR stationary  the same lines all mixed. Static: buckets fitted to the first tenth of them.
OCR dynamic     the same, static: one dynamic entry, as runtimes do by default; every new width costs a first run.
Azure           the lengths of the conversation as recorded, which drift by themselves, on a text embedder. Static:
                buckets fitted to the first tenth.

Each static plan keeps its dynamic entry for what no bucket covers. Times, compile times and memory are medians of
compile profiles of OpenVINO 2026.4 on one core of an AMD EPYC VM; a warm time scatters by 5 %. Goodput = share of the
requests within the bound; both stand for the requests after the shift (second half), or for all where there is none.
Columns in brackets: lowest and highest over the seeds. Goals: at least 84 % of the clairvoyant's goodput and a fifth
of the static misses after the shift; at most 2 % of p95 and goodput lost where nothing shifts.

    python bench/adaptation.py [--requests 6000] [--seeds 5]
    python bench/adaptation.py --replay [--requests 6000]     for real, fourteen minutes (see adaptation_replay.py)
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.plan import Bounds, CompileSpec, Entry, Plan
from trimtab.domain.profile import CompileOptions, CompileProfile, FirstRun, Inspection, ShapeTiming
from trimtab.domain.study import Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.retuning.adaptation import Terms, adapt, possible
from trimtab.retuning.moves import refit

EXAMPLES = Path(__file__).parents[1] / "examples"
MS = 1_000_000
SCATTER = 0.05
MIB = 2**20
RUN = RunInfo(
    id="bench", plan="today", slice="all", source="simulated", workload_sha256="", envelope_sha256="",
    start_state="warm", seed=1, workers=1, cores=(1,), driver_core=0,
)  # fmt: skip


@dataclass(frozen=True)
class Network:
    """Medians of its compile profiles, ms by value of the dynamic dim: ``dynamic`` warm, ``first`` runs of new values
    in a process that has met many, ``bucket`` warm and ``bucket_first``; a compile's ms and MiB."""

    low: int
    high: int
    dynamic: dict[int, float]
    first: dict[int, float]
    bucket: dict[int, float]
    bucket_first: dict[int, float]
    compile_ms: float
    mib: int


OCR = Network(
    low=16, high=1640,
    dynamic={24: 2.3, 96: 2.8, 144: 3.7, 221: 4.4, 288: 5.2, 422: 6.9, 563: 8.7, 751: 11.3, 1077: 15.3, 1640: 22.2},
    first={94: 5.7, 326: 6.3, 408: 9.7, 417: 14.3, 488: 16.3, 603: 17.5, 823: 20.5, 446: 21.7, 876: 31.2, 806: 32.6},
    bucket={96: 2.0, 200: 3.3, 342: 5.1, 542: 7.5, 706: 9.4, 827: 10.8, 1077: 13.8, 1640: 20.6},
    bucket_first={96: 3.2, 200: 5.3, 342: 7.2, 542: 10.0, 706: 12.8, 827: 14.4, 1077: 18.5, 1640: 27.0},
    compile_ms=203.0, mib=37,
)  # fmt: skip
EMBEDDER = Network(
    low=3, high=512,
    dynamic={12: 3.6, 36: 4.6, 67: 6.9, 102: 9.2, 152: 12.3, 217: 17.4, 253: 20.4, 384: 34.1, 422: 33.8, 512: 40.5},
    first={36: 6.7, 67: 9.2, 102: 11.0, 152: 13.9, 217: 19.5, 253: 22.2, 384: 36.0, 422: 36.5, 512: 49.7},
    bucket={62: 4.9, 106: 7.4, 183: 12.3, 224: 14.7, 394: 27.4, 422: 29.4, 456: 32.0, 512: 36.8},
    bucket_first={62: 15.0, 106: 21.5, 183: 27.6, 224: 26.0, 394: 38.5, 422: 58.8, 456: 50.2, 512: 70.0},
    compile_ms=262.0, mib=143,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A workload and its static plan: buckets fitted to its first ``known`` values, 0 = none. ``judged``: from which
    share of the requests on."""

    name: str
    network: Network
    values: NDArray[np.int64]
    known: int
    rate: float
    bound_ms: float
    judged: float


def column(path: Path, name: str) -> list[str]:
    """One column of a gzipped CSV."""
    with gzip.open(path, "rt", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def cases(requests: int, seed: int) -> tuple[Case, ...]:
    """The workloads, their orders drawn with ``seed``."""
    rng = np.random.default_rng(seed)
    lines = np.array(column(EXAMPLES / "ocr/traces/sroie_lines.csv.gz", "width"), dtype=np.int64)
    lines = np.clip(lines, OCR.low, OCR.high)
    middle, half = np.median(lines), requests // 2
    small, large = (rng.choice(part, half) for part in (lines[lines <= middle], lines[lines > middle]))
    tokens = np.array(column(EXAMPLES / "minilm/traces/azure_conv_tokens.csv.gz", "tokens"), dtype=np.int64)
    start = seed * 977 % max(1, tokens.size - requests)
    return (
        Case("OCR shift", OCR, np.concatenate([small, large]), half, 60.0, 60.0, 0.5),
        Case("OCR stationary", OCR, rng.choice(lines, requests), requests // 10, 60.0, 60.0, 0.0),
        Case("OCR dynamic", OCR, rng.choice(lines, requests), 0, 60.0, 60.0, 0.0),
        Case("Azure", EMBEDDER, tokens[start : start + requests], requests // 10, 30.0, 100.0, 0.0),
    )


def workload(case: Case, seed: int) -> Workload:
    """Its values at recorded arrival times, from another place in the recording for each seed."""
    stamps = column(EXAMPLES / "ocr/traces/azure_conv.csv.gz", "TIMESTAMP")
    n, start = case.values.size, seed * 1409 % max(1, len(stamps) - case.values.size)
    times = np.array([datetime.fromisoformat(text[:26]).timestamp() for text in stamps[start : start + n]])
    scale = n / case.rate / (times[-1] - times[0])
    return Workload(
        id=case.name, dim_names=("value",), scheduled=np.rint((times - times[0]) * scale * 1e9).astype(np.int64),
        dims=case.values[:, None], stream=np.zeros(n, dtype=np.int32), streams=("all",),
        payload=np.zeros(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=scale),
    )  # fmt: skip


def profile(network: Network, entry: Entry) -> CompileProfile:
    """What profiling ``entry`` would have given: the recorded medians between which it lies, with scatter."""
    dynamic = entry.kind == "dynamic"
    values = tuple(network.dynamic) if dynamic else entry.hi
    warm, first = (network.dynamic, network.dynamic) if dynamic else (network.bucket, network.bucket_first)
    rng = np.random.default_rng(entry.hi)
    timings = []
    for value in values:
        ns = float(np.interp(value, [*warm], [*warm.values()])) * MS
        walls = tuple(round(ns * ratio) for ratio in rng.gamma(SCATTER**-2, SCATTER**2, 25))
        cold = round(float(np.interp(value, [*first], [*first.values()])) * MS)
        timings.append(ShapeTiming(executed=(1, value), first_ns=cold, wall_ns=walls, cpu_ns=walls))
    firsts = [FirstRun(executed=(1, value), ns=round(ms * MS)) for value, ms in network.first.items()]
    return CompileProfile(
        plan="today", entry=entry.id, backend="recorded", versions={}, options=CompileOptions(),
        compile_ns=round(network.compile_ms * MS), memory_bytes=network.mib * MIB, peak_bytes=0,
        inspection=Inspection(executed=(1, 1), operators=(), operators_before=0), timings=tuple(timings),
        first_runs=tuple(firsts) if dynamic else (),
    )  # fmt: skip


def terms(case: Case) -> Terms:
    """A static plan fitted to what was known, twelve entries at most, and everything that is known of its times."""
    network = case.network
    limits = Bounds(
        entries=12, spare=4, low=(network.low,), high=(network.high,), compile_s=360.0, memory_bytes=2**31,
        step=max(1, network.high // 64),
    )  # fmt: skip
    anything = Entry(id="any", kind="dynamic", lo=(network.low,), hi=(network.high,))
    plain = Plan(id="today", compile=CompileSpec(backend="recorded", entries=(anything,), fallback="any"))

    def cost(end: int) -> float:
        return float(np.interp(end, [*network.bucket], [*network.bucket.values()]))

    ends = buckets.fit(case.values[: case.known, None], cost, limits.entries) if case.known else ()
    base = refit(plain, [(end,) for end in ends], limits.low, limits.high)
    static = [entry for entry in possible(base, limits) if entry.kind == "bucket"]
    known = {entry: profile(network, entry) for entry in static}
    costs = CostModel.from_profiles([*known.values(), profile(network, anything)], [*static, anything])
    return Terms(
        baseline=base, bounds=limits, cost=cost, costs=costs, measured={}, reference=costs, reference_entry="any",
        profiles=list(known.values()),
    )  # fmt: skip


@dataclass(frozen=True)
class Told:
    """One run of one case: goodput, misses and p95 (ms) of the requests that are judged."""

    goodput: float
    misses: int
    p95: float


def told(trace: Trace, case: Case) -> Told:
    """What is read from a run."""
    latency = trace.latency[round(case.judged * case.values.size) :] * 1e3
    late = latency > case.bound_ms
    return Told(1 - float(late.mean()), int(late.sum()), float(np.quantile(latency, 0.95)))


def once(case: Case, seed: int) -> Adaptation:
    """The runs of one case."""
    sla = Sla(metric="goodput", bound_ms=case.bound_ms)
    found = adapt(workload(case, seed), terms(case), sla, replace(RUN, seed=seed))
    if isinstance(found, str):
        raise SystemExit(found)
    return found


def lines(name: str, runs: Sequence[tuple[Case, Adaptation]]) -> Iterator[str]:
    """The table's rows of one workload."""
    for arm in ("static", "adapted", "clairvoyant"):
        each = [told(getattr(found, arm), case) for case, found in runs]
        yield f"| {name} | {arm} | {_spread([t.goodput * 100 for t in each], '.1f')} | " + (
            f"{_spread([t.misses for t in each], '.0f')} | {_spread([t.p95 for t in each], '.1f')} | "
            f"{_work(runs) if arm == 'adapted' else ''} |"
        )


def _work(runs: Sequence[tuple[Case, Adaptation]]) -> str:
    """Compiles, seconds of the spare core, ms of first runs: medians."""
    totals = [
        (
            sum(s.compiled for s in f.shifts),
            sum(s.compiling for s in f.shifts) / 1e9,
            sum(s.stall for s in f.shifts) / MS,
        )
        for _, f in runs
    ]
    compiled, seconds, stall = np.median(np.array(totals), axis=0).tolist()
    return f"{compiled:.0f} compiles, {seconds:.1f} s beside, {stall:.0f} ms first runs"


def _spread(values: Sequence[float], form: str) -> str:
    return f"{np.median(values):{form}} [{min(values):{form}}, {max(values):{form}}]"


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--requests", type=int, default=6000)
    args.add_argument("--seeds", type=int, default=5)
    args.add_argument("--replay", action="store_true", help="static and adapted replays in turn, on OpenVINO")
    given = args.parse_args()
    print("| traffic | run | goodput, % | misses | p95, ms | work of the controller |\n|---|---|---|---|---|---|")
    if given.replay:
        from adaptation_replay import measure

        measure(given.requests)
        return 0
    for rows in zip(*(cases(given.requests, seed) for seed in range(given.seeds)), strict=True):
        runs = [(case, once(case, seed)) for seed, case in enumerate(rows)]
        for line in lines(rows[0].name, runs):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
