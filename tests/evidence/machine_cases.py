"""Runs of the serving machine itself, and their account with its sums checked."""

from __future__ import annotations

import numpy as np
from account_cases import Formula
from hypothesis import strategies as st

from parts import run_info, workload_of
from trimtab.domain.account import INHERITED, PARTS
from trimtab.domain.events import BatchReport, Dispatch, Event
from trimtab.domain.plan import BatchPolicy, CompileSpec, Entry, Plan, ServePolicy
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
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
    numbers = np.array(streams, dtype=np.int32)
    return workload_of(np.cumsum(gaps), dims, dim_names=("w",), stream=numbers, streams=("a", "b", "c"))


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
        workload, plan, router, PROMISE, Drawn(), run_info(workers=serve.workers), startup=startup, injected=events
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
