"""The recorded run, run again: nothing taken away gives the run itself; one cause taken away gives its absence."""

from __future__ import annotations

import numpy as np
import pytest
from account_cases import Formula, poisson
from hypothesis import given, settings
from machine_cases import PROMISE, REFERENCE, runs, traffic

from parts import run_info
from trimtab.domain.account import CAUSES
from trimtab.domain.events import BatchReport, Dispatch, WorkerDown
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.account import account
from trimtab.evidence.attribute.counterfactual import ALL, TAKEN, counterfactuals
from trimtab.evidence.attribute.rerun import Rerun, refusal
from trimtab.mapping.route import Router
from trimtab.serving.simulate import Startup, simulate

MS = 1_000_000
ONE = Formula()
ANY = Entry(id="any", kind="dynamic", lo=(1,), hi=(900,), batch=(1, 4))


def plan(**serve: object) -> Plan:
    return Plan(id="p", compile=CompileSpec(backend="null", entries=(ANY,)), serve=ServePolicy(**serve))  # type: ignore[arg-type]


class Stalls:
    """Every batch as promised; off the core for 300 ms where the oldest member's number divides by ``every``."""

    def __init__(self, every: int) -> None:
        self.every = every

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        off_core = 300 * MS * (self.every > 0 and min(batch.members) % self.every == 7)
        warm = ONE.warm(batch.entry, batch.executed)
        return warm + off_core, BatchReport(on_cpu_ns=warm, runqueue_ns=off_core)


def served(given: Plan, service: Stalls, n: int = 4000) -> Trace:
    rng = np.random.default_rng(5)
    gaps = np.diff(poisson(rng, n, 16 * MS), prepend=0)
    workload = traffic(gaps.tolist(), rng.integers(20, 800, n).tolist(), rng.integers(0, 3, n).tolist())
    return simulate(workload, given, Router(given.compile), ONE, service, run_info(workers=given.serve.workers))


def again(trace: Trace, given: Plan) -> Rerun:
    return Rerun(trace, account(trace, ONE, ONE, "any", given), given, ONE, ONE)


def latency(trace: Trace) -> np.ndarray:
    return (trace.requests["done"] - trace.requests["scheduled"]).astype(np.float64)


@given(runs())
@settings(deadline=None, max_examples=60)
def test_with_every_cause_it_is_the_recorded_run(run: tuple[Plan, Trace]) -> None:
    given, trace = run
    if refusal(trace, given):
        return
    found = Rerun(trace, account(trace, PROMISE, REFERENCE, "any", given), given, PROMISE, REFERENCE)
    latencies, same = found.run()
    assert np.array_equal(latencies, np.where(trace.requests["error"] == 0, latency(trace), np.inf))
    assert same == 1


def test_without_off_core_time_it_is_the_run_that_never_stalled() -> None:
    one = plan()
    found, same = again(served(one, Stalls(500)), one).run({"off_core"})
    assert np.array_equal(found, latency(served(one, Stalls(0))))
    assert same == 1


@pytest.mark.parametrize(
    ("cause", "before", "after"),
    [
        (
            "hold",
            plan(batch=BatchPolicy(kind="size-hold", max_size=4, hold_ms=20.0)),
            plan(batch=BatchPolicy(kind="size-hold", max_size=4, hold_ms=0.0)),
        ),
        ("imbalance", plan(workers=2, placement="stream-affinity"), plan(workers=2)),
    ],
)
def test_without_a_policy_it_is_the_run_under_the_other_policy(cause: str, before: Plan, after: Plan) -> None:
    found, same = again(served(before, Stalls(0)), before).run({cause})
    assert np.array_equal(found, latency(served(after, Stalls(0))))
    assert same < 1 or cause == "imbalance"


def test_a_late_generator_alone_is_taken_away_by_scheduled_arrivals() -> None:
    one = plan()
    trace = served(one, Stalls(0))
    late = trace.requests.columns | {"scheduled": np.maximum(trace.requests["scheduled"] - 3 * MS, 0)}
    trace = Trace(**{f: getattr(trace, f) for f in trace.__struct_fields__} | {"requests": type(trace.requests)(late)})
    found = again(trace, one)
    assert np.array_equal(found.run()[0], latency(trace))
    assert found.run({"slip"})[0].sum() < found.run()[0].sum()


def test_replicas_differ_and_each_is_the_same_twice() -> None:
    batching = plan(batch=BatchPolicy(kind="size-hold", max_size=4, hold_ms=20.0))
    found = again(served(batching, Stalls(0), 300), batching)
    assert np.array_equal(found.run((), 3)[0], found.run((), 3)[0])
    assert not np.array_equal(found.run((), 3)[0], found.run((), 4)[0])
    assert np.abs(found.run((), 3)[0] - found.run()[0]).max() > 0


def test_gains_are_those_of_the_run_without_the_cause() -> None:
    one = plan()
    trace = served(one, Stalls(500))
    mine = account(trace, ONE, ONE, "any", one)
    found = counterfactuals(trace, mine, one, ONE, ONE, seed=1)
    before, after = latency(trace), latency(served(one, Stalls(0)))
    assert found.decides("p95")
    assert found.decides("p99")
    assert found.same == 1
    assert found.reproduced == {"p95": 1, "p99": 1}
    assert set(found.gains["p95"]) == {"off_core", ALL}
    for tail, q in (("p95", 0.95), ("p99", 0.99)):
        gain = found.gains[tail]["off_core"]
        truth = (np.quantile(before, q, method="inverted_cdf") - np.quantile(after, q, method="inverted_cdf")) / MS
        assert gain.value == pytest.approx(truth)
        assert gain.interval is not None
        assert gain.interval.lo <= gain.value <= gain.interval.hi
        assert found.gains[tail][ALL].value >= gain.value - 1e-9


def test_a_run_with_failures_is_refused_and_says_why() -> None:
    one = plan()
    rng = np.random.default_rng(1)
    workload = traffic([20 * MS] * 50, rng.integers(20, 800, 50).tolist(), [0] * 50)
    fell = (WorkerDown(205 * MS, 0, "crash"),)
    startup = Startup(process_ns=MS, prepare_ns={"any": MS})
    trace = simulate(workload, one, Router(one.compile), ONE, Stalls(0), run_info(), startup=startup, injected=fell)
    found = counterfactuals(trace, account(trace, ONE, ONE, "any", one), one, ONE, ONE, seed=1)
    assert found.gains == {}
    assert not found.decides("p95")
    assert "failures are not run again" in found.reason or "went down" in found.reason


def test_every_cause_that_can_be_taken_away_is_a_cause() -> None:
    assert set(TAKEN) - {"slip", "completion"} == set(CAUSES) - {"unavailable", "occupied", "failed"}


def test_a_run_served_by_deadlines_is_not_run_again() -> None:
    given = plan(order="deadline")
    trace = served(given, Stalls(0), 200)
    assert refusal(trace, given) == "it was served by deadlines, and a trace does not hold them"
    assert refusal(trace, plan()) == ""
