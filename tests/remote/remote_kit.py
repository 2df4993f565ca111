"""A study that drives a server, and a progress that nobody watches."""

from __future__ import annotations

STUDY = """
name = "driven"

[model]
revision = "1"

[[model.inputs]]
name = "x"
shape = ["batch", "width"]

[[model.outputs]]
name = "y"

[dims.width]
lo = 1
hi = 100

[workload]
target = "kserve-v2://localhost:8001/twice"

[workload.arrivals]
file = "trace.csv"
time = "t"

[workload.shapes]
dims = { width = "width" }

[sla]
metric = "p95"
bound_ms = 40.0

[envelope]
cores = [0]
"""


class Quiet:
    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None:
        """Nobody looks."""
