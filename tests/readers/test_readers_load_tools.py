"""Triton's trace, AIPerf, perf_analyzer and Model Analyzer: known figures, and what each of them leaves unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from spans_kit import SAMPLES

from trimtab.domain.events import ERROR_KINDS
from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.readers import aiperf, formats, model_analyzer, perf_analyzer, perf_export, triton_trace


def write(path: Path, body: Any) -> Path:
    path.write_text(json.dumps(body))
    return path


def stage(held: Imported, name: str) -> list[int]:
    return [int(ns) for ns in held.stages[name]]


def latency(held: Imported) -> list[int]:
    req = held.trace.requests
    return [
        int(done - due) if done != NEVER else NEVER for done, due in zip(req["done"], req["scheduled"], strict=True)
    ]


def test_the_known_trace_of_triton() -> None:
    held, report = triton_trace.read(SAMPLES / "triton_trace_docs.json", True)
    assert (report.rows, report.used, held.trace.streams) == (1, 1, ("simple",))
    assert latency(held) == [2356425057712991 - 2356425054587444]
    assert stage(held, "queue") == [2356425054887198 - 2356425054791517]
    assert stage(held, "compute") == [2356425057540989 - 2356425054887198]
    assert held.origin is None


def stamped(number: int, *times: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": number, "timestamps": [{"name": name, "ns": ns} for name, ns in times], **more}


def test_points_of_requests_in_any_order(tmp_path: Path) -> None:
    array = [
        stamped(2, ("REQUEST_END", 900), ("COMPUTE_START", 500), ("COMPUTE_END", 800), model_name="net"),
        stamped(1, ("GRPC_WAITREAD_START", 5), ("GRPC_WAITREAD_END", 100), ("REQUEST_START", 110), model_name="net"),
        stamped(2, ("REQUEST_START", 300), ("QUEUE_START", 310)),
        stamped(1, ("QUEUE_START", 120), ("COMPUTE_START", 500), ("COMPUTE_END", 800), ("GRPC_SEND_END", 850)),
        stamped(3, ("REQUEST_START", 400), ("REQUEST_END", 600), parent_id=1),
        stamped(4, ("REQUEST_START", 400)),
        stamped(5, ("REQUEST_START", 400), ("REQUEST_END", 399)),
        {"activity": "TENSOR_QUEUE_INPUT", "id": 1, "tensor": {"name": "x", "shape": "1,3"}},
        {"timestamps": []},
    ]
    path = write(tmp_path / "t.json", array)
    held, report = triton_trace.read(path, False)
    assert held.trace.requests["scheduled"].tolist() == [0, 200]
    assert latency(held) == [750, 600]
    assert (stage(held, "queue"), stage(held, "compute")) == ([380, 190], [300, 300])
    assert len(set(held.trace.requests["batch"].tolist())) == 1  # computed together
    assert report.dropped == {triton_trace.NO_ID: 1, triton_trace.NO_TIMES: 1, triton_trace.BACKWARDS: 1}
    assert report.ignored == ("1 parts of ensembles",)
    with pytest.raises(DataError, match=triton_trace.NO_ID):
        triton_trace.read(path, True)


def test_a_trace_that_the_server_still_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    text = json.dumps([stamped(1, ("REQUEST_START", 1), ("REQUEST_END", 9)), stamped(2, ("REQUEST_START", 2))])
    path.write_text(text[: text.rindex(', "ns"')])
    held, report = triton_trace.read(path, False)
    assert latency(held) == [8]
    assert report.notes[-1].startswith("the file ends before its list does")


def test_the_known_records_of_aiperf() -> None:
    held, report = aiperf.read(SAMPLES / "aiperf_docs.jsonl", True)
    assert (report.rows, report.used) == (2, 2)
    assert latency(held) == [1759813207838764604 - 1759813207532900363, NEVER]
    assert [ERROR_KINDS[code] for code in held.trace.requests["error"]] == ["none", "unfinished"]
    assert held.trace.requests["dim.input_tokens"].tolist() == [550, 550]
    assert held.trace.requests["dim.output_tokens"].tolist() == [9, NEVER]
    assert held.origin == 1759813207532900363


@pytest.mark.parametrize(
    ("change", "dropped"),
    [
        ({"request_start_ns": "soon"}, aiperf.NO_RECORD),
        ({"request_start_ns": -1}, aiperf.NO_TIMES),
        ({"request_end_ns": None}, aiperf.NO_TIMES),
        ({"request_end_ns": 7}, aiperf.BACKWARDS),
    ],
)
def test_records_that_are_none_are_counted(change: dict[str, Any], dropped: str, tmp_path: Path) -> None:
    good = {"metadata": {"request_start_ns": 10, "request_end_ns": 20, "benchmark_phase": "profiling"}}
    warm = {"metadata": {"request_start_ns": 1, "request_end_ns": 9, "benchmark_phase": "warmup"}}
    bad = {"metadata": good["metadata"] | change}
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in (warm, good, bad)))
    held, report = aiperf.read(path, False)
    assert (latency(held), report.dropped, report.ignored) == ([10], {dropped: 1}, ("1 records of the warm-up",))
    with pytest.raises(DataError, match=dropped):
        aiperf.read(path, True)


def export(*levels: tuple[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "experiments": [{"experiment": {"mode": mode, "value": 4}, "requests": asked} for mode, asked in levels],
        "version": "1",
    }


ASKED = [
    {"timestamp": 100, "request_inputs": {"x": 1}, "response_timestamps": [300, 500]},
    {"timestamp": 50, "response_timestamps": []},
    {"timestamp": None, "response_timestamps": [3]},
    {"timestamp": 100, "response_timestamps": [60]},
]


@pytest.mark.parametrize(("mode", "paced"), [("concurrency", False), ("request_rate", True)])
def test_the_request_export_of_perf_analyzer(mode: str, paced: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "p.json", export((mode, ASKED)))
    known = formats.find(path)
    assert known is perf_export.FORMAT
    held, report = perf_export.read(path, False)
    assert (latency(held), held.paced) == ([NEVER, 400], paced)
    assert [ERROR_KINDS[code] for code in held.trace.requests["error"]] == ["unfinished", "none"]
    assert report.dropped == {perf_export.NO_TIMES: 1, perf_export.BACKWARDS: 1}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (export(("concurrency", ASKED), ("concurrency", ASKED)), "2 levels of load: together they are traffic"),
        (export(), "0 levels of load"),
        ({"experiments": 3, "response_timestamps": 1}, "no whole perf_analyzer request export"),
    ],
)
def test_an_export_that_is_no_one_run_is_refused(body: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        perf_export.read(write(tmp_path / "p.json", body), False)


def test_the_known_report_of_perf_analyzer() -> None:
    held, report = perf_analyzer.read(SAMPLES / "perf_analyzer_inception.csv", True)
    assert (report.rows, report.used, held.paced) == (4, 4, False)
    assert [(point.clients, point.achieved) for point in held.points] == [(1, 69.2), (2, 87.2), (3, 84.2), (4, 84.2)]
    last = held.points[-1]
    assert last.latency == {"p50": 47_045_000, "p90": 56_545_000, "p95": 59_225_000, "p99": 64_886_000}
    assert last.stages["server queue"] == 33_669_000
    assert sum(last.stages.values()) == 47_535_000  # = clients / throughput, as Little's law has it
    assert last.count is None


def test_a_level_without_its_numbers_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Request Rate,Inferences/Second,Server Queue,p99 latency\n10,9.9,5,70\nten,1,1,1\n20,,nan,inf\n")
    held, report = perf_analyzer.read(path, False)
    [point] = held.points
    assert (point.name, point.offered, point.clients, point.latency) == ("request rate 10", 10, None, {"p99": 70_000})
    assert (held.paced, report.dropped) == (True, {perf_analyzer.NO_POINT: 2})


def test_the_known_results_of_model_analyzer() -> None:
    held, report = model_analyzer.read(SAMPLES / "model_analyzer_single.csv", True)
    assert (report.used, held.paced, held.facts["against their constraints"]) == (16, False, "0")
    by_name = {point.name: point for point in held.points}
    found = by_name["add_sub_config_default, batch 2, concurrency 2"]
    assert (found.achieved, found.latency, found.count) == (13_205.0 / 2, {"p99": 500_000}, None)
    rates, report = model_analyzer.read(SAMPLES / "model_analyzer_rates.csv", True)
    assert (report.used, rates.paced, rates.points[0].offered) == (34, True, 16)


def test_means_of_gpus_are_refused_by_name() -> None:
    with pytest.raises(DataError, match="Model Analyzer's means of its GPUs") as caught:
        formats.find(SAMPLES / "model_analyzer_gpu.csv")
    assert "metrics-model-inference.csv" in caught.value.fix


def test_a_table_of_requests_that_names_a_model_is_left_to_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Model,start_s,latency_ms,Latency (ms)\nnet,0,1,1\n")
    assert formats.find(path) is None
