"""The wall-clock driver under a clock that only moves when it waits: no processes, exact times."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_kit import ANY, BUCKET, NO_PROMISE, FakeCrew, Refitting, fake_crew, info, load, plan_of

from trimtab.domain.events import Arrived, BatchReport, Dispatch, Event
from trimtab.domain.plan import Bounds, Entry, Plan
from trimtab.domain.ports import Controller, Predictor
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, Table, Trace
from trimtab.domain.workload import Workload
from trimtab.mapping.route import Router
from trimtab.retuning.adapt import Adapter, Known
from trimtab.retuning.adaptation import possible
from trimtab.runtime.driver import Driver, Outside, Terms
from trimtab.runtime.link import Gone
from trimtab.runtime.replay import options_of
from trimtab.runtime.sample import Sample
from trimtab.runtime.wire import Compile
from trimtab.serving.machine import Machine
from trimtab.serving.record import Recorder
from trimtab.serving.simulate import Startup, simulate

MS = 1_000_000
TERMS = Terms(hang_ns=10_000 * MS, prepare_ns=10_000 * MS, pace=False, spare_core=0)


class Checked(Machine):
    def handle(self, event):
        commands = super().handle(event)
        self.check()
        return commands


def drive(
    workload: Workload,
    plan: Plan,
    crew: FakeCrew,
    terms: Terms = TERMS,
    outside: Outside | None = None,
    controller: Controller | None = None,
    predictor: Predictor = NO_PROMISE,
) -> tuple[Trace, str, Driver]:
    router = Router(plan.compile)
    run = info(plan.serve.workers)
    machine = Checked(plan, router, predictor, run.cores)
    recorder = Recorder(run, workload, tuple(router.entries), run.cores)
    driver = Driver(workload, machine, recorder, crew, options_of(plan), terms, outside, controller)
    driver.start()
    why = driver.serve()
    return recorder.trace(complete=not why), why, driver


class NullTime:
    """What the null backend takes, as the simulator's service."""

    def __init__(self, plan: Plan) -> None:
        self.us = {name: int(value) for name, value in plan.compile.options.items()}

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        us = self.us["base_us"] + self.us["per_unit_us"] * int(np.prod(batch.executed))
        return (us + self.us["first_us"] * batch.first_seen) * 1000, BatchReport()


def same(one: Table, two: Table) -> bool:
    return one.columns.keys() == two.columns.keys() and all(
        np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f") for name in one.columns
    )


@settings(deadline=None, max_examples=60)
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 10)), min_size=1, max_size=30),
    workers=st.integers(1, 3),
    hold=st.sampled_from([None, 0, 1, 3]),
    times=st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 5)),
)
def test_simulate_and_replay_agree_exactly(arrivals, workers, hold, times) -> None:
    """Millisecond grid, so that replies, arrivals and timers keep falling on the same instant."""
    ms, widths = zip(*sorted(arrivals), strict=True)
    base, unit, first = (1000 * t for t in times)
    plan = plan_of(
        BUCKET,
        ANY,
        workers=workers,
        size=3,
        hold_ms=hold,
        warm=((1, 5), (2, 10)),
        base_us=base,
        per_unit_us=unit,
        first_us=first,
    )
    workload = load(ms, widths)
    with fake_crew() as crew:
        replayed, why, _ = drive(workload, plan, crew)
    simulated = simulate(workload, plan, Router(plan.compile), NO_PROMISE, NullTime(plan), info(workers))
    assert why == ""
    assert same(replayed.requests, simulated.requests)
    assert same(replayed.batches, simulated.batches)
    assert same(replayed.marks, simulated.marks)


FOUR = Entry(id="four", kind="static", lo=(4,), hi=(4,), batch=(1, 4))


def at_request(number: int):
    def is_it(event: Event) -> bool:
        return isinstance(event, Arrived) and event.request == number

    return is_it


@settings(deadline=None, max_examples=60)
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 30), st.sampled_from([3, 4, 4, 9])), min_size=4, max_size=30),
    workers=st.integers(1, 3),
    hold=st.sampled_from([None, 0, 3]),
    times=st.tuples(st.integers(1, 3), st.integers(0, 5), st.sampled_from([2, 5, 7])),
    at=st.tuples(st.integers(0, 10), st.integers(1, 15)),
)
def test_simulate_and_replay_agree_exactly_under_a_controller(arrivals, workers, hold, times, at) -> None:
    """The last request comes when nothing is compiled any more: both runs end with it, whatever the controller does."""
    ms, widths = zip(*sorted(arrivals), strict=True)
    base, first, compiling = (1000 * t for t in times)
    plan = plan_of(
        BUCKET, ANY, workers=workers, size=3, hold_ms=hold,
        base_us=base, per_unit_us=0, first_us=first, compile_us=compiling,
    )  # fmt: skip
    workload, ask = load([*ms, 1000], [*widths, 4]), at[0] % len(ms)

    def controller() -> Refitting:
        return Refitting(plan, FOUR, at_request(ask), at_request(ask + at[1]))

    with fake_crew() as crew:
        replayed, why, driver = drive(workload, plan, crew, controller=controller())
    simulated = simulate(
        workload, plan, Router(plan.compile), NO_PROMISE, NullTime(plan), info(workers),
        startup=Startup(prepare_ns={"four": compiling * 1000}), controller=controller(),
    )  # fmt: skip
    assert (why, replayed.entries) == ("", simulated.entries)
    assert same(replayed.requests, simulated.requests)
    assert same(replayed.batches, simulated.batches)
    assert same(replayed.marks, simulated.marks)
    assert [station.awaited for station in driver.roster.stations] == [0] * workers


class Promised:
    """Ten microseconds for each unit of width."""

    def warm(self, entry: str, executed: tuple[int, ...]) -> int:
        return 10_000 * executed[1]

    def expected(self, entry: str, executed: tuple[int, ...], first_seen: bool) -> int:
        return self.warm(entry, executed)


def test_the_online_controller_makes_the_same_trace_in_simulation_and_in_replay() -> None:
    """Narrow requests, to which the plan was fitted, then wide ones; each new width costs a first run of 20 ms."""
    low, high = (10,), (1000,)
    padded = [Entry(id=f"to-{end}", kind="bucket", lo=low, hi=(end,)) for end in (50, 100, 150, 200)]
    plan = plan_of(
        *padded, Entry(id="any", kind="dynamic", lo=low, hi=high),
        base_us=0, per_unit_us=10, first_us=20_000, compile_us=300_000,
    )  # fmt: skip
    rng = np.random.default_rng(7)
    widths = [*rng.integers(20, 200, 300).tolist(), *rng.integers(500, 900, 400).tolist()]
    workload = load([25.0 * at for at in range(len(widths))], widths)
    bounds = Bounds(entries=4, spare=2, low=low, high=high, compile_s=60.0, memory_bytes=1000, step=50)
    known = Known(compile_ns=lambda entry: 300 * MS, memory_bytes=lambda entry: 100)

    def controller() -> Adapter:
        return Adapter(plan, bounds, Sla(metric="p95", bound_ms=60.0), Promised(), known)

    prepared = {entry.id: 320 * MS + 10_000 * entry.hi[0] for entry in possible(plan, bounds)}  # compiled, run once
    with fake_crew() as crew:
        replayed, why, _ = drive(workload, plan, crew, controller=controller(), predictor=Promised())
    simulated = simulate(
        workload, plan, Router(plan.compile), Promised(), NullTime(plan), info(1),
        startup=Startup(prepare_ns=prepared), controller=controller(),
    )  # fmt: skip
    kinds = [MARK_KINDS[kind] for kind in replayed.marks["kind"]]
    assert (why, kinds.count("prepare") >= 2, kinds.count("remap") >= 2) == ("", True, True)
    assert set(replayed.entries) > {"any", "to-50", "to-100", "to-150", "to-200"}
    assert same(replayed.requests, simulated.requests)
    assert same(replayed.batches, simulated.batches)
    assert same(replayed.marks, simulated.marks)


def test_latency_counts_from_the_schedule() -> None:
    """500 ms of service, 10 requests a second: the last of 8 has waited for seven others."""
    with fake_crew() as crew:
        trace, _, _ = drive(load([100 * i for i in range(8)]), plan_of(base_us=500_000), crew)
    assert trace.latency.tolist() == [0.5, 0.9, 1.3, 1.7, 2.1, 2.5, 2.9, 3.3]


def test_a_fallen_worker_is_replaced_and_its_request_ends_once() -> None:
    with fake_crew() as crew:
        crew_send = crew.send

        def send(worker, order):
            if getattr(order, "batch", None) == 1:
                crew._push(worker, Gone("crash", "killed by SIGKILL"))
                return
            crew_send(worker, order)

        crew.send = send
        trace, why, driver = drive(load([0, 10, 20]), plan_of(base_us=1000), crew)
    assert why == ""
    assert trace.requests["error"].tolist() == [0, 2, 0]
    assert [MARK_KINDS[k] for k in trace.marks["kind"]] == [
        "worker-up", "entry-ready", "worker-down", "worker-up", "entry-ready", "stopped",
    ]  # fmt: skip
    assert list(driver.roster.notes) == ["worker 0: killed by SIGKILL"]


def test_a_worker_that_falls_while_another_one_starts_is_admitted_too() -> None:
    with fake_crew() as crew:
        crew_send = crew.send

        def send(worker, order):
            crew_send(worker, order)
            if worker == 1 and isinstance(order, Compile) and crew.fallen == 0:
                crew.fallen = 1
                crew._push(0, Gone("crash", "killed by SIGKILL"))

        crew.fallen = 0
        crew.send = send
        trace, why, driver = drive(load([0, 0, 0, 0]), plan_of(workers=2, base_us=1000), crew)
    assert (why, trace.requests["error"].tolist()) == ("", [0, 0, 0, 0])
    assert driver.roster.up == [0, 1]


def test_an_answer_that_is_overdue_is_a_hang() -> None:
    terms = Terms(hang_ns=50 * MS, prepare_ns=10_000 * MS, pace=False, spare_core=0)
    with fake_crew() as crew:
        trace, _, _ = drive(load([0, 10], [60, 5]), plan_of(per_unit_us=1000), crew, terms)
    assert trace.requests["error"].tolist() == [3, 0]
    assert trace.requests["done"].tolist() == [50 * MS, 55_200_000]  # the new process first ran the pace kernel: 0.2 ms
    assert trace.requests["started"].tolist()[0] == -1


def test_a_worker_that_only_dies_is_given_up_and_the_run_says_so() -> None:
    with fake_crew() as crew:
        crew_send = crew.send

        def send(worker, order):
            if hasattr(order, "batch"):
                crew._push(worker, Gone("crash", "ended with exit code 1"))
            else:
                crew_send(worker, order)

        crew.send = send
        trace, why, _ = drive(load([0, 1, 2, 3, 4]), plan_of(), crew)
    assert why == "no worker is left: ended with exit code 1"
    assert not trace.run.complete
    assert trace.requests["error"].tolist() == [2, 2, 2, 8, 8]


def test_an_entry_that_fails_to_compile_ends_its_requests() -> None:
    with fake_crew() as crew:
        trace, why, driver = drive(load([0, 1]), plan_of(fail_compile="no such operator"), crew)
    assert (why, trace.requests["error"].tolist()) == ("", [7, 7])
    assert list(driver.roster.notes) == ["entry any failed (compiler-error): no such operator"]


def test_the_first_ctrl_c_ends_the_run_in_good_order() -> None:
    with fake_crew() as crew:
        outside = Outside(interrupted=lambda: crew.t >= 45 * MS)
        trace, why, _ = drive(load([0, 10, 20, 30, 40]), plan_of(base_us=1000), crew, outside=outside)
    assert why == "stopped by Ctrl-C"
    assert trace.requests["error"].tolist() == [0, 0, 0, 8, 8]  # the clock starts 20 ms before the first arrival


def test_a_pace_is_the_fastest_of_its_passes() -> None:
    terms = Terms(hang_ns=10_000 * MS, prepare_ns=10_000 * MS, pace=True, spare_core=0)
    with fake_crew() as crew:
        trace, _, _ = drive(load([0, 100, 200]), plan_of(base_us=1000), crew, terms)
    paces = trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("pace"))
    assert set(zip(paces["value"].tolist(), paces["value2"].tolist(), strict=True)) == {(120_000.0, 80_000.0)}


def test_samples_and_pace_use_wide_gaps_only() -> None:
    terms = Terms(hang_ns=10_000 * MS, prepare_ns=10_000 * MS, pace=True, spare_core=0)
    rows = [Sample(0, 0.5, 0.0, 2400.0, -1, -1, 40.0, 7)]
    with fake_crew() as crew:
        trace, _, _ = drive(load([0, 2, 4, 1000, 1001]), plan_of(base_us=1000), crew, terms, Outside(lambda: rows))
    paces = trace.marks.take(trace.marks["kind"] == MARK_KINDS.index("pace"))
    assert len(paces) > 0
    assert all((t <= 0) or (5 * MS <= t <= 997 * MS) for t in paces["t"].tolist())
    assert trace.samples["t"].tolist()[0] == 5 * MS
    assert trace.samples["busy"].tolist() == [0.5] * len(trace.samples)
