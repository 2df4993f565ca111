"""A trace of the PyTorch profiler (Kineto): operators and driver calls of the host, kernels and copies of devices.

Clocks: newer files count microseconds from ``baseTimeNanoseconds``, older ones from 1970; both keep three digits behind
the point or none.

Links: a driver call and the device work that it launched bear the same ``correlation``. Where a kernel has none, the
k-th kernel and the k-th launch of one operator (``External id``) belong together if there are equally many.

What repeats others is counted and not read: Python frames above operators, annotations repeated on the device, the
window of the recording itself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.spans import KIND, Spans
from trimtab.domain.trace import Table
from trimtab.readers._events import text_of, value_of
from trimtab.readers._format import Format
from trimtab.readers._json import opening
from trimtab.readers._runs import set_run_shapes
from trimtab.readers._shapes import NOTHING, Written, kineto_inputs
from trimtab.readers._spans import SINCE_1970, Ints, ids, report, table, texts
from trimtab.readers._walk import Event, Id, Walk
from trimtab.readers.chrome import holds as holds_events
from trimtab.readers.chrome import lane_text

NAME = "PyTorch profiler trace"
_SKIP = {
    "python_function": "frames of Python, around operators that are read",
    "gpu_user_annotation": "annotations, again on the device",
    "Trace": "windows of the recording itself",
}
_KINDS = {
    "cpu_op": "op", "operator": "op", "user_annotation": "note", "cuda_sync": "wait", "kernel": "kernel",
    "gpu_memcpy": "copy", "gpu_memset": "copy", "memcpy": "copy", "memset": "copy", "cuda_runtime": "driver",
    "cuda_driver": "driver", "runtime": "driver", "xpu_runtime": "driver", "xpu_driver": "driver",
    "overhead": "other", "cuda_profiler_range": "other",
    "privateuse1_runtime": "driver", "privateuse1_driver": "driver", "mtia_runtime": "driver",
}  # fmt: skip
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "cuda_sync"})
_LAUNCH = re.compile(r"Launch|Memcpy|Memset|Enqueue", re.IGNORECASE)
_WAIT = re.compile(r"Synchronize", re.IGNORECASE)
_STEP = re.compile(r"^ProfilerStep\s*#")
_COMPILE = re.compile(r"\(dynamo_timed\)$")
_MARKS = (b'"schemaVersion"', b'"deviceProperties"', b'"distributedInfo"', b'"cpu_op"', b'"cuda_runtime"', b'"kernel"',
          b'"Ev Idx"', b'"PyTorch Profiler"')  # fmt: skip
_BY_NAME = (
    (_LAUNCH, "driver", "launch"),
    (_WAIT, "driver", "wait"),
    (_STEP, "note", "run"),
    (_COMPILE, "op", "compile"),
)
"""Words in a name, the kind that its category gives, the kind that it is."""


class _Args(msgspec.Struct, gc=False):
    correlation: Id = None
    external: Id = msgspec.field(default=None, name="External id")
    device: Id = None
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


_NO_ARGS = _Args()


class _Kineto(Event, gc=False):
    args: _Args | None = None


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The spans of ``path``, and how they were read. DataError for what is no trace, or has no span."""
    written = Written(kineto_inputs)

    def more(events: list[_Kineto]) -> dict[str, NDArray[Any]]:
        args = [event.args or _NO_ARGS for event in events]
        return {
            "correlation": ids([-1 if one.correlation is None else one.correlation for one in args]),
            "external": ids([-1 if one.external is None else one.external for one in args]),
            "device": ids([-1 if one.device is None else one.device for one in args]),
            "inputs": written.add([_inputs(one) for one in args]),
        }

    walk = Walk(path, _Kineto, more, _SKIP)
    walk.read()
    rows = walk.rows
    read = report(
        path, NAME, rows=walk.events.seen, used=rows, unit="events", dropped=walk.dropped, strict=strict,
        ignored=walk.ignored, notes=(*walk.notes, *_unknown(walk)),
    )  # fmt: skip
    columns = dict(walk.columns)
    names, cats = texts(walk.names), texts(walk.cats)
    device = _device(columns, cats)
    kind = _kinds(columns, names, cats)
    launch = _launches(columns, kind)
    kind[launch[launch != NEVER]] = KIND["launch"]
    shape, dtype, shapes, dtypes = written.columns(columns["inputs"])
    columns |= {"kind": kind, "device": device, "launch": launch, "shape": shape, "dtype": dtype}
    origin, facts = _origin(walk.events.beside, walk.first), _facts(walk.events.beside)
    found = table(columns, rows)
    set_run_shapes(found)
    spans = Spans(
        tool=NAME, table=found, names=names, lanes=_lanes(walk, found), shapes=shapes, dtypes=dtypes, origin=origin,
        facts=facts, complete=walk.events.complete,
    )  # fmt: skip
    return spans, read


def _unknown(walk: Walk[_Kineto]) -> list[str]:
    """Categories that mean nothing here, and how many spans they have."""
    if not walk.rows:
        return []
    counts = np.bincount(walk.columns["cat"], minlength=len(walk.cats))
    named = [(name, int(counts[code])) for name, code in walk.cats.items() if name.lower() not in _KINDS]
    return [f"{count} spans of category {name!r} are of no known kind" for name, count in named[:8] if count]


def _inputs(args: _Args) -> bytes:
    dims, types = bytes(args.dims), bytes(args.types)
    return b"%b\0%b" % (dims, types) if dims or types else b""


def _device(columns: dict[str, NDArray[Any]], cats: tuple[str, ...]) -> NDArray[np.int32]:
    """Index of the device on which a span ran; NEVER = the host."""
    on = np.array([name.lower() in _ON_DEVICE for name in cats])[columns["cat"]]
    index = np.clip(columns["device"], 0, 1 << 16)
    return np.where(on, index, NEVER).astype(np.int32)


def _kinds(columns: dict[str, NDArray[Any]], names: tuple[str, ...], cats: tuple[str, ...]) -> NDArray[np.int8]:
    """By category; driver calls and annotations by their name."""
    by_cat = [KIND[_KINDS.get(name.lower(), "other")] for name in cats]
    kind: NDArray[np.int8] = np.array(by_cat, dtype=np.int8)[columns["cat"]]
    for words, of, becomes in _BY_NAME:
        named = np.array([bool(words.search(name)) for name in names])[columns["name"]]
        kind[named & (kind == KIND[of])] = KIND[becomes]
    return kind


def _launches(columns: dict[str, NDArray[Any]], kind: NDArray[np.int8]) -> Ints:
    """Row of the host call that launched each span of a device."""
    out = np.full(kind.size, NEVER, dtype=np.int64)
    work = np.flatnonzero((kind == KIND["kernel"]) | (kind == KIND["copy"]))
    calls = np.flatnonzero((kind == KIND["launch"]) | (kind == KIND["driver"]))
    correlation = columns["correlation"]
    known = work[correlation[work] > 0]
    out[known] = _same(correlation[known], correlation[calls], calls)
    left = work[out[work] == NEVER]
    if not left.size:
        return out
    taken = np.isin(calls, out[out != NEVER])
    free = calls[~taken & (kind[calls] == KIND["launch"])]
    out[left] = _by_turn(columns["external"], left, free)
    return out


def _same(wanted: Ints, keys: Ints, rows: Ints) -> Ints:
    """For each wanted id the first of ``rows`` whose key is that."""
    if not keys.size:
        return np.full(wanted.size, NEVER, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), keys.size - 1)
    found = keys[order][at] == wanted
    return np.where(found, rows[order][at], NEVER)


def _by_turn(external: Ints, work: Ints, calls: Ints) -> Ints:
    """Work and calls of one operator in their order of start, where there are equally many; else NEVER."""
    out = np.full(work.size, NEVER, dtype=np.int64)
    groups: dict[int, list[int]] = {}
    for row in calls:
        groups.setdefault(int(external[row]), []).append(int(row))
    mine: dict[int, list[int]] = {}
    for position, row in enumerate(work):
        mine.setdefault(int(external[row]), []).append(position)
    for operator, positions in mine.items():
        launched = groups.get(operator, [])
        if operator > 0 and len(launched) == len(positions):
            out[positions] = launched
    return out


def _lanes(walk: Walk[_Kineto], found: Table) -> tuple[str, ...]:
    """Streams for lanes that hold work of a device, threads else."""
    streams = set(np.unique(found["lane"][found["device"] != NEVER]).tolist())
    named = [
        f"stream {tid} of device {pid}" if code in streams else lane_text(pid, tid, "")
        for code, (pid, tid) in enumerate(walk.lanes)
    ]
    return (*named, "(other lanes)")


def _origin(beside: dict[str, msgspec.Raw], first: Ns) -> Ns | None:
    base = value_of(beside.get("baseTimeNanoseconds"))
    if isinstance(base, int) and 0 < base < 1 << 62:
        return base + first
    return first if first > SINCE_1970 else None


def _facts(beside: dict[str, msgspec.Raw]) -> dict[str, str]:
    facts = {}
    devices = value_of(beside.get("deviceProperties"))
    named = [str(one.get("name", ""))[:200] for one in devices if isinstance(one, dict)] if _some(devices) else []
    for name in dict.fromkeys(named):
        facts[f"device {name}"] = str(named.count(name))
    group = value_of(beside.get("distributedInfo"))
    for key, fact in (("rank", "rank"), ("world_size", "world size")):
        if isinstance(group, dict) and isinstance(group.get(key), int):
            facts[fact] = str(group[key])
    for key in ("cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version"):
        version = text_of(beside.get(key))
        if version:
            facts[key.replace("_", " ")] = version[:40]
    return facts


def _some(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 4096


def holds(head: bytes) -> bool:
    """A Chrome trace with marks of the profiler; what stands before its events may be longer than ``head``."""
    started = opening(head).startswith(b"{") and b'"schemaVersion"' in head
    return (started or holds_events(head)) and any(mark in head for mark in _MARKS)


FORMAT = Format(NAME, holds, read)
