"""The figures and tables of a timeline, as findings store them: device, streams, names, shapes, types, compiles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.domain.figure import Figure, Series
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Spans
from trimtab.evidence.figures import NS_MS, Desk, percent, series
from trimtab.evidence.stats.quantiles import needed_effective, quantile
from trimtab.evidence.timeline import compiles as log
from trimtab.evidence.timeline.calls import RUN, Shape
from trimtab.evidence.timeline.compiles import Compiles
from trimtab.evidence.timeline.device import LAYERS, Device
from trimtab.evidence.timeline.host import Part

Columns = dict[str, list[Any]]
_FOLDERS = re.compile(r"\((?:.*/)?(?=[^/]+/[^/]+\)$)")

MOST_ROWS = 12
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LAYER_NOTES = {
    "busy": "a kernel or a copy runs",
    "long calls": "idle, inside a driver call of 1 ms and more: context, code, memory, blocking copies",
    "launching": "idle, a launch is on its way",
    "pending": "idle, launched long ago: it waits for another stream, device or event",
    "operators": "idle, an operator works between launches",
    "driver": "idle, inside another driver call, or waiting",
    "": "idle, nothing of this recorded",
}
KINDS = {"kernel": "kernels", "op": "operators", "other": "spans", "note": "annotations"}


class Told(msgspec.Struct, frozen=True):
    """All that is found in one timeline."""

    spans: Spans
    device: Device | None
    compiles: Compiles
    types: Mapping[str, float]
    shapes: tuple[Shape, ...]
    busiest: tuple[str, tuple[Part, ...]]


def tell(found: Told, file: str) -> tuple[tuple[Figure, ...], tuple[Series, ...]]:
    """Figures ``timeline.<group>.<name>`` and series ``timeline.<table>``; ``file`` is what they rest on."""
    desk = Desk("timeline", "this file", file)
    tables: list[Series] = []
    if found.device is not None:
        _device(found.device, desk)
        tables.append(_streams(found.device, file))
    if found.busiest[1]:
        tables.append(_parts(*found.busiest, file))
    _runs(found.spans, desk)
    if found.shapes:
        tables.append(_shapes(found.shapes, file))
    for name, share in found.types.items():
        desk.add(f"precision.{name}", share, "share", len(found.spans.table), note="of the time whose type is recorded")
    if found.compiles.all:
        _compiles(found.compiles, desk)
        tables += _compile_tables(found.compiles, file)
    return tuple(desk.figures), tuple(tables)


def _device(on: Device, desk: Desk) -> None:
    desk.add("device.window", on.window * NS_MS, "ms", on.kernels, note="from the first to the last work")
    for name in (*LAYERS, ""):
        share = on.parts[name] / on.window if on.window else None
        desk.add(f"device.{name or 'elsewhere'}", share, "share", on.kernels, note=LAYER_NOTES[name])
    desk.add("launches.kernels", float(on.kernels), "kernels", on.kernels, note=f"{on.matched} matched to a launch")
    if not on.matched:
        return
    for name, q in PERCENTILES.items():
        note = "from the start of the launch to the start of its kernel"
        desk.add(f"launches.start_{name}", quantile(on.delays, q) / 1e3, "us", on.matched, note=note)
    desk.add("launches.call_p50", quantile(on.calls, 0.5) / 1e3, "us", on.matched, note="the launch call itself")
    if on.short is not None:
        desk.add("launches.short", on.short, "share", on.matched, note="kernels shorter than their launch call")
    if on.fairness is not None:
        note = "Jain's index of work by stream: 1 = equal"
        desk.add("launches.stream_fairness", on.fairness, "index", len(on.streams), note=note)


def _runs(spans: Spans, desk: Desk) -> None:
    """Percentiles of the run time, as far as there are runs enough for each."""
    rows = spans.table["kind"] == RUN
    took = (spans.table["end"] - spans.table["start"])[rows]
    if not took.size:
        return
    desk.add("runs.count", float(took.size), "runs", int(took.size))
    for name, q in PERCENTILES.items():
        needed = needed_effective(q)
        value = quantile(took, q) * NS_MS if took.size >= needed else None
        desk.add(f"runs.{name}", value, "ms", int(took.size), note="" if value else f"needs at least {needed} runs")


def _streams(on: Device, file: str) -> Series:
    whole = sum(stream.busy for stream in on.streams) or 1
    rows = on.streams[:MOST_ROWS]
    columns: Columns = {
        "stream": [one.name for one in rows],
        "kernels and copies": [one.spans for one in rows],
        "ran, ms": [one.busy * NS_MS for one in rows],
        "share": [percent(one.busy / whole) for one in rows],
    }
    return series("timeline.streams", columns, {}, file, scope="this file", note=_more(len(on.streams)))


def _parts(kind: str, parts: tuple[Part, ...], file: str) -> Series:
    whole = sum(part.took for part in parts) or 1
    rows = parts[:MOST_ROWS]
    columns: Columns = {
        KINDS[kind]: [part.name for part in rows],
        "calls": [part.calls for part in rows],
        "own time, ms": [part.took * NS_MS for part in rows],
        "share": [percent(part.took / whole) for part in rows],
    }
    return series(f"timeline.{KINDS[kind]}", columns, {}, file, scope="this file", note=_more(len(parts)))


def _shapes(shapes: tuple[Shape, ...], file: str) -> Series:
    rows = sorted(shapes, key=lambda one: -one.excess)[:MOST_ROWS]
    columns: Columns = {
        "shape": [one.text for one in rows],
        "runs": [one.runs for one in rows],
        "first, ms": [one.first * NS_MS for one in rows],
        "median of later, ms": [None if one.later is None else one.later * NS_MS for one in rows],
    }
    note = f"shapes by what their first run took longer{_more(len(shapes), '; ')}"
    return series("timeline.shapes", columns, {}, file, scope="this file", note=note)


def _compiles(found: Compiles, desk: Desk) -> None:
    count = len(found.all)
    desk.add("compiles.all", float(count), "compiles", count, note=f"{len(found.again)} of code that had been compiled")
    first = tuple(one for one in found.all if not one.again)
    for name, given in (("first", first), ("again", found.again)):
        took = log.took(given)
        if took.size:
            note = f"of {took.size}; the longest {took.max() * NS_MS:,.5g} ms"
            desk.add(f"compiles.{name}", float(took.sum()) * NS_MS, "ms", int(took.size), note=note)
    kinds = {"for_size": found.for_size, "stopped": found.stopped, "failed": found.failed, "breaks": found.broken}
    for name, given in kinds.items():
        if given:
            desk.add(f"compiles.{name}", float(len(given)), "compiles", count, note=COMPILE_NOTES[name])
    for kind, cached in Counter(one.cache for one in found.all if one.cache).items():
        desk.add(f"compiles.cache_{kind}", float(cached), "compiles", count, note="of the compiler's own cache")


COMPILE_NOTES = {
    "for_size": "again, because a size, stride or rank differs",
    "stopped": "the limit was reached: further shapes run uncompiled",
    "failed": "no program came of it",
    "breaks": "the graph ends early",
}


def _compile_tables(found: Compiles, file: str) -> list[Series]:
    rows = sorted(found.all, key=lambda one: -one.took)[:MOST_ROWS]
    columns: Columns = {
        "compile": [one.id for one in rows],
        "rank": [None if one.rank == NEVER else one.rank for one in rows],
        "code": [_FOLDERS.sub("(…/", one.code) for one in rows],
        "took, ms": [None if one.took == NEVER else one.took * NS_MS for one in rows],
        "why": [_why(one.failure, one.limit, one.reasons) for one in rows],
    }
    breaks = Counter(why for one in found.broken for why in one.breaks)
    tables = [
        series("timeline.compiles", columns, {}, file, scope="this file", note=_more(len(found.all))),
        _counted("timeline.reasons", ("reason", "recompiles"), found.reasons, file),
        _counted("timeline.breaks", ("graph break", "times"), tuple(breaks.most_common()), file),
    ]
    return [one for one in tables if any(one.columns.values())]


def _counted(name: str, headers: tuple[str, str], counts: tuple[tuple[str, int], ...], file: str) -> Series:
    shown = counts[:MOST_ROWS]
    columns: Columns = {headers[0]: [text for text, _ in shown], headers[1]: [count for _, count in shown]}
    return series(name, columns, {}, file, scope="this file", note=_more(len(counts)))


def _why(failure: str, limit: str, reasons: tuple[str, ...]) -> str:
    return failure or (f"{limit} reached" if limit else reasons[0] if reasons else "first")


def _more(count: int, before: str = "") -> str:
    return f"{before}{count - MOST_ROWS} more" if count > MOST_ROWS else ""
