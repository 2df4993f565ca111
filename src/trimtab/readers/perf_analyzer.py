"""The CSV of Triton's perf_analyzer (``-f``): one row for each level of load, percentiles and mean stages in us.

The stages of a row are means that add up to its mean latency; ``Server Queue`` and the rest of them say nothing of the
requests behind ``p99 latency``. How many requests a row rests on, and their batch size, is not in the file.
With ``--percentile`` the first columns stay means.
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
from trimtab.readers._summed import US, duration, number, table_rows

NAME = "perf_analyzer report"
NO_POINT = "no level of load"
_LEVELS = {"Concurrency": "concurrency", "Request Rate": "request rate"}
_STAGES = ("Client Send", "Network+Server Send/Recv", "Server Queue", "Server Compute Input", "Server Compute Infer",
           "Server Compute Output", "Client Recv")  # fmt: skip
_PERCENTILE = re.compile(r"p(\d\d?(?:\.\d+)?) latency")


def read(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """The levels of ``path`` in the order of their load. DataError where it holds none."""
    names, rows = table_rows(path, "the CSV of perf_analyzer")
    level = next((name for name in names if name in _LEVELS), "")
    points = [point for row in rows if (point := _point(row, level)) is not None]
    dropped = Counter({NO_POINT: len(rows) - len(points)})
    told = report(path, NAME, rows=len(rows), used=len(points), unit="rows", dropped=dropped, strict=strict)
    ordered = sorted(points, key=lambda point: point.clients or point.offered or 0.0)
    return Summary(
        tool=NAME,
        points=tuple(ordered),
        paced=level == "Request Rate",
        instead="every request of such a run (--profile-export-file), and the server's trace (trace_rate=1)",
    ), told


def _point(row: dict[str, Text], level: str) -> Point | None:
    load = number(row.get(level))
    latency: dict[str, Ns] = {}
    if (mean := duration(row.get("Avg latency"), US)) != NEVER:
        latency["mean"] = mean
    for name, text in row.items():
        found = _PERCENTILE.fullmatch(name)
        if found is not None and (took := duration(text, US)) != NEVER:
            latency[f"p{found[1]}"] = took
    if load is None or not latency:
        return None
    stages = {name.lower(): took for name in _STAGES if (took := duration(row.get(name), US)) != NEVER}
    closed = level == "Concurrency"
    return Point(
        name=f"{_LEVELS[level]} {load:g}",
        clients=load if closed else None,
        offered=None if closed else load,
        achieved=number(row.get("Inferences/Second")),
        latency=latency,
        stages=stages,
    )


def holds(head: bytes) -> bool:
    """Its first headers."""
    first = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
    return first.startswith((b"Concurrency,Inferences/Second", b"Request Rate,Inferences/Second"))


FORMAT = Format(NAME, holds, read)
