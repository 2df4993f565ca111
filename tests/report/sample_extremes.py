"""The invented record at its extremes: the least of everything, too much of it, endless names, odd magnitudes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import sample_record as sample
from msgspec.structs import replace
from sample_findings import series

from trimtab.domain.figure import Cell, Figure, Findings, Interval, Series
from trimtab.domain.packet import Record
from trimtab.domain.plan import Entry
from trimtab.domain.verdict import MatrixCell

NAMES = ("today", "refit-4", "any-width", "to-160", "to-960", "client-1", "client-2", "client-3", "ocr-receipts")
"""Names that data may choose freely."""
LONG = "-a-name-of-sixty-signs-as-some-build-systems-make-them-0001"

TIMES = {
    "validate.quantiles": ("latency",),
    "replay.quantiles": ("latency",),
    "replay.over_time": ("p50", "p95"),
    "decide.trend": ("baseline", "baseline_lo", "baseline_hi", "candidate", "candidate_lo", "candidate_hi"),
    "requests.shown": ("latency",),
    "requests.parts": ("own", "inherited"),
    "tail.p95.waterfall": ("own", "inherited", "typical", "gain", "gain_lo", "gain_hi"),
    "tail.p95.by_stream": ("p95",),
    "score.shapes": ("promised", "measured", "measured_p95"),
    "score.simulation": ("replayed", "simulated"),
    "compile.shapes": ("warm", "lo", "hi", "p95", "on_core", "first", "first_excess"),
    "retune.buckets": ("mean_ms",),
    "retune.cores": ("value",),
    "retune.sweep": ("run_ms", "start_ms", "total_ms"),
}
"""Series -> its columns of ms."""


def least() -> Record:
    """One row of each series: one window, one request, one shape, one stream."""
    record = sample.ship()
    return _each(record, lambda one: replace(one, columns={name: cells[:1] for name, cells in one.columns.items()}))


def at_the_bound() -> Record:
    """One window and three of the trend, all of them next to the bound of 60 ms; p95 is on it."""
    record = sample.ship()
    assert record.verdict is not None
    trend: dict[str, tuple[Cell, ...]] = {
        "first": (0, 200, 400), "last": (199, 399, 599),
        **{f"baseline{end}": (61.5, 61.0, 61.2) for end in ("", "_lo", "_hi")},
        **{f"candidate{end}": (58.0, 58.5, 58.2) for end in ("", "_lo", "_hi")},
    }  # fmt: skip
    window: list[dict[str, Cell]] = [
        {"run": f"tune-today-{k}", "plan": "today", "start": 0.0, "requests": 90, "p50": 9.0, "p95": 60.4 + k,
         "miss_rate": 0.051} for k in range(3)
    ]  # fmt: skip
    made = {"decide.trend": trend, "replay.over_time": series("replay.over_time", window).columns}
    near = tuple(
        replace(cell, baseline=60.0, candidate=59.0) if cell.role == "primary" else cell
        for cell in record.verdict.cells
    )
    record = replace(record, verdict=replace(record.verdict, cells=near))
    return _each(record, lambda one: replace(one, columns=made.get(one.id, one.columns)))


def plenty() -> Record:
    """Fourteen entries, ten streams with names of sixty signs, sixteen workers."""
    record = named(entries(tuple(range(100, 1500, 100))), {name: f"{name}{LONG}" for name in NAMES})
    streams: list[dict[str, Cell]] = [{"stream": f"client-{k}{LONG}", "p95": 50.0 + 9 * k} for k in range(10)]
    made = {"tail.p95.by_stream": series("tail.p95.by_stream", streams).columns}

    def more(one: Series) -> Series:
        if one.id == "requests.shown":
            named_ = tuple(f"client-{k % 10}{LONG}" for k in range(len(one.columns["stream"])))
            return replace(one, columns=one.columns | {"stream": named_})
        if one.id == "cores.timeline":
            return replace(one, columns=one.columns | {"worker": tuple(k % 16 for k in range(len(one.columns["t"])))})
        return replace(one, columns=made.get(one.id, one.columns))

    return _each(record, more)


def entries(ends: tuple[int, ...]) -> Record:
    """A proposed plan with these padded entries."""
    record = sample.ship()
    assert record.proposal is not None
    added = tuple(Entry(id=f"to-{end}", kind="bucket", lo=(16,), hi=(end,)) for end in ends)
    plan = sample.REFIT
    spec = replace(plan.compile, entries=(*added, *sample.TODAY.compile.entries))
    move = replace(record.proposal.move, plan=replace(plan, compile=spec))
    return replace(record, proposal=replace(record.proposal, move=move))


def times(factor: float) -> Record:
    """All latencies and the bound ``factor`` times as large."""
    record = sample.ship()
    assert record.verdict is not None
    study = record.study
    sla = replace(study.sla, bound_ms=study.sla.bound_ms * factor, deadline_ms=(study.sla.deadline_ms or 1.0) * factor)
    cells = tuple(_scaled_cell(cell, factor) for cell in record.verdict.cells)
    record = replace(record, study=replace(study, sla=sla), verdict=replace(record.verdict, cells=cells))
    record = _each(record, lambda one: _scaled(one, factor))
    return replace(record, findings={stage: _figures(found, factor) for stage, found in record.findings.items()})


def long() -> Record:
    """What a thorough study leaves: sixty cells, forty candidates, fifty runs, three hundred shapes."""
    record = sample.ship()
    assert record.verdict is not None
    bands = tuple(
        sample.cell("p95", "informative", "pass", -0.5, -0.6, -0.4, slice=f"width {k}", condition=condition)
        for k in range(15)
        for condition in ("as recorded", "one core less", "cold start", "busy neighbour")
    )
    runs = tuple(sample.run(f"held-out-today-{k}", "today") for k in range(50))
    counts = {"retune.candidates": 40, "score.shapes": 300, "compile.entries": 60, "queue.waits": 48}

    def repeated(one: Series) -> Series:
        rows = len(next(iter(one.columns.values())))
        pick = [k % rows for k in range(counts.get(one.id, rows))]
        return replace(one, columns={name: tuple(cells[k] for k in pick) for name, cells in one.columns.items()})

    record = replace(record, verdict=replace(record.verdict, cells=(*record.verdict.cells, *bands)), runs=runs)
    return _each(record, repeated)


def named(record: Record, names: dict[str, str]) -> Record:
    """The record with other names, wherever they stand."""
    text = msgspec.json.encode(record).decode()
    for old, new in names.items():
        text = text.replace(old, msgspec.json.encode(new).decode()[1:-1])
    return msgspec.json.decode(text, type=Record)


def _each(record: Record, change: Callable[[Series], Series]) -> Record:
    """The record with every series changed."""
    findings = {
        stage: replace(found, series=tuple(change(one) for one in found.series))
        for stage, found in record.findings.items()
    }
    return replace(record, findings=findings)


def _scaled(one: Series, factor: float) -> Series:
    columns = {name: tuple(_times(cell, factor) for cell in one.columns[name]) for name in TIMES.get(one.id, ())}
    return replace(one, columns=one.columns | columns)


def _times(cell: Cell, factor: float) -> Cell:
    return cell * factor if isinstance(cell, int | float) else cell


def _scaled_cell(cell: MatrixCell, factor: float) -> MatrixCell:
    both = (cell.baseline, cell.candidate)
    baseline, candidate = (None if value is None else value * factor for value in both)
    return replace(cell, baseline=baseline, candidate=candidate)


def _figures(found: Findings, factor: float) -> Findings:
    return replace(found, figures=tuple(_scaled_figure(one, factor) for one in found.figures))


def _scaled_figure(one: Figure, factor: float) -> Figure:
    if one.unit != "ms" or one.value is None:
        return one
    ends = None if one.interval is None else Interval(lo=one.interval.lo * factor, hi=one.interval.hi * factor)
    return replace(one, value=one.value * factor, interval=ends)


def endless(record: Record) -> Record:
    """Names of ten thousand signs, with one that turns what follows around."""
    return named(record, {name: f"{name}\u202e{'x' * 10_000}" for name in ("refit-4", "client-3", "to-160")})
