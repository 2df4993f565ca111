"""Real outputs of tools, one by one: each is read with its known figures, or refused by name; none is missing here.

The digests are those of the files as their tools wrote them, unpacked, so that nobody mends a sample.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from spans_kit import SAMPLES, unpacked

from trimtab.domain.imported import Imported
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Spans
from trimtab.domain.summary import Summary
from trimtab.errors import DataError
from trimtab.evidence.stats.quantiles import quantile
from trimtab.evidence.summary.layers import types
from trimtab.readers import formats
from trimtab.readers._format import Held

Known = dict[str, float]


def facts(held: Held) -> Known:
    """What a file is known for, by kind."""
    if isinstance(held, Spans):
        return _of_spans(held)
    return _of_requests(held) if isinstance(held, Imported) else _of_summary(held)


def _of_spans(spans: Spans) -> Known:
    table = spans.table
    kernels = np.flatnonzero(table["kind"] == KIND["kernel"])
    linked = kernels[table["launch"][kernels] != NEVER]
    delays = table["start"][linked] - table["start"][table["launch"][linked]]
    took = [one.took for one in spans.compiles if one.took != NEVER]
    return {
        "runs": int((table["kind"] == KIND["run"]).sum()),
        "operators": int((table["kind"] == KIND["op"]).sum()),
        "kernels": kernels.size,
        "launched": linked.size,
        "launch to start p50, us": quantile(delays, 0.5) / 1e3 if delays.size else 0,
        "compiles": len(spans.compiles),
        "longest compile, ms": round(max(took, default=0) / 1e6),
    }


def _of_requests(held: Imported) -> Known:
    latency = held.trace.latency
    return {
        "requests": latency.size,
        "failed": int(np.isinf(latency).sum()),
        "p50, us": round(float(np.sort(latency)[latency.size // 2]) * 1e6) if np.isfinite(latency).all() else 0,
        "paced": float(held.paced),
    }


def _of_summary(held: Summary) -> Known:
    first = held.points[0] if held.points else None
    return {
        "points": len(held.points),
        "layers": len(held.layers),
        "p99 of the first, us": (first.latency.get("p99", 0) if first else 0) / 1e3,
        "left out": len(held.refused),
    } | {f"share of {name}": round(share, 3) for name, share in types(held.layers).items()}


READ: dict[str, tuple[str, str, Known]] = {
    "aiperf_docs.jsonl": ("02f32cfcca16497a", "AIPerf record export", {"requests": 2, "failed": 1, "paced": 1}),
    "kineto_amd_mi250.json.gz": (
        "7a4da34c06fe6f40", "PyTorch profiler trace",
        {"runs": 2, "operators": 70, "kernels": 14, "launched": 14, "launch to start p50, us": 13.039},
    ),
    "kineto_backward_thread.json": (
        "73c6e40249b5d31e", "PyTorch profiler trace",
        {"runs": 1, "operators": 3, "kernels": 1, "launched": 1, "launch to start p50, us": 64_135},
    ),
    "kineto_cpu_only_rank34.json.gz": ("c9d57454bd5b2572", "PyTorch profiler trace", {"runs": 1, "operators": 4}),
    "kineto_alexnet.json.gz": (
        "da1634f4e99b777a", "PyTorch profiler trace",
        {"operators": 359, "kernels": 79, "launched": 79, "launch to start p50, us": 441},
    ),
    "kineto_triton_example.json.gz": (
        "70292d2576997267", "PyTorch profiler trace",
        {"runs": 1, "operators": 3, "kernels": 1, "launched": 1, "launch to start p50, us": 45.426},
    ),
    "loadgen_detail_tpuv3.txt": ("a4383265a3321012", "MLPerf LoadGen log", {"points": 1}),
    "loadgen_summary_tpuv3.txt": (
        "41673c8c8240cb78", "MLPerf LoadGen log", {"points": 1, "p99 of the first, us": 96_614.936},
    ),
    "loadgen_detail_icelake.txt.gz": ("0d6ad3160f0fa317", "MLPerf LoadGen log", {"points": 1}),
    "loadgen_summary_icelake.txt": (
        "9880c9182d75536d", "MLPerf LoadGen log", {"points": 1, "p99 of the first, us": 7198.1},
    ),
    "loadgen_trace_hailo8.json.gz": (
        "f732b7096c707018", "MLPerf LoadGen trace", {"requests": 500, "p50, us": 12_035},
    ),
    "model_analyzer_rates.csv": (
        "b730665e89fc1003", "Model Analyzer results", {"points": 34, "p99 of the first, us": 1500},
    ),
    "model_analyzer_single.csv": (
        "5843af64db50716a", "Model Analyzer results", {"points": 16, "p99 of the first, us": 600},
    ),
    "openvino_report_pcseq.json": (
        "cb1b6a6a82b6a1d8", "OpenVINO benchmark_app report", {"points": 1, "left out": 1},
    ),
    "openvino_report_pcseq.csv": ("047f5dd5c5f88e6f", "OpenVINO benchmark_app report", {"points": 4}),
    "openvino_counters_pcseq.csv": (
        "731db664b0602a3c", "OpenVINO benchmark_app counters", {"layers": 12, "share of bfloat16": 1},
    ),
    "ort_5shapes.json.gz": (
        "80f382a63e011b37", "ONNX Runtime profile", {"runs": 20, "operators": 120},
    ),
    "perf_analyzer_inception.csv": (
        "0812ae9b5872c601", "perf_analyzer report", {"points": 4, "p99 of the first, us": 21_018},
    ),
    "torch_trace_artifacts.log.gz": (
        "c4719f4e89908de7", "torch.compile trace", {"compiles": 1, "longest compile, ms": 8904},
    ),
    "torch_trace_comp_failure.log.gz": (
        "5cc5d178168279c1", "torch.compile trace", {"compiles": 1, "longest compile, ms": 157},
    ),
    "torch_trace_comp_metrics.log.gz": (
        "45aa77371c605045", "torch.compile trace", {"compiles": 3, "longest compile, ms": 12},
    ),
    "torch_trace_rank3.log.gz": (
        "6f3d59bd9f3ae722", "torch.compile trace", {"compiles": 7, "longest compile, ms": 10_283},
    ),
    "torch_trace_simple.log.gz": (
        "27e1f6e74e7ae79d", "torch.compile trace", {"compiles": 1, "longest compile, ms": 1659},
    ),
    "triton_trace_docs.json": (
        "913c89dda91af17f", "Triton trace", {"requests": 1, "p50, us": 3126, "paced": 1},
    ),
    "trtexec_layers_mobilenet.json": ("ff500e3b104f304a", "trtexec layer information", {"layers": 2}),
    "trtexec_profile_mobilenet.json": ("88987b28e5000639", "trtexec profile", {"layers": 7}),
    "trtexec_times_mobilenet.json": (
        "10585e3a4bafc02d", "trtexec times",
        {"runs": 6, "kernels": 6, "launched": 6, "launch to start p50, us": 249.4},
    ),
}  # fmt: skip
"""Sample -> what it is, how its digest begins, what is known of it (what is not named is 0)."""

REFUSED: dict[str, tuple[str, str]] = {
    "memory_timeline.raw.gz": ("324c8f83d4311625", "a PyTorch memory timeline"),
    "otlp_example.json": ("15eba8d527a7d722", "an OpenTelemetry trace"),
    "model_analyzer_gpu.csv": ("26b496431539ecf3", "Model Analyzer's means of its GPUs"),
    "model_analyzer_server.csv": ("531ed5775be3d7c9", "Model Analyzer's means of its GPUs"),
    "small_network.onnx": ("b6e098452c933204", "an ONNX network"),
}
"""Sample -> how its digest begins, what it is called."""

OTHERS = {
    "kineto_ranks_0.json.gz", "kineto_ranks_1.json.gz", "kineto_torch_2_13_cpu.json.gz",
    "torch_trace_2_13.log.gz", "torch_2_13_recompiles.txt.gz",
    "loadgen_trace_server.json.gz", "loadgen_trace_single.json.gz", "loadgen_detail_server.txt.gz",
    "loadgen_summary_server.txt", "openvino_counters_detailed.json", "openvino_first_layer_only.json",
}  # fmt: skip
"""Samples that were made for trimtab; the tests of their readers know their figures."""


def digest(name: str) -> str:
    return hashlib.sha256(unpacked(SAMPLES / name)).hexdigest()[:16]


@pytest.mark.parametrize("name", READ)
def test_it_is_read_with_its_known_figures(name: str) -> None:
    begins, what, expected = READ[name]
    known = formats.find(SAMPLES / name)
    assert known is not None
    assert (digest(name), known.name) == (begins, what)
    held, report = known.read(SAMPLES / name, True)
    assert report.dropped == {}
    assert {fact: value for fact, value in facts(held).items() if value} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_name(name: str) -> None:
    begins, what = REFUSED[name]
    assert digest(name) == begins
    with pytest.raises(DataError, match=f"is {what}") as caught:
        formats.find(SAMPLES / name)
    assert "Read are: " in caught.value.fix


def test_no_sample_is_forgotten() -> None:
    kept = {path.name for path in SAMPLES.iterdir() if path.suffix not in (".md", ".py")}
    assert kept == {*READ, *REFUSED, *OTHERS}
