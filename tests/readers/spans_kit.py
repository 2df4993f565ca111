"""Samples, small traces, and a second way to read a trace, for the tests of the readers of spans."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimtab.domain.imported import ReadReport
from trimtab.domain.spans import SPAN_KINDS, Spans
from trimtab.readers import formats

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str, *, strict: bool = False) -> tuple[Spans, ReadReport]:
    """A sample, read as whatever its content says it is."""
    return read(SAMPLES / name, strict=strict)


def read(path: Path, *, strict: bool = False) -> tuple[Spans, ReadReport]:
    """Any file of spans."""
    known = formats.find(path)
    assert known is not None, f"{path} is taken for a table"
    held, report = known.read(path, strict)
    assert isinstance(held, Spans)
    return held, report


def unpacked(path: Path) -> bytes:
    """The bytes of ``path``, decompressed if it is packed."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def plain_events(path: Path) -> list[dict[str, Any]]:
    """The events of a whole and valid trace, by the standard library."""
    found = json.loads(unpacked(path))
    return found["traceEvents"] if isinstance(found, dict) else found


def rows(spans: Spans, kind: str) -> list[int]:
    """Row numbers of one kind of span."""
    return [k for k, code in enumerate(spans.table["kind"].tolist()) if SPAN_KINDS[code] == kind]


def names(spans: Spans, kind: str) -> list[str]:
    """The names of one kind of span, by start."""
    return [spans.names[spans.table["name"][k]] for k in rows(spans, kind)]


def kinds(spans: Spans) -> dict[str, int]:
    """How many spans of each kind there are."""
    return {kind: len(rows(spans, kind)) for kind in SPAN_KINDS if rows(spans, kind)}


def whole(name: str, ts: float, dur: float, tid: int | str = 1, **more: Any) -> dict[str, Any]:
    """A whole event (X), microseconds."""
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, **more}


def write_trace(path: Path, events: Sequence[Any], **beside: Any) -> Path:
    """A trace as an object, or as an array if the file's name says so."""
    array = "array" in path.name
    path.write_text(json.dumps(list(events) if array else {**beside, "traceEvents": list(events)}))
    return path
