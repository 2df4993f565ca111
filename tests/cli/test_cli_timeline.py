"""``trimtab diagnose`` on profiles and logs: what people read, the JSON, several files, mistakes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from trimtab.cli.app import main

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"


def output(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["diagnose", *arguments]) == 0
    return " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("kineto_alexnet.json.gz",
         ["read as: PyTorch profiler trace", "kernels 79 kernels 79 matched to a launch", "start p50 441 us",
          "class: insufficient-evidence", "next measurement: a recording after warm-up"]),
        ("kineto_cpu_only_rank34.json.gz",
         ["class: insufficient-evidence", "at least 90 runs of the network in one recording; 1 are there"]),
        ("ort_5shapes.json.gz",
         ["read as: ONNX Runtime profile", "1x3x224x224", "p50", "class: insufficient-evidence",
          "the first runs of 4 of 5 shapes took 17.6 ms longer"]),
        ("torch_trace_rank3.log.gz",
         ["read as: torch.compile trace", "all 7 compiles 6 of code that had been compiled",
          "first 10,283 ms", "class: cold-shape (compiler lead)", "6 of 7 compiles are recompiles for a size"]),
        ("kineto_torch_2_13_cpu.json.gz",
         ["count 110 runs", "7x64 11", "class: cold-shape (compiler lead), 100 % of", "of 110 runs compiled"]),
        ("torch_2_13_recompiles.txt.gz",
         ["class: mapping-fallback", "recompile_limit (8) was reached by answer", "how long each compile took"]),
        ("torch_trace_comp_failure.log.gz", ["class: mapping-fallback", "BackendCompilerFailed"]),
        ("loadgen_trace_hailo8.json.gz",
         ["read as: MLPerf LoadGen trace", "p50 12.03 ms", "class: insufficient-evidence", "no arrivals made this tail",
          "next measurement: replay at the arrival times of real traffic", "500 of 500 samples used"]),
        ("loadgen_trace_server.json.gz",
         ["class: invalid-measurement", "loader slip p95", "this run's latencies are not those of the schedule"]),
        ("triton_trace_docs.json",
         ["read as: Triton trace", "queue 0.09568 ms 3.1 %", "run 2.654 ms", "class: insufficient-evidence",
          "times are the server's own"]),
        ("perf_analyzer_inception.csv",
         ["read as: perf_analyzer report", "concurrency 4 84.2 47.05 56.55 59.23 64.89", "no arrivals made these",
          "server queue is 70.8 % of the mean latency at concurrency 4"]),
        ("model_analyzer_rates.csv",
         ["read as: Model Analyzer results", "does not say how many requests its percentiles rest on"]),
        ("aiperf_docs.jsonl", ["read as: AIPerf record export", "1 of 2 requests failed"]),
        ("loadgen_summary_tpuv3.txt",
         ["read as: MLPerf LoadGen log", "requests 270,336 requests", "offered 320.1 1/s", "p99 96.61 ms",
          "class: insufficient-evidence", "what the tail must hold (--sla p99=...)"]),
    ],
)  # fmt: skip
def test_what_people_read(file: str, lines: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    found = output(capfd, str(SAMPLES / file))
    for line in lines:
        assert line in found


def test_the_json_of_a_timeline(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capfd, str(SAMPLES / "torch_trace_rank3.log.gz"), "--json"))
    assert found["classes"][0]["class"] == "cold-shape"
    assert found["read"]["format"] == "torch.compile trace"
    [compiles] = [one for one in found["tables"] if one["id"] == "timeline.compiles"]
    assert compiles["columns"]["took, ms"][0] == 10283.4


def test_a_log_tells_what_its_summary_was_held_to(capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(SAMPLES / f"loadgen_{kind}_tpuv3.txt") for kind in ("summary", "detail")]
    found = json.loads(output(capfd, *files, "--json"))["files"]
    assert [one["classes"][0]["class"] for one in found] == ["healthy", "insufficient-evidence"]
    assert found[0]["classes"][0]["evidence"][0].startswith("the latency that the run itself was held to is met")
    held = json.loads(output(capfd, files[0], "--sla", "p99=90ms", "--json"))
    assert held["classes"][0]["evidence"] == ["p99 is 96.6 ms; the SLA is 90 ms"]
    assert {one["id"]: one["value"] for one in held["tail"]}["summary.latency.p99"] == 96.614936


def test_several_files_each_with_its_own_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("start_s,latency_ms\n0,1\n")
    files = [str(SAMPLES / "ort_5shapes.json.gz"), str(table)]
    found = json.loads(output(capfd, *files, "--json"))
    assert [one["read"]["format"] for one in found["files"]] == ["ONNX Runtime profile", "table of requests"]
    text = output(capfd, *files)
    assert "== ort_5shapes.json.gz ==" in text
    assert "== t.csv ==" in text


def test_compiles_of_a_log_are_joined_to_the_requests_that_they_hit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start, usual = 1753139515.0, 0.005
    slow = {40 * k: 0.08 for k in range(15)}
    rows = [f"{start + k / 10:.6f},{1000 * slow.get(k, usual)}" for k in range(600)]
    (tmp_path / "t.csv").write_text("\n".join(["start_s,latency_ms", *rows]))
    prefix = "V0721 16:11:45.671000 98102 torch/_dynamo/utils.py:1900]"
    lines = [
        f'{prefix} {{"compilation_metrics": {{"co_name": "fn", "start_time": {start + k / 10 + 0.001:.6f}, '
        f'"entire_frame_compile_time_s": 0.07}}, "frame_id": 0, "frame_compile_id": {n + 1}}}'
        for n, k in enumerate(slow)
    ]
    (tmp_path / "t.log").write_text("\n".join(lines))
    found = json.loads(output(capfd, str(tmp_path / "t.csv"), str(tmp_path / "t.log"), "--sla", "p99=20ms", "--json"))
    table = found["files"][0]
    assert "15 of 15 compiles of t.log fall into a request: stage compile" in table["read"]["notes"]
    assert [one["class"] for one in table["classes"]] == ["cold-shape"]


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["memory_timeline.raw.gz"], 4, "is a PyTorch memory timeline"),
        (["otlp_example.json"], 4, "is an OpenTelemetry trace"),
        (["ort_5shapes.json.gz", "--column", "a=b"], 2, "--column is for tables of requests"),
        (["ort_5shapes.json.gz", "--baseline", "x.csv"], 2, "--baseline is for tables of requests"),
        (["nothing.json"], 4, "there is no file"),
    ],
)
def test_mistakes(arguments: list[str], code: int, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(SAMPLES / arguments[0]), *arguments[1:]]) == code
    assert what in " ".join(capfd.readouterr().err.split())


def test_names_in_a_file_are_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"ph": "X", "name": "[red]<b>\\u001b[2J\\u0007", "ts": 0, "dur": 5, "pid": 1, "tid": 1}]')
    assert main(["diagnose", str(path)]) == 0
    out = capfd.readouterr().out
    assert "[red]<b>[2J" in out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_a_server_that_is_too_slow_for_its_arrivals(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    draw, due, free, points = random.Random(1), 0.0, 0.0, []
    for number in range(1500):
        due += draw.expovariate(85)
        begin = max(due, free)
        free = begin + 0.01
        passed = {"REQUEST_START": due, "QUEUE_START": due, "COMPUTE_START": begin, "COMPUTE_END": free,
                  "REQUEST_END": free}  # fmt: skip
        stamps = [{"name": name, "ns": 10**15 + int(at * 1e9)} for name, at in passed.items()]
        points.append({"id": number + 1, "model_name": "net", "timestamps": stamps})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(points))
    found = json.loads(output(capfd, str(path), "--sla", "p99=50ms", "--json"))
    assert [one["class"] for one in found["classes"]] == ["capacity-queueing"]
