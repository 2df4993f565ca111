"""Random traffic, plans and faults, for the laws of the serving machine."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from serving_kit import ANY, LARGE, SMALL, load, plan_of, run

from trimtab.domain.events import EntryFailed, Event, Occupied, Released, WorkerDown
from trimtab.domain.plan import Plan
from trimtab.domain.trace import Trace
from trimtab.domain.workload import Workload
from trimtab.serving.place import PLACE
from trimtab.serving.simulate import Startup

ENTRIES = (SMALL, LARGE, ANY)
RESTART = Startup(process_ns=40, prepare_ns={entry.id: 15 for entry in ENTRIES})


class Case(NamedTuple):
    workload: Workload
    plan: Plan
    service: list[int]
    injected: list[Event]

    def simulate(self) -> Trace:
        draws = self.service
        return run(
            self.workload,
            self.plan,
            lambda batch: draws[batch.members[0] % len(draws)],
            startup=RESTART,
            injected=self.injected,
        )


@st.composite
def faults(draw: st.DrawFn, workers: int) -> list[Event]:
    events: list[Event] = []
    t, worker = st.integers(0, 400), st.integers(0, workers - 1)
    for _ in range(draw(st.integers(0, 3))):
        events.append(WorkerDown(draw(t), draw(worker), draw(st.sampled_from(["crash", "hang", "out-of-memory"]))))
    for _ in range(draw(st.integers(0, 3))):
        events.append(EntryFailed(draw(t), draw(worker), draw(st.sampled_from(["small", "large", "any"])), "no"))
    for _ in range(draw(st.integers(0, 3))):
        at, who = draw(t), draw(worker)
        events += [Occupied(at, who, "pace"), Released(at + draw(st.integers(1, 60)), who, "pace")]
    return events


@st.composite
def cases(draw: st.DrawFn, faulty: bool = True) -> Case:
    n = draw(st.integers(1, 40))
    gaps = draw(st.lists(st.integers(0, 25), min_size=n, max_size=n))
    workers = draw(st.integers(1, 3))
    plan = plan_of(
        *ENTRIES[: draw(st.integers(1, 3))],
        size=draw(st.integers(1, 6)),
        hold_ns=draw(st.sampled_from([None, 0, 7, 30])),
        workers=workers,
        placement=draw(st.sampled_from(sorted(PLACE))),
    )
    return Case(
        load(
            np.cumsum(gaps).tolist(),
            draw(st.lists(st.integers(1, 450), min_size=n, max_size=n)),
            draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)),
        ),
        plan,
        draw(st.lists(st.integers(1, 50), min_size=1, max_size=8)),
        draw(faults(workers)) if faulty else [],
    )


def digest(trace: Trace) -> str:
    sha = hashlib.sha256()
    for table in (trace.requests, trace.batches, trace.marks):
        for name, column in table.columns.items():
            sha.update(name.encode() + column.tobytes())
    return sha.hexdigest()
