"""The adapted run: what is refitted when, what its compiles cost, and what the clairvoyant may know."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from retuning_cases import MS, study

from trimtab.domain.plan import Bounds, Entry
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.retuning._scripted import Scripted, union, warm_lists
from trimtab.retuning.adaptation import Lent, Terms, adapt, nearest, possible
from trimtab.retuning.moves import refit
from trimtab.serving.simulate import Startup, simulate

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
        baseline=BASE, bounds=Bounds(
            entries=most, spare=1, low=(16,), high=(1640,), compile_s=60.0, memory_bytes=2**30, step=100,
        ), cost=lambda end: COSTS.estimate("any", (1, end)) / MS,
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


def test_the_adapted_run_compiles_and_warms_beside_its_workers() -> None:
    found = adapted()
    assert found.edges.tolist() == [0, 200, 400, 600]
    assert found.shifts[0].compiled == 0  # nothing is known before the first window is full
    compiled = sum(shift.compiled for shift in found.shifts)
    assert compiled >= 1
    assert sum(shift.compiling for shift in found.shifts) > compiled * 40 * MS  # and one run of each
    first = found.adapted.batches["first_seen"]
    padded = found.adapted.batches["route"] < 2
    assert padded.any()
    assert not (first & padded).any()
    assert sum(shift.stall for shift in found.shifts) == 0
    assert found.shifts[-1].ends != ()


def test_the_first_window_is_the_baseline_in_every_run_but_the_clairvoyants() -> None:
    found = adapted()
    for run in (found.adapted, found.without_stalls):
        assert np.array_equal(run.latency[:200], found.static.latency[:200])


def test_a_compile_beside_keeps_no_worker_from_serving() -> None:
    found = adapted(compile_ms=5000.0)
    waited = (found.adapted.requests["dispatched"] - found.adapted.requests["enqueued"]) / MS
    assert waited.max() < 60
    marks = found.adapted.marks
    prepared = marks["kind"] == MARK_KINDS.index("prepare")
    took = (marks["end"] - marks["t"])[prepared]
    assert ((took > 5000 * MS) & (took < 5060 * MS)).all()  # compiled, and run once


def test_the_clairvoyant_takes_the_best_of_each_window_and_never_waits_for_a_compile() -> None:
    found = adapted(compile_ms=500.0)
    assert {shift.best for shift in found.shifts} == {"this window"}
    p95 = [np.quantile(run.latency, 0.95) for run in (found.clairvoyant, found.without_stalls, found.adapted)]
    assert p95 == sorted(p95)


def test_where_nothing_is_better_the_clairvoyant_keeps_the_baseline() -> None:
    same = [400] * 600  # one width: a bucket at 400 changes nothing but the first run, which is no p95
    found = adapted(same)
    assert [shift.best for shift in found.shifts] == ["baseline"] * 3
    assert np.array_equal(found.clairvoyant.latency, found.static.latency)


def test_one_window_has_no_boundary() -> None:
    assert adapt(workload([100] * 399), terms(), SLA, RUN) == (
        "399 requests are one window: nothing in it shows what a change would win"
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
    assert 0.05 < found.interpolated < 0.6
    entries = [Entry(id=f"to-{end}", kind="bucket", lo=(16,), hi=(end,)) for end in range(100, 1641, 100)]
    own = {e: CostModel.from_profiles([profile(e.id, {e.hi[0]: e.hi[0] / 100}, first=9.0)], [e]) for e in entries}
    known = adapt(workload(DRIFT), terms(most=1, measured=own), SLA, RUN)
    assert isinstance(known, Adaptation)
    assert sum(shift.compiled for shift in known.shifts) > 0
    assert known.interpolated == 0.0


def test_what_an_entry_costs_is_read_from_the_nearest_profile() -> None:
    near = profile("to-400", {400: 4.0}, first=10.0, compile_ms=100.0)
    far = profile("to-40", {40: 2.0}, first=1.0, compile_ms=1.0)
    assert nearest([far, near], Entry(id="x", kind="bucket", lo=(16,), hi=(500,))).compile_ns == 100 * MS
    assert nearest([far, near], Entry(id="x", kind="bucket", lo=(16,), hi=(50,))).compile_ns == 1 * MS


def test_a_refit_within_bounds_knows_every_entry_that_it_may_bring() -> None:
    bounds = replace(terms().bounds, low=(16,), high=(350,), step=100)
    assert [entry.id for entry in possible(BASE, bounds)] == ["any", "to-100", "to-200", "to-300", "to-350"]


# --- plans by script ---------------------------------------------------------------------------------------------


def test_a_script_shifts_with_the_first_request_of_its_window() -> None:
    script = [BASE, *(replace(refit(BASE, [(end,)], (16,), (1640,)), id=f"to-{end}") for end in (100, 200))]
    lists = warm_lists(script, COSTS)
    times = Lent(terms(), union(script), seed=1)
    load = workload([50] * 9)
    trace = simulate(
        load, BASE, Router(BASE.compile), times, times, RUN, startup=Startup(prepare_ns={"to-100": 0, "to-200": 0}),
        controller=Scripted(script, [0, 3, 6], lists),
    )  # fmt: skip
    names = [trace.entries[code] for code in trace.batches["entry"]]
    assert names == ["any"] * 3 + ["to-100"] * 3 + ["to-200"] * 3
    assert not trace.batches["first_seen"][3:].any()  # warm from the start


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
    base = replace(BASE, serve=replace(BASE.serve, workers=workers))
    known = Terms(**{**vars(terms(most=most)), "baseline": base})
    found = adapt(workload(widths, gap_ms), known, SLA, replace(RUN, workers=workers, cores=tuple(range(workers))))
    assert isinstance(found, Adaptation)
    assert all(ends_well(run) for run in (found.static, found.adapted, found.without_stalls, found.clairvoyant))
    assert len(found.shifts) == found.edges.size - 1


def test_shapes_that_the_baselines_profile_never_saw_are_lent_by_the_reference() -> None:
    """Profiled at wide shapes only, its line would fall below 0 at narrow ones."""
    steep = CostModel.from_profiles([profile("any", {800: 1.0, 900: 10.0}, first=30.0)], BASE.compile.entries)
    times = Lent(dataclasses.replace(terms(), costs=steep), BASE.compile.entries, seed=1)
    assert steep.estimate("any", (1, 100)) == 0
    assert times.warm("any", (1, 100)) == COSTS.warm("any", (1, 100)) > 0
    assert times.warm("any", (1, 850)) == steep.warm("any", (1, 850))
