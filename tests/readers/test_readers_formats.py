"""Which format a file has is told by its content; everything else is refused by name. No bytes break a reader."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spans_kit import SAMPLES, unpacked

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.imported import DURATIONS, Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import SPAN_COLUMNS, SPAN_KINDS, Spans
from trimtab.domain.summary import Summary
from trimtab.errors import DataError, TrimtabError
from trimtab.evidence.summary.diagnose import diagnose as diagnose_summary
from trimtab.evidence.timeline.diagnose import diagnose as diagnose_spans
from trimtab.readers import _file, formats
from trimtab.readers._format import Held

READABLE = {
    "kineto": "PyTorch profiler trace",
    "ort": "ONNX Runtime profile",
    "torch_trace": "torch.compile trace",
    "torch_2_13_recompiles": "torch.compile log",
    "loadgen_trace": "MLPerf LoadGen trace",
    "loadgen_detail": "MLPerf LoadGen log",
    "loadgen_summary": "MLPerf LoadGen log",
    "triton_trace": "Triton trace",
    "aiperf": "AIPerf record export",
    "perf_analyzer": "perf_analyzer report",
    "model_analyzer_rates": "Model Analyzer results",
    "model_analyzer_single": "Model Analyzer results",
    "openvino_report": "OpenVINO benchmark_app report",
    "openvino_counters": "OpenVINO benchmark_app counters",
    "trtexec_times": "trtexec times",
    "trtexec_profile": "trtexec profile",
    "trtexec_layers": "trtexec layer information",
}
FILES = sorted(path for path in SAMPLES.iterdir() if path.name.startswith(tuple(READABLE)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("name", ["x.json", "x.bin", "requests.csv"])
def test_the_content_decides_not_the_name(path: Path, name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    copy.write_bytes(unpacked(path))
    known = formats.find(copy)
    assert known is not None
    assert known.name == next(what for start, what in READABLE.items() if path.name.startswith(start))


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("x.json", b'{"resourceSpans": []}', "is an OpenTelemetry trace"),
        ("x.json", b'{"schema": "1.0.1", "nodes": [{"rf_id": 0}]}', "is a Chakra execution trace"),
        ("x.json", b'{"a": 1}', "is of no known format"),
        ("x.json", b"null", "is of no known format"),
        ("x.log", b"nothing of interest\n", "is of no known format"),
        ("x", b"\0\1\2", "is of no known format"),
        ("x.json", b"", "is empty"),
        ("x.json.gz", b"no gzip", "not a valid gzip file"),
        ("x.json.gz", gzip.compress(b"[{" * 9999)[:40], "ends too early"),
    ],
)
def test_everything_else_is_refused_by_name(name: str, content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=what) as caught:
        formats.find(path)
    assert caught.value.fix
    assert str(path) in caught.value.where


@pytest.mark.parametrize(
    ("file", "what"),
    [("memory_timeline.raw.gz", "a PyTorch memory timeline"), ("otlp_example.json", "an OpenTelemetry trace")],
)
def test_known_files_that_are_no_timeline(file: str, what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        formats.find(SAMPLES / file)
    assert "PyTorch profiler trace, Chrome trace" in caught.value.fix


def test_a_table_is_left_to_the_reader_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("start_s,latency_ms\n0,1\n")
    assert formats.find(path) is None


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        formats.find(tmp_path)


def sound(held: Held) -> None:
    """What holds of everything that is read, whatever file it comes from."""
    {Spans: spans_sound, Imported: requests_sound, Summary: summary_sound}[type(held)](held)


def requests_sound(held: Imported) -> None:
    req, stages = held.trace.requests, held.stages
    count = len(req)
    assert count > 0
    assert {len(column) for column in (*req.columns.values(), *stages.columns.values())} == {count}
    assert np.all(np.diff(req["scheduled"]) >= 0)
    assert req["scheduled"][0] == 0
    done = req["done"] != NEVER
    assert np.all(req["done"][done] >= req["scheduled"][done])
    assert np.all((req["error"] >= 0) & (req["error"] < len(ERROR_KINDS)))
    assert np.all((req["stream"] >= 0) & (req["stream"] < len(held.trace.streams)))
    for name in DURATIONS:
        assert np.all(stages[name] >= NEVER)


def summary_sound(held: Summary) -> None:
    assert held.points or held.layers
    times = [ns for point in held.points for ns in (*point.latency.values(), *point.stages.values())]
    assert all(0 <= ns <= 4 * 10**18 for ns in times)
    assert all(layer.took >= NEVER for layer in held.layers)
    rates = [rate for point in held.points for rate in (point.offered, point.achieved, point.clients, point.count)]
    assert all(rate is None or (rate >= 0 and math.isfinite(rate)) for rate in rates)
    read = ReadReport(file="f", sha256="", rows=1, used=1, columns={})
    assert diagnose_summary(held, read).diagnosis.classes


def spans_sound(spans: Spans) -> None:
    table, count = spans.table, len(spans.table)
    assert {name: column.dtype.name for name, column in table.columns.items()} == SPAN_COLUMNS
    assert {len(column) for column in table.columns.values()} == {count}
    assert np.all(np.diff(table["start"]) >= 0)
    assert np.all(table["end"] >= table["start"])
    assert np.all((table["launch"] >= NEVER) & (table["launch"] < max(count, 1)))
    for column, names in (("kind", SPAN_KINDS), ("name", spans.names), ("lane", spans.lanes)):
        assert count == 0 or (table[column].min() >= 0 and table[column].max() < len(names))
    for column, known in (("shape", spans.shapes), ("dtype", spans.dtypes)):
        assert count == 0 or (table[column].min() >= NEVER and table[column].max() < max(len(known), 1))
    found = diagnose_spans(spans, ReadReport(file="f", sha256="", rows=1, used=1, columns={}))
    assert found.diagnosis.classes
    assert all(len({len(cells) for cells in one.columns.values()}) == 1 for one in found.charts())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_read_is_sound(path: Path) -> None:
    known = formats.find(path)
    assert known is not None
    held, report = known.read(path, False)
    sound(held)
    assert report.rows >= report.used > 0


WRITTEN = {
    "chrome.json": b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1.5, "dur": 4, "pid": 1, "tid": "t"},\n'
    b'{"ph": "B", "name": "b", "ts": 6, "pid": 1, "tid": 2}, {"ph": "E", "ts": 9, "pid": 1, "tid": 2},\n'
    b'{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "worker"}}]}',
    "perf_export.json": b'{"experiments": [{"experiment": {"mode": "request_rate", "value": 4}, "requests": [\n'
    b'{"timestamp": 100, "request_inputs": {"x": 1}, "response_timestamps": [300, 500]},\n'
    b'{"timestamp": 50, "response_timestamps": []}]}], "version": "1"}',
}
"""Of formats without a small real file."""
SMALL = {path.name: unpacked(path) for path in FILES if len(unpacked(path)) < 200_000} | WRITTEN
EDIT = st.tuples(st.integers(0, 2**31), st.integers(0, 40), st.binary(max_size=12))
HOSTILE = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b"\\", b",", b"-", b"NaN", b"1e999", b"9" * 30, b"null", b"\0", b"\xff", b"\n",
     b"\t", b'"traceEvents": [', b"<script>", b"\x1b[2J", b"[" * 3000, b'{"a":' * 3000]
)  # fmt: skip


def test_every_format_is_fuzzed(tmp_path: Path) -> None:
    found = set()
    for name, content in SMALL.items():
        path = tmp_path / name.removesuffix(".gz")
        path.write_bytes(content)
        known = formats.find(path)
        assert known is not None
        found.add(known.name)
    assert found == {one.name for one in formats.FORMATS}


@pytest.mark.parametrize("name", SMALL)
@settings(deadline=None, max_examples=40)
@given(
    edits=st.lists(EDIT | st.tuples(st.integers(0, 2**31), st.integers(0, 4), HOSTILE), min_size=1, max_size=6),
    cut=st.none() | st.integers(0, 2**31),
    block=st.sampled_from([512, 1 << 20]),
)
def test_no_bytes_break_a_reader(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    edits: list[tuple[int, int, bytes]],
    cut: int | None,
    block: int,
) -> None:
    data = bytearray(SMALL[name])
    for at, length, piece in edits:
        start = at % (len(data) + 1)
        data[start : start + length] = piece
    if cut is not None:
        del data[cut % (len(data) + 1) :]
    broken = tmp_path_factory.mktemp("fuzz") / "x.json"
    broken.write_bytes(bytes(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_file, "BLOCK", block)
        try:
            known = formats.find(broken)
            assert known is not None
            held, report = known.read(broken, False)
        except TrimtabError:
            return
    sound(held)
    assert report.rows >= report.used > 0
