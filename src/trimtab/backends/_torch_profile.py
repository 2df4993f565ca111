"""What torch's profiler saw in one warm run: the operators that were called, and inside each the one that did the work.

The profiler writes a Chrome trace. Operators nest: ``aten::conv2d`` calls ``aten::convolution`` and so on down to the
routine that computes. A call that lies in no other one is an operator of the program; its kernel is found by going down
as long as one call takes at least half of the time. Loops that Inductor wrote appear under their function's name, and
without element types. Limit: the profiler costs about a microsecond a call, so that short
operators look longer than they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

RUN = "trimtab run"
RUNS = 3
SILENT = "99"
"""The level at which the profiler writes no lines of its own to the error output."""
WRITTEN = "cpp_fused"
"""What the names of Inductor's own functions hold."""
TYPES = {
    "float": "f32",
    "double": "f64",
    "c10::BFloat16": "bf16",
    "c10::Half": "f16",
    "long int": "i64",
    "int": "i32",
    "short int": "i16",
    "signed char": "i8",
    "unsigned char": "u8",
    "bool": "bool",
}


class Called(NamedTuple):
    """One operator of the program. ``types``: the element types that its kernel was given; none for written loops."""

    name: str
    kernel: str
    types: tuple[str, ...]
    ns: int

    @property
    def written(self) -> bool:
        return WRITTEN in self.name


class Arguments(msgspec.Struct, frozen=True):
    types: tuple[Any, ...] = msgspec.field(default=(), name="Input type")


class Span(msgspec.Struct, frozen=True):
    """One event of the trace, microseconds; other kinds of events have no category."""

    name: str = ""
    cat: str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: Arguments = Arguments()

    def holds(self, other: Span) -> bool:
        """Whether ``other`` lies inside."""
        return self.ts <= other.ts and other.ts + other.dur <= self.ts + self.dur


class _Trace(msgspec.Struct, frozen=True):
    spans: tuple[Span, ...] = msgspec.field(name="traceEvents")


def profiled(call: Callable[[], Any]) -> list[Called]:
    """The operators of the last of a few runs, in order of execution."""
    os.environ.setdefault("KINETO_LOG_LEVEL", SILENT)
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(RUNS):
            with record_function(RUN):
                call()
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return operators(msgspec.json.decode(path.read_bytes(), type=_Trace).spans)


def operators(spans: Sequence[Span]) -> list[Called]:
    """The operators of the last run among all events of a trace."""
    last = max((span for span in spans if span.name == RUN and span.dur), key=lambda span: span.ts)
    calls = [s for s in spans if s.cat == "cpu_op" and ("::" in s.name or WRITTEN in s.name) and last.holds(s)]
    calls.sort(key=lambda span: (span.ts, -span.dur))
    found: list[list[Span]] = []
    for call in calls:
        if found and found[-1][0].holds(call):
            found[-1].append(call)
        else:
            found.append([call])
    return [_called(group) for group in found]


def _called(group: list[Span]) -> Called:
    top, kernel, inside = group[0], group[0], group[1:]
    while heavy := [span for span in inside if kernel.holds(span) and 2 * span.dur >= kernel.dur]:
        kernel = max(heavy, key=lambda span: span.dur)
        inside = [span for span in inside if span is not kernel and kernel.holds(span)]
    types = tuple(TYPES[kind] for kind in kernel.args.types if isinstance(kind, str) and kind in TYPES)
    return Called(top.name, kernel.name, types, round(top.dur * 1000))
