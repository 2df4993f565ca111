"""The virtual-clock driver: small runs whose outcome can be worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from serving_kit import ANY, SMALL, load, plan_of, run

from parts import run_info
from trimtab.domain.events import Dispatch, EntryFailed, Occupied, Released, WorkerDown
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.trace import Table
from trimtab.errors import StudyError
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.serving.simulate import Startup, simulate


def rows(table: Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*[table[name].tolist() for name in names], strict=True))


def always(wall: int) -> Any:
    return lambda batch: wall


def test_latency_counts_from_the_schedule() -> None:
    """One worker, 500 ms of service, 10 requests/s: the eighth request waits for the seven before it."""
    ms = 1_000_000
    trace = run(load([100 * ms * i for i in range(8)]), plan_of(), always(500 * ms))
    assert [round(value, 9) for value in trace.latency.tolist()] == [0.5, 0.9, 1.3, 1.7, 2.1, 2.5, 2.9, 3.3]


def test_hold_batch_and_wait_by_hand() -> None:
    trace = run(load([0, 3, 4, 30, 31, 32, 33]), plan_of(size=3, hold_ns=5), always(10))
    assert rows(trace.requests, "enqueued", "batched", "dispatched", "done", "batch") == [
        (0, 4, 4, 14, 0),  # full at 4
        (3, 4, 4, 14, 0),
        (4, 4, 4, 14, 0),
        (30, 32, 32, 42, 1),
        (31, 32, 32, 42, 1),
        (32, 32, 32, 42, 1),
        (33, 38, 42, 52, 2),  # alone; its hold ended while the worker was busy
    ]


def test_whoever_arrives_at_the_moment_a_batch_is_due_rides_along() -> None:
    trace = run(load([0, 5, 20]), plan_of(size=3, hold_ns=5), always(15))
    assert rows(trace.requests, "batched", "dispatched", "batch") == [(5, 5, 0), (5, 5, 0), (25, 25, 1)]


def test_a_worker_that_ends_is_free_for_a_request_of_the_same_moment() -> None:
    trace = run(load([0, 10, 20]), plan_of(), always(10))
    assert rows(trace.requests, "dispatched", "done") == [(0, 10), (10, 20), (20, 30)]


def test_two_workers_share_and_affinity_does_not() -> None:
    workload = load([0, 1, 2, 3], streams=[0, 0, 0, 1])
    shared = run(workload, plan_of(workers=2), always(10))
    assert rows(shared.requests, "dispatched", "done") == [(0, 10), (1, 11), (10, 20), (11, 21)]
    assert rows(shared.batches, "worker", "core") == [(0, 0), (1, 1), (0, 0), (1, 1)]
    affinity = run(workload, plan_of(workers=2, placement="stream-affinity"), always(10))
    assert rows(affinity.requests, "dispatched", "done") == [(0, 10), (10, 20), (20, 30), (3, 13)]


def test_a_crash_costs_its_batch_and_the_time_to_start_again() -> None:
    trace = run(
        load([0, 1, 200]),
        plan_of(SMALL, ANY),
        always(10),
        startup=Startup(process_ns=100, prepare_ns={"small": 20, "any": 30}),
        injected=[WorkerDown(5, 0, "out-of-memory")],
    )
    assert rows(trace.requests, "dispatched", "ended", "done", "error") == [
        (0, -1, 5, 4),
        (155, 165, 165, 0),  # 5 + 100 + 20 + 30
        (200, 210, 210, 0),
    ]


def test_a_crash_while_starting_starts_again() -> None:
    trace = run(
        load([0]),
        plan_of(),
        always(10),
        startup=Startup(warm=False, process_ns=100, prepare_ns={"any": 50}),
        injected=[WorkerDown(20, 0, "crash"), WorkerDown(60, 0, "crash")],
    )
    assert rows(trace.requests, "dispatched", "error") == [(210, 0)]  # 60 + 100 + 50


def test_a_crash_while_compiling_loses_what_was_compiled() -> None:
    trace = run(
        load([0]),
        plan_of(SMALL, ANY),
        always(10),
        startup=Startup(warm=False, process_ns=5, prepare_ns={"small": 30, "any": 20}),
        injected=[WorkerDown(35, 0, "crash")],
    )
    assert rows(trace.requests, "dispatched", "error") == [(90, 0)]  # 35 + 5 + 30 + 20, nothing of the first process


def test_batches_are_in_order_of_dispatch_not_of_their_ends() -> None:
    trace = run(load([0, 1]), plan_of(workers=2), lambda batch: 50 if batch.batch == 0 else 5)
    assert rows(trace.batches, "id", "dispatched", "done") == [(0, 0, 50), (1, 1, 6)]


def test_a_cold_start_is_charged() -> None:
    trace = run(
        load([0]), plan_of(SMALL, ANY), always(10), startup=Startup(warm=False, prepare_ns={"small": 7, "any": 8})
    )
    assert rows(trace.requests, "dispatched", "done") == [(15, 25)]


@pytest.mark.parametrize(
    ("startup", "missing"),
    [
        (Startup(prepare_ns={"any": 1}), "how long a new worker process takes to start"),
        (Startup(process_ns=1), "how long a worker takes to prepare entry 'any'"),
    ],
)
def test_a_time_that_nobody_gave_is_asked_for(startup: Startup, missing: str) -> None:
    with pytest.raises(StudyError) as refused:
        run(load([0, 9]), plan_of(), always(10), startup=startup, injected=[WorkerDown(5, 0, "crash")])
    assert missing in str(refused.value)


def test_an_occupied_worker_takes_nothing() -> None:
    trace = run(load([10]), plan_of(), always(5), injected=[Occupied(8, 0, "pace"), Released(12, 0, "pace")])
    assert rows(trace.requests, "dispatched", "done") == [(12, 17)]
    assert rows(trace.marks, "t", "end")[-2] == (8, 12)


def test_an_entry_that_fails_later_ends_its_requests() -> None:
    trace = run(
        load([0, 1, 9], widths=[50, 60, 150]),
        plan_of(SMALL, ANY),
        always(6),
        injected=[EntryFailed(3, 0, "small", "x")],
    )
    assert rows(trace.requests, "done", "error") == [(6, 0), (3, 7), (15, 0)]


def test_the_warm_list_is_seen_and_the_rest_is_not() -> None:
    workload = load([0, 100, 200], widths=[150, 160, 160])
    trace = run(workload, plan_of(ANY, warm=((1, 150),)), lambda batch: 50 if batch.first_seen else 5)
    assert rows(trace.requests, "done") == [(5,), (150,), (205,)]
    assert rows(trace.batches, "first_seen", "changed") == [(False, False), (True, True), (False, False)]


def line(*ratios: float) -> CompileProfile:
    """10 ns a pixel from 100 to 200, first runs 500 or 700 ns longer."""
    return CompileProfile(
        plan="p", entry="any", backend="null", versions={}, options=CompileOptions(), compile_ns=1, memory_bytes=1,
        peak_bytes=1, inspection=Inspection(executed=(1, 100), operators=(), operators_before=0),
        timings=tuple(
            ShapeTiming(executed=(1, w), first_ns=first, wall_ns=tuple(round(10 * w * r) for r in ratios), cpu_ns=(1,))
            for w, first in ((100, 1500), (200, 2700))
        ),
    )  # fmt: skip


def test_the_seed_decides_the_run() -> None:
    plan = plan_of(ANY)
    costs = CostModel.from_profiles([line(0.8, 0.9, 1.0, 1.1, 1.2)], plan.compile.entries)
    workload = load([1000 * i for i in range(40)], widths=[100 + i for i in range(40)])

    def ends(seed: int) -> bytes:
        trace = simulate(workload, plan, Router(plan.compile), costs, ProfileService(costs, seed), run_info(workers=1))
        return trace.requests["ended"].tobytes()

    assert ends(3) == ends(3)
    assert ends(3) != ends(4)


def test_promises_come_from_the_profile_and_draws_from_its_ratios() -> None:
    plan = plan_of(ANY)
    costs = CostModel.from_profiles([line(1, 1, 1)], plan.compile.entries)
    workload = load([0, 10_000, 20_000], widths=[150, 150, 400])
    trace = simulate(workload, plan, Router(plan.compile), costs, ProfileService(costs, 1), run_info(workers=1))
    assert rows(trace.batches, "promised", "expected", "ended") == [
        (1500, 2200, 2200),
        (1500, 1500, 11_500),
        (4000, 4700, 24_700),
    ]
    assert rows(trace.requests, "predicted_at_compile", "predicted_at_dispatch")[0] == (1500, 2200)


def test_handling_keeps_the_worker_busy() -> None:
    """2 ns until a batch starts, 3 ns until its end is known: the next one waits for all of it."""
    trace = run(load([0, 1]), plan_of(), always(5), handling=lambda batch: (2, 3))
    assert rows(trace.requests, "dispatched", "started", "ended", "done") == [(0, 2, 7, 10), (10, 12, 17, 20)]


def test_nothing_to_do_is_a_complete_run() -> None:
    trace = run(load([]), plan_of(), always(1))
    assert (len(trace.requests), len(trace.batches), trace.run.complete) == (0, 0, True)


def test_the_longest_run_of_one_stream_keeps_its_order() -> None:
    sent: list[Dispatch] = []
    run(load(list(range(50))), plan_of(size=4, hold_ns=2), lambda batch: sent.append(batch) or 7)
    members = [member for batch in sent for member in batch.members]
    assert members == list(range(50))
