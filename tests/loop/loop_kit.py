"""A whole study for the loop's tests: the null backend, a written trace, a few seconds of traffic.

The plumbing is what is tested here. Whatever is claimed of serving is tested on real runtimes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = """
name = "plumbing"

[model]
path = "network.bin"
revision = "1"

[[model.inputs]]
name = "x"
shape = ["batch", "width"]

[[model.outputs]]
name = "y"
crop = [{ axis = 1, dim = "width" }]

[dims.width]
lo = 1
hi = 100

[workload]
rate = 250.0
tune_share = 0.4

[workload.arrivals]
file = "trace.csv"
time = "t"

[workload.shapes]
dims = { width = "width" }
stream = "client"

[sla]
metric = "p95"
bound_ms = 40.0

[envelope]
cores = [0, 1]
driver_core = 0

[baseline]
id = "today"

[baseline.compile]
backend = "null"
entries = [{ id = "any", kind = "dynamic", lo = [1], hi = [100], batch = [1, 4] }]
fallback = "any"
options = { base_us = "300", per_unit_us = "5", first_us = "4000" }

[space]
buckets = [2]
warm_shapes = [20]

[[guards]]
metric = "p99"
margin = 0.5

[quality]
reference = "null"
samples = 4

[budget]
time = "60s"
replays = 2
profile_points = 6
profile_repeats = 5
replay_s = 1.2
"""


def trimtab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line in a fresh process."""
    return subprocess.run(
        [sys.executable, "-m", "trimtab", *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


def need_two_cores() -> None:
    """Skip where cores 0 and 1 are not ours: the load generator and the worker have one each."""
    if {0, 1} - os.sched_getaffinity(0):
        pytest.skip("needs cores 0 and 1")


def write_study(folder: Path, text: str = STUDY, requests: int = 1500) -> Path:
    """The study with its trace and its (empty) network; returns the study's path."""
    rng = np.random.default_rng(7)
    times = np.cumsum(rng.exponential(0.01, requests))
    widths = rng.integers(1, 101, requests)
    rows = [f"{t:.6f},{w},client-{i % 3}" for i, (t, w) in enumerate(zip(times, widths, strict=True))]
    (folder / "trace.csv").write_text("\n".join(["t,width,client", *rows]) + "\n")
    (folder / "network.bin").write_bytes(b"the null backend reads no network")
    path = folder / "study.toml"
    path.write_text(text)
    return path


class Silent:
    """Progress that nobody watches; remembers what was said."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        self.said.append((stage, note))
