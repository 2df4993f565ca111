"""ONNX Runtime's profile: the known file of five shapes, and how a run finds its shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spans_kit import kinds, names, read, rows, sample, whole, write_trace

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Spans
from trimtab.readers import ort_profile


def run_shapes(spans: Spans) -> list[tuple[int, ...] | None]:
    """The first input's dims of each run."""
    codes = [int(spans.table["shape"][k]) for k in rows(spans, "run")]
    return [None if code == NEVER else spans.shapes[code][0] for code in codes]


def test_the_known_file() -> None:
    spans, report = sample("ort_5shapes.json.gz", strict=True)
    assert (report.format, report.rows, report.used) == (ort_profile.NAME, 162, 142)
    assert report.ignored == ("20 fences and executors, around what is read",)
    assert kinds(spans) == {"run": 20, "op": 120, "compile": 2}
    five = [(1, 3, 32, 32), (1, 3, 48, 320), (2, 3, 48, 160), (1, 3, 224, 224), (4, 3, 64, 64)]
    assert run_shapes(spans) == five * 4
    took = [int(spans.table["end"][k] - spans.table["start"][k]) // 1000 for k in rows(spans, "run")]
    assert took[:6] == [374, 835, 8620, 10208, 432, 93]
    assert names(spans, "op")[:2] == ["Conv r1_nchwc", "Conv r2_nchwc"]
    assert names(spans, "compile") == ["model_loading_uri", "session_initialization"]
    assert (spans.dtypes, spans.facts) == (("float32",), {"operators on CPUExecutionProvider": "120"})


def node(name: str, ts: float, dims: Any, dtype: str = "float", **more: Any) -> dict[str, Any]:
    args = {"op_name": "Op", "provider": "CPU", "input_type_shape": [{dtype: dims}]}
    return whole(f"{name}_kernel_time", ts, 1, cat="Node", args=args, **more)


def run(ts: float, dur: float = 10, **more: Any) -> dict[str, Any]:
    return whole("model_run", ts, dur, cat="Session", args={}, **more)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([node("a", 1, [1, 8]), run(0), node("a", 21, [1, 9]), run(20)], [(1, 8), (1, 9)]),
        # weights alike, the second operator tells
        ([node("w", 1, [3]), node("a", 2, [1, 8]), run(0), node("w", 21, [3]), node("a", 22, [1, 9]), run(20)],
         [(1, 8), (1, 9)]),
        # all alike: the first operator
        ([node("w", 1, [3]), node("a", 2, [8]), run(0), node("w", 21, [3]), node("a", 22, [8]), run(20)], [(3,), (3,)]),
        # two threads at once
        ([node("a", 1, [1], tid=1), node("a", 2, [2], tid=2), run(0, tid=1), run(0, tid=2)], [(1,), (2,)]),
        # a loop inside a run: its first round counts
        ([node("a", 1, [1]), node("a", 3, [5]), run(0), node("a", 21, [2]), run(20)], [(1,), (2,)]),
        # an operator on a thread without a run, and one that lies beside every run
        ([node("a", 1, [1], tid=7), run(0), node("a", 15, [1]), run(20)], [None, None]),
        ([run(0), run(20)], [None, None]),
    ],
)  # fmt: skip
def test_a_run_finds_its_shape(tmp_path: Path, events: list[Any], expected: list[tuple[int, ...] | None]) -> None:
    spans, _ = read(write_trace(tmp_path / "array.json", events))
    assert run_shapes(spans) == expected


def test_precision_of_what_computes(tmp_path: Path) -> None:
    events = [node("a", 1, [1], "float16"), node("b", 2, [1], "uint8"), node("c", 3, [1], "int64"), run(0)]
    spans, _ = read(write_trace(tmp_path / "array.json", events))
    codes = [int(spans.table["dtype"][k]) for k in rows(spans, "op")]
    assert [None if code == NEVER else spans.dtypes[code] for code in codes] == ["float16", "uint8", None]
