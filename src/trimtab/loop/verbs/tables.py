"""A table of requests from any system, read and classified; and what is said beside a file on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from trimtab.domain.figure import Findings, Series
from trimtab.domain.imported import NUMBERS, TEXTS, Imported, ReadReport
from trimtab.domain.score import Diagnosis
from trimtab.domain.spans import Spans
from trimtab.domain.study import Sla
from trimtab.errors import UsageError, did_you_mean
from trimtab.evidence.imported.diagnose import diagnose
from trimtab.evidence.timeline.join import with_compiles
from trimtab.readers.table import read_requests

_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3}
_BOUND = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<unit>us|ms|s)")
_ALIASES = {"throttled": "throttled_share"}
_MORE = {"baseline_peak_mb": "peak memory of the baseline"}
_SHARES = ("throttled_share", "stolen", "executed_share", "ceiling")


class Answer(msgspec.Struct, frozen=True):
    """What one file says: its classes, its figures (``tail.stage`` says whether of requests, of a timeline or of a
    summary), how it was read, and what makes the series of its charts."""

    diagnosis: Diagnosis
    tail: Findings
    read: ReadReport
    baseline: ReadReport | None
    notes: tuple[str, ...]
    charts: Callable[[], tuple[Series, ...]]


class Said(msgspec.Struct, frozen=True):
    """What the command line says beside the files: columns by role, facts, what the tail must hold."""

    columns: dict[str, str] = {}
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    sla: Sla | None = None

    @classmethod
    def parse(cls, columns: Sequence[str] = (), facts: Sequence[str] = (), sla: str | None = None) -> Said:
        """``columns`` are ``role=header``, ``facts`` ``name=value``, ``sla`` is like ``p95=100ms`` or
        ``goodput=0.99@100ms``. UsageError for what these do not say."""
        mapped = dict(_pair(text, "--column", "latency_ms=total") for text in columns)
        numbers, texts = _facts(facts)
        return cls(mapped, numbers, texts, None if sla is None else parse_sla(sla))


class Log(NamedTuple):
    """A compiler's log, and the name of its file."""

    file: str
    spans: Spans


def diagnose_table(
    table: Path,
    *,
    baseline: Path | None = None,
    columns: Sequence[str] = (),
    facts: Sequence[str] = (),
    sla: str | None = None,
    strict: bool = False,
    logs: Sequence[Log] = (),
) -> Answer:
    """Read ``table`` (and a table to compare it with) and name what explains its tail. ``logs`` are joined to it.

    ``columns``, ``facts`` and ``sla`` as in :meth:`Said.parse`. DataError for a table that cannot be used.
    """
    said = Said.parse(columns, facts, sla)
    requests, read = read_requests(table, said.columns, strict=strict)
    other = None if baseline is None else read_requests(baseline, said.columns, strict=strict)
    requests, notes = _joined(requests, logs)
    before = None if other is None else other[0]
    found = diagnose(requests, read, sla=said.sla, baseline=before, numbers=said.numbers, texts=said.texts)
    told = (*notes, *found.notes)
    return answer(found.diagnosis, found.tail, read, None if other is None else other[1], told, found.charts)


def _joined(requests: Imported, logs: Sequence[Log]) -> tuple[Imported, tuple[str, ...]]:
    """The requests with the compiles of the first log that fits them, and what to know of it."""
    for log in logs:
        joined = with_compiles(requests, log.spans)
        if joined is not None:
            note = f"{joined.inside} of {joined.compiles} compiles of {log.file} fall into a request: stage compile"
            return joined.table, (note,)
    return requests, tuple(f"not joined to {log.file}: no common clock, or no compile in a request" for log in logs)


def answer(
    diagnosis: Diagnosis,
    tail: Findings,
    read: ReadReport,
    baseline: ReadReport | None,
    notes: tuple[str, ...],
    charts: Callable[[], tuple[Series, ...]],
) -> Answer:
    """One file's answer; ``notes`` join those of its reading."""
    read = msgspec.structs.replace(read, notes=(*read.notes, *notes))
    return Answer(diagnosis, tail, read, baseline, notes, charts)


def parse_sla(text: str) -> Sla:
    """``p50|p95|p99=<bound>`` or ``goodput=<share>@<bound>``; the bound in us, ms or s. Else a UsageError."""
    fix = "like p95=100ms, p99=1.5s or goodput=0.99@100ms"
    metric, _, rest = text.partition("=")
    metric = metric.strip().lower()
    if metric in ("mean", "avg", "average"):
        raise UsageError("an average never decides", where="--sla", fix=fix)
    share, at, bound = rest.rpartition("@")
    found = _BOUND.fullmatch(bound.strip())
    if metric not in ("p50", "p95", "p99", "goodput") or found is None or (metric == "goodput") != bool(at):
        raise UsageError(f"{text!r} is no SLA", where="--sla", fix=fix)
    bound_ms = float(found["value"]) * _MS[found["unit"]]
    if bound_ms <= 0:
        raise UsageError("the bound of an SLA must be above 0", where="--sla", fix=fix)
    if metric != "goodput":
        return Sla(metric=metric, bound_ms=bound_ms)  # type: ignore[arg-type]
    return Sla(metric="goodput", bound_ms=bound_ms, goodput=_number("--sla", "goodput", share, most=1.0))


def _facts(pairs: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for pair in pairs:
        name, value = _pair(pair, "--fact", "threads=16")
        name = _ALIASES.get(name, name)
        if name in TEXTS:
            texts[name] = value
            continue
        if name not in NUMBERS and name not in _MORE:
            raise UsageError(f"there is no fact {name!r}", where="--fact", fix=_known(name))
        numbers[name] = _number("--fact", name, value, most=1.0 if name in _SHARES else None)
    return numbers, texts


def _known(name: str) -> str:
    known = [*NUMBERS, *TEXTS, *_MORE]
    return did_you_mean(name, known) or f"known: {', '.join(known)}"


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{text!r} is not name=value", where=option, fix=f"like {option} {example}")
    return name.strip(), value.strip()


def _number(option: str, name: str, text: str, most: float | None = None) -> float:
    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf") or (most is not None and value > most):
        allowed = "a number that is not negative" if most is None else f"a number from 0 to {most:g}"
        raise UsageError(f"{name} is {allowed}, not {text!r}", where=option, fix=f"like {option} {name}=0.5")
    return value
