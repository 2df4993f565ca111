"""Which format a file has, by its content: the more particular ones first. A new one = one file and one line here.

What is none of these is a table of requests (:mod:`trimtab.readers.table`) if its name says so. Well-known files that
are neither are refused by their own name, with what to give instead.
"""

from __future__ import annotations

import re
from pathlib import Path

from trimtab.errors import DataError
from trimtab.readers import (
    aiperf,
    chrome,
    kineto,
    loadgen,
    loadgen_trace,
    model_analyzer,
    openvino_benchmark,
    openvino_counters,
    ort_profile,
    perf_analyzer,
    perf_export,
    torch_logs,
    torch_trace,
    triton_trace,
    trtexec_layers,
    trtexec_times,
)
from trimtab.readers._file import first_bytes, require_file
from trimtab.readers._format import Format
from trimtab.readers._json import opening
from trimtab.readers._table import is_table

FORMATS: tuple[Format, ...] = (
    loadgen_trace.FORMAT,
    loadgen.FORMAT,
    triton_trace.FORMAT,
    aiperf.FORMAT,
    perf_analyzer.FORMAT,
    perf_export.FORMAT,
    model_analyzer.FORMAT,
    openvino_benchmark.FORMAT,
    openvino_counters.FORMAT,
    trtexec_times.FORMAT,
    trtexec_layers.FORMAT_PROFILE,
    trtexec_layers.FORMAT_INFO,
    ort_profile.FORMAT,
    kineto.FORMAT,
    chrome.FORMAT,
    torch_trace.FORMAT,
    torch_logs.FORMAT,
)
HEAD = 1 << 20
_OTHERS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (
        re.compile(rb"(?=\[\[).*\[\[-1, ", re.S),
        "a PyTorch memory timeline (raw)",
        "it holds allocations and no work: give the trace that the same profiler writes (export_chrome_trace)",
    ),
    (
        re.compile(rb'\{.*"rf_id"', re.S),
        "a Chakra execution trace",
        "it holds operators without times: give the profiler's own trace",
    ),
    (
        re.compile(rb'\{.*"resourceSpans"', re.S),
        "an OpenTelemetry trace",
        "give a table of requests made from its spans",
    ),
    (
        re.compile(rb"Model,GPU UUID.*GPU Utilization", re.S),
        "Model Analyzer's means of its GPUs",
        "it holds no latency: give metrics-model-inference.csv of the same run",
    ),
    (
        re.compile(rb"\x08[\x01-\x0f][\x12\x1a\x22\x28\x32\x3a\x42]"),
        "an ONNX network",
        "give what a run of it wrote, such as its runtime's profile; `trimtab init` makes a study of it",
    ),
)
"""How it begins, what it is, what to give instead. Of a network: its version, and the tag of its next field."""
_TABLE = "a table of requests (docs/diagnose.md), as CSV, TSV, JSONL or Parquet"


def find(path: Path) -> Format | None:
    """The format of ``path``; None for a table. DataError, naming what is supported, for anything else."""
    require_file(path, "the file to diagnose")
    head = first_bytes(path, HEAD)
    found = next((one for one in FORMATS if one.holds(head)), None)
    if found is not None:
        return found
    known = f"{', '.join(one.name for one in FORMATS)}; or {_TABLE}"
    start = opening(head)
    for begins, name, instead in _OTHERS:
        if begins.match(start[: 64 << 10]):
            raise DataError(f"{path.name} is {name}", where=str(path), fix=f"{instead}. Read are: {known}")
    if is_table(path):
        return None
    raise DataError(f"{path.name} is of no known format", where=str(path), fix=f"give one of: {known}")
