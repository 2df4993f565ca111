"""A plan that changes while it serves: entries that come beside, tables that are swapped whole, entries that go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import Case, cases, digest
from serving_kit import ANY, LARGE, NO_PROMISE, SMALL, Checked, Takes, load, machine_of, plan_of

from parts import run_info
from trimtab.domain.events import (
    Arrived,
    BatchDone,
    Command,
    Dispatch,
    EntryAsked,
    EntryDropped,
    EntryFailed,
    EntryReady,
    Event,
    PlanChange,
    Prepare,
    PrepareBeside,
    Remapped,
    Retire,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.plan import CompileSpec, Entry
from trimtab.domain.ports import Controller
from trimtab.domain.trace import MARK_KINDS, Trace
from trimtab.errors import RunError, StudyError
from trimtab.mapping.route import Router
from trimtab.serving.simulate import Startup, simulate

BUCKETS = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(1,), hi=(end,), batch=(1, 4)) for end in (50, 150, 300))


def table(*entries: Entry) -> CompileSpec:
    return CompileSpec(backend="null", entries=entries)


def told(commands: Sequence[Command]) -> list[str]:
    names = []
    for c in commands:
        if isinstance(c, Dispatch | Prepare | PrepareBeside | Retire):
            names.append(f"{type(c).__name__} {c.entry if isinstance(c.entry, str) else c.entry.id}")
    return names


def test_a_worker_serves_while_an_entry_is_prepared_beside_it() -> None:
    machine = machine_of(plan_of(ANY))
    assert told(machine.handle(EntryAsked(1, 0, SMALL))) == ["PrepareBeside small"]
    assert told(machine.handle(Arrived(2, 0, 0, (50,), 2))) == ["Dispatch any"]
    assert told(machine.handle(EntryReady(3, 0, "small", ()))) == []
    machine.handle(BatchDone(4, 0, 0, 2, 4))
    assert told(machine.handle(Arrived(5, 1, 0, (50,), 5))) == ["Dispatch any"]  # no table names it yet


def test_what_waits_takes_the_new_entry_in_the_order_in_which_it_came() -> None:
    machine = machine_of(plan_of(ANY))
    machine.handle(EntryAsked(0, 0, SMALL))
    machine.handle(EntryReady(0, 0, "small", ()))
    for request, width in enumerate((50, 50, 150, 50)):
        machine.handle(Arrived(1, request, 0, (width,), 1))
    machine.handle(Remapped(2, table(SMALL, ANY)))
    machine.handle(Arrived(3, 4, 0, (50,), 3))
    sent = [machine.handle(BatchDone(4 + batch, 0, batch, 3 + batch, 4 + batch)) for batch in range(4)]
    assert [(c.members, c.entry) for out in sent for c in out if isinstance(c, Dispatch)] == [
        ((1,), "small"),
        ((2,), "any"),
        ((3,), "small"),
        ((4,), "small"),
    ]


def test_what_waits_and_is_not_covered_any_more_keeps_its_entry() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    for request, width in enumerate((150, 150, 50)):
        machine.handle(Arrived(1, request, 0, (width,), 1))
    machine.handle(Remapped(2, table(SMALL)))
    machine.handle(EntryDropped(2, "any"))
    assert told(machine.handle(BatchDone(3, 0, 0, 1, 3))) == ["Dispatch any"]
    assert told(machine.handle(BatchDone(4, 0, 1, 3, 4))) == ["Dispatch small", "Retire any"]


def test_dropped_entries_are_retired_one_at_a_time_while_nobody_waits() -> None:
    machine = machine_of(plan_of(SMALL, LARGE, ANY))
    machine.handle(Arrived(0, 0, 0, (50,), 0))
    machine.handle(Arrived(0, 1, 0, (50,), 0))
    machine.handle(Remapped(1, table(ANY)))
    assert told(machine.handle(EntryDropped(1, "large"))) == []  # somebody waits
    assert told(machine.handle(EntryDropped(1, "small"))) == []
    assert told(machine.handle(BatchDone(2, 0, 0, 0, 2))) == ["Dispatch any", "Retire large"]
    assert told(machine.handle(Arrived(3, 2, 0, (50,), 3))) == []
    assert told(machine.handle(BatchDone(4, 0, 1, 2, 4))) == ["Dispatch any", "Retire small"]


def test_a_dropped_entry_that_comes_back_into_the_table_stays() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    machine.handle(Arrived(0, 0, 0, (50,), 0))
    machine.handle(Remapped(1, table(ANY)))
    machine.handle(EntryDropped(1, "small"))
    machine.handle(Remapped(1, table(SMALL, ANY)))
    assert told(machine.handle(BatchDone(2, 0, 0, 0, 2))) == []
    assert told(machine.handle(Arrived(3, 1, 0, (50,), 3))) == ["Dispatch small"]


def test_a_retired_entry_that_is_prepared_again_has_run_nothing() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    machine.handle(Arrived(0, 0, 0, (50,), 0))
    machine.handle(BatchDone(1, 0, 0, 0, 1))
    machine.handle(Remapped(2, table(ANY)))
    assert told(machine.handle(EntryDropped(2, "small"))) == ["Retire small"]
    machine.handle(EntryAsked(3, 0, SMALL))
    machine.handle(EntryReady(4, 0, "small", ()))
    machine.handle(Remapped(4, table(SMALL, ANY)))
    sent = machine.handle(Arrived(5, 1, 0, (50,), 5))
    assert isinstance(sent[0], Dispatch)
    assert sent[0].first_seen


def test_a_fresh_worker_prepares_the_new_table_and_what_requests_still_wait_for() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    machine.handle(EntryAsked(0, 0, LARGE, ((1, 200),)))
    machine.handle(EntryReady(0, 0, "large", ((1, 200),)))
    machine.handle(Arrived(0, 0, 0, (50,), 0))
    machine.handle(Arrived(0, 1, 0, (50,), 0))
    machine.handle(Remapped(1, table(LARGE, ANY)))
    machine.handle(EntryDropped(1, "small"))
    machine.handle(WorkerDown(2, 0, "crash"))
    prepares = machine.handle(WorkerUp(3, 0))
    assert sorted(told(prepares)) == ["Prepare any", "Prepare large", "Prepare small"]
    assert {c.entry: c.warm for c in prepares if isinstance(c, Prepare)}["large"] == ((1, 200),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Remapped(1, table(LARGE, ANY)), "worker 0 lacks entry 'large' of the new table"),
        (EntryAsked(1, 0, SMALL), "worker 0 was asked twice for entry 'small'"),
        (EntryDropped(1, "small"), "entry 'small' was dropped while the table names it"),
    ],
)
def test_a_change_that_cannot_be_true_is_an_error(change: PlanChange, message: str) -> None:
    with pytest.raises(RunError, match=message):
        machine_of(plan_of(SMALL, ANY)).handle(change)


def test_a_worker_that_is_down_is_asked_for_nothing() -> None:
    machine = machine_of(plan_of(ANY))
    machine.handle(WorkerDown(1, 0, "crash"))
    with pytest.raises(RunError, match="worker 0 is down and was asked for entry 'small'"):
        machine.handle(EntryAsked(1, 0, SMALL))


def test_two_entries_of_one_name_are_refused() -> None:
    machine = machine_of(plan_of(SMALL, ANY))
    other = Entry(id="small", kind="bucket", lo=(1,), hi=(80,), batch=(1, 4))
    with pytest.raises(StudyError, match="two entries are called 'small'"):
        machine.handle(Remapped(1, table(other, ANY)))


# --- the driver --------------------------------------------------------------------------------------------------


def controlled(case: Case, controller: Controller | None) -> Trace:
    """The case under a controller, invariants checked after each event."""
    plan, draws = case.plan, case.service
    cores = tuple(range(plan.serve.workers))
    router = Router(plan.compile)
    names = (*(e.id for e in plan.compile.entries), *(e.id for e in BUCKETS))
    return simulate(
        case.workload, plan, router, NO_PROMISE, Takes(lambda b: draws[b.members[0] % len(draws)]),
        run_info(workers=len(cores)),
        startup=Startup(process_ns=40, prepare_ns=dict.fromkeys(names, 15)), injected=case.injected,
        machine=Checked(plan, router, NO_PROMISE, cores), controller=controller,
    )  # fmt: skip


class Silent:
    """Sees everything and proposes nothing."""

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        return []


class Restless:
    """Changes something legal whenever it can; ``seed`` decides what."""

    def __init__(self, seed: int, spec: CompileSpec, workers: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.base = spec.entries
        self.spec = spec
        self.holds: dict[int, set[str]] = {}
        self.asked: set[tuple[int, str]] = set()
        self.failed: dict[int, set[str]] = {worker: set() for worker in range(workers)}
        self.swaps = 0

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        self._note(event)
        for command in commands:
            if isinstance(command, Retire):
                self.holds[command.worker].discard(command.entry)
            elif isinstance(command, Prepare):
                self.asked.add((command.worker, command.entry))
        if isinstance(event, EntryAsked | Remapped | EntryDropped) or self.rng.random() < 0.5:
            return []
        return self._ask(event.t) if self.rng.random() < 0.5 else self._swap(event.t)

    def _note(self, event: Event) -> None:
        if isinstance(event, WorkerUp):
            self.holds[event.worker] = set()
        elif isinstance(event, WorkerDown):
            self.holds.pop(event.worker, None)
            self.asked = {key for key in self.asked if key[0] != event.worker}
        elif isinstance(event, EntryReady | EntryFailed):
            self.asked.discard((event.worker, event.entry))
            if isinstance(event, EntryFailed):
                self.failed[event.worker].add(event.entry)
                self.holds.get(event.worker, set()).discard(event.entry)
            elif event.worker in self.holds and event.entry not in self.failed[event.worker]:
                self.holds[event.worker].add(event.entry)

    def _ask(self, t: int) -> list[PlanChange]:
        able = [
            (worker, entry)
            for worker, held in self.holds.items()
            for entry in BUCKETS
            if entry.id not in held | self.failed[worker] and (worker, entry.id) not in self.asked
            if entry not in self.spec.entries
        ]
        if not able:
            return []
        worker, entry = able[int(self.rng.integers(len(able)))]
        self.asked.add((worker, entry.id))
        return [EntryAsked(t, worker, entry)]

    def _swap(self, t: int) -> list[PlanChange]:
        everywhere = [
            entry for entry in BUCKETS if all(entry.id in held | self.failed[w] for w, held in self.holds.items())
        ]
        chosen = [entry for entry in everywhere if self.holds and self.rng.random() < 0.5]
        before, self.spec = self.spec, table(*chosen, *self.base)
        gone = [entry for entry in before.entries if entry not in self.spec.entries]
        self.swaps += self.spec != before
        return [Remapped(t, self.spec), *(EntryDropped(t, e.id) for e in gone if self.rng.random() < 0.5)]


@given(cases())
@settings(deadline=None, max_examples=50)
def test_a_controller_that_proposes_nothing_leaves_no_trace(case: Case) -> None:
    assert digest(controlled(case, Silent())) == digest(controlled(case, None))


@given(cases(faulty=False), st.integers(0, 10**6))
@settings(deadline=None, max_examples=150)
def test_every_request_ends_exactly_once_across_changes(case: Case, seed: int) -> None:
    controller = Restless(seed, case.plan.compile, case.plan.serve.workers)
    trace, plain = controlled(case, controller), controlled(case, None)
    req = trace.requests
    assert (req["error"] != 8).all()  # nothing is left over
    assert (req["done"] >= req["enqueued"]).all()
    assert trace.batches["size"].sum() == (req["batch"] >= 0).sum()
    assert (req["error"] <= plain.requests["error"]).all()  # more entries refuse nobody
    swaps = [MARK_KINDS[kind] for kind in trace.marks["kind"]].count("remap")
    assert swaps >= controller.swaps


@given(cases(), st.integers(0, 10**6))
@settings(deadline=None, max_examples=100)
def test_the_same_seed_gives_the_same_bytes_and_no_fault_leaves_a_request_behind(case: Case, seed: int) -> None:
    runs = [controlled(case, Restless(seed, case.plan.compile, case.plan.serve.workers)) for _ in range(2)]
    assert digest(runs[0]) == digest(runs[1])
    assert (runs[0].requests["error"] != 8).all()


class Once:
    """Asks for an entry when the first request arrives, and swaps it in when it is ready."""

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        if isinstance(event, Arrived) and event.request == 0:
            return [EntryAsked(event.t, 0, SMALL)]
        if isinstance(event, EntryReady) and event.entry == "small":
            return [Remapped(event.t, table(SMALL, ANY))]
        return []


def test_an_entry_is_ready_after_its_compile_time_and_its_first_run_is_the_workers() -> None:
    plan = plan_of(ANY)
    trace = simulate(
        load([0, 10, 20, 30]), plan, Router(plan.compile), NO_PROMISE, Takes(lambda b: 5 if b.first_seen else 2),
        run_info(workers=1), startup=Startup(prepare_ns={"small": 15}), controller=Once(),
    )  # fmt: skip
    assert [trace.entries[code] for code in trace.batches["entry"]] == ["any", "any", "small", "small"]
    assert (trace.batches["ended"] - trace.batches["started"]).tolist() == [5, 2, 5, 2]
    marks = trace.marks
    spans = {MARK_KINDS[k]: (t, e) for k, t, e in zip(marks["kind"], marks["t"], marks["end"], strict=True)}
    assert (spans["prepare"], spans["remap"]) == ((0, 15), (15, 15))
