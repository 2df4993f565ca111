"""Laws of the serving machine, over random traffic, plans and faults. Invariants are checked after every event."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import Case, cases, digest
from serving_kit import NO_PROMISE, Takes, load, plan_of

from parts import run_info
from trimtab.domain.events import Event
from trimtab.domain.plan import Entry
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import unit_draws
from trimtab.serving.rules import Rules
from trimtab.serving.simulate import simulate


@given(cases())
@settings(deadline=None, max_examples=150)
def test_every_request_ends_exactly_once(case: Case) -> None:
    trace = case.simulate()
    req, bat = trace.requests, trace.batches
    assert req["id"].tolist() == list(range(len(case.workload)))
    assert (req["done"] >= req["enqueued"]).all()
    assert (req["enqueued"] >= 0).all()
    assert (req["error"] != 8).all()  # nothing is left over: every worker comes back
    assert bat["size"].sum() == (req["batch"] >= 0).sum()
    ok = req["error"] == 0
    for earlier, later in [("enqueued", "batched"), ("batched", "dispatched"), ("started", "ended"), ("ended", "done")]:
        assert (req[earlier][ok] <= req[later][ok]).all()


@given(cases())
@settings(deadline=None, max_examples=100)
def test_a_batch_has_one_entry_and_never_too_many_members(case: Case) -> None:
    trace, router = case.simulate(), Router(case.plan.compile)
    for number, batch in enumerate(trace.batches["id"].tolist()):
        members = np.flatnonzero(trace.requests["batch"] == batch)
        entry = trace.entries[int(trace.batches["entry"][number])]
        assert {router.route((int(w),)).entry for w in trace.requests["dim.width"][members]} == {entry}
        assert len(members) == trace.batches["size"][number]
        assert 1 <= len(members) <= min(case.plan.serve.batch.max_size, router.entries[entry].batch[1])
        assert trace.batches["executed_size"][number] >= len(members)


@given(cases())
@settings(deadline=None, max_examples=100)
def test_within_a_queue_nobody_overtakes(case: Case) -> None:
    """First in, first out per entry and eligibility class: batch numbers never fall with the request number."""
    trace, router = case.simulate(), Router(case.plan.compile)
    eligible = Rules(case.plan, router, NO_PROMISE).eligible
    queues: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    req = trace.requests
    for width, stream, batch in zip(*(req[c].tolist() for c in ("dim.width", "stream", "batch")), strict=True):
        if batch >= 0:
            entry = router.route((width,)).entry
            assert entry is not None
            queues.setdefault((entry, eligible(stream, entry)), []).append(batch)
    assert all(batches == sorted(batches) for batches in queues.values())


@given(cases())
@settings(deadline=None, max_examples=100)
def test_no_worker_runs_two_batches(case: Case) -> None:
    bat = case.simulate().batches
    for worker in range(case.plan.serve.workers):
        mine = bat["worker"] == worker
        sent, done = bat["dispatched"][mine], bat["done"][mine]
        assert (sent[1:] >= done[:-1]).all()


@given(cases(faulty=False))
@settings(deadline=None, max_examples=100)
def test_a_batch_leaves_when_it_is_ready_or_when_a_worker_becomes_free(case: Case) -> None:
    """So the hold is never exceeded while an eligible worker is free."""
    trace = case.simulate()
    req, bat = trace.requests, trace.batches
    ends = set(bat["done"].tolist())
    hold = case.plan.serve.batch.hold_ns
    for number, batch in enumerate(bat["id"].tolist()):
        members = np.flatnonzero(req["batch"] == batch)
        sent = int(bat["dispatched"][number])
        oldest = int(req["enqueued"][members].min())
        assert req["batched"][members].max() <= sent
        assert req["batched"][members].min() <= oldest + hold
        assert sent in ends or sent <= oldest + hold
        assert sent in ends or sent == req["batched"][members].max()


@given(cases())
@settings(deadline=None, max_examples=50)
def test_the_same_inputs_give_the_same_bytes(case: Case) -> None:
    assert digest(case.simulate()) == digest(case.simulate())


def moved(events: list[Event], by: int) -> list[Event]:
    return [type(e)(e.t + by, *[getattr(e, f) for f in e.__struct_fields__[1:]]) for e in events]


TIMES = ("scheduled", "enqueued", "batched", "dispatched", "started", "ended", "done", "t", "end")


@given(cases(), st.integers(1, 10**15))
@settings(deadline=None, max_examples=50)
def test_shifting_all_times_shifts_the_trace_and_nothing_else(case: Case, by: int) -> None:
    shifted = load(
        (case.workload.scheduled + by).tolist(), case.workload.dims[:, 0].tolist(), case.workload.stream.tolist()
    )
    here = case._replace(injected=moved(case.injected, int(case.workload.scheduled[0]))).simulate()
    there = case._replace(
        workload=shifted, injected=moved(case.injected, int(case.workload.scheduled[0]) + by)
    ).simulate()
    for a, b in ((here.requests, there.requests), (here.batches, there.batches), (here.marks, there.marks)):
        for name, column in a.columns.items():
            expected = np.where(column >= 0, column + by, column) if name in TIMES else column
            np.testing.assert_array_equal(b[name], expected, err_msg=name)


@given(cases(faulty=False), st.integers(1, 450))
@settings(deadline=None, max_examples=50)
def test_adding_a_bucket_loses_no_request(case: Case, width: int) -> None:
    before = case.simulate()
    more = (*case.plan.compile.entries, Entry(id="new", kind="bucket", lo=(1,), hi=(width,), batch=(1, 8)))
    plan = plan_of(*more, workers=case.plan.serve.workers)
    after = case._replace(plan=plan).simulate()
    assert (after.requests["error"] <= before.requests["error"]).all()


@pytest.mark.parametrize("load_share", [0.5, 0.8])
@pytest.mark.parametrize(("kind", "workers"), [("M/M", 1), ("M/M", 2), ("M/D", 1)])
def test_mean_waits_match_queueing_theory(kind: str, load_share: float, workers: int) -> None:
    """M/M/c: Erlang C. M/D/1: Pollaczek-Khinchine. The tolerance is four standard errors from 40 batch means."""
    n, mean = 40_000, 1_000_000.0
    gaps = -np.log1p(-unit_draws(11, n)) * mean / (load_share * workers)
    scheduled = np.cumsum(gaps).astype(np.int64)
    walls = np.full(n, mean) if kind == "M/D" else -np.log1p(-unit_draws(22, n)) * mean
    wall = np.maximum(walls, 1).astype(np.int64).tolist()
    plan = plan_of(workers=workers)
    trace = simulate(
        load(scheduled.tolist()), plan, Router(plan.compile), CostModel({}), Takes(lambda b: wall[b.members[0]]),
        run_info(workers=workers),
    )  # fmt: skip
    waits = (trace.requests["started"] - trace.requests["scheduled"]) / mean
    blocks = waits[n // 20 :].reshape(-1, n * 19 // 20 // 40).mean(axis=1)
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(blocks.mean() - theory(kind, load_share, workers)) < 4 * error
    assert error < 0.1 * theory(kind, load_share, workers) + 0.05


def theory(kind: str, share: float, workers: int) -> float:
    """Mean wait in units of the mean service time."""
    if workers == 1:
        return share / (1 - share) if kind == "M/M" else share / (2 * (1 - share))
    offered = share * workers
    full = offered**2 / 2 / (1 - share)
    return full / (1 + offered + full) / (workers - offered)
