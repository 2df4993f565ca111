"""The whole path of this room over the real serving machine: moves, search, choice, matrix, decision, cores.

A recogniser whose dynamic entry pays 20 ms for each new width, 1 to 9 ms warm; padded entries pay nothing once warmed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from retuning_cases import MS, study

from trimtab.domain.noun import Executed
from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Guard, Sla
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.verdict import MatrixCell, Move
from trimtab.domain.workload import Provenance, Slice, Workload
from trimtab.errors import RunError
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.retuning import arms, confirm, decide, moves, rollback, search, size, triggers, validate
from trimtab.serving.simulate import simulate

SPACE = {
    "buckets": [4],
    "warm_shapes": [8],
    "batches": [{"kind": "size-hold", "max_size": 2, "hold_ms": 2.0}],
    "backends": ["onnxruntime"],
}
STUDY = study(space=SPACE)
SLA = Sla(metric="p95", bound_ms=30.0)
ANSWERS = MatrixCell(
    id="guard/quality", slice="all shapes", condition="normal", metric="argmax-agreement", role="guard", status="pass"
)


@cache
def traffic() -> Workload:
    n, rng = 2400, np.random.default_rng(7)
    widths = np.clip(np.rint(rng.lognormal(5.2, 0.6, n)), 25, 1600).astype(np.int64)
    return Workload(
        id="lines", dim_names=("width",),
        scheduled=np.rint(np.cumsum(rng.exponential(1e9 / 50, n))).astype(np.int64),
        dims=widths.reshape(-1, 1), stream=np.arange(n, dtype=np.int32) % 2, streams=("a", "b"),
        payload=np.zeros(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1),
        provenance=Provenance(files=(), time_scale=1.0),
        slices=(Slice(name="tune", start=0, stop=800), Slice(name="held-out", start=800, stop=n)),
    )  # fmt: skip


def warm_ns(executed: Executed) -> int:
    return executed[0] * (MS // 2 + executed[1] * MS // 200)


def timing(executed: Executed, excess_ms: int) -> ShapeTiming:
    warm = warm_ns(executed)
    repeats = tuple(round(warm * (0.97 + 0.01 * i)) for i in range(7))
    return ShapeTiming(executed=executed, first_ns=warm + excess_ms * MS, wall_ns=repeats, cpu_ns=repeats)


MODELS: dict[str, CostModel] = {}


def costs(plan: Plan) -> CostModel:
    if plan.id not in MODELS:
        MODELS[plan.id] = profiled(plan)
    return MODELS[plan.id]


def profiled(plan: Plan) -> CostModel:
    """A profile of every entry; onnxruntime does not compile here."""
    if plan.compile.backend == "onnxruntime":
        raise RunError("onnxruntime cannot compile this network")
    profiles = []
    for entry in plan.compile.entries:
        widths = (16, 400, 1640) if entry.kind == "dynamic" else entry.hi
        shapes = [(n, width) for n in range(1, entry.batch[1] + 1) for width in widths]
        profiles.append(
            CompileProfile(
                plan=plan.id, entry=entry.id, backend="openvino", versions={}, options=CompileOptions(),
                compile_ns=400 * MS, memory_bytes=30 << 20, peak_bytes=40 << 20,
                inspection=Inspection(executed=shapes[0], operators=(), operators_before=0),
                timings=tuple(timing(shape, 20) for shape in shapes),
            )
        )  # fmt: skip
    return CostModel.from_profiles(profiles, plan.compile.entries)


def run(plan: Plan, workload: Workload, seed: int) -> Trace:
    model = costs(plan)
    info = RunInfo(
        id=f"{plan.id}-{seed}", plan=plan.id, slice=workload.id, source="simulated", workload_sha256="w",
        envelope_sha256="e", start_state="warm", seed=seed, workers=plan.serve.workers,
        cores=tuple(range(plan.serve.workers)), driver_core=0,
    )  # fmt: skip
    return simulate(workload, plan, Router(plan.compile), model, ProfileService(model, seed), info)


def part(name: str) -> Slice:
    return next(each for each in traffic().slices if each.name == name)


def rehearsed(plan: Plan, load: Workload) -> rollback.Rehearsal:
    """The plan on twenty redrawn arrivals."""

    def once(seed: int) -> rollback.Redrawn:
        rows, arrivals = rollback.redraw(load, 64, np.random.default_rng(seed))
        return rollback.Redrawn(rows, run(plan, arrivals, seed).latency)

    recorded = rollback.Redrawn(np.arange(len(load)), run(plan, load, 40).latency)
    return rollback.Rehearsal(recorded, tuple(once(50 + k) for k in range(20)), {})


@cache
def searched() -> tuple[moves.Options, tuple[search.Simulated, ...]]:
    tune = traffic().take(part("tune"))
    base = STUDY.baseline
    known = moves.Known(
        dims=tune.dims,
        seen=moves.seen_shapes(run(base, tune, 1)),
        predictor=costs(base),
        cost=lambda end: costs(base).estimate("any", (1, end)) / 1e6,
    )
    options = moves.enumerate_moves(STUDY, known)

    def simulated(plan: Plan, replica: int, share: float) -> Trace:
        return run(plan, search.jitter(search.beginning(tune, share), replica, 3), replica)

    rows = search.simulate_all(options.moves, simulated, SLA, ensemble=5)
    return options, tuple(rows)


def test_padded_entries_lead_and_what_cannot_run_is_a_row() -> None:
    _, rows = searched()
    assert {row.move.plan.id for row in rows[:2]} == {"refit-4", "round-up-256"}
    assert [(row.move.plan.id, row.failed) for row in rows if row.failed] == [
        ("backend-onnxruntime", "onnxruntime cannot compile this network")
    ]
    refit = next(row for row in rows if row.move.plan.id == "refit-4")
    assert refit.change is not None
    assert refit.change < -0.3
    assert refit.spread is not None
    assert refit.spread.lo <= refit.change <= refit.spread.hi


def test_warming_gains_less_than_refitting() -> None:
    gains = {row.move.plan.id: row.gain("p95") for row in searched()[1]}
    assert gains["refit-4"] > gains["warm-8"] > -0.02


def test_the_chosen_move_is_shipped_from_held_out_replays() -> None:
    options, rows = searched()
    tune, held_out = traffic().take(part("tune")), traffic().take(part("held-out"))
    short = search.shortlist(rows, SLA, 2, 0.0)

    def replays(move: Move) -> list[np.ndarray]:
        return [run(move.plan, tune, 10 + r).latency for r in range(3)]

    choice = confirm.choose([options.moves[0], *short], replays, SLA, 4)
    assert choice.chosen.kind in ("refit", "round-up")
    pair = arms.arms_of(
        arms.AS_RECORDED,
        [run(STUDY.baseline, held_out, 20 + r) for r in range(3)],
        [run(choice.chosen.plan, held_out, 30 + r) for r in range(3)],
    )
    assert pair.refusal == ""
    matrix = validate.validate(
        SLA,
        [Guard(metric="p50", margin=0.25)],
        [pair],
        arms.slice_rows(traffic(), part("held-out")),
        4,
        resamples=400,
    )
    verdict = decide.decide(
        decide.Case(
            move=choice.chosen,
            baseline=STUDY.baseline.id,
            cells=matrix.cells,
            sla=SLA,
            signoff=STUDY.signoff,
            quality=(ANSWERS,),
        )
    )
    assert (verdict.decision, verdict.reason) == ("ship", "")
    assert verdict.sentence.startswith("Ship, once the compiler lead, the runtime lead and the observability engineer")
    slices = arms.slice_rows(traffic(), part("held-out"))
    way_back = triggers.triggers(
        matrix.cells, pair, slices, SLA, choice.chosen,
        rehearsal=rehearsed(choice.chosen.plan, held_out), baseline="today", rate_hz=50.0, seed=4,
    )  # fmt: skip
    assert [each.cell for each in way_back] == ["primary/normal/held-out/p95", "guard/normal/held-out/p50"]
    assert way_back[0].sentence.startswith("Go back to plan today when more than ")
    assert way_back[0].false_alarms is not None
    assert way_back[0].false_alarms < 0.1


def test_cores_needed_by_the_real_machine() -> None:
    tune = traffic().take(part("tune"))
    refit = next(row.move.plan for row in searched()[1] if row.move.plan.id == "refit-4")
    sizing = size.size(refit, tune, SLA, lambda plan, load: run(plan, load, 5), 2, measured=1, highest=20.0)
    assert sizing.needed == 1
    assert sizing.stops_at is not None
    assert 1.0 < sizing.stops_at < 20.0
    assert sizing.rows[1].utilisation == pytest.approx(sizing.rows[0].utilisation / 2, rel=0.05)


def test_each_move_serves_every_request_of_the_slice() -> None:
    tune = traffic().take(part("tune"))
    for row in searched()[1]:
        if not row.failed:
            assert np.all(np.isfinite(run(row.move.plan, tune, 1).latency)), row.move.plan.id
