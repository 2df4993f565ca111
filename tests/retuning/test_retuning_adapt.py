"""The online controller: what it proves before it acts, what it keeps to, and how it comes back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import MS

from trimtab.domain.events import (
    BatchReport,
    Command,
    Dispatch,
    EntryAsked,
    EntryDropped,
    EntryFailed,
    EntryReady,
    Event,
    PlanChange,
    Remapped,
    Retire,
    WorkerDown,
    WorkerUp,
)
from trimtab.domain.noun import EntryId, Executed
from trimtab.domain.plan import Bounds, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.mapping.route import Router
from trimtab.retuning import _table as table
from trimtab.retuning._drift import ALARM_EVERY, WORTH
from trimtab.retuning._live import Prices
from trimtab.retuning._proof import Detector, Proof
from trimtab.retuning.adapt import HOUR, Adapter, Known
from trimtab.retuning.adaptation import possible
from trimtab.serving.machine import Machine
from trimtab.serving.simulate import Startup, simulate

SLA = Sla(metric="p95", bound_ms=60.0)
BOUNDS = Bounds(entries=4, spare=2, low=(10,), high=(1000,), compile_s=60.0, memory_bytes=1000, step=50)
ANY = Entry(id="any", kind="dynamic", lo=(10,), hi=(1000,))
COMPILE_NS = 300 * MS


class Linear:
    """Promises width / 100 ms; what it really takes: ``slow`` times that in buckets, 20 ms more for a first run."""

    def __init__(self, slow: float = 1.0) -> None:
        self.slow = slow

    def warm(self, entry: EntryId, executed: Executed) -> int:
        return executed[1] * MS // 100

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> int:
        return self.warm(entry, executed)

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        warm = self.warm(batch.entry, batch.executed)
        wall = warm + 20 * MS * batch.first_seen if batch.entry == "any" else round(warm * self.slow)
        return wall, BatchReport(wall, 0)


class Checked(Machine):
    """States its invariants after every event."""

    def handle(self, event: Event) -> list[Command]:
        commands = super().handle(event)
        self.check()
        return commands


class Watched:
    """An Adapter, and what bounds it kept to."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.changes: list[PlanChange] = []
        self.holds: dict[int, set[str]] = {}
        self.beside: set[tuple[int, str]] = set()
        self.most_held = 0
        self.most_memory = 0

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        if isinstance(event, WorkerUp):
            self.holds[event.worker] = set()
        elif isinstance(event, WorkerDown):
            self.holds.pop(event.worker, None)
            self.beside = {key for key in self.beside if key[0] != event.worker}
        elif isinstance(event, EntryAsked):
            self.beside.add((event.worker, event.entry.id))
        elif isinstance(event, EntryReady | EntryFailed):
            self.beside.discard((event.worker, event.entry))
            if isinstance(event, EntryReady):
                self.holds[event.worker].add(event.entry)
        assert len(self.beside) <= 1  # one entry at a time
        for command in commands:
            if isinstance(command, Retire):
                self.holds[command.worker].discard(command.entry)
        padded = [{n for n in held if n != "any"} for held in self.holds.values()]
        self.most_held = max([self.most_held, *map(len, padded)])
        self.most_memory = max(self.most_memory, sum(100 * len(names - {"own"}) for names in padded))
        changes = self.adapter.observe(event, commands)
        self.changes += changes
        return changes

    def of(self, kind: type) -> list[PlanChange]:
        return [change for change in self.changes if isinstance(change, kind)]


def plan(*entries: Entry, workers: int = 1) -> Plan:
    spec = CompileSpec(backend="null", entries=(*entries, ANY), fallback="any")
    return Plan(id="today", compile=spec, serve=ServePolicy(workers=workers))


def bucket(end: int) -> Entry:
    return Entry(id=f"to-{end}", kind="bucket", lo=(10,), hi=(end,))


def traffic(widths: Sequence[int], gap_ms: float = 25.0) -> Workload:
    n = len(widths)
    return Workload(
        id="w", dim_names=("width",), scheduled=np.arange(n, dtype=np.int64) * round(gap_ms * MS),
        dims=np.array(widths, dtype=np.int64).reshape(n, 1), stream=np.zeros(n, dtype=np.int32), streams=("s",),
        payload=np.zeros(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


def served(
    widths: Sequence[int],
    base: Plan,
    bounds: Bounds = BOUNDS,
    times: Linear | None = None,
    injected: Sequence[Event] = (),
    gap_ms: float = 25.0,
) -> tuple[Trace, Watched]:
    times = times or Linear()
    known = Known(compile_ns=lambda entry: COMPILE_NS, memory_bytes=lambda entry: 100)
    watched = Watched(Adapter(base, bounds, SLA, times, known))
    workers = base.serve.workers
    run = RunInfo(
        id="r", plan="today", slice="all", source="simulated", workload_sha256="", envelope_sha256="",
        start_state="warm", seed=1, workers=workers, cores=tuple(range(workers)), driver_core=workers,
    )  # fmt: skip
    router = Router(base.compile)
    startup = Startup(process_ns=100 * MS, prepare_ns={e.id: COMPILE_NS for e in possible(base, bounds)})
    machine = Checked(base, router, times, run.cores)
    trace = simulate(
        traffic(widths, gap_ms), base, router, times, times, run, startup=startup, injected=injected,
        machine=machine, controller=watched,
    )  # fmt: skip
    return trace, watched


RNG = np.random.default_rng(7)
SMALL = RNG.integers(20, 200, 400).tolist()
LARGE = RNG.integers(500, 900, 600).tolist()
FITTED = plan(*(bucket(end) for end in (50, 100, 150, 200)))
COLD = RNG.permutation(np.arange(20, 1000)).tolist()
"""Every width is new, so the dynamic entry pays a first run every time."""


# --- proof -------------------------------------------------------------------------------------------------------


def test_a_test_proves_a_mean_above_its_bound_and_not_one_below() -> None:
    rng = np.random.default_rng(3)
    above, below = Proof(0.0, 0.01), Proof(0.1, 0.01)
    for x in rng.choice([-1.0, 1.0], 2000, p=[0.35, 0.65]):
        above.add(float(x))
    for x in rng.choice([-1.0, 1.0], 2000, p=[0.45, 0.55]):
        below.add(float(x))
    assert (above.proved, below.proved) == (True, False)


def alarmed(detector: Detector, x: float, every: float) -> bool:
    detector.add(x)
    return detector.reached(every)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At the edge of what is not worth it, a detector of one alarm in 500 runs 500 numbers or longer in the mean."""
    rng = np.random.default_rng(5)
    lengths = []
    for _ in range(200):
        detector = Detector(WORTH)
        numbers = rng.choice([-1.0, 1.0], 3000, p=[0.475, 0.525]).tolist()
        lengths.append(next((at for at, x in enumerate(numbers, 1) if alarmed(detector, x, 500)), 3000))
    assert np.mean(lengths) >= 500


def test_a_change_that_comes_late_is_found_as_fast_as_an_early_one() -> None:
    def delay(quiet: int) -> int:
        detector = Detector(WORTH)
        assert not any(alarmed(detector, 0.0, ALARM_EVERY) for _ in range(quiet))
        return next(at for at in range(1, 1000) if alarmed(detector, 0.5, ALARM_EVERY))

    assert delay(0) == delay(5000) < 60


# --- tables ------------------------------------------------------------------------------------------------------


def test_the_next_entry_is_the_one_that_saves_most() -> None:
    shapes = table.Shapes({(90,): 10, (600,): 10})
    prices = Prices(Linear(), {"dynamic": 2.0})
    spec = plan().compile
    found = table.next_best(spec, [bucket(100), bucket(600)], shapes, prices)
    assert found is not None
    entry, saved = found
    assert entry.id == "to-600"  # 600 from 12 to 6 ms, 90 from 1.8 to 6: still more than 90 alone, from 1.8 to 1
    assert saved == pytest.approx(1 - (10 * 6 + 10 * 6) / (10 * 12 + 10 * 1.8))
    assert table.next_best(table.added(spec, entry), [entry], shapes, prices) is None


def test_an_entry_that_nothing_can_stand_for_is_never_done_without() -> None:
    alone = CompileSpec(backend="null", entries=(bucket(100), bucket(600)))
    least = table.least_needed(alone, table.Shapes({(600,): 1}), Prices(Linear(), {}))
    assert least is not None
    assert least.id == "to-100"
    assert table.least_needed(table.without(alone, [least]), table.Shapes({(600,): 1}), Prices(Linear(), {})) is None
    assert [entry.id for entry in table.refitted(alone, [bucket(300)]).entries] == ["to-300", "to-600"]


# --- watching, swapping, coming back -----------------------------------------------------------------------------


def test_traffic_that_the_plan_was_fitted_to_changes_nothing() -> None:
    _, watched = served(SMALL * 3, FITTED)
    assert watched.changes == []


def test_a_shift_is_met_one_entry_at_a_time() -> None:
    trace, watched = served([*SMALL, *LARGE], FITTED)
    asked = [c for c in watched.of(EntryAsked) if isinstance(c, EntryAsked)]
    assert len(asked) >= 2
    assert min(c.t for c in asked) > 400 * 25 * MS  # nothing before the shift
    swapped = [c for c in watched.of(Remapped) if isinstance(c, Remapped)]
    assert {c.kind for c in swapped} == {"remap"}
    assert swapped[0].t == asked[0].t + COMPILE_NS
    late = trace.requests["route"][-200:]
    assert (late < 2).mean() > 0.9  # exact or padded, not dynamic


def test_what_is_prepared_on_a_suspicion_goes_again_when_nothing_comes_of_it() -> None:
    trace, watched = served([*SMALL, *LARGE[:22], *SMALL, *SMALL], FITTED)
    assert [type(change) for change in watched.changes] == [EntryAsked, EntryDropped]
    asked, dropped = watched.changes
    assert isinstance(asked, EntryAsked)
    assert isinstance(dropped, EntryDropped)
    assert (dropped.entry, asked.warm) == (asked.entry.id, ((1, *asked.entry.hi),))
    _, longer = served([*SMALL, *LARGE], FITTED)
    assert longer.changes[0] == asked  # the one that is swapped in where the shift is proved
    assert longer.changes[1].t == asked.t + COMPILE_NS
    names = [trace.entries[code] for code in np.unique(trace.batches["entry"])]
    assert asked.entry.id not in names


def test_old_entries_stay_until_the_guard_passes_and_then_as_many_as_may() -> None:
    _, watched = served([*SMALL, *LARGE], FITTED)
    first_drop = next(c for c in watched.changes if isinstance(c, EntryDropped))
    before = watched.changes[: watched.changes.index(first_drop)]
    last_swap = [c for c in before if isinstance(c, Remapped)][-1]
    assert len(table.padded(last_swap.spec)) == BOUNDS.entries
    tables = [c.spec for c in before if isinstance(c, Remapped)][:-1]
    assert all(set(FITTED.compile.entries) <= set(spec.entries) for spec in tables)


def test_entries_that_are_slower_than_promised_are_rolled_back_and_left_alone_for_a_while() -> None:
    trace, watched = served(COLD, plan(), times=Linear(slow=12.0), gap_ms=60.0)
    kinds = [MARK_KINDS[kind] for kind in trace.marks["kind"]]
    back = kinds.index("roll-back")
    assert "batches take longer than they would have before" in trace.details[trace.marks["detail"][back]]
    swaps = [c for c in watched.of(Remapped) if isinstance(c, Remapped)]
    rolled = next(c for c in swaps if c.kind == "roll-back")
    assert rolled.spec == plan().compile
    again = [c.t for c in watched.of(EntryAsked) if c.t > rolled.t]
    assert all(t >= rolled.t + 300 * 60 * MS for t in again)


def test_an_entry_that_fails_is_not_asked_for_again() -> None:
    _, plain = served([*SMALL, *LARGE], FITTED)
    first = plain.of(EntryAsked)[0]
    assert isinstance(first, EntryAsked)
    fails = EntryFailed(first.t + COMPILE_NS // 2, 0, first.entry.id, "no")
    trace, watched = served([*SMALL, *LARGE], FITTED, injected=[fails])
    assert [c.entry.id for c in watched.of(EntryAsked) if isinstance(c, EntryAsked)].count(first.entry.id) == 1
    assert (trace.requests["error"] == 0).all()


def test_a_worker_that_falls_while_an_entry_is_prepared_gets_it_afterwards() -> None:
    _, plain = served([*SMALL, *LARGE], FITTED)
    first = plain.of(EntryAsked)[0]
    assert isinstance(first, EntryAsked)
    trace, watched = served([*SMALL, *LARGE], FITTED, injected=[WorkerDown(first.t + 1, 0, "crash")])
    asked = [c for c in watched.of(EntryAsked) if isinstance(c, EntryAsked) and c.entry.id == first.entry.id]
    assert len(asked) >= 2
    assert (trace.requests["error"] == 0).sum() >= len(trace.requests) - 1


# --- bounds ------------------------------------------------------------------------------------------------------


def test_without_compile_time_nothing_is_asked() -> None:
    _, watched = served([*SMALL, *LARGE], FITTED, replace(BOUNDS, compile_s=0.2))
    assert watched.of(EntryAsked) == []


def most_in_an_hour(asked: Sequence[PlanChange]) -> int:
    return max((sum(COMPILE_NS for b in asked if a.t - HOUR < b.t <= a.t) for a in asked), default=0)


@st.composite
def drifting(draw: st.DrawFn) -> list[int]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = draw(st.lists(st.tuples(st.integers(10, 900), st.integers(1, 400)), min_size=1, max_size=4))
    return [int(w) for lo, width in parts for w in rng.integers(lo, min(lo + width, 1000) + 1, 350)]


@given(
    drifting(),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([0.2, 0.9, 2.0, 60.0]),
    st.sampled_from([0, 300, 1000]),
    st.sampled_from([1, 2]),
    st.sampled_from([1.0, 4.0, 12.0]),
)
@settings(deadline=None, max_examples=15)
def test_bounds_are_never_exceeded_and_every_request_ends_once(
    widths: list[int], entries: int, spare: int, compile_s: float, memory: int, workers: int, slow: float
) -> None:
    bounds = Bounds(
        entries=entries, spare=spare, low=(40,), high=(820,), compile_s=compile_s, memory_bytes=memory, step=30
    )
    crash = [WorkerDown(400 * 15 * MS, 0, "crash")]
    times = Linear(slow)
    trace, watched = served(widths, plan(workers=workers), bounds, times, crash, gap_ms=15.0)
    asked = [c for c in watched.of(EntryAsked) if isinstance(c, EntryAsked)]
    assert watched.most_held <= bounds.held
    assert watched.most_memory <= memory
    assert most_in_an_hour(asked) <= compile_s * 1e9
    assert all(c.entry.lo == (40,) and c.entry.hi[0] <= 820 for c in asked)
    assert all(c.entry.hi[0] % 30 == 0 or c.entry.hi[0] == 820 for c in asked)
    assert ((trace.requests["done"] >= 0) & (trace.requests["error"] != 8)).all()
    again, _ = served(widths, plan(workers=workers), bounds, times, crash, gap_ms=15.0)
    for table_, same in ((trace.requests, again.requests), (trace.batches, again.batches), (trace.marks, again.marks)):
        assert all(column.tobytes() == same[name].tobytes() for name, column in table_.columns.items())
