"""Search: simulated ranking with its spread, the short list, and the choice among what was measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import noisy, study, trace

from trimtab.domain.plan import Plan
from trimtab.domain.profile import CompileFailure
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move, Rejected
from trimtab.domain.workload import Provenance, Workload
from trimtab.errors import RunError
from trimtab.mapping.buckets import compare
from trimtab.retuning import findings
from trimtab.retuning.confirm import choose, rejected
from trimtab.retuning.search import jitter, not_compiled, shortlist, simulate_all, why_not

BASE = study().baseline
P95 = Sla(metric="p95", bound_ms=60.0)


def move(kind: str, size: int, name: str = "") -> Move:
    plan = replace(BASE, id=name or (kind if size else "today"))
    return Move(kind=kind, sentence=f"{plan.id}.", owner="runtime", plan=plan, size=size)


NONE, WARM, REFIT, REFIT8, BATCH = (
    move("no-change", 0),
    move("warm", 110),
    move("refit", 304, "refit-4"),
    move("refit", 308, "refit-8"),
    move("batch", 204),
)


class Played:
    """Latency (ms) by plan and replica; the replica adds its own number times ``step``. Counts its calls."""

    def __init__(self, latency: dict[str, float], step: dict[str, float] | None = None) -> None:
        self.latency, self.step = latency, step or {}
        self.calls: dict[str, int] = {}

    def __call__(self, plan: Plan, replica: int, share: float) -> Trace:
        self.calls[plan.id] = self.calls.get(plan.id, 0) + 1
        if plan.id not in self.latency:
            raise RunError(f"nothing is known of {plan.id}")
        return trace([self.latency[plan.id] + self.step.get(plan.id, 0.0) * replica] * 40, plan=plan.id)


def test_rows_come_best_first_with_their_change_and_failures_last() -> None:
    rows = simulate_all([NONE, WARM, REFIT, BATCH], Played({"today": 100, "warm": 80, "refit-4": 40}), P95)
    assert [(r.move.plan.id, r.change, r.failed) for r in rows] == [
        ("refit-4", pytest.approx(-0.6), ""),
        ("warm", pytest.approx(-0.2), ""),
        ("today", 0.0, ""),
        ("batch", None, "nothing is known of batch"),
    ]
    assert (rows[0].value, rows[0].misses, rows[1].misses) == (pytest.approx(40.0), 0.0, 1.0)


def test_close_ones_and_batch_policies_get_the_ensemble_others_a_first_look() -> None:
    played = Played({"today": 100, "warm": 90, "refit-4": 40, "refit-8": 40, "batch": 200})
    simulate_all([NONE, WARM, REFIT, REFIT8, BATCH], played, P95, ensemble=20)
    assert played.calls == {"today": 20, "warm": 3, "refit-4": 20, "refit-8": 20, "batch": 20}


def test_the_spread_is_over_paired_replicas() -> None:
    rows = simulate_all([NONE, BATCH], Played({"today": 100, "batch": 90}, {"batch": 1}), P95, ensemble=20)
    best = rows[0]
    assert best.spread is not None
    assert (best.change, best.spread.lo, best.spread.hi) == (
        pytest.approx(-0.01),
        pytest.approx(-0.10),
        pytest.approx(0.08),
    )


def test_a_baseline_that_fails_is_said_in_each_row() -> None:
    rows = simulate_all([NONE, WARM], Played({"warm": 1}), P95)
    assert {r.failed for r in rows} == {"the baseline could not be simulated: nothing is known of today"}
    assert shortlist(rows, P95, 3, 0.0) == ()


@pytest.mark.parametrize(
    ("failures", "text"),
    [
        ([("to-640", "compiler-error", "no kernel\n  for Conv")],
         "entry to-640 does not compile (compiler-error): no kernel for Conv"),
        ([("a", "out-of-memory", "killed"), ("b", "timeout", "")],
         "entry a does not compile (out-of-memory): killed (1 more entry failed)"),
        ([("a", "crash", "x" * 500)], f"entry a does not compile (crash): {'x' * 240}…"),
    ],
)  # fmt: skip
def test_what_does_not_compile_keeps_the_compilers_words(failures: list[tuple[str, Any, str]], text: str) -> None:
    assert not_compiled([CompileFailure(entry=e, kind=k, message=m) for e, k, m in failures]) == text


def test_from_failure_into_a_figure_is_a_gain() -> None:
    rows = simulate_all([NONE, WARM], Played({"today": np.inf, "warm": 50}), P95)
    assert [(r.move.plan.id, r.change) for r in rows] == [("warm", -1.0), ("today", 0.0)]


def test_goodput_ranks_upwards() -> None:
    sla = Sla(metric="goodput", bound_ms=60.0)
    rows = simulate_all([NONE, WARM], Played({"today": 100, "warm": 50}), sla)
    assert [(r.move.plan.id, r.value) for r in rows] == [("warm", 1.0), ("today", 0.0)]


def test_the_short_list_is_the_leader_its_smallest_equal_and_the_best_of_other_kinds() -> None:
    """refit-8 leads by less than its own spread over replicas, so refit-4 is confirmed beside it."""
    latency = {"today": 100.0, "warm": 90, "refit-8": 40, "refit-4": 40.1, "batch": 95}
    rows = simulate_all([NONE, WARM, BATCH, REFIT, REFIT8], Played(latency, {"refit-8": 0.01}), P95)
    assert [m.plan.id for m in shortlist(rows, P95, 9, 0.0)] == ["refit-8", "refit-4", "warm", "batch"]
    assert len(shortlist(rows, P95, 2, 0.0)) == 2
    assert shortlist(rows, P95, 0, 0.0) == ()


@pytest.mark.parametrize(
    ("floor", "confirmed"),
    [
        (0.0, ["refit-8", "warm"]),
        (0.1, ["refit-8", "warm"]),
        (0.15, ["refit-8", "refit-4"]),
        (1.0, ["refit-8", "warm"]),
    ],
)
def test_the_smallest_move_within_what_replays_differ_by_is_confirmed(floor: float, confirmed: list[str]) -> None:
    """refit-4 is 13 % worse in every replica: no spread reaches it, but replays that differ by 15 % cannot tell."""
    latency = {"today": 100.0, "warm": 70, "refit-8": 40, "refit-4": 45.2, "batch": 95}
    rows = simulate_all([NONE, WARM, BATCH, REFIT, REFIT8], Played(latency), P95)
    assert [m.plan.id for m in shortlist(rows, P95, 2, floor)] == confirmed


def test_a_move_that_is_barred_makes_room_for_the_next_and_keeps_its_reason() -> None:
    latency = {"today": 100.0, "warm": 90, "refit-8": 40, "refit-4": 50, "batch": 95}
    rows = simulate_all([NONE, WARM, BATCH, REFIT, REFIT8], Played(latency), P95)
    rows = [dataclasses.replace(row, barred="no" if row.move is REFIT8 else "") for row in rows]
    assert [move.plan.id for move in shortlist(rows, P95, 2, 0.0)] == ["refit-4", "warm"]
    assert why_not(rows[0], P95) == "no"


def test_what_gains_nothing_is_not_replayed() -> None:
    assert shortlist(simulate_all([NONE, WARM], Played({"today": 100, "warm": 101}), P95), P95, 3, 0.0) == ()


# --- the choice ----------------------------------------------------------------------------------------------


def measured(scales: dict[str, float], replays: int = 3, n: int = 2000) -> Any:
    """Replays of each plan: independent latencies whose whole distribution is scaled."""
    kept = {
        plan: [noisy(100 * i + r, n, scale) for r in range(replays)] for i, (plan, scale) in enumerate(scales.items())
    }

    def replays_of(move: Move) -> Sequence[Any] | str:
        return kept.get(move.plan.id, f"{move.plan.id} crashed")

    return replays_of


def test_of_two_that_do_equally_well_the_smaller_wins() -> None:
    choice = choose(
        [NONE, WARM, REFIT, REFIT8], measured({"today": 1, "warm": 0.9, "refit-4": 0.5, "refit-8": 0.5}), P95, 4
    )
    assert choice.chosen is REFIT
    assert choice.runner_up is REFIT8
    assert {row.move.plan.id: row.reason.split(" than")[0] for row in choice.rows} == {
        "today": "refit-4 gains more",
        "warm": "worse",
        "refit-4": choice.rows[2].reason.split(" than")[0],
        "refit-8": "not better",
    }


def test_the_best_wins_where_the_smaller_is_worse() -> None:
    choice = choose([NONE, WARM, REFIT8], measured({"today": 1, "warm": 0.8, "refit-8": 0.5}), P95, 4)
    assert choice.chosen is REFIT8
    assert choice.rows[2].reason == "the best"


def test_nothing_gains_so_nothing_changes() -> None:
    choice = choose([NONE, WARM, REFIT], measured({"today": 1, "warm": 1, "refit-4": 1.2}), P95, 4)
    assert choice.chosen is NONE
    assert choice.rows[0].reason == "no move is shown to gain more than the floor"
    assert choice.rows[2].reason.startswith("no gain above the floor of")
    assert choice.undecided == ""


def test_a_crashed_candidate_keeps_its_reason() -> None:
    choice = choose([NONE, WARM], measured({"today": 1}), P95, 4)
    assert (choice.chosen, choice.rows[1].failed, choice.rows[1].reason) == (NONE, "warm crashed", "warm crashed")


def test_too_short_replays_send_the_best_that_was_measured_to_held_out_traffic() -> None:
    choice = choose([NONE, WARM, REFIT], measured({"today": 1, "warm": 0.9, "refit-4": 0.5}, n=60), P95, 4)
    assert (choice.chosen, choice.runner_up, choice.undecided) == (REFIT, WARM, "")
    reasons = [row.reason for row in choice.rows]
    assert reasons[:2] == ["refit-4 may gain more than the floor", "measured worse than refit-4 on the same arrivals"]
    assert reasons[2].startswith("the best as measured; whether it gains is for held-out traffic to show: ")
    assert "would do" in reasons[2]


def test_too_short_replays_that_measured_no_gain_choose_nothing() -> None:
    choice = choose([NONE, WARM], measured({"today": 1, "warm": 1.1}, n=60), P95, 4)
    assert choice.chosen is NONE
    assert choice.undecided == f"the replays do not decide whether warm gains: {choice.rows[1].reason}"


def test_a_baseline_that_drowns_does_not_hide_what_would_save_it() -> None:
    """One queue that only grows is one sample: no interval, and nine requests in ten late against none."""
    drowning, saved = np.linspace(0.0, 5.0, 700), np.full(700, 0.01)
    arms = {"today": [drowning], "warm": [drowning * 0.98], "refit-4": [saved]}
    sla = Sla(metric="goodput", bound_ms=60.0)
    choice = choose([NONE, WARM, REFIT], lambda m: arms[m.plan.id], sla, 4)
    assert choice.rows[2].judged is not None
    assert choice.rows[2].judged.comparison.interval is None
    assert choice.chosen is REFIT


def test_an_interval_on_both_sides_of_the_floor_decides_nothing() -> None:
    """Independent latencies with a gain of 3 %: the interval holds 0 and more than the floor."""
    rng = np.random.default_rng(1)
    arms = {name: [rng.gamma(2.0, 0.01, 1500) * scale] for name, scale in (("today", 1.0), ("warm", 0.97))}
    choice = choose([NONE, WARM], lambda m: arms[m.plan.id], P95, 4)
    assert choice.chosen is NONE
    assert choice.undecided == (
        "the replays do not decide whether warm gains: its interval touches 0 (one replay of the baseline, no floor)"
    )


def test_the_best_of_several_open_moves_is_named() -> None:
    rng = np.random.default_rng(1)
    sizes = (("today", 1.0), ("warm", 0.97), ("refit-4", 0.96))
    arms = {name: [rng.gamma(2.0, 0.01, 1500) * scale] for name, scale in sizes}
    choice = choose([NONE, WARM, REFIT], lambda m: arms[m.plan.id], P95, 4)
    assert choice.undecided.startswith(
        f"the replays do not decide whether {min(choice.rows[1:], key=lambda row: row.value).move.plan.id} (and 1 more)"
    )


def test_a_move_that_is_chosen_leaves_nothing_open() -> None:
    choice = choose([NONE, WARM, REFIT], measured({"today": 1, "warm": 1, "refit-4": 0.5}), P95, 4)
    assert (choice.chosen, choice.undecided) == (REFIT, "")


def test_a_baseline_without_replays_leaves_every_move_open() -> None:
    choice = choose([NONE, WARM], measured({"warm": 0.5}), P95, 4)
    assert choice.undecided == "the replays do not decide whether warm gains: the baseline could not be replayed"


def test_a_baseline_that_loses_requests_is_compared_on_goodput() -> None:
    base = [noisy(r, 4000, 1.0) for r in range(3)]
    lossy = [np.where(np.arange(4000) % 10 == 0, np.inf, x) for x in base]
    arms = {"today": lossy, "warm": base}
    choice = choose([NONE, WARM], lambda m: arms[m.plan.id], P95, 4)
    judged = choice.rows[1].judged
    assert choice.chosen is WARM
    assert judged is not None
    assert (judged.metric, judged.note) == (
        "goodput", "400 against 0 failed requests a replay: judged on goodput",
    )  # fmt: skip


def test_every_loser_keeps_figure_and_reason() -> None:
    moves = [NONE, WARM, REFIT, BATCH, REFIT8]
    rows = simulate_all(moves, Played({"today": 100, "warm": 90, "refit-4": 40, "batch": 120}), P95)
    choice = choose([NONE, WARM, REFIT], measured({"today": 1, "warm": 0.9, "refit-4": 0.5}), P95, 4)
    lost = {r.plan: r for r in rejected(rows, choice, P95, "retune.json")}
    assert {plan: r.reason for plan, r in lost.items()} == {
        "today": "refit-4 gains more than the floor",
        "warm": "worse than refit-4 on the same arrivals",
        "batch": "no gain in simulation",
        "refit-8": "nothing is known of refit-8",
    }
    warm, batch = lost["warm"].figure, lost["batch"].figure
    assert warm is not None
    assert batch is not None
    assert warm.id == "retune.measured.warm"
    assert warm.value == pytest.approx(-0.1, abs=0.02)
    assert (batch.id, batch.value) == ("retune.simulated.batch", pytest.approx(0.2))


# --- jitter --------------------------------------------------------------------------------------------------


def workload(scheduled: list[int]) -> Workload:
    n = len(scheduled)
    return Workload(
        id="w", dim_names=("width",), scheduled=np.array(scheduled, dtype=np.int64),
        dims=np.full((n, 1), 9), stream=np.zeros(n, dtype=np.int32), streams=("s",),
        payload=np.zeros(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1),
        provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.integers(0, 50))
def test_jitter_keeps_order_and_is_repeatable(times: list[int], replica: int) -> None:
    before = workload(sorted(times))
    after = jitter(before, replica, seed=3)
    assert np.all(np.diff(after.scheduled) >= 0)
    assert after.scheduled[0] >= 0
    assert np.array_equal(after.scheduled, jitter(before, replica, seed=3).scheduled)
    assert replica or after is before


def test_jitter_has_the_size_it_says() -> None:
    before = workload([i * 10**9 for i in range(1, 4000)])
    shift = jitter(before, 1, seed=3).scheduled - before.scheduled
    assert 57_000 < float(np.std(shift)) < 63_000


# --- findings ------------------------------------------------------------------------------------------------


def test_the_candidate_table_tells_every_row() -> None:
    moves = [NONE, WARM, replace(REFIT, compile_s=1.5, memory_mib=20.0), REFIT8]
    rows = simulate_all(moves, Played({"today": 100, "warm": 90, "refit-4": 40}), P95)
    choice = choose(moves[:3], measured({"today": 1, "warm": 0.9, "refit-4": 0.5}, n=600), P95, 4)
    refused = [Rejected(plan="bundle", sentence="Do all.", reason="it changes 2 things at once")]
    found = findings.retune(P95, rows, choice, refused, "retune.json")
    table = found.table("retune.candidates")
    assert table is not None
    assert [table.columns[name] for name in ("plan", "status", "compile_s")] == [
        ("refit-4", "warm", "today", "refit-8", "bundle"),
        ("chosen", "rejected", "baseline", "rejected", "refused"),
        (1.5, None, None, None, None),
    ]
    assert table.columns["reason"][3:] == ("nothing is known of refit-8", "it changes 2 things at once")
    assert table.columns["simulated"][0] == pytest.approx(-0.6)
    assert found.headline.startswith("refit-4: p95 −50 % on the tune slice, −")
    assert found.headline.endswith("for 1.5 s more at start.")
    assert {"retune.simulated.refit-4", "retune.measured.refit-4"} <= {figure.id for figure in found.figures}


def test_no_gain_is_a_finding_too() -> None:
    rows = simulate_all([NONE], Played({"today": 100}), P95)
    found = findings.retune(P95, rows, choose([NONE], measured({"today": 1}, n=600), P95, 4), [], "retune.json")
    assert found.headline == "No move gains more than the floor on the tune slice."


@pytest.mark.parametrize(
    ("measured_ms", "headline"),
    [
        (1.1, "The replays do not decide whether warm gains: "),
        (0.5, "warm: p95 −50 % on the tune slice, without an interval."),
    ],
)
def test_what_the_replays_leave_open_is_the_headline(measured_ms: float, headline: str) -> None:
    rows = simulate_all([NONE, WARM], Played({"today": 100, "warm": 90}), P95)
    choice = choose([NONE, WARM], measured({"today": 1, "warm": measured_ms}, n=60), P95, 4)
    assert findings.retune(P95, rows, choice, [], "retune.json").headline.startswith(headline)


def test_the_sweep_stands_beside_the_formulas() -> None:
    rows = simulate_all([NONE], Played({"today": 100}), P95)
    choice = choose([NONE], measured({"today": 1}, n=600), P95, 4)
    fits = compare(np.array([[10], [10], [11], [100]]), float, 2)
    found = findings.retune(P95, rows, choice, [], "retune.json", fits=fits)
    table = found.table("retune.buckets")
    assert table is not None
    assert (table.columns["family"][:2], table.columns["boundaries"][:2]) == (("fitted", "fitted"), ("100", "11 100"))
    assert found.findings[1].text == (
        "2 fitted buckets cost 33.2 ms a request by profile, 100 with one; "
        "the best formula of that count (exponential) costs 49."
    )
