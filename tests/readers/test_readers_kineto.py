"""The PyTorch profiler's traces: known figures of real files, both clocks, and how launches find their kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spans_kit import SAMPLES, kinds, names, plain_events, read, rows, sample, whole, write_trace

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Spans
from trimtab.errors import DataError
from trimtab.readers import kineto


def delays_us(spans: Spans) -> list[float]:
    """From the start of its launch to the start of each kernel that has one, sorted."""
    work = np.array(rows(spans, "kernel"), dtype=np.int64)
    launch = spans.table["launch"][work]
    found = spans.table["start"][work] - spans.table["start"][launch]
    return sorted((found[launch != NEVER] / 1e3).tolist())


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("kineto_alexnet.json.gz",
         {"op": 359, "launch": 100, "driver": 240, "wait": 62, "kernel": 79, "copy": 19, "note": 8}),
        ("kineto_amd_mi250.json.gz",
         {"run": 2, "op": 70, "launch": 16, "driver": 4, "wait": 1, "kernel": 14, "copy": 2, "note": 1}),
        ("kineto_cpu_only_rank34.json.gz", {"run": 1, "op": 4, "note": 10}),
        ("kineto_triton_example.json.gz", {"run": 1, "op": 3, "launch": 1, "wait": 1, "kernel": 1}),
        ("kineto_backward_thread.json", {"run": 1, "op": 3, "launch": 1, "kernel": 1, "note": 1}),
    ],
)  # fmt: skip
def test_known_files(file: str, expected: dict[str, int]) -> None:
    spans, report = sample(file, strict=True)
    assert kinds(spans) == expected
    assert (report.format, report.used, report.dropped) == (kineto.NAME, sum(expected.values()), {})
    assert (spans.complete, report.rows) == (True, len(plain_events(SAMPLES / file)))


def test_alexnet_has_79_kernels_that_all_find_their_launch() -> None:
    spans, _ = sample("kineto_alexnet.json.gz")
    found = delays_us(spans)
    assert (len(found), found[39]) == (79, 441.0)
    assert spans.facts == {"device NVIDIA A100-PG509-200": "8", "rank": "0"}


@pytest.mark.parametrize(
    ("file", "first", "origin"),
    [
        ("kineto_alexnet.json.gz", "[param|cuda]", 1695835542514261000),  # microseconds since 1970
        ("kineto_amd_mi250.json.gz", "ProfilerStep#1", None),
        ("kineto_cpu_only_rank34.json.gz", "ProfilerStep#551", 1719853884000000000 + 1212075529876817),
    ],
)
def test_both_clocks(file: str, first: str, origin: int | None) -> None:
    spans, _ = sample(file)
    assert spans.names[spans.table["name"][0]] == first
    assert origin is None or spans.origin == origin


def test_the_cpu_only_file() -> None:
    spans, _ = sample("kineto_cpu_only_rank34.json.gz")
    assert names(spans, "run") == ["ProfilerStep#551"]
    assert np.all(spans.table["device"] == NEVER)
    reduced = [k for k in rows(spans, "note") if spans.table["shape"][k] != NEVER]
    assert {spans.shapes[spans.table["shape"][k]] for k in reduced} == {((321271,),), ((2082411,),)}


def test_the_triton_example() -> None:
    spans, _ = sample("kineto_triton_example.json.gz")
    [kernel], [operator] = rows(spans, "kernel"), [k for k in rows(spans, "op") if spans.table["dtype"][k] != NEVER]
    assert spans.names[spans.table["name"][kernel]] == "triton_poi_fused_add_cos_sin_0"
    assert spans.names[spans.table["name"][spans.table["launch"][kernel]]] == "cuLaunchKernel"
    assert spans.lanes[spans.table["lane"][kernel]] == "stream 7 of device 0"
    assert spans.shapes[spans.table["shape"][operator]] == ((10, 10), (10, 10), (10, 10), ())
    assert spans.dtypes[spans.table["dtype"][operator]] == "float32"


def test_steps_of_a_compiled_network_on_the_cpu() -> None:
    spans, _ = sample("kineto_torch_2_13_cpu.json.gz", strict=True)
    runs = rows(spans, "run")
    assert len(runs) == 110
    batches = [spans.shapes[spans.table["shape"][k]][0] for k in runs]
    assert batches == [(1 + k % 10, 64) for k in range(2, 112)]
    assert "_compile.compile_inner (dynamo_timed)" in names(spans, "compile")


def call(correlation: Any, ts: float = 0, name: str = "cudaLaunchKernel", **args: Any) -> dict[str, Any]:
    return whole(name, ts, 5, cat="cuda_runtime", args={"correlation": correlation, **args})


def kernel(correlation: Any, ts: float = 10, **args: Any) -> dict[str, Any]:
    return whole("k", ts, 3, cat="kernel", args={"device": 0, "correlation": correlation, **args})


@pytest.mark.parametrize(
    ("events", "delays"),
    [
        ([call(1), kernel(1)], [10]),
        ([kernel(1, ts=4), call(1, ts=6)], [-2]),  # two clocks
        ([call(1, name="cudaGraphLaunch"), kernel(1), kernel(1, ts=20)], [10, 20]),
        ([call("7"), kernel(7)], [10]),
        ([call(1), kernel(2)], []),
        ([call(0), kernel(0)], []),
        ([call(2**70), kernel(2**70)], []),
        ([call(0, **{"External id": 3}), call(0, ts=2, **{"External id": 3}),
          kernel(0, **{"External id": 3}), kernel(0, ts=15, **{"External id": 3})], [10, 13]),
        ([call(0, **{"External id": 3}), kernel(0, **{"External id": 3}), kernel(0, ts=15, **{"External id": 3})], []),
        ([call(None), kernel([1])], []),
    ],
)  # fmt: skip
def test_launches_find_their_kernels(tmp_path: Path, events: list[dict[str, Any]], delays: list[float]) -> None:
    spans, _ = read(write_trace(tmp_path / "t.json", events, schemaVersion=1))
    assert delays_us(spans) == delays


def test_a_call_that_launched_something_is_a_launch_whatever_its_name(tmp_path: Path) -> None:
    spans, _ = read(write_trace(tmp_path / "t.json", [call(1, name="newDispatch"), kernel(1)], schemaVersion=1))
    assert names(spans, "launch") == ["newDispatch"]


def test_what_repeats_others_is_counted(tmp_path: Path) -> None:
    events = [whole(f"f{k}", 0, 9, cat="python_function") for k in range(3)]
    events += [
        whole("a", 0, 1, cat="gpu_user_annotation"),
        whole("w", 0, 9, cat="Trace"),
        whole("o", 0, 1, cat="cpu_op"),
    ]
    _, report = read(write_trace(tmp_path / "t.json", events, schemaVersion=1))
    assert report.ignored == (
        "1 annotations, again on the device",
        "3 frames of Python, around operators that are read",
        "1 windows of the recording itself",
    )
    assert (report.rows, report.used) == (6, 1)


@pytest.mark.parametrize(
    ("dims", "types", "shape", "dtype"),
    [
        ([[2, 3], []], ["float", "Scalar"], ((2, 3), ()), "float32"),
        ([[[2, 3], [4]], [5]], ["TensorList", "c10::Half"], ((2, 3), (4,), (5,)), "float16"),
        ([[2]], ["long int"], ((2,),), None),
        ([[2], [3]], ["long", "c10::BFloat16"], ((2,), (3,)), "bfloat16"),
        ([[]], [""], None, None),
        ("x", {"a": 1}, None, None),
    ],
)
def test_shapes_and_types(
    tmp_path: Path, dims: Any, types: Any, shape: tuple[tuple[int, ...], ...] | None, dtype: str | None
) -> None:
    event = whole("aten::mm", 0, 1, cat="cpu_op", args={"Input Dims": dims, "Input type": types})
    spans, _ = read(write_trace(tmp_path / "t.json", [event], schemaVersion=1))
    code, kind = int(spans.table["shape"][0]), int(spans.table["dtype"][0])
    assert (None if code == NEVER else spans.shapes[code], None if kind == NEVER else spans.dtypes[kind]) == (
        shape,
        dtype,
    )


def test_a_trace_of_broken_events_of_unknown_kinds_is_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [whole("a", 5, -9, cat="who knows")], schemaVersion=1, deviceProperties=[])
    with pytest.raises(DataError, match="without anything to read: 1 events left out: it ends before it starts"):
        read(path)
