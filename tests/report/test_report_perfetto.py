"""The timeline of a run, in the trace-event format."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.trace import (
    BATCH_COLUMNS,
    MARK_COLUMNS,
    MARK_KINDS,
    REQUEST_COLUMNS,
    SAMPLE_COLUMNS,
    RunInfo,
    Table,
    Trace,
    empty,
)
from trimtab.report.perfetto import CORES, STREAMS, events

INFO = RunInfo(
    id="run",
    plan="p",
    slice="all",
    source="simulated",
    workload_sha256="",
    envelope_sha256="",
    start_state="warm",
    seed=1,
    workers=1,
    cores=(1,),
    driver_core=0,
)


def trace(scheduled: list[int], took: list[int], streams: list[int]) -> Trace:
    """Each request alone in a batch of its own, one after the other on one worker."""
    n = len(scheduled)
    start, begun, ended = 0, [], []
    for at, wall in zip(scheduled, took, strict=True):
        begun.append(max(start, at))
        start = begun[-1] + wall
        ended.append(start)
    times = {
        "scheduled": scheduled,
        "enqueued": scheduled,
        "dispatched": begun,
        "started": begun,
        "ended": ended,
        "done": ended,
    }
    requests = empty({**REQUEST_COLUMNS, "dim.w": "int64"}, n).columns
    requests |= {name: np.array(values, dtype=np.int64) for name, values in times.items()}
    requests |= {"id": np.arange(n), "batch": np.arange(n), "error": np.zeros(n, dtype=np.int8)}
    requests |= {"stream": np.array(streams, dtype=np.int32), "dim.w": np.full(n, 5)}
    batches = empty({**BATCH_COLUMNS, "exec.w": "int64"}, n).columns
    batches |= {name: requests[name] for name in ("dispatched", "started", "ended", "done")}
    zero = np.zeros(n, dtype=np.int32)
    batches |= {"id": np.arange(n), "worker": zero, "core": zero + 1, "entry": zero, "size": zero + 1}
    batches |= {"executed_size": zero + 1, "exec.w": np.full(n, 8), "route": zero.astype(np.int8)}
    batches |= {"error": zero.astype(np.int8)}
    marks = empty(MARK_COLUMNS, 1).columns
    marks |= {"t": np.array([0]), "kind": np.array([MARK_KINDS.index("worker-up")], dtype=np.int8)}
    marks |= {"worker": np.zeros(1, dtype=np.int32)}
    return Trace(
        run=INFO,
        dim_names=("w",),
        streams=("<b>a", "b"),
        entries=("any",),
        details=(),
        requests=Table(requests),
        batches=Table(batches),
        marks=Table(marks),
        samples=empty(SAMPLE_COLUMNS),
    )


def test_one_request_is_a_span_on_its_stream_and_one_on_its_core_with_an_arrow_between() -> None:
    found = [item for item in events(trace([1000], [2000], [0])) if item["ph"] != "M"]
    shown = [(e["ph"], e["pid"], e["name"], e["ts"], e.get("dur")) for e in found]
    assert shown == [
        ("X", CORES, "any", 1.0, 2.0),
        ("i", CORES, "worker-up", 0.0, None),
        ("X", STREAMS, "request 0", 1.0, 2.0),
        ("s", STREAMS, "rides in", 1.0, None),
        ("f", CORES, "rides in", 1.0, None),
        ("C", STREAMS, "waiting", 1.0, None),
        ("C", STREAMS, "waiting", 1.0, None),
    ]


def test_names_from_the_trace_stay_data() -> None:
    names = [e["args"]["name"] for e in events(trace([0, 1], [9, 9], [0, 0])) if e["name"] == "thread_name"]
    assert names == ["worker 0 on core 1", "<b>a", "<b>a (2)"]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40), st.integers(0, 1)), min_size=1, max_size=30),
)
@settings(deadline=None, max_examples=50)
def test_spans_of_one_track_never_overlap_and_every_arrow_has_two_ends(rows: list[tuple[int, int, int]]) -> None:
    gaps, took, streams = zip(*rows, strict=True)
    found = list(events(trace(np.cumsum(gaps).tolist(), list(took), list(streams))))
    assert json.loads(json.dumps(found)) == found
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for e in found:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(spans))
    ends = {ph: sorted(e["id"] for e in found if e["ph"] == ph) for ph in "sf"}
    assert ends["s"] == ends["f"] == list(range(len(rows)))
    assert [e["args"]["requests"] for e in found if e["ph"] == "C"][-1] == 0
