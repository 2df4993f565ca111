"""The times of trtexec (``--exportTimes``): for each inference the enqueue on the host, copies and compute, in ms.

An inference becomes a launch on the host and, launched by it, copies and one piece of work on the device; it runs from
the start of its copy in to the end of its copy out. trtexec enqueues ahead, so work may wait for the inference before
it: that is no cost of launching. Host times are taken by its clock, device times from events on the stream, so work may
seem to start before its enqueue.

Streams (``--streams``) are not told apart in the file.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Spans
from trimtab.readers._events import Events
from trimtab.readers._format import Format
from trimtab.readers._json import opening
from trimtab.readers._spans import Ints, report, table, us_to_ns
from trimtab.readers._walk import NONE

NAME = "trtexec times"
NO_TIMES = "without its times"
BACKWARDS = "it ends before it starts"
HOST, STREAM, WHOLE = range(3)
LANES = ("host", "device", "inferences")
NAMES = ("enqueue", "copy to the device", "compute", "copy to the host", "inference")


class _Times(msgspec.Struct, gc=False):
    enqueue: float = msgspec.field(default=NONE, name="startEnqMs")
    enqueued: float = msgspec.field(default=NONE, name="endEnqMs")
    copy_in: float = msgspec.field(default=NONE, name="startH2dMs")
    copied_in: float = msgspec.field(default=NONE, name="endH2dMs")
    compute: float = msgspec.field(default=NONE, name="startComputeMs")
    computed: float = msgspec.field(default=NONE, name="endComputeMs")
    copy_out: float = msgspec.field(default=NONE, name="startD2hMs")
    copied_out: float = msgspec.field(default=NONE, name="endD2hMs")


PARTS = (
    ("enqueue", "enqueued", "launch", HOST),
    ("copy_in", "copied_in", "copy", STREAM),
    ("compute", "computed", "kernel", STREAM),
    ("copy_out", "copied_out", "copy", STREAM),
    ("copy_in", "copied_out", "run", WHOLE),
)
"""Begin, end, kind and lane of what an inference consists of, in the order of NAMES."""


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The inferences of ``path`` as spans, and how they were read. DataError for what is no such file."""
    events = Events(path, _Times)
    found = [one for piece in events.pieces() for one in piece]
    starts, ends = (_edges(found, names) for names in ([part[0] for part in PARTS], [part[1] for part in PARTS]))
    known = (starts[1] & ends[1]).all(axis=0)
    forward = (ends[0] >= starts[0]).all(axis=0)
    keep = known & forward
    dropped = Counter({NO_TIMES: int((~known).sum()), BACKWARDS: int((known & ~forward).sum())})
    told = report(
        path, NAME, rows=events.seen, used=int(keep.sum()), unit="inferences", dropped=dropped + events.dropped,
        strict=strict, notes=() if events.complete else ("the file ends before its list does",),
    )  # fmt: skip
    columns = _columns(starts[0][:, keep], ends[0][:, keep])
    spans = Spans(
        tool=NAME, table=table(columns, len(columns["start"])), names=NAMES, lanes=LANES, complete=events.complete
    )
    return spans, told


def _edges(found: list[_Times], names: list[str]) -> tuple[Ints, NDArray[np.bool_]]:
    """The times of one name for each part, int64[parts, inferences] ns, and which are times."""
    values = [[getattr(one, name) * 1000 for one in found] for name in names]
    ns, known = us_to_ns(np.array(values, dtype=np.float64).reshape(len(PARTS), len(found)))  # type: ignore[arg-type]
    return ns, known


def _columns(starts: Ints, ends: Ints) -> dict[str, NDArray[Any]]:
    """Spans by start; copies that took no time are none."""
    parts, count = starts.shape
    part = np.repeat(np.arange(parts), count)
    inference = np.tile(np.arange(count), parts)
    start, end = starts.reshape(-1), ends.reshape(-1)
    kinds = np.array([KIND[kind] for _, _, kind, _ in PARTS], dtype=np.int64)
    lanes = np.array([lane for _, _, _, lane in PARTS], dtype=np.int64)
    there = (kinds[part] != KIND["copy"]) | (end > start)
    rows = np.flatnonzero(there)[np.argsort(start[there], kind="stable")]
    part, inference = part[rows], inference[rows]
    launch_row = np.empty(count, dtype=np.int64)
    launch_row[inference[part == 0]] = np.flatnonzero(part == 0)
    on_device = lanes[part] == STREAM
    first = int(start.min())
    return {
        "start": start[rows] - first,
        "end": end[rows] - first,
        "kind": kinds[part],
        "name": part,
        "lane": lanes[part],
        "device": np.where(on_device, 0, NEVER),
        "launch": np.where(on_device, launch_row[inference], NEVER),
    }


def holds(head: bytes) -> bool:
    """An array whose objects begin with the enqueue."""
    start = opening(head)[:4096]
    return start.startswith(b"[") and b'"startEnqMs"' in start and b'"startComputeMs"' in start


FORMAT = Format(NAME, holds, read)
