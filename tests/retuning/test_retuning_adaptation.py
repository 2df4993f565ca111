"""The adapted run: what is refitted when, what its compiles cost, and what the clairvoyant may know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import MS, study

from trimtab.domain.events import Arrived, BatchDone, Command, Dispatch, EntryReady, Prepare, Retire, WorkerUp
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.errors import StudyError
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.mapping.cost import CostModel
from trimtab.retuning import adaptation
from trimtab.retuning._shifting import ShiftingMachine
from trimtab.retuning.adaptation import Lent, Terms, adapt, stall
from trimtab.retuning.moves import refit

BASE = study().baseline
SLA = Sla(metric="p95", bound_ms=60.0)
RUN = RunInfo(
    id="r", plan="today", slice="tune", source="simulated", workload_sha256="w", envelope_sha256="e",
    start_state="warm", seed=1, workers=1, cores=(1,), driver_core=0,
)  # fmt: skip


def profile(entry: str, warm: dict[int, float], *, first: float, compile_ms: float = 40.0) -> CompileProfile:
    """Warm ms by width at batch size 1; every first run takes ``first`` ms."""
    timings = tuple(
        ShapeTiming(executed=(1, w), first_ns=round(first * MS), wall_ns=(round(ms * MS),) * 3, cpu_ns=())
        for w, ms in warm.items()
    )
    return CompileProfile(
        plan="today", entry=entry, backend="openvino", versions={}, options=CompileOptions(),
        compile_ns=round(compile_ms * MS), memory_bytes=0, peak_bytes=0,
        inspection=Inspection(executed=(1, 16), operators=(), operators_before=0), timings=timings,
    )  # fmt: skip


ANY = profile("any", {16: 2.0, 1640: 10.0}, first=30.0)  # the first run of a width takes 20 to 28 ms more
COSTS = CostModel.from_profiles([ANY], BASE.compile.entries)


def terms(compile_ms: float = 40.0, most: int = 2, measured: dict[Entry, CostModel] | None = None) -> Terms:
    padded = profile("to-400", {400: 4.0}, first=10.0, compile_ms=compile_ms)
    return Terms(
        baseline=BASE, most=most, low=16, high=1640, cost=lambda end: COSTS.estimate("any", (1, end)) / MS,
        costs=COSTS, measured=measured or {}, reference=COSTS, reference_entry="any", profiles=[padded],
    )  # fmt: skip


def workload(widths: Sequence[int], gap_ms: float = 40.0) -> Workload:
    n = len(widths)
    return Workload(
        id="w", dim_names=("width",), scheduled=np.arange(n, dtype=np.int64) * round(gap_ms * MS),
        dims=np.array(widths, dtype=np.int64).reshape(n, 1), stream=np.zeros(n, dtype=np.int32), streams=("s",),
        payload=np.arange(n, dtype=np.int32), payload_kind="random", deadline=np.full(n, -1, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=1.0),
    )  # fmt: skip


DRIFT = [*range(100, 300), *range(500, 700), *range(500, 700)]
"""200 new widths, then 200 others, then the same ones again."""


def adapted(widths: Sequence[int] = DRIFT, **changes: float) -> Adaptation:
    found = adapt(workload(widths), terms(**changes), SLA, RUN)  # type: ignore[arg-type]
    assert isinstance(found, Adaptation)
    return found


def test_each_window_runs_on_buckets_fitted_to_the_one_before() -> None:
    found = adapted(most=1)
    assert found.edges.tolist() == [0, 200, 400, 600]
    assert [shift.ends for shift in found.shifts] == [(), (299,), (699,)]
    assert [shift.compiled for shift in found.shifts] == [0, 1, 1]
    routes = found.adapted.requests["route"]
    kinds = [set(routes[lo:hi].tolist()) for lo, hi in ((0, 200), (200, 400), (400, 600))]
    assert kinds == [{2}, {2}, {0, 1}]  # dynamic; dynamic still, no bucket covers them; padded, one of them exactly


def test_the_first_window_is_the_baseline_in_every_run_but_the_clairvoyants() -> None:
    found = adapted()
    for run in (found.adapted, found.without_stalls):
        assert np.array_equal(run.latency[:200], found.static.latency[:200])


def test_a_stall_keeps_the_worker_for_its_compiles_and_first_runs() -> None:
    found = adapted(most=1, compile_ms=500.0)
    assert [shift.stall for shift in found.shifts] == [0, 510 * MS, 510 * MS]  # compile + one first run of 10 ms
    took = found.adapted.batches["started"] - found.adapted.batches["dispatched"]
    assert not took.any()
    waited = (found.adapted.requests["dispatched"] - found.adapted.requests["enqueued"]) / MS
    assert waited[199] < 60
    assert waited[200] == pytest.approx(510, abs=40)  # the boundary's first request waits for all of it
    free = found.without_stalls.requests
    assert (free["dispatched"] - free["enqueued"])[200] / MS < 60


def test_ready_entries_leave_their_mark_when_they_are_ready_and_not_before() -> None:
    found = adapted(most=1, compile_ms=500.0)
    marks = found.adapted.marks
    ready = marks["t"][marks["kind"] == MARK_KINDS.index("entry-ready")] / MS
    assert ready[0] == 0
    assert ready[1:] == pytest.approx([200 * 40 + 510, 400 * 40 + 510], abs=40)


def test_the_clairvoyant_takes_the_best_of_each_window_and_never_waits_for_a_compile() -> None:
    found = adapted(compile_ms=500.0)
    assert [shift.best for shift in found.shifts] == ["this window", "this window", "this window"]
    p95 = [np.quantile(run.latency, 0.95) for run in (found.clairvoyant, found.without_stalls, found.adapted)]
    assert p95 == sorted(p95)


def test_where_nothing_is_better_the_clairvoyant_keeps_the_baseline() -> None:
    same = [400] * 600  # one width: a bucket at 400 changes nothing but the first run, which is no p95
    found = adapted(same)
    assert [shift.best for shift in found.shifts] == ["baseline"] * 3
    assert np.array_equal(found.clairvoyant.latency, found.static.latency)


def test_an_entry_that_comes_back_is_compiled_again() -> None:
    widths = [*[100] * 200, *[500] * 200, *[100] * 200, *[100] * 200]
    assert [shift.ends for shift in adapted(widths, most=1).shifts] == [(), (100,), (500,), (100,)]
    assert [shift.compiled for shift in adapted(widths, most=1).shifts] == [0, 1, 1, 1]


def test_one_window_has_no_boundary() -> None:
    assert adapt(workload([100] * 399), terms(), SLA, RUN) == (
        "399 requests are one window: there is no boundary to refit at"
    )


def test_the_same_seed_gives_the_same_runs() -> None:
    a, b = adapted(), adapted()
    assert np.array_equal(a.adapted.requests["done"], b.adapted.requests["done"])
    assert a.shifts == b.shifts


# --- times that nobody measured ----------------------------------------------------------------------------------


def test_an_entry_that_was_never_profiled_takes_the_references_time_at_its_dims() -> None:
    entry = Entry(id="to-500", kind="bucket", lo=(16,), hi=(500,))
    times = Lent(terms(), (*BASE.compile.entries, entry), seed=1)
    assert times.borrowed == {"to-500"}
    assert times.warm("to-500", (1, 500)) == COSTS.warm("any", (1, 500)) > 0
    assert Lent(terms(), BASE.compile.entries, seed=1).borrowed == set()


def test_a_profiled_entry_keeps_its_own_time() -> None:
    entry = Entry(id="to-400", kind="bucket", lo=(16,), hi=(400,))
    own = CostModel.from_profiles([profile("to-400", {400: 1.0}, first=9.0)], [entry])
    times = Lent(terms(measured={entry: own}), (*BASE.compile.entries, entry), seed=1)
    assert (times.warm("to-400", (1, 400)), times.borrowed) == (MS, set())


def test_the_work_on_unprofiled_entries_is_said() -> None:
    found = adapted(most=1)
    assert 0.05 < found.interpolated < 0.15  # the last window of three, where nothing is cold any more
    entry = Entry(id="to-699", kind="bucket", lo=(16,), hi=(699,))
    own = CostModel.from_profiles([profile("to-699", {699: 6.0}, first=9.0)], [entry])
    known = adapt(workload(DRIFT), terms(most=1, measured={entry: own}), SLA, RUN)
    assert isinstance(known, Adaptation)
    assert known.interpolated == 0.0


def test_a_stall_is_read_from_the_nearest_profile() -> None:
    near = profile("to-400", {400: 4.0}, first=10.0, compile_ms=100.0)
    far = profile("to-40", {40: 2.0}, first=1.0, compile_ms=1.0)
    known = replace_profiles(terms(), [far, near])
    assert stall(known, Entry(id="x", kind="bucket", lo=(16,), hi=(500,)), [(1, 500)]) == 110 * MS
    assert stall(known, Entry(id="x", kind="bucket", lo=(16,), hi=(50,)), [(1, 50), (2, 50)]) == 3 * MS


def test_the_page_of_metrics_holds_these_stalls() -> None:
    near = profile("to-400", {400: 4.0}, first=10.0, compile_ms=100.0)
    known = replace_profiles(terms(), [profile("to-40", {40: 2.0}, first=1.0, compile_ms=1.0), near])
    one = stall(known, Entry(id="x", kind="bucket", lo=(16,), hi=(500,)), [(1, 500)]) // MS
    two = stall(known, Entry(id="x", kind="bucket", lo=(16,), hi=(50,)), [(1, 50), (2, 50)]) // MS
    page = " ".join((Path(__file__).parents[2] / "docs" / "metrics.md").read_text().split())
    assert (
        f"A new entry at 500, warmed at one size, stalls for {one} ms; one at 50, at two sizes, for {two} ms." in page
    )


def replace_profiles(known: Terms, profiles: list[CompileProfile]) -> Terms:
    return Terms(**{**vars(known), "profiles": profiles})


# --- the machine -------------------------------------------------------------------------------------------------


def plans(*ends: int) -> list[Plan]:
    return [BASE, *(replace(refit(BASE, [(end,)], (16,), (1640,)), id=f"to-{end}") for end in ends)]


def started(found: list[Plan], starts: list[int]) -> ShiftingMachine:
    machine = ShiftingMachine(found, starts, COSTS, (1,))
    machine.handle(WorkerUp(0, 0))
    machine.handle(EntryReady(0, 0, "any", ()))
    return machine


def kinds(commands: list[Command]) -> list[str]:
    return [f"{type(c).__name__} {c.entry}" for c in commands if isinstance(c, Dispatch | Prepare | Retire)]


def test_a_worker_compiles_once_its_batch_is_over_and_serves_nothing_meanwhile() -> None:
    machine = started(plans(100, 200), [0, 1, 3])
    assert kinds(machine.handle(Arrived(0, 0, 0, (50,), 0))) == ["Dispatch any"]
    assert kinds(machine.handle(Arrived(1, 1, 0, (60,), 1))) == []  # the new window begins, the worker still runs
    assert kinds(machine.handle(BatchDone(5, 0, 0, 0, 5))) == ["Prepare to-100"]
    assert kinds(machine.handle(Arrived(6, 2, 0, (500,), 6))) == []
    assert kinds(machine.handle(EntryReady(9, 0, "to-100", ((1, 100),)))) == ["Dispatch to-100"]
    assert kinds(machine.handle(BatchDone(12, 0, 1, 9, 12))) == ["Dispatch any"]
    machine.check()


def test_an_entry_is_retired_when_nobody_waits_for_it_any_more() -> None:
    machine = started(plans(100, 200), [0, 1, 3])
    machine.handle(Arrived(0, 0, 0, (500,), 0))
    machine.handle(Arrived(1, 1, 0, (60,), 1))
    machine.handle(BatchDone(2, 0, 0, 0, 2))
    machine.handle(EntryReady(3, 0, "to-100", ((1, 100),)))  # request 1 starts
    machine.handle(Arrived(4, 2, 0, (60,), 4))
    assert kinds(machine.handle(Arrived(5, 3, 0, (60,), 5))) == []  # request 2 still waits for to-100
    assert kinds(machine.handle(BatchDone(6, 0, 1, 3, 6))) == ["Prepare to-200"]
    assert kinds(machine.handle(EntryReady(8, 0, "to-200", ((1, 200),)))) == ["Dispatch to-100"]
    assert kinds(machine.handle(BatchDone(9, 0, 2, 8, 9))) == ["Retire to-100", "Dispatch to-200"]
    machine.check()


def test_two_entries_of_one_name_are_refused() -> None:
    other = Entry(id="to-100", kind="static", lo=(100,), hi=(100,))
    mixed = replace(BASE, compile=replace(BASE.compile, entries=(other, *BASE.compile.entries)))
    with pytest.raises(StudyError, match="two entries are called 'to-100'"):
        ShiftingMachine([mixed, *plans(100)], [0, 1, 2], COSTS, (1,))


class Checked(ShiftingMachine):
    """States its invariants after every event."""

    def handle(self, event: object) -> list[Command]:
        commands = super().handle(event)  # type: ignore[arg-type]
        self.check()
        return commands


def ends_well(trace: Trace) -> bool:
    return bool((trace.requests["error"] == 0).all() and (trace.requests["done"] >= trace.requests["scheduled"]).all())


@given(
    st.lists(st.integers(16, 1640), min_size=400, max_size=700),
    st.integers(1, 3),
    st.sampled_from([0.5, 3.0, 20.0]),
    st.sampled_from([1, 2]),
)
@settings(deadline=None, max_examples=8)
def test_every_request_ends_once_whatever_is_refitted(
    widths: list[int], most: int, gap_ms: float, workers: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation, "ShiftingMachine", Checked)
        base = replace(BASE, serve=replace(BASE.serve, workers=workers))
        known = Terms(**{**vars(terms(most=most)), "baseline": base})
        found = adapt(workload(widths, gap_ms), known, SLA, replace(RUN, workers=workers, cores=tuple(range(workers))))
    assert isinstance(found, Adaptation)
    assert all(ends_well(run) for run in (found.static, found.adapted, found.without_stalls, found.clairvoyant))
    assert len(found.shifts) == found.edges.size - 1
