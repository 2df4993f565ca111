"""The account of runs whose table changed while they served: its sums stay exact, and nothing is run again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from account_cases import Formula
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_cases import ENTRIES, PROMISE, REFERENCE, Drawn, exact, traffic
from msgspec.structs import replace

from parts import run_info
from trimtab.domain.events import (
    Arrived,
    Command,
    EntryAsked,
    EntryDropped,
    EntryReady,
    Event,
    PlanChange,
    Remapped,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.errors import DataError
from trimtab.evidence.analysis import Circumstances, analyse
from trimtab.evidence.attribute.account import account
from trimtab.evidence.attribute.cuts import down_spans
from trimtab.evidence.attribute.rerun import refusal
from trimtab.evidence.score.batches import Yardstick
from trimtab.evidence.score.reference import ReferenceSet
from trimtab.mapping.route import Router
from trimtab.serving.simulate import Startup, simulate

NEW = Entry(id="new", kind="bucket", lo=(5,), hi=(7,), batch=(1, 4))
STARTUP = Startup(process_ns=60, prepare_ns={"bucket": 20, "any": 30, "new": 25})


class Changing:
    """Every worker gets the new entry at request ``at``; it goes again at request ``back``."""

    def __init__(self, plan: Plan, at: int, back: int) -> None:
        self.spec, self.at, self.back = plan.compile, at, back
        self.lacking = set(range(plan.serve.workers))
        self.up: set[int] = set()
        self.asked = self.swapped = False

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        if isinstance(event, WorkerDown):
            self.up.discard(event.worker)
            self.lacking.add(event.worker)
        elif isinstance(event, WorkerUp):
            self.up.add(event.worker)
            return [EntryAsked(event.t, event.worker, NEW)] if self.asked and not self.swapped else []
        elif isinstance(event, EntryReady) and event.entry == NEW.id:
            return self._ready(event)
        elif isinstance(event, Arrived) and event.request == self.at:
            self.asked = True
            return [EntryAsked(event.t, worker, NEW) for worker in sorted(self.lacking & self.up)]
        elif isinstance(event, Arrived) and event.request == self.back and self.swapped:
            return [Remapped(event.t, self.spec, "roll-back", "told to"), EntryDropped(event.t, NEW.id)]
        return []

    def _ready(self, event: EntryReady) -> list[PlanChange]:
        self.lacking.discard(event.worker)
        if self.lacking or self.swapped:
            return []
        self.swapped = True
        return [Remapped(event.t, replace(self.spec, entries=(NEW, *self.spec.entries)))]


def plan_of(placement: str = "shared", workers: int = 1, policy: BatchPolicy | None = None) -> Plan:
    serve = ServePolicy(batch=policy or BatchPolicy(), workers=workers, placement=placement)
    return Plan(id="p", compile=CompileSpec(backend="null", entries=ENTRIES), serve=serve)


def changed(
    plan: Plan, gaps: list[int], dims: list[int], at: int, back: int = -1, injected: Sequence[Event] = ()
) -> Trace:
    return simulate(
        traffic(gaps, dims, [k % 3 for k in range(len(gaps))]), plan, Router(plan.compile), PROMISE, Drawn(),
        run_info(workers=plan.serve.workers), startup=STARTUP, injected=injected, controller=Changing(plan, at, back),
    )  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from((0, 5, 40)), st.integers(1, 10)), min_size=3, max_size=25),
    st.sampled_from(("shared", "stream-affinity")),
    st.integers(1, 3),
    st.sampled_from((BatchPolicy(), BatchPolicy(kind="size-hold", max_size=3, hold_ms=25e-6))),
    st.tuples(st.integers(0, 5), st.integers(6, 20)),
    st.sampled_from((None, 90, 400)),
)
@settings(deadline=None, max_examples=80)
def test_the_sums_stay_exact(
    load: list[tuple[int, int]],
    placement: str,
    workers: int,
    policy: BatchPolicy,
    requests: tuple[int, int],
    fall: int | None,
) -> None:
    gaps, dims = (list(column) for column in zip(*load, strict=True))
    plan = plan_of(placement, workers, policy)
    injected = () if fall is None else (WorkerDown(fall, 0, "crash"),)
    exact(plan, changed(plan, gaps, dims, *requests, injected))


LONG = [40] * 20
"""Requests so far apart that nobody waits."""


def test_a_compile_beside_makes_no_worker_unavailable() -> None:
    """The second worker's entry is ready before its first batch is sent."""
    plan = plan_of(workers=2)
    trace = changed(plan, [500] * 20, [6] * 20, at=0)
    assert "new" in {trace.entries[code] for code in trace.batches["entry"]}
    assert trace.batches["dispatched"][trace.batches["worker"] == 1].min() == 1000
    for worker in (0, 1):
        _, live = down_spans(trace, worker, int(trace.requests["done"].max()))
        assert live.tolist() == [500]  # since the first request, when both were up
    assert not exact(plan, trace)["unavailable"].any()


def test_a_run_whose_table_changed_is_not_run_again() -> None:
    plan = plan_of()
    assert refusal(changed(plan, LONG, [6] * 20, at=30), plan) == ""  # nothing was asked
    assert refusal(changed(plan, LONG, [6] * 20, at=2), plan) == (
        "its table of entries changed while it served, first to: new bucket any; that is not run again"
    )


def test_an_entry_that_came_late_has_no_place_by_size() -> None:
    plan = plan_of("size-affinity", workers=2)
    trace = changed(plan, LONG, [6] * 20, at=2)
    with pytest.raises(DataError, match="entry 'new' came while it served"):
        account(trace, PROMISE, REFERENCE, "any", plan)


def test_an_entry_that_nobody_brought_is_foreign() -> None:
    plan = plan_of()
    trace = changed(plan, LONG, [6] * 20, at=30)
    other = replace(plan, compile=replace(plan.compile, entries=ENTRIES[:1]))
    with pytest.raises(DataError, match="plan 'p' has no entry 'any'"):
        account(trace, PROMISE, REFERENCE, "any", other)


def test_the_whole_analysis_of_a_run_whose_table_changed() -> None:
    """Nobody promised anything of the entry that came: its run time is unprofiled, and everything still adds up."""
    plan = plan_of()
    trace = changed(plan, [60] * 400, [6, 2, 9, 7] * 100, at=200)
    stick = Yardstick(Known(PROMISE), REFERENCE, "any", ReferenceSet(ENTRIES, REFERENCE, 4))
    found = analyse(trace, Circumstances(plan=plan, yardstick=stick, sla=Sla(metric="p95", bound_ms=1.0), seed=1))
    assert sum(found.account.requests["unprofiled"]) > 0
    assert found.diagnosis.classes
    mapping = found.score.figure("score.mapping_accuracy")
    assert mapping is not None
    assert mapping.value is not None


class Known:
    """Promises of the plan's own entries alone."""

    def __init__(self, promise: Formula) -> None:
        self._promise = promise

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return 0 if entry == NEW.id else self._promise.warm(entry, executed)

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return self.warm(entry, executed)
