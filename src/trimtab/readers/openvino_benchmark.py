"""The report of OpenVINO's benchmark_app (``benchmark_report.csv``, ``.json``): latencies in ms, throughput, shapes.

With ``-pcseq`` and several shapes it adds mean, least and greatest latency of each shape. The CSV sets these apart by a
line ``group``. The JSON has one key for each name, so the last shape's overwrite what was measured over all: they are
refused there. The percentile and the throughput are written once, over all shapes, and stand.

A request is sent as another ends, ``number of parallel infer requests`` at a time.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.summary import Point, Summary
from trimtab.errors import DataError
from trimtab.readers._file import whole
from trimtab.readers._format import Format
from trimtab.readers._json import document, opening
from trimtab.readers._spans import report
from trimtab.readers._summed import MS, count, duration, number

NAME = "OpenVINO benchmark_app report"
LARGEST = 4 << 20
MOST_GROUPS = 1000
OVERWRITTEN = (
    "avg, min and max latency: with -pcseq the JSON has one key for all shapes, so these are of the last shape alone, "
    "in the place of all (the CSV keeps them apart)"
)
_LATENCY = re.compile(r"latency \((?:(?P<share>\d{1,2}(?:\.\d+)?) percentile\) \()?ms\)")
_NAMES = {"avg latency": "mean", "min latency": "min", "max latency": "max"}
_LOAD = ("number of parallel infer requests", "total number of iterations", "throughput")
_FACTS = {
    "target device": "device", "precision": "precision", "read model time (ms)": "reading the model, ms",
    "compile model time (ms)": "compiling the model, ms", "first inference time (ms)": "first inference, ms",
}  # fmt: skip
_SECTIONS = ("Command line parameters", "Configuration setup", "Execution results")

Pairs = list[tuple[str, str]]


class _Report(msgspec.Struct, gc=False):
    execution_results: dict[str, str]
    configuration_setup: dict[str, str | bool | int | float | None] = {}


def read(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """What ``path`` tells of its run. DataError for what is no such report, or has no latency."""
    text = whole(path, LARGEST)
    merged = opening(text).startswith(b"{")
    pairs = _json_pairs(path, text) if merged else _csv_pairs(text)
    told, groups = _by_group(pairs)
    overwritten = merged and bool(groups)
    if overwritten:
        told, groups = {name: value for name, value in told.items() if name not in _NAMES}, {}
    used = sum(_known(name) for name, _ in pairs)
    found = report(
        path, NAME, rows=len(pairs), used=used, unit="values", dropped={}, strict=strict,
        ignored=(f"{len(pairs) - used} settings",) if len(pairs) > used else (),
    )  # fmt: skip
    return _summary(path, told, groups, (OVERWRITTEN,) if overwritten else ()), found


def _known(name: str) -> bool:
    return name in (*_NAMES, *_FACTS, *_LOAD, "group") or _LATENCY.fullmatch(name) is not None


def _by_group(pairs: Pairs) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """What is said of all shapes, and of each shape by its name: mean, least and greatest latency behind ``group``."""
    told: dict[str, str] = {}
    groups: dict[str, dict[str, str]] = {}
    own = told
    for name, value in pairs:
        if name == "group" and len(groups) < MOST_GROUPS:
            own = groups.setdefault(value[:200], {})
        elif name in _NAMES:
            own.setdefault(name, value)
        else:
            told.setdefault(name, value)
    return told, groups


def _summary(path: Path, told: dict[str, str], groups: dict[str, dict[str, str]], refused: tuple[str, ...]) -> Summary:
    latency = _latencies(told)
    if not latency:
        raise DataError(f"{path.name} holds no latency", where=str(path), fix="run benchmark_app to its end")
    clients = number(told.get("number of parallel infer requests"))
    over_all = Point(
        name="all shapes" if groups or refused else "all",
        count=count(told.get("total number of iterations")),
        clients=clients,
        achieved=number(told.get("throughput")),
        latency=latency,
    )
    each = tuple(Point(name=name, setting=name, latency=_latencies(own)) for name, own in groups.items())
    return Summary(
        tool=NAME,
        points=(over_all, *(point for point in each if point.latency)),
        paced=False,
        facts={fact: told[name][:200] for name, fact in _FACTS.items() if told.get(name)},
        refused=refused,
        instead="requests with the shapes and arrival times of real traffic; benchmark_app takes turns, back to back",
    )


def _latencies(told: dict[str, str]) -> dict[str, Ns]:
    out = {}
    for name, value in told.items():
        found = _LATENCY.fullmatch(name)
        label = _NAMES.get(name) or (f"p{float(found['share'] or 50):g}" if found else "")
        if label and (took := duration(value, MS)) != NEVER:
            out[label] = took
    return out


def _csv_pairs(text: bytes) -> Pairs:
    lines = [line.strip() for line in text.decode(errors="replace").splitlines()]
    halves = [line.partition(";") for line in lines if line and line not in _SECTIONS]
    return [(name.strip(), value.strip()) for name, _, value in halves]


def _json_pairs(path: Path, text: bytes) -> Pairs:
    found = document(path, text, _Report, NAME, "copy it again")
    setup = [(name, str(value)) for name, value in found.configuration_setup.items()]
    return [*setup, *found.execution_results.items()]


def holds(head: bytes) -> bool:
    """Its sections."""
    start = opening(head)[: 64 << 10]
    if start.startswith(b"{"):
        return b'"execution_results"' in start and b'"configuration_setup"' in start
    return start.startswith(b"Command line parameters") and b"Execution results" in start


FORMAT = Format(NAME, holds, read)
