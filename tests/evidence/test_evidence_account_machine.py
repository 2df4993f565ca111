"""The account of runs of the serving machine itself: batches, holds, placements, pace runs and a crash."""

from __future__ import annotations

import numpy as np
from account_cases import Formula
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.account import INHERITED, PARTS
from trimtab.domain.events import BatchReport, Dispatch, Event, Occupied, Released, WorkerDown
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Provenance, Workload
from trimtab.evidence.attribute.account import account
from trimtab.mapping.route import Router
from trimtab.serving.place import PLACE
from trimtab.serving.simulate import Startup, simulate

ENTRIES = (
    Entry(id="bucket", kind="bucket", lo=(1,), hi=(4,), batch=(1, 4)),
    Entry(id="any", kind="dynamic", lo=(1,), hi=(9,), batch=(1, 4)),
)
REFERENCE = Formula(fixed=20, slope=5)
PROMISE = Formula(fixed=20, slope=5, factor=1.2)


class Drawn:
    """Wall times above and below the promise, and a run-queue delay, from the batch's number."""

    def draw(self, batch: Dispatch) -> tuple[int, BatchReport]:
        off_core = 13 * (batch.batch % 3 == 0)
        wall = PROMISE.warm(batch.entry, batch.executed) + batch.batch % 5 - 2 + 40 * batch.first_seen + off_core
        return wall, BatchReport(on_cpu_ns=wall - off_core, runqueue_ns=off_core)


def traffic(gaps: list[int], dims: list[int], streams: list[int]) -> Workload:
    n = len(gaps)
    return Workload(
        id="w",
        dim_names=("w",),
        scheduled=np.cumsum(np.array(gaps, dtype=np.int64)),
        dims=np.array(dims, dtype=np.int64).reshape(n, 1),
        stream=np.array(streams, dtype=np.int32),
        streams=("a", "b", "c"),
        payload=np.arange(n, dtype=np.int32),
        payload_kind="random",
        deadline=np.full(n, -1, dtype=np.int64),
        provenance=Provenance(files=(), time_scale=1.0),
    )


def info(workers: int) -> RunInfo:
    cores = tuple(range(workers))
    return RunInfo(id="run", plan="p", slice="all", source="simulated", workload_sha256="", envelope_sha256="",
                   start_state="warm", seed=1, workers=workers, cores=cores, driver_core=workers)  # fmt: skip


@st.composite
def runs(draw: st.DrawFn, injected: tuple[Event, ...] = ()) -> tuple[Plan, Trace]:
    n = draw(st.integers(1, 25))
    policy = draw(st.sampled_from((BatchPolicy(), BatchPolicy(kind="size-hold", max_size=3, hold_ms=25e-6))))
    serve = ServePolicy(
        batch=policy,
        workers=draw(st.integers(1, 3)),
        placement=draw(st.sampled_from(sorted(PLACE))),
    )
    plan = Plan(id="p", compile=CompileSpec(backend="null", entries=ENTRIES), serve=serve)
    workload = traffic(
        draw(st.lists(st.sampled_from((0, 0, 5, 40)), min_size=n, max_size=n)),
        draw(st.lists(st.integers(1, 10), min_size=n, max_size=n)),  # 10 is outside every entry: rejected
        draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)),
    )
    startup = Startup(process_ns=60, prepare_ns={"bucket": 20, "any": 30})
    router = Router(plan.compile)
    events = injected and tuple(e for e in injected if getattr(e, "worker", 0) < serve.workers)
    return plan, simulate(
        workload, plan, router, PROMISE, Drawn(), info(serve.workers), startup=startup, injected=events
    )


def exact(plan: Plan, trace: Trace) -> dict[str, np.ndarray]:
    """The account's columns, after its sums have been checked."""
    req = account(trace, PROMISE, REFERENCE, "any", plan).requests
    ended = trace.requests["error"] == 0
    latency = np.where(ended, trace.requests["done"] - trace.requests["scheduled"], 0)
    assert np.array_equal(sum(req[part] for part in PARTS), latency)
    assert np.array_equal(sum(req[f"inherited.{label}"] for label in INHERITED), req["busy"] + req["co_batching"])
    positive = [req[part] for part in PARTS if part not in ("interference", "premium")]
    assert min(column.min() for column in [*positive, *(req[f"inherited.{label}"] for label in INHERITED)]) >= 0
    assert np.array_equal(req["latency"] == -1, ~ended)
    return req.columns


@given(runs())
@settings(deadline=None, max_examples=80)
def test_a_machine_never_leaves_ready_work_beside_a_free_worker(run: tuple[Plan, Trace]) -> None:
    req = exact(*run)
    assert not req["dispatch"].any()
    assert not req["unavailable"].any()
    assert not req["occupied"].any()
    assert run[0].serve.batch.hold_ns or not req["hold"].any()
    assert req["hold"].max() <= 25


@given(runs(injected=(Occupied(0, 0, "pace"), Released(30, 0, "pace"), WorkerDown(90, 0, "crash"))))
@settings(deadline=None, max_examples=80)
def test_pace_runs_and_a_crash_have_their_own_labels(run: tuple[Plan, Trace]) -> None:
    plan, trace = run
    req = exact(plan, trace)
    assert not req["dispatch"].any()
    if plan.serve.workers == 1:  # nobody else is there: whoever waits through the outage waits for a live worker
        enqueued, sent = trace.requests["enqueued"], trace.requests["dispatched"]
        ended = req["latency"] >= 0
        down, up = 90, 90 + 60 + 20 + 30
        outage = np.clip(np.minimum(sent, up) - np.maximum(enqueued, down), 0, None)
        crashed = trace.marks["kind"] == 1
        if crashed.any() and trace.marks["t"][crashed][0] == down:
            assert req["unavailable"][ended].tolist() == outage[ended].tolist()
