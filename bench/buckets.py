"""Fitted boundaries against formulas, in measured milliseconds on traffic that the fit never saw.

Three recorded traffics: widths of text lines (scanned receipts) through the example's recogniser; token counts of a
conversation service and of a code service through the example's text embedder; arrivals as the studies have them. The
cost of a bucket is measured here: OpenVINO compiles the network for that one shape, one thread, and runs it
``--repeats`` times, entries in turn; the median counts, made monotone, straight lines between the measured sizes.

Boundaries are chosen on the first 40 % of each traffic and judged on the rest. Every set ends at the largest size that
the study accepts, so all of them cover everything. *fitted* minimises the total (mapping/buckets), *tail* the p95 of
the queue on the tuning part's arrivals (tail.py). The padding-aware formula has no number of entries; its step
and its limit are set to what is best for each number, on the tuning part.

*Wasted* = ms of the padded run less ms of a bucket that fits exactly, over all held-out requests. p95 and goodput: the
held-out requests in the serving machine, one worker, FIFO, the recorded gaps in proportion, at the rate that eight
fitted entries fill to ``UTILISATION``; goodput is the share done within ``PATIENCE`` mean run times of these. *A/A*:
the same figure by the even and by the odd repeats alone.

    python bench/buckets.py [--repeats 16] [--points 14] [--page docs/retune.md]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tail
from marked import percent, stamp, table, told
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab import backends
from trimtab.domain.events import BatchReport, Dispatch
from trimtab.domain.noun import EntryId, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import Study
from trimtab.domain.trace import RunInfo
from trimtab.domain.workload import Slice, Workload
from trimtab.mapping import buckets, formulas
from trimtab.mapping.route import Router
from trimtab.readers.payload import RandomPayloads
from trimtab.readers.traffic import read_workload
from trimtab.serving.simulate import simulate
from trimtab.store.study import load_study, resolve_model

EXAMPLES = Path(__file__).parents[1] / "examples"
TRAFFIC = {
    "line widths": "ocr/study.toml",
    "conversation tokens": "minilm/study.toml",
    "code tokens": "minilm/study-code.toml",
}
TUNE, UTILISATION, PATIENCE, MOST_REQUESTS = 0.4, 0.4, 4, 20_000
FAMILIES = ("linear", "exponential", "powers of two", "padding-aware")
COUNTS = (4, 8, 12)
GOAL = 0.30
Ends = tuple[int, ...]


class Curve(NamedTuple):
    """Measured ms of a bucket at each of ``sizes``: ``ms[size][repeat]``."""

    sizes: NDArray[np.int64]
    ms: NDArray[np.float64]

    def cost(self, which: slice = slice(None)) -> buckets.Cost:
        """Cost by the chosen repeats."""
        medians = np.maximum.accumulate(np.median(self.ms[:, which], axis=1))
        return lambda size: float(np.interp(size, self.sizes, medians))


HALVES = (slice(0, None, 2), slice(1, None, 2))


def curve(study: Study, folder: Path, points: int, repeats: int) -> Curve:
    """Geometric from the least to the largest size."""
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
    return Curve(sizes, np.array([times for _, _, times in ready]))


def rivals(tune: NDArray[np.int64], cost: buckets.Cost, low: int, high: int, k: int) -> dict[str, Ends]:
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


def wasted(held_out: NDArray[np.int64], ends: Ends, cost: buckets.Cost) -> float:
    """ms of padding, per held-out request."""
    padded = buckets.measure("fitted", *buckets.values(held_out), ends, cost)
    return (padded.total_ms - buckets.exact(held_out, cost).total_ms) / held_out.size


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


def served(load: Workload, ends: Ends, cost: buckets.Cost) -> NDArray[np.float64]:
    """Latency of every request, ms, in the serving machine with these entries."""
    entries = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(1,), hi=(end,)) for end in ends)
    plan = Plan(id="fit", compile=CompileSpec(backend="openvino", entries=entries))
    run = RunInfo(
        id="bench", plan="fit", slice="held-out", source="simulated", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=1, workers=1, cores=(0,), driver_core=1,
    )  # fmt: skip
    times = Served(cost)
    return simulate(load, plan, Router(plan.compile), times, times, run).latency * 1e3


class Case(NamedTuple):
    """One traffic at its rate: what is tuned on, what judges, and the range that entries must cover."""

    name: str
    curve: Curve
    tune: Workload
    held_out: Workload
    low: int
    high: int
    patience_ms: float


def case(name: str, points: int, repeats: int) -> Case:
    """Read it, measure its curve, and stretch its arrivals to the rate."""
    path = EXAMPLES / TRAFFIC[name]
    study = load_study(path)
    ((low, high),) = ((each.lo, each.hi) for each in study.dims.values())
    measured = curve(study, path.parent, points, repeats)
    whole = read_workload(study, path.parent)
    cut = round(TUNE * len(whole))
    fitted = buckets.sweep(whole.dims[:cut], measured.cost(), max(COUNTS), limit=high)[7].mean_ms
    span = len(whole) * fitted / UTILISATION * 1e6
    load = replace(whole, scheduled=np.rint(whole.scheduled * (span / whole.span)).astype(np.int64))
    parts = (Slice(name="tune", start=0, stop=cut), Slice(name="held-out", start=cut, stop=cut + MOST_REQUESTS))
    tune, held_out = (load.take(part) for part in parts)
    return Case(name, measured, tune, held_out, low, high, PATIENCE * fitted)


def chosen(one: Case) -> dict[int, dict[str, Ends]]:
    """By number of entries and name: the boundaries that the tuning part leads to."""
    cost = one.curve.cost()
    dims = np.append(one.tune.dims.reshape(-1), one.high)
    arrivals = np.append(one.tune.scheduled, one.tune.scheduled[-1])
    two = len(formulas.powers_of_two(one.low, one.high, one.high))
    counts = sorted({*COUNTS, two})
    plain = buckets.sweep(dims, cost, max(counts), limit=one.high)
    tailed = tail.fit(dims, arrivals, cost, max(counts), limit=one.high)
    return {
        k: {"fitted": plain[k - 1].boundaries, "tail": tailed[k - 1]} | rivals(dims, cost, one.low, one.high, k)
        for k in counts
    }


class Row(NamedTuple):
    """One number of entries; ``saved``: by the fitted ones against ``best``, the best formula."""

    k: int
    waste: dict[str, float]
    best: str
    saved: float
    saved_by: tuple[float, float]
    p95: dict[str, float]
    good: dict[str, float]


def row(one: Case, k: int, sets: dict[str, Ends]) -> Row:
    """Judged on the held-out part."""
    sizes, cost = one.held_out.dims.reshape(-1), one.curve.cost()
    waste = {name: wasted(sizes, ends, cost) for name, ends in sets.items()}
    best = min((name for name in sets if name in FAMILIES), key=lambda name: waste[name])

    def saved(by: buckets.Cost) -> float:
        return 1 - wasted(sizes, sets["fitted"], by) / wasted(sizes, sets[best], by)

    even, odd = (saved(one.curve.cost(half)) for half in HALVES)
    late = {name: served(one.held_out, sets[name], cost) for name in ("fitted", "tail", best)}
    return Row(
        k, waste, best, saved(cost), (even, odd),
        {name: float(np.quantile(each, 0.95)) for name, each in late.items()},
        {name: float(np.mean(each <= one.patience_ms)) for name, each in late.items()},
    )  # fmt: skip


def section(one: Case, rows: Sequence[Row]) -> str:
    """One traffic's table."""
    times = ", ".join(f"{s}: {ms:.2f}" for s, ms in zip(one.curve.sizes, np.median(one.curve.ms, axis=1), strict=True))
    head = ("entries", "fitted", "tail", *FAMILIES, "fitted against the best formula (A/A)", "p95, ms", "goodput")
    body = []
    for each in rows:
        names = ("fitted", "tail", each.best)
        cells = [f"{each.waste[name]:.3f}" if name in each.waste else "" for name in head[1:7]]
        halves = ", ".join(percent(-half, 0) for half in each.saved_by)
        body.append((
            f"{each.k}", *cells, f"{percent(-each.saved, 0)} ({halves}), {each.best}",
            " / ".join(f"{each.p95[name]:.1f}" for name in names),
            " / ".join(f"{each.good[name]:.1%}" for name in names),
        ))  # fmt: skip
    return f"**{one.name.capitalize()}.** Measured, ms: {times}.\n\n{table(head, body)}"


def verdicts(found: dict[str, list[Row]]) -> str:
    """What the goal and the tail objective come to."""
    met = [name for name, rows in found.items() if all(row.saved >= GOAL for row in rows)]
    partly = [
        f"{name} at {', '.join(str(row.k) for row in rows if row.saved >= GOAL) or 'none'}"
        for name, rows in found.items()
    ]
    rows = [row for each in found.values() for row in each]
    better = sum(row.p95["tail"] < row.p95["fitted"] for row in rows)
    worse = sum(row.p95["tail"] > row.p95["fitted"] for row in rows)
    beaten = sum(min(row.p95["tail"], row.p95["fitted"]) > row.p95[row.best] for row in rows)
    return "\n".join((
        f"- At least {GOAL:.0%} less wasted at every number of entries: {', '.join(met) or 'none'} (goal: two); "
        f"by number of entries: {'; '.join(partly)}.",
        f"- p95 by *tail* against *fitted*: shorter in {better}, longer in {worse} of {len(rows)} rows; the best "
        f"formula has a shorter p95 than both in {beaten}.",
        "- p95 and goodput: fitted / tail / best formula.",
    ))  # fmt: skip


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--points", type=int, default=14)
    parser.add_argument("--page", type=Path, help="write the tables into this page's section")
    given = parser.parse_args(argv)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found, parts = dict[str, list[Row]](), []
    for name in TRAFFIC:
        one = case(name, given.points, given.repeats)
        found[name] = [row(one, k, sets) for k, sets in chosen(one).items()]
        parts.append(section(one, found[name]))
    command = f"python bench/buckets.py {' '.join(argv)}".strip()
    told("\n\n".join([verdicts(found), *parts, stamp(command)]), "buckets", given.page)


if __name__ == "__main__":
    main(sys.argv[1:])
