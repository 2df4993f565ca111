"""The replay stage's figures, and the gates that come before them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evidence_cases import SLA, Ran, trace

from trimtab.domain.study import Sla
from trimtab.domain.trace import SAMPLE_COLUMNS, Table, Trace, empty
from trimtab.evidence import latency
from trimtab.evidence.classify.gates import Gate, gates


def ladder(n: int = 200, stretch: float = 1.0, gap: float = 20.0, **info: object) -> Trace:
    """Request i takes ((i * 37) % n + 1) x stretch / 10 ms: all values once, in no order."""
    walls = [((i * 37) % n + 1) * stretch / 10 for i in range(n)]
    return trace([Ran((100,), wall=w, arrived=gap * i) for i, w in enumerate(walls)], **info)


def value(found: latency.Findings, name: str) -> float | None:
    figure = found.figure(name)
    assert figure is not None, name
    return figure.value


def test_percentiles_over_all_requests_of_one_run() -> None:
    found = latency.findings([ladder()], SLA)
    assert [value(found, f"replay.r1.{p}") for p in ("p50", "p95", "p99", "p99.9")] == [10.0, 19.0, 19.8, 20.0]
    assert value(found, "replay.p95") == 19.0
    figure = found.figure("replay.p95")
    assert figure is not None
    assert (figure.interval, figure.scope) == (None, "this run")
    assert found.headline.startswith("Plan base: p95 19 ms, p99 19.8 ms (p50 10 ms) over 200 scheduled requests")


def test_failed_requests_are_infinite_and_misses() -> None:
    batches = [Ran((100,), wall=1, arrived=i, error="crash" if i < 10 else "none") for i in range(100)]
    found = latency.findings([trace(batches)], SLA)
    assert value(found, "replay.r1.p50") == 1.0
    assert value(found, "replay.r1.p95") == math.inf
    figure = found.figure("replay.r1.p95")
    assert figure is not None
    assert figure.note.startswith("> deadline (10 failed)")
    assert value(found, "replay.r1.miss_rate") == 0.1
    assert value(found, "replay.r1.failed") == 10
    failures = found.table("replay.failures")
    assert failures is not None
    assert (failures.columns["kind"], failures.columns["requests"]) == (("crash",), (10,))
    assert "p95 above the deadline" in found.headline


def test_a_request_past_the_deadline_counts_as_failed() -> None:
    sla = Sla(metric="p95", bound_ms=10, deadline_ms=15)
    found = latency.findings([ladder()], sla)
    assert value(found, "replay.r1.failed") == 50
    assert value(found, "replay.r1.miss_rate") == 0.5
    assert value(found, "replay.r1.p95") == math.inf
    failures = found.table("replay.failures")
    assert failures is not None
    assert failures.columns["kind"] == ("past the deadline",)


def test_latency_counts_from_the_schedule() -> None:
    late = trace([Ran((100,), wall=2, arrived=0, started=30, slip=25)])
    assert latency.latencies(late, SLA).tolist() == [0.032]
    assert latency.slips(late).tolist() == [25_000_000]


def test_the_floor_comes_from_replays_of_the_same_plan() -> None:
    runs = [ladder(stretch=s, id=f"r{i}") for i, s in enumerate((1.0, 1.02, 1.05))]
    runs += [ladder(stretch=s, id=f"s{i}", plan="other") for i, s in enumerate((2.0, 2.0, 2.2))]
    found = latency.findings(runs, SLA)
    assert value(found, "replay.floor.p95") == pytest.approx(0.1)
    assert value(found, "replay.p95") == pytest.approx(19.0 * 1.02)
    assert value(found, "replay.other.p95") == pytest.approx(38.0)
    assert "by up to 10.0 % (3 replays an arm)" in found.findings[1].text


def test_two_replays_give_a_provisional_floor() -> None:
    found = latency.findings([ladder(id="a"), ladder(stretch=1.1, id="b")], SLA)
    figure = found.figure("replay.floor.p95")
    assert figure is not None
    assert figure.note.startswith("provisional")
    assert "nothing may pass against it" in found.findings[1].text


@pytest.mark.parametrize(
    ("values", "middle", "bounds", "level"),
    [
        ([3.0, 1.0, 2.0], 2.0, None, None),
        ([1.0, 2.0], 1.5, None, None),
        ([5.0, 1.0, 2.0, 3.0, 4.0], 3.0, (1.0, 5.0), 0.9375),
        ([6.0, 5.0, 1.0, 2.0, 3.0, 4.0], 3.5, (1.0, 6.0), 0.95),
        ([1.0, math.inf, math.inf], math.inf, None, None),
    ],
)
def test_an_interval_needs_five_fresh_replays(
    values: list[float], middle: float, bounds: tuple[float, float] | None, level: float | None
) -> None:
    found, interval = latency.over_replays(values)
    assert found == middle
    assert (None if interval is None else (interval.lo, interval.hi)) == bounds
    assert (None if interval is None else interval.level) == level


def test_rates_count_what_was_offered_issued_and_completed() -> None:
    batches = [Ran((100,), wall=10, arrived=100.0 * i, slip=50.0 * i, started=150.0 * i) for i in range(11)]
    offered, issued, completed = latency.rates(trace(batches))
    assert offered == pytest.approx(10)
    assert issued == pytest.approx(10 / 1.5)
    assert completed == pytest.approx(10 / 1.51)


def test_the_quantile_curve_gives_each_decade_of_the_tail_the_same_room() -> None:
    curve = latency.findings([ladder(1000)], SLA).table("replay.quantiles")
    assert curve is not None
    tail, at = curve.columns["tail"], curve.columns["latency"]
    assert (tail[0], tail[-1], len(tail)) == (0.0, 3.0, 64)
    assert at[-1] == 100.0
    assert at[21] == pytest.approx(90.0)  # tail = 1: p90
    assert list(at) == sorted(at)  # type: ignore[type-var]


def test_cores_show_our_work_beside_the_machines() -> None:
    samples = empty(SAMPLE_COLUMNS, 2)
    columns = {"core": [0, 1], "t": [0, 0], "busy": [0.6, 0.1], "stolen": [0.02, math.nan]}
    samples = Table(samples.columns | {k: np.array(v, dtype=samples[k].dtype) for k, v in columns.items()})
    batches = [Ran((100,), wall=50, arrived=100.0 * i, runqueue=5) for i in range(10)]
    cores = latency.findings([trace(batches, samples=samples)], SLA).table("replay.cores")
    assert cores is not None
    assert cores.columns["core"] == (0, 1)
    assert cores.columns["work"] == (500.0, 0.0)
    assert cores.columns["busy"][0] == pytest.approx(500 / 950, rel=1e-4)
    assert cores.columns["machine_busy"] == (0.6, 0.1)
    assert cores.columns["stolen"] == (0.02, None)
    assert cores.columns["runqueue"] == (50.0, None)


def test_windows_over_time_are_equal_and_large_enough() -> None:
    windows = latency.findings([ladder(650)], SLA).table("replay.over_time")
    assert windows is not None
    assert windows.columns["requests"] == (216, 217, 217)
    assert windows.columns["start"][0] == 0.0


def test_no_replay_is_a_partial_stage() -> None:
    found = latency.findings([], SLA)
    assert (found.status, found.headline) == ("partial", "Nothing was replayed.")


def test_a_run_in_which_nothing_ran_still_reports() -> None:
    found = latency.findings([trace([])], SLA)
    assert value(found, "replay.r1.p95") is None
    assert value(found, "replay.p95") is None
    assert "p95 unknown" in found.headline


# --- gates --------------------------------------------------------------------------------------------------


def gate(of: Trace, name: str, sla: Sla = SLA) -> Gate:
    return next(g for g in gates(of, latency.latencies(of, sla), sla) if g.name == name)


def stepped(n: int, slip: float = 0.0, lag: float = 1.0, wall: float = 10.0) -> Trace:
    """n requests 20 ms apart, each issued ``slip`` ms late, the whole schedule stretched by ``lag``."""
    at = [20.0 * i for i in range(n)]
    late = [t * (lag - 1) + slip for t in at]
    return trace([Ran((100,), wall=wall, arrived=t, slip=s, started=t + s) for t, s in zip(at, late, strict=True)])


@pytest.mark.parametrize(
    ("run", "passed"),
    [
        (stepped(200), True),
        (stepped(200, slip=0.9), True),  # below 1 ms never matters
        (stepped(200, slip=3), False),  # 3 ms against a typical 13 ms
        (stepped(200, slip=3, wall=500), False),  # 5 % of the bound of 50 ms is 2.5 ms
        (stepped(200, slip=2, wall=500), True),
        (stepped(200, lag=1.3), False),  # 24/s asked, 18.5/s issued
    ],
)
def test_a_late_generator_is_seen(run: Trace, passed: bool) -> None:
    assert gate(run, "load-generator").passed is passed


def test_too_few_requests_decide_and_few_effective_ones_only_weaken() -> None:
    few, clumped = (
        stepped(89),
        trace([Ran((100,), wall=40 + i / 10 if i < 30 else 1 + i % 7, arrived=50.0 * i) for i in range(400)]),
    )
    assert (gate(few, "samples").passed, gate(few, "samples").decides) == (False, True)
    assert gate(clumped, "samples").passed
    weak = gate(clumped, "effective-samples")
    assert (weak.passed, weak.decides) == (False, False)
    assert weak.fix.startswith("replay about ")


def test_a_run_cut_short_and_a_run_without_success_fail() -> None:
    short = trace([Ran((100,), wall=1)], complete=False, note="Interrupted.")
    assert gate(short, "complete").text == "the run was cut short. Interrupted."
    assert not gate(short, "complete").passed
    assert not gate(trace([Ran((100,), wall=1, error="crash")]), "successes").passed
    assert gate(short, "successes").passed


def test_a_failed_gate_is_a_finding_of_the_replay() -> None:
    found = latency.findings([stepped(200, slip=3)], SLA)
    assert any("loader slip p95 3 ms" in said.text and said.owner == "observability" for said in found.findings)
