"""A plain Chrome trace: spans of any tool, without a meaning that this page would know. Object or array, cut or whole.

Its categories say nothing that tools agree on, so every span is ``other``: where time went by name and by lane can be
said, what a device waited for cannot.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from trimtab.domain.imported import ReadReport
from trimtab.domain.spans import KIND, Spans
from trimtab.readers._events import text_of, value_of
from trimtab.readers._format import Format
from trimtab.readers._json import opening
from trimtab.readers._spans import SINCE_1970, report, table, texts
from trimtab.readers._walk import Event, Id, Walk

NAME = "Chrome trace"
_MOST_LABELS = 10_000


class _Named(Event, gc=False):
    args: msgspec.Raw = msgspec.Raw(b"{}")


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The spans of ``path``, and how they were read. DataError for what is no trace, or has no span."""
    threads: dict[tuple[Id, Id], str] = {}

    def label(event: _Named) -> None:
        if event.name == "thread_name" and len(threads) < _MOST_LABELS:
            args = value_of(event.args)
            threads[event.pid, event.tid] = str(args.get("name", ""))[:200] if isinstance(args, dict) else ""

    walk = Walk(path, _Named, lambda events: {}, label=label)
    walk.read()
    rows = walk.rows
    read = report(
        path, NAME, rows=walk.events.seen, used=rows, unit="events", dropped=walk.dropped, strict=strict,
        ignored=walk.ignored, notes=walk.notes,
    )  # fmt: skip
    columns = {**walk.columns, "kind": np.full(rows, KIND["other"])}
    lanes = tuple(lane_text(*lane, threads.get(lane, "")) for lane in walk.lanes)
    spans = Spans(
        tool=text_of(walk.events.beside.get("traceName")) or NAME,
        table=table(columns, rows),
        names=texts(walk.names),
        lanes=(*lanes, "(other lanes)"),
        origin=walk.first if walk.first > SINCE_1970 else None,
        complete=walk.events.complete,
    )
    return spans, read


def lane_text(pid: Id, tid: Id, name: str) -> str:
    """A thread's name."""
    own = f"thread {tid}" if name == "" else f"{name} ({tid})"
    return f"{own} of process {pid}"


def holds(head: bytes) -> bool:
    """An object with ``traceEvents``, or an array of objects that have a phase."""
    start = opening(head)[:1]
    if start == b"{":
        return b'"traceEvents"' in head
    return start == b"[" and b'"ph"' in head


FORMAT = Format(NAME, holds, read)
