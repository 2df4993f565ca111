"""Moves: which are offered, what each makes of a plan, and what is refused with which reason."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import MS, Recorded, study

from trimtab.domain.plan import BatchPolicy, Entry, Plan
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Study
from trimtab.domain.verdict import Move
from trimtab.retuning import moves
from trimtab.retuning.moves import Known, Seen

BASE = study().baseline
UNABLE = {"mode eager": "it compiles everything", "graph-optimisation levels": "OpenVINO has none"}
ALWAYS = ("eager", "fusion-off")
"""Offered or refused in every study."""
SPACE = {
    "buckets": [1, 2],
    "warm_shapes": [2],
    "batches": [{"kind": "size-hold", "max_size": 4, "hold_ms": 2.0}],
    "backends": ["onnxruntime"],
}


def known(dims: list[int], *, profiles: tuple[CompileProfile, ...] = ()) -> Known:
    widths, counts = np.unique(dims, return_counts=True)
    seen = tuple(Seen("any", (1, int(w)), int(n)) for w, n in zip(widths, counts, strict=True))
    column = np.array(dims, dtype=np.int64).reshape(-1, 1)
    return Known(
        column, seen, Recorded(), profiles, cost=lambda hi: hi / 100, box_cost=lambda end: end[0] / 100, unable=UNABLE
    )


def profile(plan: str, compile_s: float, mib: int, first: dict[int, int]) -> CompileProfile:
    timings = tuple(ShapeTiming(executed=(1, w), first_ns=ms * MS, wall_ns=(), cpu_ns=()) for w, ms in first.items())
    return CompileProfile(
        plan=plan, entry="any", backend="openvino", versions={}, options=CompileOptions(),
        compile_ns=round(compile_s * 1e9), memory_bytes=mib << 20, peak_bytes=mib << 20,
        inspection=Inspection(executed=(1, 100), operators=(), operators_before=0), timings=timings,
    )  # fmt: skip


def by_id(options: moves.Options) -> dict[str, Move]:
    return {move.plan.id: move for move in options.moves}


def test_no_change_is_always_offered_and_comes_first() -> None:
    options = moves.enumerate_moves(study(), known([100]))
    assert [(m.kind, m.plan, m.size) for m in options.moves] == [("no-change", BASE, 0)]


def test_the_space_gives_one_plan_each_smallest_first() -> None:
    options = moves.enumerate_moves(study(space=SPACE), known([100, 100, 400]))
    assert [(m.plan.id, m.kind, m.owner, m.size) for m in options.moves] == [
        ("today", "no-change", "runtime", 0),
        ("warm-2", "warm", "runtime", 102),
        ("batch-4-hold-2ms", "batch", "runtime", 204),
        ("refit-1", "refit", "runtime", 301),
        ("refit-2", "refit", "runtime", 302),
        ("backend-onnxruntime", "backend", "compiler", 500),
    ]


def test_sentences_are_imperative_and_name_what_changes() -> None:
    found = by_id(moves.enumerate_moves(study(space=SPACE), known([100, 100, 400])))
    assert {name: move.sentence for name, move in found.items()} == {
        "today": "Keep plan today as it is.",
        "warm-2": "Run the 2 shapes with the costliest first runs once at start.",
        "batch-4-hold-2ms": "Batch up to 4 requests, holding the first at most 2 ms.",
        "refit-1": "Add 1 entry for width (400), pad requests up to them, warm each at start.",
        "refit-2": "Add 2 entries for width (100, 400), pad requests up to them, warm each at start.",
        "backend-onnxruntime": "Compile the same entries with onnxruntime.",
    }


def test_refit_keeps_the_dynamic_entry_as_fallback_and_warms_each_bucket() -> None:
    plan = moves.refit(BASE, [(100,), (400,)], (16,), (1640,))
    assert plan.compile.entries == (
        Entry(id="to-100", kind="bucket", lo=(16,), hi=(100,)),
        Entry(id="to-400", kind="bucket", lo=(16,), hi=(400,)),
        BASE.compile.entries[0],
    )
    assert (plan.compile.fallback, plan.serve.warm) == ("any", ((1, 100), (1, 400)))


def test_refit_of_a_plan_without_a_dynamic_entry_covers_the_whole_range() -> None:
    fixed = replace(
        BASE,
        compile=replace(
            BASE.compile, entries=(Entry(id="only", kind="bucket", lo=(16,), hi=(1640,)),), fallback="only"
        ),
    )
    plan = moves.refit(fixed, [(100,)], (16,), (1640,))
    assert [e.id for e in plan.compile.entries] == ["to-100", "to-1640"]
    assert plan.compile.fallback is None


def test_refit_for_batches_warms_each_batch_size() -> None:
    batched = replace(BASE, serve=replace(BASE.serve, batch=BatchPolicy(kind="size-hold", max_size=2)))
    plan = moves.refit(batched, [(64,)], (16,), (1640,))
    assert plan.compile.entries[0].batch == (1, 2)
    assert plan.serve.warm == ((1, 64), (2, 64))


def test_the_costliest_first_runs_are_those_likely_to_come_again() -> None:
    """Equal excess, so the frequent shapes save more: 300 came 5 times, 200 twice, 100 once."""
    plan = by_id(moves.enumerate_moves(study(space=SPACE), known([300] * 5 + [200] * 2 + [100])))["warm-2"].plan
    assert plan.serve.warm == ((1, 300), (1, 200))


def test_warm_lists_need_an_excess() -> None:
    flat = replace_predictor(known([100]), excess=False)
    options = moves.enumerate_moves(study(space={"warm_shapes": [4]}), flat)
    assert [(r.plan, r.reason) for r in options.refused if r.plan not in ALWAYS] == [
        ("warm-4", "no first run costs more than a warm one here")
    ]


def replace_predictor(known_: Known, *, excess: bool) -> Known:
    class Flat(Recorded):
        def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
            return super().expected(entry, executed, excess and first_seen)

    return dataclasses.replace(known_, predictor=Flat())


def test_batching_widens_entries_that_admit_fewer() -> None:
    narrow = replace(BASE, compile=replace(BASE.compile, entries=(replace(BASE.compile.entries[0], batch=(1, 2)),)))
    plan = moves.rebatch(narrow, BatchPolicy(kind="size-hold", max_size=4))
    assert plan.compile.entries[0].batch == (1, 4)
    assert moves.changed(narrow, plan) == ("batch",)


def test_another_backend_drops_the_options_of_the_first_and_says_so() -> None:
    move = by_id(moves.enumerate_moves(study(space=SPACE), known([100])))["backend-onnxruntime"]
    assert move.plan.compile.options == {}
    assert "Options of openvino are dropped: hint." in move.risk


def test_a_declared_candidate_may_change_one_thing_only() -> None:
    live = replace(BASE, id="two", note="Serve with two workers.", serve=replace(BASE.serve, workers=2))
    bundle = replace(live, id="bundle", compile=replace(BASE.compile, backend="onnxruntime"))
    same = replace(BASE, id="same")
    options = moves.enumerate_moves(with_candidates(live, bundle, same), known([100]))
    assert [(m.plan.id, m.kind, m.sentence) for m in options.moves[1:]] == [
        ("two", "workers", "Serve with two workers.")
    ]
    assert [(r.plan, r.reason) for r in options.refused if r.plan not in ALWAYS] == [
        ("bundle", "it changes 2 things at once (workers, backend); split it"),
        ("same", "it changes nothing against the baseline"),
    ]


def with_candidates(*plans: Plan) -> Study:
    return replace(study(), candidates=plans)


def test_ids_are_fresh_and_file_safe() -> None:
    a = replace(BASE, id="today", serve=replace(BASE.serve, workers=2))
    b = replace(BASE, id="../odd name", serve=replace(BASE.serve, workers=3))
    options = moves.enumerate_moves(with_candidates(a, b), known([100]))
    assert [m.plan.id for m in options.moves] == ["today", "today-2", "odd-name"]


def test_what_the_space_cannot_give_is_refused_with_its_reason() -> None:
    space = {"buckets": [2, 3, 20], "backends": ["openvino"], "max_entries": 12}
    options = moves.enumerate_moves(study(space=space), known([100, 200]))
    assert [(r.plan, r.reason) for r in options.refused if r.plan not in ALWAYS] == [
        ("refit-3", "the same plan as refit-2"),
        ("refit-20", "21 entries are more than the study allows (12)"),
        ("round-up-1", "the same plan as refit-2"),
        ("backend-openvino", "it is the baseline's backend"),
    ]


def test_without_times_there_is_no_refit() -> None:
    blind = Known(np.array([[5]]), (), Recorded())
    refused = moves.enumerate_moves(study(space={"buckets": [2]}), blind).refused
    assert refused[0].reason == "no measured time to fit to"


def test_two_dims_are_refitted_to_boxes() -> None:
    entry = {"id": "any", "kind": "dynamic", "lo": [1, 1], "hi": [90, 90]}
    two = study(
        dims={"h": {"lo": 1, "hi": 90}, "w": {"lo": 1, "hi": 90}},
        space={"buckets": [2]},
        baseline={"id": "today", "compile": {"backend": "openvino", "entries": [entry], "fallback": "any"}},
    )
    dims = np.array([[10, 80], [80, 10], [9, 70]], dtype=np.int64)
    times = Known(dims, (), Recorded(), box_cost=lambda box: float(box[0] * box[1]))
    move = by_id(moves.enumerate_moves(two, times))["refit-2"]
    assert move.sentence == "Add 2 entries for h x w (10x80, 80x10), pad requests up to them, warm each at start."
    assert [(e.id, e.lo, e.hi) for e in move.plan.compile.entries] == [
        ("to-10x80", (1, 1), (10, 80)),
        ("to-80x10", (1, 1), (80, 10)),
        ("any", (1, 1), (90, 90)),
    ]
    assert move.plan.serve.warm == ((1, 10, 80), (1, 80, 10))


def test_rounding_up_takes_the_finest_grid_that_fits() -> None:
    found = by_id(moves.enumerate_moves(study(space={"buckets": [2]}), known([100, 130, 200, 250])))
    move = found["round-up-128"]
    assert move.sentence == "Round width up to multiples of 128 (2 entries, each warmed at start)."
    assert [e.hi for e in move.plan.compile.entries] == [(128,), (256,), (1640,)]


def test_before_anything_is_compiled_added_entries_are_estimated() -> None:
    options = moves.enumerate_moves(study(space=SPACE), known([100, 400], profiles=(profile("today", 2.0, 30, {}),)))
    refit = by_id(options)["refit-2"]
    assert (refit.compile_s, refit.memory_mib) == (4.0, 60.0)


TODAY = (profile("today", 2.0, 65, {}),)


def charged(plan: Plan, *profiles: CompileProfile, baseline: Plan = BASE) -> tuple[float | None, float | None]:
    move = Move(kind="refit", sentence="", owner="runtime", plan=plan, size=1)
    found = moves.charge(move, baseline, profiles, TODAY)
    return found.compile_s, found.memory_mib


def serving(plan: Plan, **changes: object) -> Plan:
    return replace(plan, serve=replace(plan.serve, **changes))


def test_added_entries_cost_their_compiles_and_first_runs_and_what_is_held_beyond_the_baseline() -> None:
    """The dynamic entry is the baseline's own: neither its compile nor its memory is charged again."""
    plan = moves.refit(BASE, [(100,), (400,)], (16,), (1640,))
    made = [
        replace(profile("refit-2", 1.5, 80, {100: 250}), entry="to-100"),
        replace(profile("refit-2", 0.5, 40, {400: 750}), entry="to-400"),
        profile("refit-2", 1.9, 25, {}),
    ]
    assert charged(plan, *made) == (3.0, 80.0)
    warmed, two = serving(BASE, warm=((1, 100),)), serving(plan, workers=2)
    assert charged(moves.refit(warmed, [(100,), (400,)], (16,), (1640,)), *made, baseline=warmed) == (2.75, 80.0)
    assert charged(two, *made, baseline=serving(BASE, workers=2)) == (3.0, 160.0)


def test_a_plan_that_compiles_everything_anew_is_charged_all_of_it_and_may_hold_less() -> None:
    other = serving(moves.rehost(BASE, "onnxruntime"), warm=((1, 100),))
    assert charged(other, profile("backend", 0.1, 60, {100: 400}), baseline=serving(BASE, warm=((1, 100),))) == (
        0.5,
        -5.0,
    )
    assert charged(serving(BASE, threads=2), profile("threads", 2.1, 65, {})) == (2.1, 0.0)


def test_a_profile_made_for_another_plan_that_compiles_alike_counts() -> None:
    """Of two batch policies of one size only the first is profiled, under its own name."""
    wide = moves.rebatch(BASE, BatchPolicy(kind="size-hold", max_size=16, hold_ms=2.0))
    assert charged(replace(wide, id="batch-16-hold-2ms"), profile("batch-16-hold-0ms", 2.2, 70, {})) == (2.2, 5.0)


def test_a_dropped_entry_gives_its_memory_back() -> None:
    two = moves.refit(BASE, [(100,)], (16,), (1640,))
    alone = replace(two, compile=BASE.compile)
    assert charged(alone, profile("drop-entry", 2.0, 50, {}), baseline=two) == (0.0, -15.0)


@pytest.mark.parametrize("change", [{"order": "shortest"}, {"workers": 3}, {"warm": ((1, 100),)}, {}])
def test_what_compiles_nothing_else_keeps_the_cost_that_its_move_has(change: dict[str, object]) -> None:
    assert charged(serving(BASE, **change), *TODAY) == (None, None)


def test_a_plan_without_a_profile_costs_nobody_knows_what() -> None:
    assert charged(moves.rehost(BASE, "onnxruntime")) == (None, None)


def test_a_declared_change_of_serving_costs_nothing_and_one_that_widens_entries_is_not_known_yet() -> None:
    ordered = replace(serving(BASE, order="shortest"), id="short")
    wide = replace(moves.rebatch(BASE, BatchPolicy(kind="size-hold", max_size=16)), id="wide")
    found = by_id(moves.enumerate_moves(with_candidates(ordered, wide), known([100])))
    assert {name: (found[name].compile_s, found[name].memory_mib) for name in ("short", "wide")} == {
        "short": (0.0, 0.0), "wide": (None, None),
    }  # fmt: skip


@pytest.mark.parametrize("unknown", ["warm-2", "backend-onnxruntime"])
def test_what_is_not_known_is_none(unknown: str) -> None:
    move = by_id(moves.enumerate_moves(study(space=SPACE), known([100])))[unknown]
    assert move.memory_mib is None


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(16, 1640), min_size=1, max_size=40))
def test_laws_of_every_move(dims: list[int]) -> None:
    """Deterministic; one kind of change; a fresh id; every shape of the slice still has an entry."""
    setting, facts = study(space=SPACE), known(dims)
    options = moves.enumerate_moves(setting, facts)
    assert options == moves.enumerate_moves(setting, facts)
    ids = [move.plan.id for move in options.moves]
    assert len(set(ids)) == len(ids)
    for move in options.moves[1:]:
        assert len(moves.changed(BASE, move.plan)) == 1
        assert any(e.hi[0] >= max(dims) for e in move.plan.compile.entries)
        assert any(e.id == move.plan.compile.fallback for e in move.plan.compile.entries)
