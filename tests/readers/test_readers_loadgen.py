"""MLPerf LoadGen: known figures of its trace, summary and detail log, of versions 0.5 and 6."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spans_kit import SAMPLES, unpacked

from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.summary import Summary
from trimtab.errors import DataError
from trimtab.readers import loadgen, loadgen_trace

HEAD = '{"traceEvents":[\n{"name":"LogDetail","ph":"X"},\n{"name":"IssueQuery","ph":"X"},\n'
SAMPLE = '{"name":"Sample","cat":"default","ph":"b","pid":1,"id":%d,"ts":%s,"args":{"sample_seq":0,%s}},\n'


def trace(name: str) -> tuple[Imported, ReadReport]:
    return loadgen_trace.read(SAMPLES / name, True)


def took(held: Imported) -> list[int]:
    return sorted((held.trace.requests["done"] - held.trace.requests["scheduled"]).tolist())


def test_the_known_trace_of_a_single_stream() -> None:
    held, report = trace("loadgen_trace_hailo8.json.gz")
    assert (report.rows, report.used, report.unit) == (500, 500, "samples")
    latencies = took(held)
    assert (latencies[250] // 1000, round(latencies[495] / 1000)) == (12_035, 13_291)  # LoadGen's own p50 and p99
    assert held.trace.requests["scheduled"][:3].tolist() == [0, 12_172_341, 24_106_414]
    assert not held.paced
    assert set(held.trace.requests["enqueued"].tolist()) == {NEVER}
    assert report.notes == (loadgen_trace.UNPACED,)


def test_a_trace_that_is_no_json_and_its_summary_agree() -> None:
    held, report = trace("loadgen_trace_server.json.gz")
    summary, _ = loadgen.read(SAMPLES / "loadgen_summary_server.txt", True)
    assert b'""loadgen_version""' in unpacked(SAMPLES / "loadgen_trace_server.json.gz")
    latencies, told = took(held), summary.points[0].latency
    assert (latencies[0], latencies[-1]) == (told["min"], told["max"])
    assert (latencies[100], latencies[198]) == (told["p50"], told["p99"])
    assert held.paced
    late = held.trace.requests["enqueued"] - held.trace.requests["scheduled"]
    assert np.all(late >= 0)
    assert int((late > 1_000_000).sum()) > 0
    assert report.used == 200


@pytest.mark.parametrize(
    ("told", "dropped"),
    [
        ('"issue_start_ns":0', loadgen_trace.NO_SAMPLE),
        ('"issue_start_ns":0,"complete_ns":99999999999999999999', loadgen_trace.NO_SAMPLE),
        ('"issue_start_ns":0,"complete_ns":8999999999999999999', loadgen_trace.NO_SAMPLE),
        ('"issue_start_ns":0,"complete_ns":-5', loadgen_trace.BACKWARDS),
        ('"issue_start_ns":-1,"complete_ns":5', loadgen_trace.BACKWARDS),
    ],
)
def test_samples_that_are_none_are_counted(told: str, dropped: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(HEAD + SAMPLE % (0, "1.5", '"issue_start_ns":0,"complete_ns":7') + SAMPLE % (1, "2", told))
    held, report = loadgen_trace.read(path, False)
    assert (report.rows, report.used, report.dropped) == (2, 1, {dropped: 1})
    assert took(held) == [7]
    with pytest.raises(DataError, match=dropped):
        loadgen_trace.read(path, True)


def test_a_trace_without_samples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(HEAD)
    with pytest.raises(DataError, match="without anything to read: it has no samples"):
        loadgen_trace.read(path, False)


def log(name: str) -> Summary:
    return loadgen.read(SAMPLES / name, True)[0]


def test_the_known_summary_of_a_server() -> None:
    held = log("loadgen_summary_tpuv3.txt")
    [point] = held.points
    assert (point.name, point.count, point.offered, point.achieved) == ("Server", 270_336, 320.15, 320.12)
    assert point.latency == {
        "min": 76_615_258, "mean": 83_677_231, "p50": 83_033_979, "p90": 88_706_735, "p95": 89_758_743,
        "p97": 91_767_720, "p99": 96_614_936, "p99.9": 105_957_145, "max": 133_827_288,
    }  # fmt: skip
    assert (held.paced, held.short, held.bound) == (True, (), None)
    assert held.facts["target latency"] == "100 ms, at a percentile that this file does not say"


def test_the_known_detail_log_of_that_server_holds_what_was_asked_for_and_no_result() -> None:
    held = log("loadgen_detail_tpuv3.txt")
    [point] = held.points
    assert (round(point.offered or 0, 2), point.latency, held.bound) == (320.15, {}, ("p99", 100_000_000))
    assert held.instead.startswith("the summary of the same run")


def test_a_single_stream_has_no_arrivals_of_its_own() -> None:
    held = log("loadgen_summary_icelake.txt")
    assert (held.paced, held.points[0].offered, held.points[0].achieved) == (False, None, 152.62)
    assert (held.points[0].latency["p90"], held.bound) == (6_670_900, None)
    assert log("loadgen_detail_icelake.txt.gz").paced is False


def test_the_new_detail_log_says_what_its_summary_says_and_more() -> None:
    detail, summary = log("loadgen_detail_server.txt.gz"), log("loadgen_summary_server.txt")
    assert detail.points[0].latency == summary.points[0].latency
    assert detail.points[0].count == summary.points[0].count == 200
    assert detail.bound == ("p99", 100_000_000)
    assert detail.short == summary.short == ("early stopping asks for more queries",)
    assert "Max query count reached" in detail.facts["errors"]


def test_a_broken_line_of_a_new_log_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text(':::MLLOG {"key": "effective_scenario", "value": "Server"}\n:::MLLOG {"key": "res\n')
    held, report = loadgen.read(path, False)
    assert (held.points[0].name, report.dropped) == ("Server", {loadgen.NO_JSON: 1})
    with pytest.raises(DataError, match=loadgen.NO_JSON):
        loadgen.read(path, True)
