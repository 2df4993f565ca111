"""Laws of the tail account, over random runs of an independent queue simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from account_cases import EVERYTHING, Formula, Scene, simulate
from account_slow import Slow
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.account import CAUSES, INHERITED, PARTS, Account
from trimtab.domain.trace import Table, Trace
from trimtab.evidence.attribute.account import build

WORK = ("padding", "premium", "interference", "off_core", "cold", "dispatch")
SETS = {
    1: (((0,), (0,)),),
    2: (((0, 1), (0, 1)), ((0,), (1,)), ((0, 1), (1,))),
    3: (((0, 1, 2), (0, 1, 2)), ((0,), (1, 2)), ((0, 1), (1, 2)), ((0, 2), (0, 1, 2))),
}


@dataclass(frozen=True)
class Patchy(Formula):
    """A profile with holes: the listed executed dims have no promise."""

    holes: frozenset[tuple[int, int]] = field(default_factory=frozenset)

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return 0 if executed in self.holes else super().warm(entry, executed)


def column(draw: st.DrawFn, n: int, choices: tuple[int, ...], unit: int) -> np.ndarray:
    return np.array(draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n)), dtype=np.int64) * unit


@st.composite
def scenes(
    draw: st.DrawFn, *, sizes: tuple[int, ...] = (1, 2, 3), holds: tuple[int, ...] = (0, 0, 4), lags: bool = False
) -> Scene:
    """Small scenes full of ties and zeros; the unit of time ranges up to 2^33 ns."""
    n, workers = draw(st.integers(1, 18)), draw(st.integers(1, 3))
    unit = draw(st.sampled_from((1, 3, 1_000_003, 2**33)))
    size = draw(st.sampled_from(sizes))
    return Scene(
        arrivals=np.cumsum(column(draw, n, (0, 0, 1, 2, 5), unit)),
        dims=column(draw, n, (1, 2, 3, 4), 1),
        workers=workers,
        streams=column(draw, n, (0, 1), 1),
        eligible=draw(st.sampled_from(SETS[workers])),
        max_size=size,
        hold=draw(st.sampled_from(holds)) * unit if size > 1 else 0,
        bucket=draw(st.sampled_from((1, 2, 4))),
        premium=draw(st.sampled_from((1.0, 1.5, 0.75))),
        cold=draw(st.sampled_from((0, 3))) * unit,
        interference=column(draw, n, (0, 0, 2, -1), unit),
        off_core=column(draw, n, (0, 0, 0, 7), unit),
        dispatch=column(draw, n, (0, 0, 1), unit),
        lag=column(draw, n, (0, 0, 0, 1, 3), unit) if lags else None,
        reference=Formula(fixed=2 * unit, slope=max(unit // 4, 1)),
    )


def account_of(scene: Scene, trace: Trace) -> Account:
    return build(trace, scene.promise, scene.reference, "reference", scene.plan, scene.by_entry)


def late(trace: Trace, slip: int, completion: int) -> Trace:
    """The same run, with a late generator and a driver that learns late."""
    columns = dict(trace.requests.columns)
    columns["scheduled"] = columns["scheduled"] - slip
    columns["done"] = columns["done"] + completion
    return Trace(**{name: getattr(trace, name) for name in trace.__struct_fields__ if name != "requests"},
                 requests=Table(columns))  # fmt: skip


@given(scenes(lags=True), st.integers(0, 5), st.integers(0, 5))
@settings(deadline=None, max_examples=60)
def test_parts_sum_to_the_latency_and_only_signed_ones_are_negative(scene: Scene, slip: int, completion: int) -> None:
    trace = late(simulate(scene), slip, completion)
    req = account_of(scene, trace).requests
    assert np.array_equal(sum(req[part] for part in PARTS), trace.requests["done"] - trace.requests["scheduled"])
    inherited = [req[f"inherited.{label}"] for label in INHERITED]
    assert np.array_equal(sum(inherited), req["busy"] + req["co_batching"])
    positive = [req[part] for part in PARTS if part not in ("interference", "premium")]
    relief = [req[f"relief.{cause}"] for cause in CAUSES]
    assert min(column.min() for column in [*positive, *inherited, *relief]) >= 0
    assert all(np.all(column <= req["busy"] + req["co_batching"]) for column in relief)


HOLES = st.frozensets(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=6)


@given(scenes(lags=True), HOLES, HOLES)
@settings(deadline=None, max_examples=150)
def test_fast_equals_slow(
    scene: Scene, unpromised: frozenset[tuple[int, int]], unknown: frozenset[tuple[int, int]]
) -> None:
    trace = simulate(scene)
    patchy = Patchy(scene.reference.fixed, scene.reference.slope, 1.0, unknown)
    promise = Patchy(scene.reference.fixed, scene.reference.slope, scene.premium, unpromised)
    fast = build(trace, promise, patchy, "reference", scene.plan, scene.by_entry).requests
    slow = Slow(trace, promise, patchy, scene.sets)
    for name in ("hold", "dispatch", "busy", "cold", "interference", "premium", "padding", "co_batching", "useful",
                 "unprofiled", "off_core", "slip", "completion"):  # fmt: skip
        assert fast[name].tolist() == [own[name] for own in slow.own], name
    assert fast["idle_elsewhere"].tolist() == [wait["idle_elsewhere"] for wait in slow.waits]
    assert fast["modelled"].tolist() == slow.model(set(CAUSES))
    for label in INHERITED:
        assert fast[f"inherited.{label}"].tolist() == [parts[label] for parts in slow.inherited], label


@given(scenes(sizes=(1,)))
@settings(deadline=None, max_examples=60)
def test_one_by_one_first_come_first_served_the_model_is_the_record(scene: Scene) -> None:
    req = account_of(scene, simulate(scene)).requests
    if scene.sets[0] == scene.sets[1] or not set(scene.sets[0]) & set(scene.sets[1]):  # else ties are anybody's
        assert req["modelled"].tolist() == req["busy"].tolist()


@given(scenes(), st.integers(1, 2**45))
@settings(deadline=None, max_examples=30)
def test_shifting_all_times_changes_nothing(scene: Scene, shift: int) -> None:
    here = simulate(scene)
    there = simulate(replace(scene, arrivals=scene.arrivals + shift))
    a, b = account_of(scene, here).requests, account_of(scene, there).requests
    assert all(np.array_equal(a[name], b[name]) for name in a.columns)


@given(scenes(sizes=(1,)), st.sampled_from(EVERYTHING))
@settings(deadline=None, max_examples=60)
def test_an_absent_cause_gets_nothing(scene: Scene, cause: str) -> None:
    scene = scene.without([cause])
    if cause == "padding":
        scene = replace(scene, bucket=1)
    req = account_of(scene, simulate(scene)).requests
    assert not np.any(req[f"inherited.{cause}"])
    assert not np.any(req[f"relief.{cause}"])


@given(scenes(sizes=(1,)))
@settings(deadline=None, max_examples=30)
def test_without_excess_all_busy_wait_is_capacity(scene: Scene) -> None:
    scene = replace(scene.without(EVERYTHING), bucket=1)
    req = account_of(scene, simulate(scene)).requests
    assert req["inherited.capacity"].tolist() == req["busy"].tolist()


@given(scenes(sizes=(1,)), st.sampled_from(WORK))
@settings(deadline=None, max_examples=40)
def test_disjoint_classes_removing_a_work_cause_lengthens_no_wait(scene: Scene, cause: str) -> None:
    disjoint = tuple((w,) for w in range(scene.workers)) if scene.workers > 1 else ((0,), (0,))
    scene = replace(scene, eligible=disjoint[:2] if scene.workers > 1 else disjoint)
    trace = simulate(scene)
    slow = Slow(trace, scene.promise, scene.reference, scene.sets)
    everything, less = slow.model(set(CAUSES)), slow.model(set(CAUSES) - {cause})
    assert all(b <= a for a, b in zip(everything, less, strict=True))
    req = account_of(scene, trace).requests
    owed = req["busy"] + req["co_batching"]
    expected = [o * (a - b) // a if a else 0 for o, a, b in zip(owed.tolist(), everything, less, strict=True)]
    assert req[f"relief.{cause}"].tolist() == expected


@given(scenes(sizes=(1,)))
@settings(deadline=None, max_examples=40)
def test_two_causes_get_their_shapley_value(scene: Scene) -> None:
    scene = replace(
        scene.without(("padding", "premium", "cold", "dispatch", "imbalance", "hold")),
        bucket=1,
        interference=np.abs(scene.interference) if scene.interference is not None else None,
        workers=1,
        eligible=((0,), (0,)),
    )
    req = account_of(scene, simulate(scene)).requests
    both = ("interference", "off_core")
    wait = {gone: simulate(scene.without(gone)).requests for gone in ((), both[:1], both[1:], both)}
    busy = {gone: (r["dispatched"] - r["enqueued"]) for gone, r in wait.items()}
    for cause, other in (both, both[::-1]):
        value = (busy[()] - busy[(cause,)]) + (busy[(other,)] - busy[both])  # twice the Shapley value
        assert np.all(np.abs(2 * req[f"inherited.{cause}"] - value) <= 3)
