"""Rollback triggers: every cell that a decision rests on, turned into a rule that somebody can watch afterwards.

What a cell promised is what its trigger watches. *Primary*: that the SLA's bound holds where the candidate met it, and
that the move is still better than the baseline's figure, whichever is stricter. *Guard* on a percentile: that the
baseline's figure plus the margin is kept. *Goodput*: that requests are done within the SLA's bound. A request beyond
that limit is late, and ``retuning.rollback`` sets, and tries, the share of late requests that must not be passed.

A window holds 100 arrivals, and 5 / (1 - q) for the q-quantile where four of them fit into a replay: a p99 shows in 500
requests, not in 100. Cells with the same slice, limit and window share a trigger.

Limits. Cells under a condition set none: live traffic does not say which condition it is under. Answers set none:
nobody compares them with the reference while serving. The owner of the move owns its triggers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.figure import Cell, Figure, Finding, Findings, Interval, Series
from trimtab.domain.study import Sla
from trimtab.domain.verdict import ROLE_TITLES, MatrixCell, Move, Trial, Trigger
from trimtab.evidence.stats.quantiles import Floats
from trimtab.retuning import _metric as metric
from trimtab.retuning._series import series
from trimtab.retuning.arms import AS_RECORDED, Arms
from trimtab.retuning.rollback import WINDOW, Proven, Redrawn, Rehearsal, Rule, Tried, prove, rule_of, stretch

SERIES = "validate.triggers"
_TOLD = "service x 1.5"
"""The injected regression that a trigger's sentence tells."""
_USUAL = 0.95
"""The quantile by which simulated latencies are held against replays where a cell's metric is none."""


def triggers(
    cells: Sequence[MatrixCell],
    arms: Arms,
    slices: Mapping[str, NDArray[np.int64]],
    sla: Sla,
    move: Move,
    *,
    rehearsal: Rehearsal | str,
    baseline: str,
    rate_hz: float,
    owner: str = "",
    seed: int,
) -> tuple[Trigger, ...]:
    """One trigger for each promise of ``cells`` on traffic as recorded, the primary cell's first.

    ``arms`` = both plans' replays, ``slices`` positions within them, ``rehearsal`` = simulated runs of the candidate on
    these arrivals and others (or why there are none), ``baseline`` = where to go back to, ``rate_hz`` = arrivals/s of
    the whole traffic, ``owner`` = the name of who owns the move.
    """
    found = []
    for promise in _promises(cells, arms, slices, sla):
        rows = slices[promise.cell.slice]
        rate = rate_hz * rows.size / max(len(arms.candidate[0]), 1)
        if isinstance(rehearsal, str):
            unset = Proven(Rule(promise.window, promise.late_ms, None, 0), 0)
            found.append(_trigger(promise.cell, unset, move, baseline, rate, owner, rehearsal))
            continue
        replays = [x[rows] for x in arms.candidate]
        proven = _proven(promise, replays, rehearsal, rows, sla, seed)
        found.append(_trigger(promise.cell, proven, move, baseline, rate, owner))
    return tuple(found)


class _Promise(NamedTuple):
    """A cell, from how many ms on a request breaks what it promised, and the window of requests that shows it."""

    cell: MatrixCell
    late_ms: float
    window: int


def _proven(
    promise: _Promise, replays: Sequence[Floats], rehearsal: Rehearsal, rows: NDArray[np.int64], sla: Sla, seed: int
) -> Proven:
    """The rule that replays and the first half of the redrawn runs set, tried on the other half and on faulty runs."""
    longer = stretch(replays, rehearsal.recorded.of(rows), metric.QUANTILES.get(promise.cell.metric, _USUAL))

    def of(runs: Sequence[Redrawn]) -> list[Floats]:
        return [metric.settle(run.of(rows) * longer, sla) for run in runs]

    half = len(rehearsal.healthy) // 2
    healthy = [*(metric.settle(one, sla) for one in replays), *of(rehearsal.healthy[:half])]
    rule = rule_of(healthy, promise.late_ms, promise.window)
    faulty = {name: of(runs) for name, runs in rehearsal.faulty.items()}
    return prove(rule, of(rehearsal.healthy[half:]), faulty, seed)


def _promises(
    cells: Sequence[MatrixCell], arms: Arms, slices: Mapping[str, NDArray[np.int64]], sla: Sla
) -> Iterator[_Promise]:
    """Each promise once, the primary cell's first."""
    told = set()
    for cell in sorted(cells, key=lambda each: each.role != "primary"):
        limit = _limit(cell, sla)
        if limit is None or cell.slice not in slices or not arms.candidate:
            continue
        window = _window(cell.metric, slices[cell.slice].size)
        if (cell.slice, limit, window) not in told:
            told.add((cell.slice, limit, window))
            yield _Promise(cell, limit, window)


def _limit(cell: MatrixCell, sla: Sla) -> float | None:
    """From how many ms on a request breaks what ``cell`` promised; None = it promised nothing of latency."""
    if cell.role == "informative" or cell.condition != AS_RECORDED or cell.baseline is None or cell.candidate is None:
        return None
    if cell.metric in metric.SHARES:
        return sla.bound_ms
    if cell.metric not in metric.QUANTILES:
        return None
    kept = cell.baseline * (1 + (cell.margin or 0.0))
    if cell.role == "primary" and metric.meets(cell.candidate, sla):
        kept = min(kept, sla.bound_ms)
    return kept if math.isfinite(kept) else sla.bound_ms


def _window(name: str, requests: int) -> int:
    if name not in metric.QUANTILES:
        return WINDOW
    wanted = math.ceil(5 / (1 - metric.QUANTILES[name]) - 1e-9)
    return max(wanted, WINDOW) if requests >= 4 * wanted else WINDOW


def _trigger(
    cell: MatrixCell, proven: Proven, move: Move, baseline: str, rate_hz: float, owner: str, why: str = ""
) -> Trigger:
    """``why``: no rule could be set, for this reason."""
    rule = proven.rule
    title = f"{ROLE_TITLES[move.owner]} ({owner})" if owner else ROLE_TITLES[move.owner]
    return Trigger(
        cell=cell.id,
        slice=cell.slice,
        metric=cell.metric,
        window=rule.window,
        late_ms=rule.late_ms,
        bound=rule.bound if rule.watches else None,
        windows=rule.seen,
        runs=proven.runs,
        false_alarms=proven.false_alarms,
        false_alarms_interval=proven.interval,
        trials=tuple(_trial(each) for each in proven.tried),
        back_to=baseline,
        owner=move.owner,
        sentence=_sentence(cell, proven, baseline, title, rate_hz, why),
    )


def _trial(tried: Tried) -> Trial:
    return Trial(name=tried.name, runs=tried.runs, found=tried.found, delay=tried.delay, between=tried.between)


# --- words ---------------------------------------------------------------------------------------------------


def _sentence(cell: MatrixCell, proven: Proven, baseline: str, title: str, rate_hz: float, why: str) -> str:
    """The rollback boundary as it stands in a proposal."""
    rule, where = proven.rule, "" if cell.slice == "held-out" else f" of {cell.slice}"
    unset = why or _unset(rule)
    if unset:
        by_hand = f"The {title} watches it and goes back to plan {baseline} by hand."
        return f"No automatic boundary{where}: {unset}. {by_hand}"
    assert rule.bound is not None
    soonest = rule.soonest(rate_hz)
    at = "" if soonest is None else f" ({soonest / 1e9:.3g} s at {rate_hz:.3g} requests/s)"
    return (
        f"Go back to plan {baseline} when more than {rule.bound * 100:.3g} % of requests{where} are later than "
        f"{rule.late_ms:.4g} ms in two windows of {rule.window} arrivals running{at}. {_alarms(proven)}"
        f"{_found(proven)} Owner: {title}."
    )


def _unset(rule: Rule) -> str:
    """Why nothing can be watched; empty = it can."""
    if rule.bound is None:
        return f"no replay holds two windows of {rule.window} arrivals"
    return "" if rule.watches else f"two healthy windows of {rule.window} arrivals were late as a whole"


def _alarms(proven: Proven) -> str:
    assert proven.false_alarms is not None
    assert proven.interval is not None
    lo, hi = proven.interval.lo * 100, proven.interval.hi * 100
    share = f"{proven.false_alarms * 100:.2g} % ({lo:.2g} to {hi:.2g})"
    runs = f"healthy runs of {proven.length} requests on other arrivals of this kind"
    return f"It would fire falsely in {share} of {runs}, simulated."


def _found(proven: Proven) -> str:
    told = next((each for each in proven.tried if each.name == _TOLD), None)
    if told is None:
        return ""
    if told.delay is None:
        how = f"fires in {told.found * 100:.3g} % of such runs only" if told.found else "does not fire"
        return f" Where service takes 1.5 times as long it {how}."
    return f" Where service takes 1.5 times as long it fires after {told.delay:.0f} requests ({_ends(told)})."


def _ends(tried: Tried) -> str:
    lo, hi = tried.between.lo, tried.between.hi
    return f"{lo:.0f} to {hi:.0f}" if math.isfinite(hi) else f"from {lo:.0f}, not at all in some runs"


# --- findings ------------------------------------------------------------------------------------------------


def told(found: Findings, made: Sequence[Trigger], artifact: str) -> Findings:
    """``found`` with a sentence and figures for each trigger, and the series ``validate.triggers``."""
    if not made:
        return found
    figures = {each.cell: _figures(each, artifact) for each in made}
    said = [
        Finding(text=each.sentence, figures=tuple(f.id for f in figures[each.cell]), owner=each.owner) for each in made
    ]
    return replace(
        found,
        findings=(*found.findings, *said),
        figures=(*found.figures, *(figure for group in figures.values() for figure in group)),
        series=(*found.series, _series(made, artifact)),
    )


def _figures(made: Trigger, artifact: str) -> list[Figure]:
    if made.false_alarms is None:
        return []

    def figure(name: str, value: float | None, unit: str, samples: int, interval: Interval | None, note: str) -> Figure:
        return Figure(
            id=f"validate.trigger.{made.cell}.{name}",
            value=value,
            unit=unit,
            samples=samples,
            scope=made.slice,
            artifact=artifact,
            interval=interval,
            note=note,
        )

    how = "of healthy runs on redrawn arrivals, simulated"
    alarms = figure("false_alarms", made.false_alarms, "share", made.runs, made.false_alarms_interval, how)
    delays = [
        figure(
            f"delay.{t.name.replace(' ', '-')}",
            t.delay,
            "requests",
            t.runs,
            t.between,
            f"found in {t.found * 100:.3g} %",
        )
        for t in made.trials
    ]
    return [alarms, *delays]


def _series(made: Sequence[Trigger], artifact: str) -> Series:
    rows = [_row(each) for each in made]
    shares = {name: "share" for row in rows for name in row if name.startswith(("bound", "false_alarms", "found"))}
    return series(SERIES, rows, {"late_ms": "ms", **shares}, "held-out", artifact)


def _row(made: Trigger) -> dict[str, Cell]:
    interval = made.false_alarms_interval
    row: dict[str, Cell] = {
        "cell": made.cell,
        "slice": made.slice,
        "metric": made.metric,
        "late_ms": made.late_ms,
        "window": made.window,
        "bound": made.bound,
        "windows": made.windows,
        "false_alarms": made.false_alarms,
        "false_alarms_lo": interval.lo if interval else None,
        "false_alarms_hi": interval.hi if interval else None,
    }
    for trial in made.trials:
        row[f"found {trial.name}"] = trial.found
        row[f"delay {trial.name}"] = trial.delay
        row[f"delay {trial.name} lo"] = _finite(trial.between.lo)
        row[f"delay {trial.name} hi"] = _finite(trial.between.hi)
    return {**row, "back_to": made.back_to, "owner": made.owner, "sentence": made.sentence}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
