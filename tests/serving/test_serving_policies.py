"""Batch, order and placement policies: literal in, literal out."""

from __future__ import annotations

import msgspec
import pytest
from serving_kit import ANY, NO_PROMISE, SMALL, load, machine_of, plan_of, run

from trimtab.domain.events import Arrived
from trimtab.domain.plan import BatchPolicy, Plan, ServePolicy
from trimtab.domain.route import Route
from trimtab.errors import StudyError
from trimtab.serving.batch import BATCH
from trimtab.serving.order import ORDER
from trimtab.serving.place import PLACE

HOLD_5 = BatchPolicy(kind="size-hold", max_size=3, hold_ms=5e-6)  # 5 ns


@pytest.mark.parametrize(
    ("kind", "times", "answer"),
    [
        ("none", [4], (4, 1)),
        ("none", [4, 5, 6], (4, 1)),
        ("size-hold", [4], (9, 1)),  # the head waits 5 ns
        ("size-hold", [4, 6], (9, 2)),
        ("size-hold", [4, 6, 7], (7, 3)),  # full before the hold is over
        ("size-hold", [4, 6, 9, 9, 10], (9, 3)),  # full at the very end of the hold
        ("size-hold", [4, 6, 12, 13], (9, 3)),  # full too late: the hold let it go
    ],
)
def test_batch(kind: str, times: list[int], answer: tuple[int, int]) -> None:
    assert BATCH[kind](times, HOLD_5) == answer


def test_fifo_is_by_enqueue_time() -> None:
    route = Route(kind="dynamic", entry="any", executed=(1, 50))
    assert ORDER["fifo"](Arrived(7, 3, 0, (50,), 2), route, NO_PROMISE) == 7


@pytest.mark.parametrize(
    ("name", "stream", "workers", "eligible"),
    [
        ("shared", 5, 3, (0, 1, 2)),
        ("stream-affinity", 5, 3, (2,)),
        ("stream-affinity", 3, 3, (0,)),
    ],
)
def test_placement(name: str, stream: int, workers: int, eligible: tuple[int, ...]) -> None:
    assert PLACE[name](stream, workers) == eligible


@pytest.mark.parametrize(
    ("serve", "where", "fix"),
    [
        (ServePolicy(batch=BatchPolicy(kind="sise")), "serve.batch.kind", "use one of none, size-hold"),
        (ServePolicy(order="lifo"), "serve.order", "use one of fifo"),
        (ServePolicy(placement="x"), "serve.placement", "use one of shared, stream-affinity"),
        (ServePolicy(batch=BatchPolicy(max_size=0)), "serve.batch", "max_size >= 1, hold_ms >= 0"),
        (ServePolicy(batch=BatchPolicy(hold_ms=-1.0)), "serve.batch", "max_size >= 1, hold_ms >= 0"),
        (ServePolicy(workers=0), "serve.workers", "at least 1"),
        (ServePolicy(warm=((1, 500),)), "serve.warm", "list shapes (batch size, *dims) that the plan's entries cover"),
        (ServePolicy(warm=((9, 50),)), "serve.warm", "list shapes (batch size, *dims) that the plan's entries cover"),
    ],
)
def test_a_policy_that_does_not_exist_is_refused(serve: ServePolicy, where: str, fix: str) -> None:
    plan: Plan = msgspec.structs.replace(plan_of(ANY), serve=serve)
    with pytest.raises(StudyError) as refused:
        machine_of(plan, ready=False)
    assert (refused.value.where, refused.value.fix) == (where, fix)


def test_sizes_stop_at_what_an_entry_was_compiled_for() -> None:
    rules = machine_of(plan_of(SMALL, ANY, size=6, hold_ns=0), ready=False).rules
    assert {name: policy.max_size for name, policy in rules.policies.items()} == {"small": 4, "any": 6}


def test_warm_shapes_go_to_the_entry_that_would_run_them() -> None:
    plan = plan_of(SMALL, ANY, warm=((1, 60), (1, 70), (2, 150), (4, 100)))
    assert machine_of(plan, ready=False).rules.warm == {"small": ((1, 100), (4, 100)), "any": ((2, 150),)}


def test_a_new_policy_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs only, the widest first, on the last worker."""
    monkeypatch.setitem(BATCH, "pairs", lambda times, policy: (times[1], 2) if len(times) > 1 else (times[0] + 1000, 1))
    monkeypatch.setitem(ORDER, "widest", lambda arrival, route, predictor: -arrival.dims[0])
    monkeypatch.setitem(PLACE, "last", lambda stream, workers: (workers - 1,))
    serve = ServePolicy(batch=BatchPolicy(kind="pairs", max_size=2), order="widest", placement="last", workers=3)
    plan: Plan = msgspec.structs.replace(plan_of(ANY), serve=serve)
    trace = run(load([0, 1, 2, 3, 4, 5], widths=[9, 7, 8, 300, 200, 100]), plan, lambda batch: 20)
    assert trace.batches["worker"].tolist() == [2, 2, 2]
    assert trace.requests["batch"].tolist() == [0, 0, 2, 1, 1, 2]
    assert trace.requests["batched"].tolist() == [1, 1, 5, 3, 4, 5]
