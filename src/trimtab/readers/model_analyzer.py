"""The results of Triton's Model Analyzer (``metrics-model-inference.csv``): a row for each configuration and load.

It holds one percentile a row, in ms with one digit behind the point, and neither how many requests it rests on nor the
stages. Throughput counts inferences: a request of batch 2 is two.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.summary import Point, Summary
from trimtab.readers._format import Format
from trimtab.readers._rows import Text
from trimtab.readers._spans import report
from trimtab.readers._summed import MS, count, duration, number, table_rows

NAME = "Model Analyzer results"
NO_POINT = "no load or no latency"
_LATENCY = re.compile(r"(p\d\d?(?:\.\d+)?|Avg) Latency \(ms\)")
_THROUGHPUT = "Throughput (infer/sec)"


def read(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """The measurements of ``path``, by model, configuration and batch. DataError where it holds none."""
    names, rows = table_rows(path, "the results of Model Analyzer")
    points = [point for row in rows if (point := _point(row)) is not None]
    dropped = Counter({NO_POINT: len(rows) - len(points)})
    told = report(path, NAME, rows=len(rows), used=len(points), unit="rows", dropped=dropped, strict=strict)
    broken = sum(row.get("Satisfies Constraints") == "No" for row in rows)
    paced = "Request Rate" in names and "Concurrency" not in names
    facts = {"measurements": str(len(points)), "against their constraints": str(broken)}
    return Summary(
        tool=NAME,
        points=tuple(sorted(points, key=lambda point: (point.setting, point.clients or point.offered or 0.0))),
        paced=paced,
        facts=facts,
        instead="every request of the best configuration (perf_analyzer --profile-export-file)",
    ), told


def _point(row: dict[str, Text]) -> Point | None:
    latency: dict[str, Ns] = {}
    for name, text in row.items():
        found = _LATENCY.fullmatch(name)
        if found is not None and (took := duration(text, MS)) != NEVER:
            latency["mean" if found[1] == "Avg" else found[1]] = took
    clients, rate, batch = number(row.get("Concurrency")), number(row.get("Request Rate")), count(row.get("Batch"))
    if not latency or (clients is None and rate is None):
        return None
    setting = f"{row.get('Model Config Path') or row.get('Model')}, batch {batch or '?'}"
    load = f"concurrency {clients:g}" if clients is not None else f"{rate:g} requests/s"
    inferences = number(row.get(_THROUGHPUT))
    return Point(
        name=f"{setting}, {load}",
        setting=setting,
        clients=clients,
        offered=rate if clients is None else None,
        achieved=inferences / batch if inferences is not None and batch else None,
        latency=latency,
    )


def holds(head: bytes) -> bool:
    """Its headers, in whatever order and number they were asked for."""
    names = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace").strip().split(",")
    loaded = "Concurrency" in names or "Request Rate" in names
    return names[0] == "Model" and loaded and any(_LATENCY.fullmatch(name) for name in names)


FORMAT = Format(NAME, holds, read)
