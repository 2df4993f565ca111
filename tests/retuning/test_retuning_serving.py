"""Moves that compile nothing, one entry more or less, and the two that are always tried."""

from __future__ import annotations

from dataclasses import replace as with_
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import MS, Recorded, study

from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection
from trimtab.domain.study import Study
from trimtab.domain.verdict import Move
from trimtab.errors import StudyError
from trimtab.mapping.route import Router
from trimtab.retuning import moves
from trimtab.retuning._serving import ORDERS, PLACEMENTS
from trimtab.retuning.moves import Known
from trimtab.serving.order import ORDER
from trimtab.serving.place import PLACE

CORES = {"cores": [0, 1, 2, 3], "driver_core": 0}
UNABLE = {"mode eager": "it compiles everything", "graph-optimisation levels": "it has none"}
ALWAYS = ("eager", "fusion-off")


def known(dims: list[int], **more: Any) -> Known:
    """By measured time a request costs width / 100 ms; a new width on the dynamic entry 15 ms more, once."""
    column = np.array(dims, dtype=np.int64).reshape(-1, 1)
    return Known(column, (), Recorded(), box_cost=lambda end: end[0] / 100, unable=UNABLE, **more)


def offered(space: dict[str, Any], facts: Known | None = None, **changes: Any) -> moves.Options:
    return moves.enumerate_moves(study(space=space, envelope=CORES, **changes), facts or known([100]))


def rows(options: moves.Options) -> list[tuple[str, str, int, float | None]]:
    return [(move.plan.id, move.kind, move.size, move.compile_s) for move in options.moves[1:]]


def refused(options: moves.Options) -> dict[str, str]:
    return {row.plan: row.reason for row in options.refused if row.plan not in ALWAYS}


def only(options: moves.Options) -> Move:
    (move,) = options.moves[1:]
    return move


def with_workers(workers: int, entries: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    base = {"id": "any", "kind": "dynamic", "lo": [16], "hi": [1640], "batch": [1, 8]}
    return {
        "id": "today",
        "compile": {"backend": "openvino", "entries": [*(entries or []), base], "fallback": "any"},
        "serve": {"workers": workers},
    }


def bucket(end: int) -> dict[str, Any]:
    return {"id": f"to-{end}", "kind": "bucket", "lo": [16], "hi": [end], "batch": [1, 8]}


def test_orders_bounds_and_workers_are_moves_of_their_own() -> None:
    space = {"orders": ["fifo", "shortest", "deadline"], "admit": [8], "workers": [[2, 1], [1, 2], [4, 1]]}
    options = offered(space, known([100], deadlines=True))
    assert rows(options) == [
        ("order-shortest", "order", 210, 0.0),
        ("order-deadline", "order", 210, 0.0),
        ("admit-8", "admit", 230, 0.0),
        ("workers-2x1", "workers", 252, None),
        ("workers-1x2", "threads", 262, None),
    ]
    assert refused(options) == {
        "order-fifo": "the same plan as today",
        "workers-4x1": "4 workers, but 3 cores beside the driver",
    }
    assert [move.sentence for move in options.moves[1:5]] == [
        "Serve the waiting request with the shortest predicted time first.",
        "Serve the waiting request with the earliest deadline first.",
        "Reject a request on arrival while 8 wait or run.",
        "Serve with 2 workers of 1 thread.",
    ]
    assert all(move.owner == "runtime" and move.risk for move in options.moves[1:])


def test_each_changes_the_one_thing_that_it_names() -> None:
    space = {"orders": ["shortest"], "admit": [8], "workers": [[3, 1]], "placements": ["size-affinity"]}
    options = offered(space, baseline=with_workers(2, [bucket(100)]))
    plans = {move.kind: move.plan for move in options.moves[1:]}
    base = options.moves[0].plan
    assert {kind: moves.changed(base, plan) for kind, plan in plans.items()} == {
        kind: (kind,) for kind in ("order", "placement", "admit", "workers")
    }
    serve = {kind: plan.serve for kind, plan in plans.items()}
    assert (serve["order"].order, serve["admit"].admit) == ("shortest", 8)
    assert (serve["placement"].placement, serve["workers"].workers) == ("size-affinity", 3)


def test_equal_deadlines_are_first_come_first_served() -> None:
    reason = "deadlines do not differ: that is first come, first served"
    assert refused(offered({"orders": ["deadline"]})) == {"order-deadline": reason}


@pytest.mark.parametrize(
    ("workers", "entries", "reason"),
    [
        (1, [bucket(100)], "one worker serves everything: there is nothing to place"),
        (2, [], "one entry serves every size"),
    ],
)
def test_a_placement_needs_something_to_place(workers: int, entries: list[dict[str, Any]], reason: str) -> None:
    options = offered({"placements": ["size-affinity"]}, baseline=with_workers(workers, entries))
    assert refused(options) == {"place-size-affinity": reason}


def test_more_workers_compile_and_hold_every_entry_again() -> None:
    profile = CompileProfile(
        plan="today", entry="any", backend="openvino", versions={}, options=CompileOptions(),
        compile_ns=1500 * MS, memory_bytes=30 << 20, peak_bytes=1,
        inspection=Inspection(executed=(1, 100), operators=(), operators_before=0), timings=(),
    )  # fmt: skip
    move = only(offered({"workers": [[3, 1]]}, known([100], profiles=(profile,))))
    assert (move.compile_s, move.memory_mib) == (3.0, 60.0)


def test_every_policy_has_its_sentence() -> None:
    assert ORDERS.keys() == ORDER.keys()
    assert PLACEMENTS.keys() == PLACE.keys()


@pytest.mark.parametrize("key", ["orders", "placements"])
def test_an_unknown_policy_is_an_error_with_the_known_ones(key: str) -> None:
    with pytest.raises(StudyError, match="unknown policy 'lifo'") as caught:
        offered({key: ["lifo"]})
    assert caught.value.where == f"space.{key}"


# --- one entry more, one entry less --------------------------------------------------------------------------


def test_the_added_entry_is_the_one_that_saves_most() -> None:
    """Twenty widths of 110 to 129, each once: 15 ms of first run each, against at most 0.19 ms of padding. A hundred
    requests of 1600 run warm, so padding the rest up to 1600 would cost and save nothing."""
    facts = known([*range(110, 130), *([1600] * 100)])
    base = with_workers(1)
    base["serve"]["warm"] = [[1, 1600]]
    move = only(offered({"entries": ["add"]}, facts, baseline=base))
    assert move.sentence == "Add one entry for width that ends at 129, and warm it at start."
    assert move.risk == "It takes 17 % of the requests, and pads them up to 129."
    assert [entry.id for entry in move.plan.compile.entries] == ["to-129", "any"]
    assert move.plan.serve.warm == ((1, 1600), (1, 129))
    assert moves.changed(study(baseline=base).baseline, move.plan) == ("entries",)


def test_no_entry_is_added_where_none_saves() -> None:
    base = with_workers(1, [bucket(100)])
    options = offered({"entries": ["add"]}, known([100, 100]), baseline=base)
    assert refused(options) == {"add-entry": "no end saves more in first runs and padding than it costs in padding"}


def test_the_dropped_entry_is_the_one_whose_loss_costs_least() -> None:
    """Without 90 its ten requests run at 100, 0.1 ms more each; without 100 its five pay a first run."""
    base = with_workers(1, [bucket(90), bucket(100)])
    facts = known([90] * 10 + [100] * 5)
    move = only(offered({"entries": ["drop"]}, facts, baseline=base))
    assert (move.plan.id, move.sentence) == ("drop-entry", "Drop entry to-90: others cover its shapes.")
    assert move.risk == "By profile a request takes 0.0667 ms more on average."
    assert [entry.id for entry in move.plan.compile.entries] == ["to-100", "any"]


def test_the_only_entry_that_covers_a_shape_stays() -> None:
    assert refused(offered({"entries": ["drop"]})) == {"drop-entry": "no entry may go: none is covered by another"}


def test_without_times_no_entry_is_priced() -> None:
    blind = with_(known([100]), box_cost=None)
    assert set(refused(offered({"entries": ["add", "drop"]}, blind)).values()) == {"no measured time to price it with"}


def test_the_number_of_entries_stays_within_the_study() -> None:
    options = offered({"entries": ["add"], "max_entries": 1})
    assert refused(options) == {"add-entry": "2 entries are more than the study allows (1)"}


def test_both_leave_every_shape_an_entry() -> None:
    widths = [20, 40, 90, 100, 300, 1600]
    base = with_workers(1, [bucket(90), bucket(300)])
    for move in offered({"entries": ["add", "drop"]}, known(widths), baseline=base).moves:
        router = Router(move.plan.compile)
        assert all(router.route((width,)).entry is not None for width in widths)


# --- always tried --------------------------------------------------------------------------------------------


def test_the_lowest_level_and_eager_are_tried_whatever_the_space_says() -> None:
    options = moves.enumerate_moves(study(), with_(known([100]), unable={}))
    assert [(m.plan.id, m.kind, m.owner) for m in options.moves[1:]] == [
        ("fusion-off", "optimisation", "compiler"),
        ("eager", "backend", "compiler"),
    ]
    eager = options.moves[2]
    assert (eager.plan.compile.options, eager.plan.compile.optimisation) == ({"mode": "eager"}, "default")
    assert eager.risk.endswith("What the compiler was told is dropped: hint.")
    assert moves.changed(options.moves[0].plan, eager.plan) == ("backend",)


def test_what_the_backend_cannot_is_refused_with_its_reason() -> None:
    options = moves.enumerate_moves(study(), known([100]))
    assert {row.plan: row.reason for row in options.refused} == {
        "fusion-off": "openvino: it has none",
        "eager": "openvino: it compiles everything",
    }


def test_a_declared_bound_is_one_change() -> None:
    base: Plan = study().baseline
    bounded = replace(base, id="bounded", serve=replace(base.serve, admit=4))
    declared: Study = replace(study(), candidates=(bounded,))
    assert only(moves.enumerate_moves(declared, known([100]))).kind == "admit"
