"""The diagnosis of a table of requests, without a machine to ask again: the recorded stages are all there is.

What the primary percentile is held against: the SLA's bound; without one the baseline table's percentile and a tenth;
without either twice the percentile of the requests' own warm work. *Fits* = useful work is at least 90 % of run time
(None where the warm time is not known).

A shift of the whole distribution is told against a baseline only, and only if the causes that the table records
(:data:`._removals.REMOVABLE_STAGES`) do not explain it: without them, p50 and its tail still stand apart. The floor is
what the baseline's two halves differ by, at least 5 %. Where there are too few requests for p99, p95 stands for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import numpy as np

from trimtab.domain.figure import Finding, Findings, Series
from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.score import Diagnosis
from trimtab.domain.study import Sla
from trimtab.evidence.classify import failures
from trimtab.evidence.classify.classes import Case, Shift, Suspect, classify, whole_shift
from trimtab.evidence.classify.diagnose import told
from trimtab.evidence.classify.symptoms import Facts, defects, suspects
from trimtab.evidence.figures import NS_MS, Desk, percent
from trimtab.evidence.imported import _range as beyond
from trimtab.evidence.imported._baseline import Side, alike
from trimtab.evidence.imported._facts import PADDED, gather
from trimtab.evidence.imported._gates import gates
from trimtab.evidence.imported._removals import REMOVABLE_STAGES, Removals, effects, removals
from trimtab.evidence.imported.charts import charts
from trimtab.evidence.imported.recorded import INSIDE, STAGES, Calls, calls
from trimtab.evidence.latency import PERCENTILES, PRIMARY_TAILS
from trimtab.evidence.stats.quantiles import Floats, effective_samples, needed_effective, quantile

UNUSUAL = 2.0
WORSE = 1.10
LEAST_FLOOR = 0.05
FITTING = 0.90
WASTED = 1.50
UNEXPLAINED = 0.20
METHOD = "uses the recorded stages, not a re-run"
LARGEST = ("peak_mb",)


class Reading(msgspec.Struct, frozen=True):
    """A table's diagnosis, its tail as figures and sentences, what to know when reading either, and what makes the
    series of its charts."""

    diagnosis: Diagnosis
    tail: Findings
    notes: tuple[str, ...]
    charts: Callable[[], tuple[Series, ...]]


def diagnose(
    table: Imported,
    read: ReadReport,
    *,
    sla: Sla | None = None,
    baseline: Imported | None = None,
    numbers: Mapping[str, float] | None = None,
    texts: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Reading:
    """What explains the tail of ``table``. ``numbers`` and ``texts`` are said beside it and go before its columns;
    ``seed`` draws the intervals."""
    given, before = calls(table), None if baseline is None else calls(baseline)
    side = _side(table, baseline, numbers or {}, texts or {})
    found = removals(table, given, before, side.numbers)
    metric = sla or Sla(metric="p95", bound_ms=1e12)
    q = PERCENTILES[PRIMARY_TAILS[metric.metric]]
    bound, standard = _standard(sla, baseline, found, q)
    effect = effects(found, q, np.random.default_rng(seed))
    facts = gather(table, found, before, side, effect, bound, q)
    facts = msgspec.structs.replace(facts, standard=f"{standard}'s bound" if sla else standard)
    named = suspects(facts)
    seconds = found.observed / 1e9
    met = _met(sla, found.observed, quantile(found.observed, q), bound)
    checked = gates(table, read, given, seconds, metric, side.numbers)
    case = Case(
        gates=checked,
        met=met,
        fits=_fits(found, facts),
        suspects=named,
        shift=_shift(found, baseline, before, facts),
        defects=_defects(facts, found, named, met),
        standard=standard,
        failures=failures.sentence(table.trace),
        lost=failures.own(table.trace, q),
    )
    refused = any(gate.decides and not gate.passed for gate in checked)
    diagnosis = _with_missing(classify(case), () if refused else _missing(found, facts, case))
    diagnosis = _with_range(table, found, diagnosis)
    notes = _notes(given, found, baseline, standard, sla)
    return Reading(diagnosis, _tail(table, found, diagnosis), notes, partial(charts, table, found, effect, baseline))


def _side(table: Imported, baseline: Imported | None, numbers: Mapping[str, float], texts: Mapping[str, str]) -> Side:
    other = {} if baseline is None else _columns(baseline)
    if "baseline_peak_mb" in numbers:
        other["peak_mb"] = numbers["baseline_peak_mb"]
    return Side(_columns(table) | dict(numbers), table.texts | dict(texts), other)


def _columns(table: Imported) -> dict[str, float]:
    """One number for each numeric column: the largest peak, the median of anything else."""
    out = {}
    for name, column in table.stages.columns.items():
        if column.dtype.kind != "f":
            continue
        known = column[np.isfinite(column)]
        if known.size:
            out[name] = float(known.max() if name in LARGEST else np.median(known))
    return out


def _standard(sla: Sla | None, baseline: Imported | None, found: Removals, q: float) -> tuple[float, str]:
    """What the percentile is held against, ns, and its name."""
    if sla is not None:
        return sla.bound_ms * 1e6, "the SLA"
    if baseline is not None:
        then = quantile(baseline.trace.latency * 1e9, q)
        return WORSE * then if then > 0 else math.nan, "the baseline's percentile and a tenth (no SLA given)"
    useful = found.found.useful[found.found.known]
    own = quantile(useful, q) if useful.size else math.nan
    if not own > 0:
        return math.nan, "an SLA, which was not given,"
    return UNUSUAL * own, "twice the requests' own work (no SLA given)"


def _met(sla: Sla | None, observed: Floats, value: float, bound: float) -> bool | None:
    if math.isnan(bound) or math.isnan(value):
        return None
    if sla is not None and sla.metric == "goodput":
        return float((observed <= bound).mean()) >= sla.goodput
    if sla is not None:
        return quantile(observed, PERCENTILES[sla.metric]) <= bound
    return value <= bound


def _fits(found: Removals, facts: Facts) -> bool | None:
    rows = found.given.head & found.found.known
    whole = float(found.given.run[rows].sum())
    if not whole or (found.given.derived and found.given.overlap):
        return None
    if facts.padding is not None and facts.padding >= PADDED and not found.found.padding_known:
        return False
    return float(found.found.useful[rows].sum()) / whole >= FITTING


def _shift(found: Removals, baseline: Imported | None, before: Calls | None, facts: Facts) -> Shift | None:
    """The shift against the baseline; None where there is none to tell, or where recorded causes explain it.

    Where a queue bends the latencies, run times that are all longer alike tell the same; where shapes moved apart,
    equal percentiles are chance.
    """
    if baseline is None or before is None or facts.idle_cpu:
        return None
    then = baseline.trace.latency * 1e9
    enough = min(then.size, found.observed.size)
    if enough < needed_effective(0.95):
        return None
    name, q = ("p99", 0.99) if enough >= needed_effective(0.99) else ("p95", 0.95)
    floor = max(LEAST_FLOOR, _halves(then, q))
    seen = _ratio(found.observed, then, q, floor, name)
    if seen is not None and whole_shift(seen):
        left = _ratio(found.without(*REMOVABLE_STAGES), then, q, floor, name)
        if not alike(found.given, before):
            return None
        return seen if left is not None and whole_shift(left) else None
    given = found.given
    if given.derived or before.derived or not alike(given, before):
        return seen
    runs, then = given.on_core[given.plain], before.on_core[before.plain]
    told = _ratio(runs, then, q, max(LEAST_FLOOR, _halves(then, q)), name)
    moved = told is not None and whole_shift(told)
    return msgspec.structs.replace(told, of="run time's") if moved and told is not None else seen


def _ratio(now: Floats, then: Floats, q: float, floor: float, name: str) -> Shift | None:
    values = [quantile(now, 0.5), quantile(then, 0.5), quantile(now, q), quantile(then, q)]
    if not all(math.isfinite(value) and value > 0 for value in values):
        return None
    return Shift(values[0] / values[1], values[2] / values[3], floor, name)


def _halves(then: Floats, q: float) -> float:
    """What p50 and the tail of the baseline's two halves differ by, larger / smaller - 1."""
    middle = then.size // 2
    out = 0.0
    for level in (0.5, q):
        a, b = quantile(then[:middle], level), quantile(then[middle:], level)
        if math.isfinite(a) and math.isfinite(b) and min(a, b) > 0:
            out = max(out, max(a, b) / min(a, b) - 1)
    return out


def _defects(facts: Facts, found: Removals, named: tuple[Suspect, ...], met: bool | None) -> tuple[Suspect, ...]:
    """What is wrong whatever the tail says, unless the tail itself already proves that class."""
    proven = {one.id for one in named if one.named}
    silent = defects(facts)
    if met is not True and facts.padding is not None and facts.padding >= WASTED and not found.found.padding_known:
        seen = f"executed dims are {facts.padding:.2f} times the true ones; no run shows what the true size takes"
        silent = (*silent, Suspect("padding-waste", None, (seen,)))
    return tuple(one for one in silent if one.id not in proven)


def _missing(found: Removals, facts: Facts, case: Case) -> tuple[str, ...]:
    """What no column holds, the most telling first."""
    out, given = [], found.given
    if case.met and case.fits is False:
        out.append("a percentile that the lost run time reaches (--sla p99=...): useful work is below 90 % of run time")
    rows = given.latency >= quantile(given.latency, 0.95)
    lost = float(given.remainder[rows].sum()) / float(given.latency[rows].sum() or 1.0)
    if lost > UNEXPLAINED:
        out.append(f"what happens in the {percent(lost)} of the slowest requests' time that no recorded stage holds")
    if facts.steps and facts.throttled is None:
        out.append("throttled time (cpu.stat; throttled_ms): run times stand at multiples of 100 ms, as under a quota")
    if not np.isfinite(given.queue).any() and given.overlap:
        out.append("how long each request waited (queue_ms)")
    if given.derived:
        out.append("how long each request ran (compute_ms)")
    return tuple(out)


def _with_missing(found: Diagnosis, more: tuple[str, ...]) -> Diagnosis:
    """Missing stages go first where nothing is proven, last where something is."""
    first = found.classes[0].id == "insufficient-evidence"
    missing = tuple(dict.fromkeys((*more, *found.missing) if first else (*found.missing, *more)))
    following = more[0] if first and more else found.next_measurement or (missing[0] if missing else "")
    return msgspec.structs.replace(found, missing=missing, next_measurement=following)


def _with_range(table: Imported, found: Removals, diagnosis: Diagnosis) -> Diagnosis:
    """Beside cold shapes stands whether they cost as new shapes do, or as sizes beyond all before them."""
    if all(one.id != "cold-shape" for one in diagnosis.classes):
        return diagnosis
    seen = beyond.sentence(table, found.given, found.found.cold)
    if not seen:
        return diagnosis
    classes = tuple(
        msgspec.structs.replace(one, evidence=(*one.evidence, seen)) if one.id == "cold-shape" else one
        for one in diagnosis.classes
    )
    return msgspec.structs.replace(diagnosis, classes=classes)


def _tail(table: Imported, found: Removals, diagnosis: Diagnosis) -> Findings:
    """p50, p95, p99 over all requests, and what the p95 set is made of."""
    desk = Desk("diagnose", "this table", table.trace.run.id)
    seconds, given = found.observed / 1e9, found.given
    lost = failures.kinds(table.trace)
    told_lost = f"{sum(lost.values())} failed requests ({', '.join(f'{count} {kind}' for kind, count in lost.items())})"
    for name in ("p50", "p95", "p99"):
        worth = effective_samples(seconds, PERCENTILES[name])
        value = quantile(seconds, PERCENTILES[name])
        few = worth.samples < worth.needed
        note = f"needs at least {worth.needed} requests" if few else "" if worth.enough else "indicative only"
        if math.isinf(value):
            note = "; ".join(part for part in (f"{name} falls among {told_lost}", note) if part)
        desk.add(name, None if few else value * 1e3, "ms", seconds.size, effective=worth.effective, note=note)
    desk.add("failed", float(np.isinf(seconds).sum()), "requests", seconds.size, note="each counts as +infinity")
    if given.latency.size:
        _stages(desk, given)
    said, rows = told(diagnosis, table.trace.run.id)
    missing = tuple(Finding(text=f"Missing: {what}.") for what in diagnosis.missing)
    return Findings(
        stage="diagnose",
        headline=said[0].text,
        findings=(*said, *missing),
        figures=tuple(desk.figures),
        series=(rows,),
    )


def _stages(desk: Desk, given: Calls) -> None:
    rows = given.latency >= quantile(given.latency, 0.95)
    whole = float(given.latency[rows].sum())
    for name in STAGES:
        part = getattr(given, name)[rows]
        if not np.isfinite(part).any():
            desk.add(f"stage.{name}", None, "ms", int(rows.sum()), note="not recorded")
            continue
        total = float(np.nansum(part))
        inside = " (within run)" if name in INSIDE else ""
        note = f"{percent(total / whole if whole else None)} of the slowest 5 %{inside}"
        desk.add(f"stage.{name}", total / rows.sum() * NS_MS, "ms", int(rows.sum()), note=note)


def _notes(given: Calls, found: Removals, baseline: Imported | None, standard: str, sla: Sla | None) -> tuple[str, ...]:
    notes = [METHOD]
    if sla is None:
        notes.append(f"held against: {standard}")
    if given.derived:
        holds = (
            "it may hold waiting, too" if given.overlap and not np.isfinite(given.queue).any() else "nothing overlaps"
        )
        notes.append(f"no run time is recorded: what the latency leaves after recorded waits stands for it ({holds})")
    if given.reading:
        notes.append(f"the sums say that {' and '.join(given.reading)} lie within another stage; counted once")
    if found.wait.workers and found.wait.seen:
        notes.append(f"workers are not recorded: {found.wait.workers} were seen at work at once; there may be more")
    if baseline is not None:
        notes.append(f"compared with {baseline.trace.run.id}")
    return tuple(notes)
