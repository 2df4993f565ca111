"""Successive halving by ask and tell: who is asked for, who stays, what it costs; and what the search makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import study, trace

from trimtab.domain.plan import Plan
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.verdict import Move
from trimtab.domain.workload import Provenance, Workload
from trimtab.errors import RunError
from trimtab.retuning.halving import Halving, Trial, run
from trimtab.retuning.search import FULL, beginning, shortlist, simulate_all, why_not

BASE = study().baseline
P95 = Sla(metric="p95", bound_ms=60.0)
GOODPUT = Sla(metric="goodput", bound_ms=60.0)
TODAY = Move(kind="no-change", sentence=".", owner="runtime", plan=BASE, size=0)


def move(number: int, kind: str = "refit") -> Move:
    return Move(kind=kind, sentence=".", owner="runtime", plan=replace(BASE, id=f"{kind}-{number}"), size=300 + number)


def refits(count: int) -> list[Move]:
    return [TODAY, *(move(number) for number in range(count))]


def by_number(trial: Trial) -> float | str:
    """The higher the number of a plan the better; today is worst."""
    return 100.0 if trial.move is TODAY else 50.0 - float(trial.move.plan.id.rpartition("-")[2])


def test_half_stays_and_the_part_doubles_until_few_are_left() -> None:
    asked: list[tuple[float, int]] = []
    halving = Halving(refits(8), P95, keep=1)
    while trials := halving.ask():
        asked.append((trials[0].share, len(trials)))
        for trial in trials:
            halving.tell(trial, by_number(trial))
    assert asked == [(1 / 8, 9), (1 / 4, 5), (1 / 2, 3)]
    assert [each.plan.id for each in halving.left] == ["refit-7"]
    assert [(d.move.plan.id, d.share) for d in halving.dropped] == [
        ("refit-3", 1 / 8), ("refit-2", 1 / 8), ("refit-1", 1 / 8), ("refit-0", 1 / 8),
        ("refit-5", 1 / 4), ("refit-4", 1 / 4), ("refit-6", 1 / 2),
    ]  # fmt: skip
    assert halving.dropped[-1].reason == "among the worse half on the first 0.5 of the tune slice"


def test_answers_may_come_in_any_order() -> None:
    halving = Halving(refits(8), P95, keep=1)
    while trials := halving.ask():
        for trial in reversed(trials):
            halving.tell(trial, by_number(trial))
    assert [each.plan.id for each in halving.left] == ["refit-7"]


def test_goodput_keeps_the_larger() -> None:
    left = run(Halving(refits(4), GOODPUT, keep=1), by_number).left
    assert [each.plan.id for each in left] == ["refit-0"]


def test_the_best_of_each_kind_stays() -> None:
    moves = [*refits(8), move(1, "warm"), move(2, "warm")]
    left = run(Halving(moves, P95, keep=2), by_number).left
    assert {each.plan.id for each in left} == {"refit-7", "refit-6", "warm-2"}


def test_a_failure_is_out_with_its_reason_and_the_baselines_ends_all() -> None:
    def evaluate(trial: Trial) -> float | str:
        return "no kernel" if trial.move.plan.id == "refit-3" else by_number(trial)

    halving = run(Halving(refits(4), P95, keep=1), evaluate)
    assert [d.reason for d in halving.dropped if d.move.plan.id == "refit-3"] == ["no kernel"]
    broken = run(Halving(refits(4), P95, keep=1), lambda trial: "no kernel" if trial.move is TODAY else 1.0)
    assert {d.reason for d in broken.dropped} == {"the baseline could not be simulated: no kernel"}


def test_what_was_not_asked_cannot_be_told() -> None:
    halving = Halving(refits(4), P95, keep=1)
    trial = halving.ask()[0]
    halving.tell(trial, 1.0)
    with pytest.raises(ValueError, match="was not asked for"):
        halving.tell(trial, 1.0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(1, 99), min_size=1, max_size=60), st.integers(1, 8))
def test_laws(values: list[float], keep: int) -> None:
    """Everybody is kept or dropped once; the best value of an honest part stays; no round costs more than the first,
    but for those that are always in it: the baseline, and ``keep`` where half would be fewer."""
    moves = refits(len(values))
    halving = Halving(moves, P95, keep=keep)
    cost: dict[float, float] = {}

    def evaluate(trial: Trial) -> float:
        cost[trial.share] = cost.get(trial.share, 0.0) + trial.share
        return 100.0 if trial.move is TODAY else values[trial.move.size - 300]

    run(halving, evaluate)
    ids = [each.plan.id for each in halving.left] + [d.move.plan.id for d in halving.dropped]
    assert sorted(ids) == sorted(each.plan.id for each in moves[1:])
    assert min(values) in [values[each.size - 300] for each in halving.left]
    first = cost.get(1 / 8, 0.0)
    assert all(total <= first + 2 * share + keep * share for share, total in cost.items())


# --- inside the search ---------------------------------------------------------------------------------------


class Played:
    """Latency by plan number as above; remembers which share was asked for."""

    def __init__(self) -> None:
        self.shares: dict[str, list[float]] = {}

    def __call__(self, plan: Plan, replica: int, share: float) -> Trace:
        self.shares.setdefault(plan.id, []).append(share)
        if plan.id == "refit-0":
            raise RunError("nothing is known of it")
        number = float(plan.id.rpartition("-")[2]) if plan.id != "today" else 0.0
        return trace([100.0 - number] * 40, plan=plan.id)


def test_many_moves_are_halved_and_every_one_of_them_stays_a_row() -> None:
    played, moves = Played(), refits(80)
    rows = simulate_all(moves, played, P95, ensemble=3)
    assert len(rows) == len(moves)
    assert rows[0].move.plan.id == "refit-79"
    assert played.shares["refit-79"] == [1 / 8, 1 / 4, 1.0, 1.0, 1.0]
    assert played.shares["refit-5"] == [1 / 8]
    assert (rows[-1].move.plan.id, rows[-1].failed) == ("refit-0", "nothing is known of it")
    reasons = {row.move.plan.id: why_not(row, P95) for row in rows}
    assert reasons["refit-5"] == "among the worse half on the first 0.125 of the tune slice"
    assert reasons["refit-0"] == "nothing is known of it"
    assert all(not row.dropped for row in rows if row.move in shortlist(rows, P95, 9, 0.0))


def test_few_moves_are_all_simulated_in_full() -> None:
    played = Played()
    simulate_all(refits(FULL - 1), played, P95, ensemble=3)
    assert {share for shares in played.shares.values() for share in shares} == {1.0}


@pytest.mark.parametrize(("requests", "share", "count"), [(4000, 0.25, 1000), (4000, 0.01, 200), (150, 0.1, 150)])
def test_a_part_is_long_enough_for_a_tail(requests: int, share: float, count: int) -> None:
    whole = Workload(
        id="w", dim_names=("width",), scheduled=np.arange(requests, dtype=np.int64),
        dims=np.full((requests, 1), 9), stream=np.zeros(requests, dtype=np.int32), streams=("s",),
        payload=np.zeros(requests, dtype=np.int32), payload_kind="random", deadline=np.full(requests, -1),
        provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip
    assert len(beginning(whole, share)) == count
