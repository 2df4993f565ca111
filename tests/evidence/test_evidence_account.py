"""The tail account, literal in -> literal out."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from account_cases import Formula, Scene, assemble, poisson, simulate

from trimtab.domain.account import CAUSES, INHERITED, OWN_OF_CAUSE, PARTS, Account
from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.plan import Plan
from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    MARK_KINDS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    Table,
    Trace,
    empty,
)
from trimtab.errors import DataError
from trimtab.evidence.attribute.account import account, build

FLAT = Formula(fixed=8, slope=0)


def ns(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def account_of(scene: Scene, trace: Trace | None = None) -> Account:
    return build(trace or simulate(scene), scene.promise, scene.reference, "reference", scene.plan, scene.by_entry)


def parts(account: Account, request: int) -> dict[str, int]:
    """The parts of one request that are not zero."""
    return {name: int(account.requests[name][request]) for name in PARTS if account.requests[name][request]}


def inherited(account: Account, request: int) -> dict[str, int]:
    found = {label: int(account.requests[f"inherited.{label}"][request]) for label in INHERITED}
    return {label: value for label, value in found.items() if value}


def with_marks(trace: Trace, *marks: tuple[str, int, int, int]) -> Trace:
    """Marks as (kind, worker, start, end)."""
    table = empty(MARK_COLUMNS, len(marks)).columns
    for row, (kind, worker, start, end) in enumerate(marks):
        table["kind"][row], table["worker"][row] = MARK_KINDS.index(kind), worker
        table["t"][row], table["end"][row] = start, end
    return msgspec.structs.replace(trace, marks=Table(table))


def test_a_stall_owns_the_wait_until_its_backlog_drains() -> None:
    scene = Scene(
        arrivals=np.arange(8, dtype=np.int64) * 10,
        dims=ns(*[1] * 8),
        off_core=ns(0, 7, 0, 0, 0, 0, 0, 0),
        reference=FLAT,
    )
    found = account_of(scene)
    assert found.requests["latency"].tolist() == [8, 15, 13, 11, 9, 8, 8, 8]
    assert found.requests["inherited.off_core"].tolist() == [0, 0, 5, 3, 1, 0, 0, 0]
    assert parts(found, 1) == {"off_core": 7, "useful": 8}
    assert parts(found, 2) == {"busy": 5, "useful": 8}
    assert found.requests["relief.off_core"].tolist() == [0, 0, 5, 3, 1, 0, 0, 0]


def test_overload_without_waste_is_capacity() -> None:
    found = account_of(Scene(arrivals=ns(0, 1, 2), dims=ns(1, 1, 1), reference=FLAT))
    assert [inherited(found, i) for i in range(3)] == [{}, {"capacity": 7}, {"capacity": 14}]


def test_each_step_of_the_execution_has_its_name() -> None:
    scene = Scene(
        arrivals=ns(0), dims=ns(5), bucket=8, premium=1.5, interference=ns(9), off_core=ns(4), dispatch=ns(3),
        reference=Formula(fixed=10, slope=2),
    )  # fmt: skip
    # T_ref(1, 5) = 20, T_ref(1, 8) = 26, T_e(1, 8) = 39
    assert parts(account_of(scene), 0) == {
        "dispatch": 3, "off_core": 4, "interference": 9, "premium": 13, "padding": 6, "useful": 20,
    }  # fmt: skip
    assert parts(account_of(replace(scene, cold=100)), 0)["cold"] == 109


def changing(over: int, same: int) -> dict[str, list[int]]:
    """Cold and interference of 40 requests; every other one changes the shape and takes ``over`` ns too long, the
    others ``same``."""
    extra = ns(*[over, same] * 20)
    scene = Scene(arrivals=np.arange(40, dtype=np.int64) * 100, dims=ns(*[1] * 40), interference=extra, reference=FLAT)
    trace = simulate(scene)
    trace.batches["changed"][::2] = True
    found = account_of(scene, trace).requests
    return {name: found[name][:2].tolist() for name in ("cold", "interference")}


def test_a_change_of_shape_is_cold_only_as_far_as_changes_are_slower_in_this_run() -> None:
    assert changing(over=12, same=2) == {"cold": [10, 0], "interference": [2, 2]}
    assert changing(over=5, same=5) == {"cold": [0, 0], "interference": [5, 5]}


def test_a_missing_level_merges_its_two_steps() -> None:
    scene = Scene(arrivals=ns(0), dims=ns(5), bucket=8, premium=1.5, reference=Formula(fixed=10, slope=2))

    class Unpromised(Formula):
        def warm(self, entry: str, executed: tuple[int, ...]) -> int:
            return 0

    trace = simulate(scene)
    no_promise = build(trace, Unpromised(), scene.reference, "reference", scene.plan, scene.by_entry)
    assert parts(no_promise, 0) == {"unprofiled": 13, "padding": 6, "useful": 20}
    no_reference = build(trace, scene.promise, Unpromised(), "reference", scene.plan, scene.by_entry)
    assert parts(no_reference, 0) == {"unprofiled": 39}


def test_a_batch_is_co_batching_for_its_members_and_ragged_padding_for_those_behind() -> None:
    scene = Scene(arrivals=ns(0, 1, 1, 10), dims=ns(1, 1, 3, 1), max_size=2, reference=Formula(fixed=10, slope=1))
    found = account_of(scene)
    # first alone (11 ns), then two together at width 3: 10 + 2 x 3 = 16 ns; mean at true widths 14 ns
    assert parts(found, 1) == {"busy": 10, "co_batching": 5, "useful": 11}
    assert parts(found, 2) == {"busy": 10, "co_batching": 3, "useful": 13}
    assert {k: int(v[1]) for k, v in found.batches.columns.items() if v[1]} == {"id": 1, "useful": 14, "padding": 2}
    assert inherited(found, 3) == {"capacity": 15, "padding": 2}


def test_hold_counts_only_while_a_worker_is_free() -> None:
    scene = Scene(arrivals=ns(0, 2, 30), dims=ns(1, 1, 1), max_size=3, hold=5, reference=FLAT)
    found = account_of(scene)
    assert parts(found, 0) == {"hold": 5, "useful": 8}
    assert parts(found, 1) == {"hold": 3, "useful": 8}
    assert parts(found, 2) == {"hold": 5, "useful": 8}


def test_mates_of_a_held_batch_are_there_because_of_the_hold() -> None:
    scene = Scene(arrivals=ns(0, 2), dims=ns(1, 1), max_size=3, hold=5, reference=Formula(fixed=8, slope=4))
    found = account_of(scene)
    assert parts(found, 0) == {"hold": 5, "co_batching": 4, "useful": 12}
    assert inherited(found, 0) == {"hold": 4}


def test_free_and_ready_but_not_sent_is_dispatch_and_queues_those_behind() -> None:
    found = account_of(Scene(arrivals=ns(0, 1), dims=ns(1, 1), lag=ns(6, 0), reference=FLAT))
    assert parts(found, 0) == {"dispatch": 6, "useful": 8}
    assert parts(found, 1) == {"dispatch": 5, "busy": 8, "useful": 8}
    assert inherited(found, 1) == {"capacity": 4, "dispatch": 4}  # w(all) = 13 of which the lag is 6


def test_split_queues_are_imbalance_where_another_worker_was_idle() -> None:
    scene = Scene(arrivals=ns(0, 0), dims=ns(1, 1), workers=2, streams=ns(0, 0), eligible=((0,),), reference=FLAT)
    found = account_of(scene)
    assert inherited(found, 1) == {"imbalance": 8}
    assert found.requests["idle_elsewhere"].tolist() == [0, 8]


def test_pace_and_warm_up_have_their_own_label_and_a_dead_worker_is_unavailable() -> None:
    waiting = Scene(arrivals=ns(0), dims=ns(1), lag=ns(10), reference=FLAT)
    trace = simulate(waiting)
    assert parts(account_of(waiting, with_marks(trace, ("pace", 0, 2, 6))), 0) == {
        "dispatch": 6, "occupied": 4, "useful": 8,
    }  # fmt: skip
    assert parts(account_of(waiting, with_marks(trace, ("warm-up", 0, 3, -1))), 0) == {
        "dispatch": 3, "occupied": 7, "useful": 8,
    }  # fmt: skip
    down = with_marks(trace, ("worker-down", 0, 1, -1), ("worker-up", 0, 3, -1), ("entry-ready", 0, 7, -1))
    assert parts(account_of(waiting, down), 0) == {"dispatch": 4, "unavailable": 6, "useful": 8}
    started = with_marks(trace, ("worker-up", 0, 0, -1), ("entry-ready", 0, 4, -1), ("entry-ready", 0, 9, -1))
    assert parts(account_of(waiting, started), 0) == {"dispatch": 1, "unavailable": 9, "useful": 8}


def test_an_outage_owns_the_backlog_that_it_leaves() -> None:
    late = ns(0, 0, 15, 0, 0, 0)
    scene = Scene(arrivals=np.arange(6, dtype=np.int64) * 10, dims=ns(*[1] * 6), lag=late, reference=FLAT)
    trace = with_marks(simulate(scene), ("worker-down", 0, 18, -1), ("entry-ready", 0, 35, -1))
    found = account_of(scene, trace)
    assert [parts(found, i) for i in (2, 3, 4, 5)] == [
        {"unavailable": 15, "useful": 8},
        {"unavailable": 5, "busy": 8, "useful": 8},
        {"busy": 11, "useful": 8},
        {"busy": 9, "useful": 8},
    ]
    assert [inherited(found, i) for i in (3, 4, 5)] == [{"unavailable": 8}, {"unavailable": 11}, {"unavailable": 9}]
    assert found.requests["modelled"].tolist() == found.requests["busy"].tolist()


def test_a_failed_request_keeps_its_row_and_its_batch_is_the_cause_of_the_queue_behind_it() -> None:
    scene = Scene(arrivals=ns(0, 3), dims=ns(1, 1), off_core=ns(12, 0), reference=FLAT)
    trace = simulate(scene)
    trace.requests["error"][0] = trace.batches["error"][0] = ERROR_KINDS.index("crash")
    trace.batches["ended"][0] = trace.batches["started"][0] = -1
    found = account_of(scene, trace)
    assert found.requests["latency"].tolist() == [-1, 25]
    assert [parts(found, 0), inherited(found, 0)] == [{}, {}]
    assert inherited(found, 1) == {"failed": 17}


def test_requests_that_never_ran_wait_for_nothing_in_the_model() -> None:
    requests = empty({**REQUEST_COLUMNS, "dim.w": "int64"}, 2)
    requests["id"][:], requests["scheduled"][:], requests["enqueued"][:] = [0, 1], [0, 1], [0, 1]
    requests["stream"][:], requests["error"][:] = 0, ERROR_KINDS.index("rejected")
    trace = assemble(requests.columns, empty({**BATCH_COLUMNS, "exec.w": "int64"}).columns, 1, 1)
    scene = Scene(arrivals=ns(0, 1), dims=ns(1, 1))
    found = build(trace, scene.promise, scene.reference, "reference", scene.plan, scene.by_entry)
    assert found.requests["latency"].tolist() == [-1, -1]
    assert not any(found.requests[name].any() for name in PARTS)


def test_throttled_time_is_part_of_off_core() -> None:
    scene = Scene(arrivals=ns(0, 100), dims=ns(1, 1), off_core=ns(20, 5), reference=FLAT)
    trace = simulate(scene)
    samples = empty(SAMPLE_COLUMNS, 2).columns
    samples["t"][:], samples["throttled_ns"][:] = [0, 28], [0, 12]
    found = account_of(scene, msgspec.structs.replace(trace, samples=Table(samples)))
    assert found.requests["throttled"].tolist() == [12, 0]


def test_times_that_cannot_be_are_refused() -> None:
    scene = Scene(arrivals=ns(0, 3), dims=ns(1, 1), reference=FLAT)
    backwards = simulate(scene)
    backwards.batches["started"][1] = backwards.batches["dispatched"][1] - 1
    with pytest.raises(DataError, match="1 requests have started before dispatched, the first is 1"):
        account_of(scene, backwards)
    orphan = simulate(scene)
    orphan.requests["batch"][1] = 77
    with pytest.raises(DataError, match="request 1 ended well, but its batch is not in the trace"):
        account_of(scene, orphan)


def test_the_plan_says_who_may_run_what() -> None:
    scene = Scene(arrivals=ns(0, 0), dims=ns(1, 1), workers=2, streams=ns(0, 0), eligible=((0,), (1,)), reference=FLAT)
    serve = msgspec.structs.replace(scene.plan.serve, placement="stream-affinity")
    plan: Plan = msgspec.structs.replace(scene.plan, serve=serve)
    trace = msgspec.structs.replace(simulate(scene), streams=("a", "b"))
    found = account(trace, scene.promise, scene.reference, "reference", plan)
    assert found.eligible == (((0,),), ((1,),))
    assert inherited(found, 1) == {"imbalance": 8}


def test_an_order_of_its_own_is_taken_from_the_record() -> None:
    requests = simulate(Scene(arrivals=ns(0, 1, 2), dims=ns(1, 1, 1), off_core=ns(0, 4, 0), reference=FLAT))
    order = ns(0, 2, 1)  # the last arrival was sent before the second
    columns = {name: column[order] for name, column in requests.requests.columns.items()}
    columns |= {"id": ns(0, 1, 2), "scheduled": ns(0, 1, 2), "enqueued": ns(0, 1, 2), "batched": ns(0, 1, 2)}
    trace = msgspec.structs.replace(requests, requests=Table(columns))
    scene = Scene(arrivals=ns(0, 1, 2), dims=ns(1, 1, 1), reference=FLAT)
    serve = msgspec.structs.replace(scene.plan.serve, order="shortest")
    plan = msgspec.structs.replace(scene.plan, serve=serve)
    found = build(trace, scene.promise, scene.reference, "reference", plan, scene.by_entry)
    assert found.requests["modelled"].tolist() == [0, 19, 6]
    assert found.requests["modelled"].tolist() == found.requests["busy"].tolist()
    assert inherited(found, 1) == {"capacity": 15, "off_core": 4}


def p99(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.99, method="inverted_cdf"))


def test_one_frozen_worker_of_four_the_gain_is_that_of_a_re_simulation() -> None:
    rng = np.random.default_rng(5)
    n, ms = 6_000, 1_000_000
    freeze = np.zeros(n, dtype=np.int64)
    freeze[n // 3] = 3_000 * ms
    scene = Scene(
        arrivals=poisson(rng, n, 10.2 * ms / 4 / 0.8), dims=rng.integers(20, 800, n), workers=4, off_core=freeze
    )
    trace = simulate(scene)
    found = account_of(scene, trace).requests
    observed = found["latency"]
    predicted = p99(observed - found["off_core"] - found["relief.off_core"])
    really = p99(account_of(scene.without(["off_core"])).requests["latency"])
    assert 100 * abs(predicted - really) / p99(observed) < 2
    tail = observed >= p99(observed)
    assert found["inherited.off_core"][tail].sum() > 0.7 * found["busy"][tail].sum()


def test_causes_and_their_own_parts_agree() -> None:
    assert set(OWN_OF_CAUSE.values()) <= set(PARTS)
    assert set(CAUSES) - set(OWN_OF_CAUSE) == {"imbalance", "failed"}
