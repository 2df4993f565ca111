"""The same for real: static and adapted replays in turn on OpenVINO, one worker beside the driver's core.

Called by ``python bench/adaptation.py --replay``. OCR shift and OCR stationary, with the network that the demo serves.
The static plan's entries are profiled first. Then six replays of each workload: static, adapted, adapted, static,
static, adapted; each with fresh workers, on the same arrivals. Payloads are random: this times, and judges no answers.

A row gives the median and [lowest, highest] of an arm's three replays; a difference counts where the ranges are apart.
Simulated rows are drawn from the same profiles and stand beside; they meet no measured figure in a ratio.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence

import numpy as np
from adaptation import EXAMPLES, MS, OCR, RUN, Case, Told, cases, told, workload
from msgspec.structs import replace

from trimtab.backends import factory
from trimtab.domain.plan import Bounds, CompileSpec, Entry, Plan
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.domain.workload import Slice, Workload
from trimtab.evidence.latency import slips
from trimtab.evidence.score.measured import beside
from trimtab.mapping import buckets
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.readers.payload import RandomPayloads
from trimtab.retuning.adaptation import Lent, Terms, adapt, online
from trimtab.retuning.moves import refit
from trimtab.runtime.grid import grid, prelude
from trimtab.runtime.profile import profile_plan
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.store.study import load_study, resolve_model

CORES = sorted(os.sched_getaffinity(0))
DRIVER, WORKER = CORES[0], CORES[-1]
STUDY = load_study(EXAMPLES / "ocr/study.toml")
PAYLOADS = RandomPayloads(STUDY.model, STUDY.dim_names, 2)
ORDER = ("static", "adapted", "adapted", "static", "static", "adapted")
POINTS, REPEATS, NEW_SHAPES = 12, 9, 60
STATIONARY = 0.25
"""Of the requests after which the other workload is cut: it has less to show."""


def profiles(plan: Plan, load: Workload, model: ModelFile) -> tuple[CompileProfile, ...]:
    """Profiles of the entries of ``plan`` at the shapes of ``load``; new shapes are those of its second half."""
    points, later = grid(load, plan, POINTS), load.take(Slice(name="later", start=len(load) // 2, stop=len(load)))
    found = profile_plan(
        plan, model, factory("openvino"), PAYLOADS, points, REPEATS, WORKER,
        prelude=prelude(later, plan, NEW_SHAPES),
    )  # fmt: skip
    failed = [result for result in found if isinstance(result, CompileFailure)]
    if failed:
        raise SystemExit(f"entry {failed[0].entry} does not compile: {failed[0].message}")
    return tuple(result for result in found if isinstance(result, CompileProfile))


def terms(case: Case, load: Workload, model: ModelFile) -> Terms:
    """The static plan, buckets fitted to what was known, and what its profiles say."""
    limits = Bounds(
        entries=12, spare=4, low=(OCR.low,), high=(OCR.high,), compile_s=360.0, memory_bytes=2**31,
        step=max(1, OCR.high // 64),
    )  # fmt: skip
    anything = Entry(id="any", kind="dynamic", lo=limits.low, hi=limits.high)
    plain = Plan(id="today", compile=CompileSpec(backend="openvino", entries=(anything,), fallback="any"))
    dynamic = profiles(plain, load, model)
    reference = CostModel.from_profiles(dynamic, plain.compile.entries)

    def cost(end: int) -> float:
        return reference.estimate("any", (1, end)) / MS

    ends = buckets.fit(case.values[: case.known, None], cost, limits.entries)
    base = refit(plain, [(end,) for end in ends], limits.low, limits.high)
    padded = tuple(entry for entry in base.compile.entries if entry.id != "any")
    alone = replace(base, compile=replace(base.compile, entries=padded, fallback=None))
    known = profiles(alone, load, model)
    return Terms(
        baseline=base, bounds=limits, cost=cost,
        costs=CostModel.from_profiles([*known, *dynamic], base.compile.entries),
        measured={}, reference=reference, reference_entry="any", profiles=known,
    )  # fmt: skip


def served(arm: str, number: int, load: Workload, given: Terms, sla: Sla, model: ModelFile) -> Trace:
    """One replay with fresh workers."""
    plan, controller = given.baseline, None
    times = Lent(given, plan.compile.entries, 0)
    if arm == "adapted":
        controller, times = online(given, sla, 0)
    run = replace(RUN, id=f"{arm}-{number}", source="measured", cores=(WORKER,), driver_core=DRIVER)
    trace = replay(
        ReplayRequest(
            workload=load,
            plan=plan,
            model=model,
            backend=factory("openvino"),
            payloads=PAYLOADS,
            router=Router(plan.compile),
            predictor=times,
            cores=(WORKER,),
            driver_core=DRIVER,
            run=run,
            controller=controller,
        )
    )
    if not trace.run.complete or (trace.requests["error"] != 0).any():
        raise SystemExit(f"{run.id} is no good: {trace.run.note}")
    return trace


def work(traces: Sequence[Trace]) -> str:
    """What the controller did, and what it cost: medians over the replays."""
    prepared = [trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("prepare")) for trace in traces]
    seconds = [float((marks["end"] - marks["t"]).sum()) / 1e9 for marks in prepared]
    slower = beside(traces).slower
    slip = np.median([float(np.quantile(slips(trace), 0.99)) for trace in traces]) / MS
    compiles = np.median([len(marks) for marks in prepared])
    said = f"{compiles:.0f} compiles, {np.median(seconds):.1f} s beside, slip p99 {slip:.2f} ms"
    return said if slower is None else f"{said}, batches beside {slower * 100:+.0f} %"


def row(name: str, arm: str, each: Sequence[Told], cost: str = "") -> str:
    def spread(values: Sequence[float], form: str) -> str:
        return f"{np.median(values):{form}} [{min(values):{form}}, {max(values):{form}}]"

    goodput, misses = spread([t.goodput * 100 for t in each], ".1f"), spread([t.misses for t in each], ".0f")
    return f"| {name} | {arm} | {goodput} | {misses} | {spread([t.p95 for t in each], '.1f')} | {cost} |"


def ratios(static: Sequence[Told], adapted: Sequence[Told]) -> str:
    """Adapted against static, and how far replays of one arm lie apart."""

    def within(values: Sequence[float]) -> float:
        return max(values) / max(min(values), 1e-9) - 1

    better = np.median([t.p95 for t in adapted]) / np.median([t.p95 for t in static])
    apart = max(within([t.p95 for t in arm]) for arm in (static, adapted))
    fewer = np.median([t.misses for t in static]) / max(float(np.median([t.misses for t in adapted])), 1.0)
    most, least = max(t.misses for t in adapted), min(t.misses for t in static)
    return (
        f"p95 adapted / static {better:.2f} (replays of one arm differ by up to {apart * 100:.0f} %); "
        f"misses {fewer:.1f} times fewer (at least {least} static, at most {most} adapted)"
    )


def lines(case: Case, load: Workload, model: ModelFile) -> Iterator[str]:
    """The table's rows of one workload, and what they come to."""
    sla = Sla(metric="goodput", bound_ms=case.bound_ms)
    given = terms(case, load, model)
    traces: dict[str, list[Trace]] = {"static": [], "adapted": []}
    for number, arm in enumerate(ORDER):
        traces[arm].append(served(arm, number, load, given, sla, model))
    seen = {arm: [told(trace, case) for trace in found] for arm, found in traces.items()}
    for arm, found in traces.items():
        yield row(case.name, f"{arm}, measured", seen[arm], work(found))
    simulated = adapt(load, given, sla, RUN)
    if not isinstance(simulated, str):
        for arm in ("static", "adapted", "clairvoyant"):
            yield row(case.name, f"{arm}, simulated", [told(getattr(simulated, arm), case)])
    yield f"\n{case.name}: {ratios(seen['static'], seen['adapted'])}\n"


def measure(requests: int) -> None:
    """Both workloads, ``requests`` of them after which the other is cut to ``STATIONARY``."""
    model = resolve_model(STUDY, EXAMPLES / "ocr")
    for case in cases(requests, 0)[:2]:
        kept = requests if case.judged > 0 else round(requests * STATIONARY)
        part = dataclasses.replace(case, values=case.values[:kept])
        load = replace(workload(part, 0), dim_names=STUDY.dim_names)
        for line in lines(part, load, model):
            print(line, flush=True)
