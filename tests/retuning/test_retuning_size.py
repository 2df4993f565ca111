"""Sizing: cores needed at this traffic, and traffic that these cores carry. A small exact queue is the machine."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace as fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import MS, from_times, study

from parts import workload_of
from trimtab.domain.plan import Plan
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.retuning import findings
from trimtab.retuning.size import Run, carries, scaled, size, utilisation, with_cores

BASE = study().baseline
P95 = Sla(metric="p95", bound_ms=60.0)


def every(gap_ms: float, n: int = 300) -> Workload:
    return workload_of(np.rint(np.arange(n) * gap_ms * MS))


def constant(service_ms: float) -> Run:
    """First come, first served by ``workers`` workers that each take ``service_ms``."""

    def run(plan: Plan, workload: Workload) -> Trace:
        free = [0] * plan.serve.workers
        begin, end = [], []
        for t in workload.scheduled:
            start = max(int(t), heapq.heappop(free))
            begin.append(start)
            end.append(start + round(service_ms * MS))
            heapq.heappush(free, end[-1])
        return from_times(workload.scheduled, np.array(begin), np.array(end))

    return run


def test_three_workers_of_25_ms_serve_one_request_every_10_ms() -> None:
    sizing = size(BASE, every(10), P95, constant(25), 4, measured=2)
    assert [(r.cores, r.met, r.extrapolated) for r in sizing.rows] == [
        (1, False, False),
        (2, False, False),
        (3, True, True),
        (4, True, True),
    ]
    assert (sizing.needed, sizing.rows[2].value, sizing.rows[2].miss) == (3, 25.0, 0.0)
    assert sizing.margin == pytest.approx((60 - 25) / 60)
    assert sizing.rows[2].utilisation == pytest.approx(0.833, abs=0.01)
    assert sizing.stops_at == pytest.approx(1.2, abs=0.05)  # 3 workers / 25 ms = 120 requests/s


def test_the_answer_as_a_sentence() -> None:
    sizing = size(BASE, every(10), P95, constant(25), 4, measured=4)
    assert sizing.stops_at is not None
    assert findings.size_sentence(sizing, P95) == (
        f"3 cores meet p95 <= 60 ms at this traffic (simulated 25 ms), up to {sizing.stops_at:.2f} times the rate."
    )


def test_an_answer_from_a_simulation_that_misses_the_replays_carries_it() -> None:
    sizing = fields(size(BASE, every(10), P95, constant(25), 4, measured=4), doubted="it misses p95 by +40.0 %")
    said = findings.size_sentence(sizing, P95)
    assert said.endswith(" times the rate. Not to be relied on: it misses p95 by +40.0 %.")
    none = fields(size(BASE, every(10), P95, constant(70), 3, measured=2), doubted="it misses")
    assert findings.size_sentence(none, P95).endswith("(simulated). Not to be relied on: it misses.")


def test_no_count_is_enough() -> None:
    sizing = size(BASE, every(10), P95, constant(70), 3, measured=2)
    assert (sizing.needed, sizing.margin, sizing.stops_at) == (None, None, None)
    assert findings.size_sentence(sizing, P95) == (
        "None of 1 to 3 cores meets p95 <= 60 ms at this traffic (simulated)."
    )


def test_a_count_is_enough_only_if_every_larger_one_is() -> None:
    """A simulation that wobbles: 2 cores happen to meet the bound, 3 do not."""
    latency = {1: 90.0, 2: 50.0, 3: 70.0, 4: 40.0}

    def run(plan: Plan, workload: Workload) -> Trace:
        done = workload.scheduled + round(latency[plan.serve.workers] * MS)
        return from_times(workload.scheduled, workload.scheduled, done)

    assert size(BASE, every(10), P95, run, 4, measured=4).needed == 4


def test_a_limit_beyond_the_search_is_said_to_be_beyond() -> None:
    sizing = size(BASE, every(10), P95, constant(0.01), 1, measured=1, highest=2.0)
    assert (sizing.stops_at, sizing.beyond) == (2.0, True)
    assert findings.size_sentence(sizing, P95).endswith("up to at least 2.00 times the rate.")


def test_one_worker_of_20_ms_carries_half_of_one_request_every_10_ms() -> None:
    assert carries(BASE, every(10), P95, constant(20)) == pytest.approx(0.5, rel=0.1)


def test_service_above_the_bound_carries_nothing() -> None:
    assert carries(BASE, every(10), P95, constant(61)) is None


def test_goodput_must_reach_its_share() -> None:
    sla = Sla(metric="goodput", bound_ms=60.0, goodput=0.9)
    sizing = size(BASE, every(10), sla, constant(25), 3, measured=3)
    assert (sizing.needed, sizing.rows[2].value, sizing.margin) == (3, 1.0, pytest.approx(0.1 / 0.9))


def test_scaling_divides_every_gap() -> None:
    assert scaled(every(10, 3), 2.0).scheduled.tolist() == [0, 5 * MS, 10 * MS]
    assert with_cores(BASE, 3).serve.workers == 3
    assert with_cores(BASE, 1) == replace(BASE, serve=replace(BASE.serve, workers=1))


def test_utilisation_without_batches_is_unknown() -> None:
    none = np.array([], dtype=np.int64)
    assert math.isnan(utilisation(from_times(none, none, none), 1))


@settings(deadline=None, max_examples=25)
@given(st.floats(1.0, 59.0), st.floats(3.0, 30.0))
def test_more_cores_never_need_more_time(service_ms: float, gap_ms: float) -> None:
    rows = size(BASE, every(gap_ms, 80), P95, constant(service_ms), 4, measured=4, highest=1.5).rows
    assert all(more.value <= fewer.value for fewer, more in itertools.pairwise(rows))
