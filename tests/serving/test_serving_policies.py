"""Batch, order and placement policies: literal in, literal out."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_kit import ANY, LARGE, NO_PROMISE, SMALL, load, machine_of, plan_of, run

from trimtab.domain.events import ERROR_KINDS, Arrived
from trimtab.domain.noun import NEVER
from trimtab.domain.plan import BatchPolicy, Plan, ServePolicy
from trimtab.domain.ports import Predictor
from trimtab.domain.route import Route
from trimtab.errors import StudyError
from trimtab.serving.batch import BATCH
from trimtab.serving.order import LAST, ORDER
from trimtab.serving.place import PLACE, Asked, size_ranks

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


class Tenfold:
    """A promise of ten times the width."""

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return 10 * executed[-1]

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return self.warm(entry, executed)


@pytest.mark.parametrize(
    ("order", "due", "predictor", "key"),
    [
        ("fifo", 90, Tenfold(), 7),  # by enqueue time
        ("shortest", 90, Tenfold(), 500),
        ("shortest", 90, NO_PROMISE, LAST),
        ("deadline", 90, Tenfold(), 90),
        ("deadline", NEVER, Tenfold(), LAST),
    ],
)
def test_order(order: str, due: int, predictor: Predictor, key: int) -> None:
    route = Route(kind="dynamic", entry="any", executed=(1, 50))
    assert ORDER[order](Arrived(7, 3, 0, (50,), 2, due), route, predictor) == key


@pytest.mark.parametrize(
    ("name", "asked", "eligible"),
    [
        ("shared", Asked(5, 0, 1, 3), (0, 1, 2)),
        ("stream-affinity", Asked(5, 0, 1, 3), (2,)),
        ("stream-affinity", Asked(3, 0, 1, 3), (0,)),
        ("size-affinity", Asked(5, 0, 4, 2), (0,)),  # the two small entries of four
        ("size-affinity", Asked(5, 1, 4, 2), (0,)),
        ("size-affinity", Asked(5, 2, 4, 2), (1,)),
        ("size-affinity", Asked(5, 0, 2, 4), (0, 1)),  # two workers an entry
        ("size-affinity", Asked(5, 1, 2, 3), (1, 2)),
        ("size-affinity", Asked(5, 0, 1, 3), (0, 1, 2)),
    ],
)
def test_placement(name: str, asked: Asked, eligible: tuple[int, ...]) -> None:
    assert PLACE[name](asked) == eligible


@given(st.integers(1, 12), st.integers(1, 8))
def test_size_affinity_leaves_no_worker_without_work_and_nobody_without_a_worker(sizes: int, workers: int) -> None:
    by_size = [PLACE["size-affinity"](Asked(0, size, sizes, workers)) for size in range(sizes)]
    assert set().union(*by_size) == set(range(workers)) if sizes >= workers else all(by_size)
    assert all(set(found) <= set(range(workers)) for found in by_size)
    assert by_size == sorted(by_size)


def test_sizes_rank_by_the_volume_of_their_largest_dims() -> None:
    assert size_ranks({"large": LARGE, "any": ANY, "small": SMALL}) == {"small": 0, "large": 1, "any": 2}


@pytest.mark.parametrize(
    ("serve", "where", "fix"),
    [
        (ServePolicy(batch=BatchPolicy(kind="sise")), "serve.batch.kind", "use one of none, size-hold"),
        (ServePolicy(order="lifo"), "serve.order", "use one of deadline, fifo, shortest"),
        (ServePolicy(admit=0), "serve.admit", "at least 1, or none at all"),
        (ServePolicy(placement="x"), "serve.placement", "use one of shared, size-affinity, stream-affinity"),
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
    monkeypatch.setitem(PLACE, "last", lambda asked: (asked.workers - 1,))
    serve = ServePolicy(batch=BatchPolicy(kind="pairs", max_size=2), order="widest", placement="last", workers=3)
    plan: Plan = msgspec.structs.replace(plan_of(ANY), serve=serve)
    trace = run(load([0, 1, 2, 3, 4, 5], widths=[9, 7, 8, 300, 200, 100]), plan, lambda batch: 20)
    assert trace.batches["worker"].tolist() == [2, 2, 2]
    assert trace.requests["batch"].tolist() == [0, 0, 2, 1, 1, 2]
    assert trace.requests["batched"].tolist() == [1, 1, 5, 3, 4, 5]


@pytest.mark.parametrize(
    ("admit", "rejected"),
    [(None, []), (3, [3, 4]), (1, [1, 2, 3, 4])],  # five arrive while the first one runs
)
def test_an_admission_bound_rejects_who_would_be_one_too_many(admit: int | None, rejected: list[int]) -> None:
    serve = ServePolicy(admit=admit)
    plan: Plan = msgspec.structs.replace(plan_of(ANY), serve=serve)
    trace = run(load([0, 1, 2, 3, 4]), plan, lambda batch: 20)
    assert np.flatnonzero(trace.requests["error"]).tolist() == rejected
    assert {ERROR_KINDS[code] for code in trace.requests["error"][rejected].tolist()} <= {"rejected"}
