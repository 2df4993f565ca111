"""Triggers: which promise each cell of the matrix becomes, and the sentence and figures that a proposal carries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from retuning_cases import study

from trimtab.domain.figure import Findings
from trimtab.domain.study import Sla
from trimtab.domain.verdict import CellRole, MatrixCell, Move, Trigger
from trimtab.retuning.arms import Arms
from trimtab.retuning.rollback import Redrawn, Rehearsal
from trimtab.retuning.triggers import told, triggers

SLA = Sla(metric="p95", bound_ms=60.0)
MOVE = Move(kind="warm", sentence="Warm 8 shapes.", owner="runtime", plan=study().baseline, size=1)
N = 2000


def cell(role: CellRole, metric: str, was: float | None, now: float | None, **facts: Any) -> MatrixCell:
    about = {"slice": "held-out", "condition": "normal", "status": "pass", **facts}
    return MatrixCell(
        id=f"{role}/{about['slice']}/{metric}", metric=metric, role=role, baseline=was, candidate=now, **about
    )


def replays(scale: float) -> tuple[Any, ...]:
    return tuple(np.random.default_rng(k).uniform(0.0, 0.050, N) * scale for k in range(3))


def rehearsal(n: int = N) -> Rehearsal:
    """Simulated runs of the candidate: never later than 50 ms, or 75 where service takes 1.5 times as long."""

    def some(seed: int, count: int, scale: float) -> tuple[Redrawn, ...]:
        draws = [np.random.default_rng((seed, k)) for k in range(count)]
        return tuple(Redrawn(rng.permutation(n), rng.uniform(0.0, 0.050, n) * scale) for rng in draws)

    faulty = {"service x 1.5": some(2, 20, 1.5), "the baseline": some(3, 20, 2.0)}
    return Rehearsal(Redrawn(np.arange(n), replays(1.0)[0][:n]), some(1, 20, 1.0), faulty)


def made(*cells: MatrixCell, owner: str = "", rehearsed: Rehearsal | str | None = None) -> tuple[Trigger, ...]:
    arms = Arms("normal", replays(2.0), replays(1.0))
    slices = {"held-out": np.arange(N), "stream a": np.arange(0, N, 2)}
    simulated = rehearsal() if rehearsed is None else rehearsed
    return triggers(
        cells, arms, slices, SLA, MOVE, rehearsal=simulated, baseline="today", rate_hz=50.0, owner=owner, seed=4
    )


@pytest.mark.parametrize(
    ("given", "late_ms", "window"),
    [
        (cell("primary", "p95", 412.0, 58.0), 60.0, 100),
        (cell("primary", "p95", 50.0, 45.0), 50.0, 100),
        (cell("primary", "p95", 412.0, 80.0), 412.0, 100),
        (cell("primary", "p95", np.inf, 80.0), 60.0, 100),
        (cell("guard", "p99", 100.0, 90.0, margin=0.1), 110.0, 500),
        (cell("guard", "p99", 100.0, 90.0, margin=0.1, slice="stream a"), 110.0, 100),
        (cell("guard", "p50", 20.0, 19.0, margin=0.05), 21.0, 100),
        (cell("guard", "goodput", 0.9, 0.9, margin=0.01), 60.0, 100),
    ],
    ids=["meets", "better-than-both", "misses", "baseline-failed", "p99", "few-requests", "p50", "goodput"],
)
def test_what_a_cell_promised_is_what_its_trigger_watches(given: MatrixCell, late_ms: float, window: int) -> None:
    (found,) = made(given)
    assert (found.cell, found.slice, found.late_ms, found.window) == (
        given.id,
        given.slice,
        pytest.approx(late_ms),
        window,
    )
    assert (found.back_to, found.owner) == ("today", "runtime")


@pytest.mark.parametrize(
    "given",
    [
        cell("informative", "p95", 50.0, 45.0),
        cell("guard", "p95", 50.0, 45.0, condition="cold start"),
        cell("guard", "p95", None, None),
        cell("guard", "memory limit", 100.0, 90.0),
        cell("guard", "p95", 50.0, 45.0, slice="elsewhere"),
    ],
    ids=["informative", "under-a-condition", "not-measured", "no-latency", "unknown-slice"],
)
def test_what_promises_no_latency_of_live_traffic_sets_no_trigger(given: MatrixCell) -> None:
    assert made(given) == ()


def test_the_primary_cell_comes_first_and_the_same_promise_is_watched_once() -> None:
    primary, same = cell("primary", "p95", 412.0, 58.0), cell("guard", "goodput", 0.9, 0.9, margin=0.01)
    p99 = cell("guard", "p99", 100.0, 90.0, margin=0.1)
    assert [found.cell for found in made(same, p99, primary)] == [primary.id, p99.id]


def test_the_sentence_names_bound_window_proof_plan_and_owner() -> None:
    """Nothing is ever later than 60 ms; 1.5 times as long, one in five is."""
    (found,) = made(cell("primary", "p95", 412.0, 58.0), owner="A. Lead")
    trial = next(each for each in found.trials if each.name == "service x 1.5")
    assert trial.delay is not None
    assert found.sentence == (
        "Go back to plan today when more than 1 % of requests are later than 60 ms in two windows of 100 arrivals "
        "running (4 s at 50 requests/s). It would fire falsely in 0 % (0 to 28) of healthy runs of 2000 requests on "
        "other arrivals of this kind, simulated. Where service takes 1.5 times as long it fires after "
        f"{trial.delay:.0f} requests ({trial.between.lo:.0f} to {trial.between.hi:.0f}). Owner: runtime lead (A. Lead)."
    )
    assert (found.windows, found.runs) == (3 * 20 + 10 * 20, 10)


def test_simulated_runs_are_stretched_to_the_replays_and_set_the_bound_too() -> None:
    """Replays are never late; simulated runs, 1.25 times too short by the clock of the profile, are once stretched."""
    given_ = rehearsal()
    quick = Redrawn(given_.recorded.rows, given_.recorded.latency / 1.25)
    (found,) = made(cell("primary", "p95", 412.0, 58.0), rehearsed=Rehearsal(quick, given_.healthy, {}))
    assert found.bound is not None
    assert 0.03 < found.bound < 0.2
    assert found.trials == ()


def test_what_cannot_be_simulated_is_watched_by_hand() -> None:
    (found,) = made(cell("primary", "p95", 412.0, 58.0), rehearsed="it cannot be simulated, no profile")
    assert (found.bound, found.false_alarms) == (None, None)
    assert found.sentence.startswith("No automatic boundary: it cannot be simulated, no profile. The runtime lead")


def test_a_slice_is_watched_at_its_own_rate() -> None:
    (found,) = made(cell("guard", "p95", 50.0, 45.0, margin=0.1, slice="stream a"))
    assert " of requests of stream a are later than 55 ms in two windows" in found.sentence
    assert "(8 s at 25 requests/s)" in found.sentence


def test_without_a_bound_somebody_watches_by_hand() -> None:
    arms = Arms("normal", replays(2.0), tuple(one[:90] for one in replays(1.0)))
    (found,) = triggers(
        [cell("primary", "p95", 412.0, 58.0)], arms, {"held-out": np.arange(90)}, SLA, MOVE,
        rehearsal=rehearsal(90), baseline="today", rate_hz=50.0, seed=4,
    )  # fmt: skip
    assert (found.bound, found.false_alarms, found.trials) == (None, None, ())
    assert found.sentence == (
        "No automatic boundary: no replay holds two windows of 100 arrivals. "
        "The runtime lead watches it and goes back to plan today by hand."
    )


def test_findings_carry_a_row_and_figures_with_intervals_for_each_trigger() -> None:
    found = told(Findings(stage="validate", headline="."), made(cell("primary", "p95", 412.0, 58.0)), "traces")
    table = found.table("validate.triggers")
    assert table is not None
    assert table.columns["false_alarms"] == (0.0,)
    assert table.columns["found the baseline"] == (1.0,)
    alarms = found.figure("validate.trigger.primary/held-out/p95.false_alarms")
    delay = found.figure("validate.trigger.primary/held-out/p95.delay.service-x-1.5")
    assert alarms is not None
    assert delay is not None
    assert alarms.interval is not None
    assert (alarms.value, alarms.samples, alarms.interval.hi) == (0.0, 10, pytest.approx(0.278, abs=1e-3))
    assert (delay.unit, delay.note) == ("requests", "found in 100 %")
    assert (found.findings[0].owner, found.findings[0].figures[0]) == ("runtime", alarms.id)


def test_no_triggers_leave_findings_alone() -> None:
    empty = Findings(stage="validate", headline=".")
    assert told(empty, (), "traces") is empty
