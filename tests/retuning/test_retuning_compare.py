"""The daily gate: did what runs today get worse between two packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from retuning_cases import noisy, study, trace

from parts import envelope
from trimtab.domain.study import Guard
from trimtab.domain.trace import Trace
from trimtab.evidence.stats.unpaired import unpaired
from trimtab.retuning.compare import Side, compare

STUDY = study()
GUARDS = (Guard(metric="p99", margin=0.2), Guard(metric="p50", margin=0.2))


def replays(scale: float, seed: int, n: int = 3000, workload: str = "w", **run: Any) -> tuple[Trace, ...]:
    made = [trace(noisy(seed + k, n, scale * (1 + 0.01 * (k - 1))) * 1e3) for k in range(3)]
    return tuple(
        replace(
            one, run=replace(one.run, **{"source": "measured", "slice": "held-out", "workload_sha256": workload, **run})
        )
        for one in made
    )


def side(name: str, traces: tuple[Trace, ...], **changes: Any) -> Side:
    facts: dict[str, Any] = {
        "name": name, "sla": STUDY.sla, "guards": GUARDS, "dim_names": ("width",), "envelope": envelope(),
        "plan": STUDY.baseline, "traces": traces, "decision": "ship",
    }  # fmt: skip
    return Side(**(facts | changes))


OLD = side("old", replays(1, 1))


def statuses(new: Side, old: Side = OLD) -> tuple[str, list[tuple[str, str]]]:
    found = compare(old, new, 1)
    return found.outcome, [(row.metric, row.status) for row in found.rows]


def test_the_same_again_passes() -> None:
    assert statuses(side("new", replays(0.985, 21))) == ("pass", [("p95", "pass"), ("p99", "pass"), ("p50", "pass")])


def test_slower_fails_with_the_change_and_what_was_forgiven() -> None:
    found = compare(OLD, side("new", replays(1.4, 21)), 1)
    assert (found.outcome, found.sentence) == ("fail", "Worse than is forgiven: p95, p99, p50.")
    primary = found.rows[0]
    assert (primary.role, primary.margin) == ("primary", 0.1)
    assert primary.change == pytest.approx(0.4, abs=0.02)
    assert primary.interval is not None
    assert primary.interval.lo > (primary.floor or 0)
    assert found.how == "Paired on the same 3000 arrivals, 3 and 3 replays of held-out; verdict then: ship, now: ship."


def test_one_guard_that_fails_fails_the_gate() -> None:
    tail = [np.where(one.latency > np.quantile(one.latency, 0.97), one.latency * 2, one.latency) * 1e3
            for one in replays(0.985, 21)]  # fmt: skip
    made = tuple(replace(one, requests=trace(t).requests) for one, t in zip(replays(1, 1), tail, strict=True))
    assert statuses(side("new", made)) == ("fail", [("p95", "pass"), ("p99", "fail"), ("p50", "pass")])


def test_a_gate_says_which_guards_it_cannot_ask() -> None:
    """A gate has replays of all held-out traffic as recorded, and no others."""
    elsewhere = Guard(metric="p99", margin=0.2, slice="wide")
    cold = Guard(metric="p99", margin=0.2, condition="cold start")
    found = compare(OLD, side("new", replays(0.985, 21), guards=(elsewhere, cold)), 1)
    assert [row.metric for row in found.rows] == ["p95"]
    assert found.notes == (
        "guard p99 on slice wide is not part of a gate",
        "guard p99 under cold start is not part of a gate",
    )


def test_a_margin_below_the_floor_cannot_pass() -> None:
    shaky = side("new", tuple(replay for s in (0.9, 1.0, 1.1) for replay in replays(s, 21)[:1]))
    outcome, rows = statuses(side("new", shaky.traces, guards=(Guard(metric="p99", margin=0.02),)))
    assert outcome == "inconclusive"
    assert ("p99", "inconclusive") in rows


def test_replays_that_differ_wildly_let_nothing_pass() -> None:
    wild = side("new", tuple(replays(scale, 21)[0] for scale in (0.7, 1.0, 1.4)), guards=())
    found = compare(OLD, wild, 1)
    assert (found.outcome, found.rows[0].status) == ("inconclusive", "inconclusive")
    assert found.rows[0].note.startswith("replays of one plan differ by")


def test_two_replays_an_arm_cannot_pass_but_can_fail() -> None:
    two = side("new", replays(1, 21)[:2])
    assert statuses(two)[0] == "inconclusive"
    assert statuses(side("new", replays(1.4, 21)[:2]))[0] == "fail"


def test_other_arrivals_are_compared_unpaired_and_wider() -> None:
    paired = compare(OLD, side("new", replays(1, 21)), 1)
    other = compare(OLD, side("new", replays(1, 21, workload="x")), 1)
    assert other.how.startswith("Unpaired (other arrivals or settings, wider intervals)")
    widths = [found.rows[0].interval.hi - found.rows[0].interval.lo for found in (paired, other)]  # type: ignore[union-attr]
    assert widths[1] > 2 * widths[0]


def test_another_host_costs_the_pairing() -> None:
    found = compare(OLD, side("new", replays(1, 21), envelope=envelope(host="b")), 1)
    assert found.how.startswith("Unpaired")
    assert found.differs == ("host: none then, b now",)


def test_new_versions_and_a_changed_plan_are_what_a_gate_is_for() -> None:
    plan = replace(STUDY.baseline, serve=replace(STUDY.baseline.serve, threads=2))
    new = side("new", replays(1, 21, versions={"openvino": "2"}), plan=plan)
    found = compare(side("old", replays(1, 1, versions={"openvino": "1"})), new, 1)
    assert found.differs == ("openvino: 1 then, 2 now", "threads of plan today: 1 then, 2 now")
    assert found.how.startswith("Paired")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"envelope": envelope(cores_allowed=(0,))}, "cores that may be used: 2 then, 1 now"),
        ({"sla": replace(STUDY.sla, bound_ms=61.0)}, "the SLA is not the same"),
        ({"dim_names": ("height",)}, "the dynamic dims are not the same"),
        ({"traces": ()}, "no complete replay of what runs today in new"),
        ({"traces": replays(1, 21, slice="tune")}, "slice: held-out then, tune now"),
    ],
    ids=["cores", "sla", "dims", "nothing", "slice"],
)
def test_what_cannot_be_compared_is_never_a_pass(changes: dict[str, Any], reason: str) -> None:
    found = compare(OLD, side("new", **({"traces": replays(1, 21)} | changes)), 1)
    assert (found.outcome, found.rows) == ("inconclusive", ())
    assert reason in found.forbids


def test_unpaired_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng, hits = np.random.default_rng(3), 0
    for _ in range(60):
        a, b = rng.gamma(2.0, 1.0, 1500), rng.gamma(2.0, 1.2, 1500)
        found = unpaired([a], [b], lambda x: float(np.quantile(x, 0.95, method="inverted_cdf")), rng, resamples=200)
        assert found.interval is not None
        hits += found.interval.lo <= 1.2 <= found.interval.hi
    assert 52 <= hits <= 60


def test_unpaired_says_why_it_has_no_interval() -> None:
    rng = np.random.default_rng(1)
    assert unpaired([], [], np.mean, rng).reason == "an arm has no samples"  # type: ignore[arg-type]
    few = [np.ones(10)]
    assert "100 would do" in unpaired(few, few, lambda x: float(x.mean()), rng).reason
    failed = [np.full(100, np.inf)]
    assert "falls among failed" in unpaired(failed, few, lambda x: float(x.max()), rng).reason
