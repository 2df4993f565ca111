"""Fitted boundaries against formulas, in measured milliseconds on traffic that the fit never saw.

Three recorded traffics: widths of text lines (scanned receipts) through the example's recogniser; token counts of a
conversation service and of a code service through the example's text embedder. The cost of a bucket is measured here:
OpenVINO compiles the network for that one shape, one thread, and runs it ``--repeats`` times, entries in turn; the
median counts, made monotone, straight lines between the measured sizes.

Boundaries are chosen on the first 40 % of each traffic and judged on the rest. Every set ends at the largest size that
the study accepts, so all of them cover everything. *Wasted* = ms of the padded run less ms of a bucket that fits
exactly, over all held-out requests. The padding-aware formula has no number of entries; its step and its limit are set
to what is best for each number, on the tuning part. p95 and goodput: the held-out requests in the serving machine, one
worker, FIFO, Poisson arrivals at a rate that the best formula fills to 0.6 (the same arrivals for both); goodput is the
share done within four mean service times of that formula.

    python bench/buckets.py [--repeats 15] [--points 14]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimtab import backends
from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import Study
from trimtab.domain.trace import RunInfo
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping import buckets, formulas
from trimtab.mapping.route import Router
from trimtab.readers.payload import RandomPayloads
from trimtab.serving.simulate import simulate
from trimtab.store.study import load_study, resolve_model

EXAMPLES = Path(__file__).parents[1] / "examples"
TRAFFIC = {
    "line widths": ("ocr/study.toml", "ocr/traces/sroie_lines.csv.gz", "width"),
    "conversation tokens": ("minilm/study.toml", "minilm/traces/azure_conv_tokens.csv.gz", "tokens"),
    "code tokens": ("minilm/study-code.toml", "minilm/traces/azure_code_tokens.csv.gz", "tokens"),
}
TUNE, UTILISATION, MOST_REQUESTS = 0.4, 0.6, 20_000
FAMILIES = ("linear", "exponential", "powers of two", "padding-aware")
COUNTS = (4, 8, 12)
GOAL = 0.30


def column(name: str, field: str) -> list[str]:
    with gzip.open(EXAMPLES / name, "rt", encoding="utf-8") as lines:
        return [row[field] for row in csv.DictReader(lines)]


def curve(study: Study, folder: Path, points: int, repeats: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sizes and the ms of a bucket compiled for each, geometric from the least to the largest size."""
    (dim,) = study.dims.values()
    sizes = np.unique(np.geomspace(dim.lo, dim.hi, points).round().astype(np.int64))
    model, backend = resolve_model(study, folder), backends.factory("openvino")()
    payloads = RandomPayloads(study.model, study.dim_names, 1)
    ready = []
    for size in sizes.tolist():
        made = backend.compile(model, Entry(id=f"s{size}", kind="static", lo=(size,), hi=(size,)), CompileOptions())
        if isinstance(made, CompileFailure):
            raise SystemExit(f"{study.name} does not compile at {size}: {made.message}")
        ready.append((made, payloads.request(0, (size,)), list[float]()))
    for turn in range(repeats + 1):
        for made, inputs, times in ready:
            begin = time.perf_counter()
            made.run(inputs)
            if turn:
                times.append((time.perf_counter() - begin) * 1e3)
    return sizes, np.maximum.accumulate([statistics.median(times) for _, _, times in ready])


def rivals(tune: NDArray[np.int64], cost: buckets.Cost, low: int, high: int, k: int) -> dict[str, tuple[int, ...]]:
    """The boundaries of every formula that gives ``k`` entries for this range."""
    sets = {"linear": formulas.linear(low, high, k), "exponential": formulas.exponential(low, high, k)}
    if len(two := formulas.powers_of_two(low, high, high)) == k:
        sets["powers of two"] = two
    steps, found = range(4, high, 4), buckets.values(tune)
    aware = {formulas.padding_aware(high, step, share=share) for step in steps for share in buckets.SHARES}
    level = [ends for ends in aware if len(ends) == k]
    if level:
        sets["padding-aware"] = min(level, key=lambda e: buckets.measure("padding-aware", *found, e, cost).total_ms)
    return sets


def wasted(held_out: NDArray[np.int64], ends: tuple[int, ...], cost: buckets.Cost) -> float:
    """ms of padding over all held-out requests."""
    padded = buckets.measure("fitted", *buckets.values(held_out), ends, cost)
    return padded.total_ms - buckets.exact(held_out, cost).total_ms


class Served:
    """A bucket's measured time, every time."""

    def __init__(self, cost: buckets.Cost) -> None:
        self.cost = cost

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        return round(self.cost(executed[1]) * 1e6)

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        return self.warm(entry, executed)

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        wall = self.warm(batch.entry, batch.executed)
        return wall, BatchReport(wall, 0)


def served(
    sizes: NDArray[np.int64], arrivals: NDArray[np.int64], ends: tuple[int, ...], cost: buckets.Cost
) -> NDArray[np.float64]:
    """Latency of every request, ms, in the serving machine with these entries."""
    n = sizes.size
    traffic = Workload(
        id="bench", dim_names=("size",), scheduled=arrivals, dims=sizes[:, None], stream=np.zeros(n, dtype=np.int32),
        streams=("all",), payload=np.zeros(n, dtype=np.int32), payload_kind="random",
        deadline=np.full(n, -1, dtype=np.int64), provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip
    entries = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(1,), hi=(end,)) for end in ends)
    plan = Plan(id="fit", compile=CompileSpec(backend="openvino", entries=entries))
    run = RunInfo(
        id="bench", plan="fit", slice="held-out", source="simulated", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=1, workers=1, cores=(0,), driver_core=1,
    )  # fmt: skip
    times = Served(cost)
    return simulate(traffic, plan, Router(plan.compile), times, times, run).latency * 1e3


def effect(
    sizes: NDArray[np.int64], sets: Sequence[tuple[int, ...]], cost: buckets.Cost
) -> tuple[list[float], list[float]]:
    """p95 (ms) and goodput of each set of boundaries, on the same arrivals; the last set is the formula's."""
    mean = buckets.measure("fitted", *buckets.values(sizes), sets[-1], cost).mean_ms
    gaps = np.random.default_rng(5).exponential(mean / UTILISATION * 1e6, sizes.size)
    late = [served(sizes, np.cumsum(gaps).astype(np.int64), ends, cost) for ends in sets]
    return [float(np.quantile(one, 0.95)) for one in late], [float(np.mean(one <= 4 * mean)) for one in late]


def bench(name: str, points: int, repeats: int) -> list[float]:
    """One traffic: prints its rows, gives the saving at each number of entries."""
    study_file, trace, dim = TRAFFIC[name]
    study = load_study(EXAMPLES / study_file)
    ((low, high),) = ((each.lo, each.hi) for each in study.dims.values())
    measured, ms = curve(study, (EXAMPLES / study_file).parent, points, repeats)
    cost: Callable[[int], float] = lambda size: float(np.interp(size, measured, ms))  # noqa: E731
    print(
        f"\n## {name} ({study.name.split('-')[0]}): "
        + ", ".join(f"{s}: {t:.2f} ms" for s, t in zip(measured, ms, strict=True))
    )
    sizes = np.clip(np.array([int(value) for value in column(trace, dim)]), low, high)
    cut = int(TUNE * sizes.size)
    tune, held_out = np.append(sizes[:cut], high), sizes[cut : cut + MOST_REQUESTS]
    print(f"\n| entries | fitted | {' | '.join(FAMILIES)} | less than the best formula | p95, ms | goodput |")
    print("|---|" + "---|" * (len(FAMILIES) + 4))
    saved = []
    for k in sorted({*COUNTS, len(formulas.powers_of_two(low, high, high))}):
        fitted, sets = buckets.fit(tune, cost, k, limit=high), rivals(tune, cost, low, high, k)
        waste = {family: wasted(held_out, ends, cost) / held_out.size for family, ends in sets.items()}
        mine, best = wasted(held_out, fitted, cost) / held_out.size, min(waste, key=lambda family: waste[family])
        saved.append(1 - mine / waste[best])
        p95, good = effect(held_out, (fitted, sets[best]), cost)
        cells = " | ".join(f"{waste[family]:.3f}" if family in waste else "" for family in FAMILIES)
        against = f"{p95[0]:.1f} against {p95[1]:.1f} | {good[0]:.1%} against {good[1]:.1%}"
        print(f"| {k} | {mine:.3f} | {cells} | {saved[-1]:.0%} ({best}) | {against} |")
    return saved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--points", type=int, default=14)
    given = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = {name: bench(name, given.points, given.repeats) for name in TRAFFIC}
    met = [name for name, saved in found.items() if min(saved) >= GOAL]
    print(
        f"\nat least {GOAL:.0%} less wasted at every number of entries: {', '.join(met) or 'none'} (goal: two traffics)"
    )


if __name__ == "__main__":
    main()
