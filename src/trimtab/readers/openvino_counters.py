"""The counters of OpenVINO's benchmark_app (``-report_type average_counters`` or ``detailed_counters``): time by layer.

``execType`` names the implementation and, behind the last underscore, the type in which it runs
(``brgconv_avx512_amx_bf16``). A detailed report has one block for each request that was in flight; a layer's time is
the mean over these. With ``-pcseq`` all shapes are in one average.

The JSON of ``average_counters`` holds the first layer only (benchmark_app 2023 to 2026 drops the others), and is
refused.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from trimtab.domain.dtypes import dtype_name
from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.summary import Layer, Summary
from trimtab.errors import DataError
from trimtab.readers._events import text_of
from trimtab.readers._file import whole
from trimtab.readers._format import Format
from trimtab.readers._json import document, opening
from trimtab.readers._spans import report
from trimtab.readers._summed import MS, duration

NAME = "OpenVINO benchmark_app counters"
LARGEST = 64 << 20
NO_LAYER = "no layer with a time"
INSTEAD = "requests with their shapes and arrival times: time by layer says nothing of a tail"
MEANS = "a layer's time is a mean over all runs, of all shapes together"
_HEADER = b"layerName;execStatus;layerType;execType;realTime (ms)"
_MOVES = ("Reorder", "Convert", "Reshape", "Transpose")


class _Node(msgspec.Struct, gc=False):
    name: str = ""
    node_type: str = ""
    exec_type: str = ""
    real_time: msgspec.Raw = msgspec.Raw(b"null")


class _Block(msgspec.Struct, gc=False):
    nodes: list[_Node] = []


class _Counters(msgspec.Struct, gc=False):
    report_type: str = ""
    detailed_performance: list[_Block] = []
    avg_performance: _Block | None = None


Row = tuple[str, str, str, Ns]
"""Name, kind, implementation, time."""


def read(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """The layers of ``path``, and how they were read. DataError for what is no such report."""
    text = whole(path, LARGEST)
    packed = opening(text).startswith(b"{")
    rows = _json_rows(path, text) if packed else _csv_rows(text)
    known = [row for row in rows if row[0] and row[3] != NEVER]
    told = report(
        path, NAME, rows=len(rows), used=len(known), unit="layers", dropped=Counter({NO_LAYER: len(rows) - len(known)}),
        strict=strict, notes=(MEANS,),
    )  # fmt: skip
    return Summary(tool=NAME, layers=_layers(known), instead=INSTEAD), told


def _layers(rows: list[Row]) -> tuple[Layer, ...]:
    """One layer a name, in the order of running; its time is the mean over the blocks that have it."""
    times: dict[str, list[Ns]] = {}
    for name, _, _, took in rows:
        times.setdefault(name, []).append(took)
    first = {name: (kind, ran) for name, kind, ran, _ in reversed(rows)}
    return tuple(
        Layer(
            name=name[:400],
            kind=first[name][0][:80],
            took=round(sum(took) / len(took)),
            dtype=dtype_name(first[name][1].rpartition("_")[2]),
            moves=_moves(name, first[name][0]),
        )
        for name, took in times.items()
    )


def _moves(name: str, kind: str) -> bool:
    """Whether a layer only changes type or layout. A fused group bears the name of its last layer."""
    return kind in _MOVES or (kind == "Subgraph" and name.startswith("Convert"))


def _csv_rows(text: bytes) -> list[Row]:
    rows = []
    for line in text.decode(errors="replace").splitlines():
        cells = line.strip().rsplit(";", 5)
        if not line.strip() or cells[0] in ("layerName", "Total"):
            continue
        complete = len(cells) == 6
        rows.append((cells[0], cells[2], cells[3], duration(cells[4], MS)) if complete else ("", "", "", NEVER))
    return rows


def _json_rows(path: Path, text: bytes) -> list[Row]:
    found = document(path, text, _Counters, NAME, "copy it again")
    average = found.avg_performance
    if found.report_type == "average" and average is not None and len(average.nodes) <= 1:
        raise DataError(
            f"{path.name} holds the first layer only: benchmark_app writes no more into the JSON of average_counters",
            where=str(path), fix="leave -json_stats out, or ask for detailed_counters",
        )  # fmt: skip
    blocks = (*found.detailed_performance, *([average] if average is not None else []))
    nodes = [node for block in blocks for node in block.nodes]
    return [(node.name, node.node_type, node.exec_type, duration(text_of(node.real_time), MS)) for node in nodes]


def holds(head: bytes) -> bool:
    """Its headers, or the keys of its JSON."""
    start = opening(head)[: 64 << 10]
    if start.startswith(b"{"):
        return b'"report_type"' in start and (b'"detailed_performance"' in start or b'"avg_performance"' in start)
    return start.startswith(_HEADER)


FORMAT = Format(NAME, holds, read)
