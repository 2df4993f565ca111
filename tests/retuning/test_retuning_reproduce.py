"""Does a packet come out again: agree, differ, inconclusive, against the floor that it had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import noisy, study, trace

from parts import envelope
from trimtab.domain.plan import ServePolicy
from trimtab.domain.trace import MARK_COLUMNS, MARK_KINDS, empty
from trimtab.retuning.comparable import differs, forbids, machine_differs, plan_forbids, versions_differ
from trimtab.retuning.reproduce import occasions, overall, repeat, sentence

STUDY = study()
SLA = STUDY.sla
ENVELOPE = envelope(kernel="6.1", cpu_flags=("avx2", "amx"))


def arm(scale: float, seed: int, replays: int = 3, spread: float = 0.02) -> list[Any]:
    """Replays that differ by ``spread`` from one to the next."""
    return [noisy(seed + k, 3000, scale * (1 + spread * (k - 1))) for k in range(replays)]


BUSY = {"today": 0.5, "refit": 0.25}


def outcomes(then: dict[str, Any], now: dict[str, Any], busy: dict[str, float] = BUSY) -> list[str]:
    return [row.outcome for row in repeat(then, now, SLA, 1, busy)]


def test_the_same_again_agrees_figure_by_figure() -> None:
    rows = repeat(
        {"today": arm(1, 1), "refit": arm(0.5, 11)}, {"today": arm(1, 21), "refit": arm(0.5, 31)}, SLA, 1, BUSY
    )
    assert [(row.figure, row.outcome) for row in rows] == [
        ("p95 of plan today", "agree"),
        ("p95 of plan refit", "agree"),
        ("change of p95, today to refit", "agree"),
    ]
    assert overall(rows) == "agree"
    assert sentence(rows) == "All 3 primary figures agree with the packet."
    assert rows[2].then == pytest.approx(-0.5, abs=0.02)


def test_one_plan_that_is_slower_now_differs_and_so_does_the_change() -> None:
    then, now = {"today": arm(1, 1), "refit": arm(0.5, 11)}, {"today": arm(1, 21), "refit": arm(0.8, 31)}
    assert outcomes(then, now) == ["agree", "differ", "differ"]
    assert sentence(repeat(then, now, SLA, 1, BUSY)) == (
        "2 of 3 primary figures differ: p95 of plan refit, change of p95, today to refit."
    )


def test_a_slower_host_differs_and_the_change_still_agrees() -> None:
    then, now = {"today": arm(1, 1), "refit": arm(0.5, 11)}, {"today": arm(1.5, 21), "refit": arm(0.75, 31)}
    assert outcomes(then, now) == ["differ", "differ", "agree"]


def test_two_occasions_of_a_busy_queue_are_not_called_different() -> None:
    """A third longer: more than is forgiven in any case, and more than two occasions make of it at half the load."""
    then, now = {"today": arm(1, 1)}, {"today": arm(1.33, 21)}
    assert outcomes(then, now, {"today": 0.5}) == ["differ"]
    assert outcomes(then, now, {"today": 0.9}) == ["inconclusive"]
    (row,) = repeat(then, now, SLA, 1, {"today": 0.9})
    assert row.note == "beyond what is forgiven, but not beyond what two occasions may make of it"
    assert row.apart == pytest.approx(0.61, abs=0.005)


@pytest.mark.parametrize(("busy", "moves"), [(0.0, 0.111), (0.5, 0.166), (0.75, 0.277), (0.9, 0.610), (1.0, np.inf)])
def test_what_two_occasions_make_of_two_per_cent(busy: float, moves: float) -> None:
    assert occasions(busy) == pytest.approx(moves, abs=5e-4)


def test_agreement_asks_for_the_whole_interval_and_not_for_its_middle() -> None:
    """Half a per cent apart, and a tail so rough that nobody can tell."""
    rough = np.random.default_rng(5).gamma(0.4, 0.05, 3000)
    now = np.random.default_rng(6).gamma(0.4, 0.05, 3000)
    (row,) = repeat({"today": [rough] * 3}, {"today": [now] * 3}, SLA, 1, {"today": 0.5})
    assert row.interval is not None
    assert row.ratio == pytest.approx(1.0, abs=0.1)
    assert row.interval.hi - row.interval.lo > 0.2
    assert (row.outcome, row.note) == ("inconclusive", "the interval reaches beyond what is forgiven")


def test_a_tail_on_few_samples_does_not_agree() -> None:
    """150 slow requests in one stretch: they are worth hardly any."""
    stretch = np.where(np.arange(3000) < 160, 0.4, 0.05)
    arms = [stretch * scale for scale in (0.99, 1.0, 1.01)]
    (row,) = repeat({"today": arms}, {"today": arms}, SLA, 1, {"today": 0.5})
    assert row.outcome == "inconclusive"
    assert "effective samples, 90 are needed" in row.note or "blocks" in row.note


def test_a_provisional_floor_decides_nothing() -> None:
    then, now = {"today": arm(1, 1, replays=2)}, {"today": arm(1, 21)}
    assert outcomes(then, now) == ["inconclusive"]
    assert repeat(then, now, SLA, 1, BUSY)[0].note.startswith("provisional: 2 replays an arm")


def test_a_difference_whose_interval_reaches_the_floor_is_inconclusive() -> None:
    wild = np.random.default_rng(5).gamma(0.4, 0.05, 3000)
    then = {"today": [wild * scale for scale in (0.95, 1.0, 1.06)]}
    now = {"today": [np.random.default_rng(6).gamma(0.4, 0.05 * 1.14, 3000)]}
    (row,) = repeat(then, now, SLA, 1, BUSY)
    assert row.outcome == "inconclusive"
    assert row.note == "the interval reaches beyond what is forgiven"


def test_arms_that_lost_requests_are_not_mixed_with_those_that_did_not() -> None:
    lossy = [np.where(np.arange(3000) % 100 == 0, np.inf, replay) for replay in arm(0.5, 31)]
    rows = repeat({"today": arm(1, 1), "refit": arm(0.5, 11)}, {"today": arm(1, 21), "refit": lossy}, SLA, 1, BUSY)
    assert (rows[2].outcome, rows[2].now) == ("inconclusive", None)
    assert rows[2].note == "plan today is judged on p95, plan refit on goodput"


def test_other_arrivals_cannot_be_held_against_each_other() -> None:
    (row,) = repeat({"today": arm(1, 1)}, {"today": [replay[:-1] for replay in arm(1, 2)]}, SLA, 1, BUSY)
    assert (row.outcome, row.note) == ("inconclusive", "not the same arrivals: [2999, 3000] requests")


def test_a_changed_core_or_thread_count_is_not_comparable() -> None:
    plan = STUDY.baseline
    assert forbids(ENVELOPE, ENVELOPE) == ()
    assert forbids(ENVELOPE, replace(ENVELOPE, cores_allowed=(0, 1, 2))) == ("cores that may be used: 2 then, 3 now",)
    assert forbids(ENVELOPE, replace(ENVELOPE, quota_cores=1.5)) == ("quota in cores: none then, 1.5 now",)
    assert forbids(ENVELOPE, replace(ENVELOPE, cpu_flags=("avx2",))) == ("processor flags gone: amx",)
    assert plan_forbids(plan, plan) == ()
    assert plan_forbids(plan, replace(plan, serve=ServePolicy(threads=2))) == ("threads of plan today: 1 then, 2 now",)


def test_a_machine_that_was_slower_or_busier_is_named() -> None:
    def paced(*values: float, waited: int = 0) -> Any:
        marks = empty(MARK_COLUMNS, len(values) + 1)
        marks["kind"][:-1] = MARK_KINDS.index("pace")
        marks["value"][:-1] = values
        run = replace(trace([1.0, 2.0]), marks=marks)
        run.batches["runqueue"][:] = waited
        run.batches["core"][:] = -1
        return run

    assert machine_differs([paced(400e3, 410e3, 1e9)], [paced(420e3)]) == ()
    assert machine_differs([paced(400e3)], [paced(600e3)]) == ("compute pace while replaying: 400 µs then, 600 µs now",)
    assert machine_differs([paced()], [paced(600e3)]) == ()
    assert machine_differs([paced()], [paced(waited=600_000)]) == (
        "time that batches waited for a core: 0 % then, 40 % now",
    )


def test_what_may_move_figures_is_named() -> None:
    assert differs(ENVELOPE, replace(ENVELOPE, kernel="6.2")) == ("kernel: 6.1 then, 6.2 now",)
    assert versions_differ({"openvino": "1", "onnx": "2"}, {"openvino": "1", "onnx": "3", "torch": "4"}) == (
        "onnx: 2 then, 3 now",
        "torch: none then, 4 now",
    )
