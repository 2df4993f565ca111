"""The account of runs of the serving machine itself: batches, holds, placements, pace runs and a crash."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from machine_cases import exact, runs

from trimtab.domain.events import Occupied, Released, WorkerDown
from trimtab.domain.plan import Plan
from trimtab.domain.trace import Trace


@given(runs())
@settings(deadline=None, max_examples=80)
def test_a_machine_never_leaves_ready_work_beside_a_free_worker(run: tuple[Plan, Trace]) -> None:
    req = exact(*run)
    assert not req["dispatch"].any()
    assert not req["unavailable"].any()
    assert not req["occupied"].any()
    assert run[0].serve.batch.hold_ns or not req["hold"].any()
    assert req["hold"].max() <= 25


@given(runs(injected=(Occupied(0, 0, "pace"), Released(30, 0, "pace"), WorkerDown(90, 0, "crash"))))
@settings(deadline=None, max_examples=80)
def test_pace_runs_and_a_crash_have_their_own_labels(run: tuple[Plan, Trace]) -> None:
    plan, trace = run
    req = exact(plan, trace)
    assert not req["dispatch"].any()
    if plan.serve.workers == 1:  # nobody else is there: whoever waits through the outage waits for a live worker
        enqueued, sent = trace.requests["enqueued"], trace.requests["dispatched"]
        ended = req["latency"] >= 0
        down, up = 90, 90 + 60 + 20 + 30
        outage = np.clip(np.minimum(sent, up) - np.maximum(enqueued, down), 0, None)
        crashed = trace.marks["kind"] == 1
        if crashed.any() and trace.marks["t"][crashed][0] == down:
            assert req["unavailable"][ended].tolist() == outage[ended].tolist()
