"""Mapping accuracy and promise accuracy: does the compiled mapping still fit, and does it keep its word? (R24)

Theory
------
Unit: one executed batch B that ended well. R = wall - run-queue delay.

    m = measured R
    c = the time the profile promised for B's route when the plan was compiled (0 = no promise: uncovered, not dropped)
    b = the lowest profiled warm time over the ReferenceSet for B's members at their true shapes (0 = none known)

    mapping accuracy = sum b / sum m                  regret = 1 / accuracy - 1
    promise accuracy = 1 - sum |m - c| / sum m        bias   = sum (m - c) / sum m    (above 0: slower than promised)

Mapping accuracy falls when traffic leaves the shapes that the mapping was made for. What it loses is split, each part
a share of sum m, signed, and the parts add up to 1 - accuracy exactly. T_e is the warm promise of the entry that ran,
T_ref that of the one reference entry, D the executed dims, r the cheapest way in which the reference entry alone
serves the members at true shapes:

    cold         max(0, R - T_e(D)) of a first or compiling run; of a changed run, as far as changes cost (account)
    interference R - cold - T_e(D)
    padding      T_ref(D) - r                         (bucket and ragged padding)
    premium      T_e(D) - T_ref(D) + r - b            (a dearer kernel than the best entry known)
    unprofiled   whatever needs a time that no profile knows

Promise accuracy is given twice, over all runs and without first runs: a promise is a warm time, so cold shapes break
both accuracies. Reading uses the second. Coverage = share of requests on compiled routes (exact, padded, dynamic).
Fit = useful / executed work = sum of mean_j T_ref(n, s_j) over sum of T_ref(D).

Intervals: block bootstrap over the run's batches in order, "this run". A value above 1 is printed as found.
Limits: interference can be negative (a machine faster than while profiling) and then hides loss elsewhere: read the
parts, not only the sum. Batches that failed have no R and are counted apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.domain.figure import Figure, Finding, Findings, Series
from trimtab.domain.score import LOSS_CAUSES, Interpretation, Score
from trimtab.domain.study import Sla
from trimtab.domain.trace import Trace
from trimtab.evidence.attribute.split import Int
from trimtab.evidence.figures import Desk, percent
from trimtab.evidence.latency import latencies
from trimtab.evidence.score import _tables as tables
from trimtab.evidence.score import adaptation as adapting
from trimtab.evidence.score import measured as replays
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.batches import Batches, Bool, Yardstick, coverage, measure, share_of
from trimtab.evidence.score.interpret import interpret
from trimtab.evidence.score.ledger import ledger
from trimtab.evidence.score.measured import Measured
from trimtab.evidence.stats.bootstrap import Comparison, ratio_of_sums
from trimtab.evidence.stats.quantiles import Floats


def findings(
    trace: Trace,
    yardstick: Yardstick,
    sla: Sla,
    rng: np.random.Generator,
    *,
    measured: Measured | str | None = None,
    simulated: Sequence[Trace] = (),
    replayed: Sequence[Trace] = (),
    adaptation: Adaptation | str | None = None,
) -> Findings:
    """Everything the score stage found about one run.

    ``measured`` = replays of the same arrivals as they are and under run-time adaptation, or why there are none (None:
    nobody asked). ``simulated`` and ``replayed`` are runs of the same plan on the same arrivals, for the comparison of
    the simulator with the replay.
    ``adaptation`` = what adapting would win in simulation, or why that cannot be said.
    """
    desk = Desk("score", "this run", f"traces/{trace.run.id}/batches.parquet")
    batches = measure(trace, yardstick)
    seconds = latencies(trace, sla)
    result = score(trace, batches, desk, rng)
    _shares(batches, desk)
    won = _measured(measured, adaptation, sla, rng, desk)
    over_time = tables.windows(trace, batches, seconds, sla, won.typical)
    series = [
        over_time,
        tables.loss(result, batches),
        tables.bands(trace, batches, seconds, sla),
        tables.routes(trace, batches, seconds),
        tables.shapes(trace, batches),
        ledger(trace, batches, desk),
        *won.series,
    ]
    doubted = ""
    if simulated and replayed:
        series.append(tables.simulation(simulated, replayed, sla, desk))
        doubted = adapting.doubt(series[-1], sla.metric)
    would = _simulated(adaptation, yardstick, sla, rng, desk, doubted)
    reading = interpret(result, won.gain, tables.trend(over_time), _uncovered(desk), would.clause)
    return Findings(
        stage="score",
        headline=reading.sentence,
        findings=(*_read(result, reading), *won.said, *would.said),
        figures=tuple(desk.figures),
        series=tuple(one for one in (*series, *would.series) if one.columns),
        status="done" if batches.row.size else "partial",
    )


def _read(result: Score, reading: Interpretation) -> tuple[Finding, Finding]:
    """What the accuracies mean, and what the mapping loses."""
    loss = ", ".join(
        f"{cause} {percent(figure.value)}" for cause, figure in result.loss.items() if figure.value is not None
    )
    return (
        Finding(
            text=reading.sentence,
            figures=("score.mapping_accuracy", "score.promise_accuracy_warm"),
            owner=reading.owner,
        ),
        Finding(
            text=f"Of the measured run time, the mapping loses: {loss}.",
            figures=tuple(f"score.loss.{cause}" for cause in LOSS_CAUSES),
            owner="runtime",
        ),
    )


class _Won(NamedTuple):
    """What replays under the controller say: the gain, latencies of the typical one, and what is told of all."""

    gain: Figure | None = None
    typical: Floats | None = None
    series: tuple[Series, ...] = ()
    said: tuple[Finding, ...] = ()


def _measured(
    found: Measured | str | None, simulated: Adaptation | str | None, sla: Sla, rng: np.random.Generator, desk: Desk
) -> _Won:
    if isinstance(found, str):
        replays.absent(found, desk)
    if not isinstance(found, Measured):
        return _Won()
    gain = replays.figures(found, sla, rng, desk)
    beside = None if isinstance(simulated, str) else simulated
    told = (replays.said(found, gain, sla),)
    return _Won(gain, latencies(found.typical(sla), sla), (replays.runs(found, beside, sla),), told)


class _Would(NamedTuple):
    """What adapting would win in simulation: its clause of the reading, its windows, what is told of it."""

    clause: str = ""
    series: tuple[Series, ...] = ()
    said: tuple[Finding, ...] = ()


def _simulated(
    found: Adaptation | str | None, yardstick: Yardstick, sla: Sla, rng: np.random.Generator, desk: Desk, doubted: str
) -> _Would:
    if isinstance(found, str):
        adapting.absent(found, desk)
    if not isinstance(found, Adaptation):
        return _Would()
    clause = adapting.clause(adapting.figures(found, sla, rng, desk, doubted), desk, doubted)
    by_window = adapting.by_window(found, measure(found.static, yardstick), sla, doubted)
    return _Would(clause, (by_window,), (adapting.said(found, sla.metric, desk, doubted),))


def _uncovered(desk: Desk) -> float:
    value = next((f.value for f in desk.figures if f.id == "score.uncovered"), None)
    return math.nan if value is None else value


def score(trace: Trace, batches: Batches, desk: Desk, rng: np.random.Generator) -> Score:
    """The Score of one run; every figure is also stored on ``desk``. ``rng`` drives the bootstrap."""
    every, warm = np.ones(batches.row.size, dtype=np.bool_), ~batches.first
    off = batches.measured - batches.promised

    def ratio(name: str, part: Int, keep: Bool, note: str = "") -> Figure:
        return desk.compare(name, ratio_of_sums(part[keep], batches.measured[keep], rng), "share", note=note)

    def promise(name: str, keep: Bool, note: str) -> Figure:
        missed = ratio_of_sums(np.abs(off)[keep], batches.measured[keep], rng)
        return desk.compare(name, _map(missed, lambda x: 1 - x), "share", note=note)

    mapping = ratio_of_sums(batches.best, batches.measured, rng)
    lacking = f"{batches.failed} failed batches have no run time" if batches.failed else ""
    desk.compare("regret", _map(mapping, _regret), "share", note="1 / mapping accuracy - 1")
    return Score(
        run=trace.run.id,
        plan=trace.run.plan,
        mapping=desk.compare("mapping_accuracy", mapping, "share", note=lacking),
        loss={cause: ratio(f"loss.{cause}", batches.loss[cause], every) for cause in LOSS_CAUSES},
        promise=promise("promise_accuracy", every, "all runs"),
        promise_warm=promise("promise_accuracy_warm", warm, "without first runs"),
        bias=ratio("bias", off, every, "all runs; above 0 = slower than promised"),
        bias_warm=ratio("bias_warm", off, warm, "without first runs; above 0 = slower than promised"),
        coverage=desk.add(
            "coverage", coverage(trace), "share", len(trace.requests), note="requests on compiled routes"
        ),
        fit=desk.add(
            "fit", share_of(batches.useful, batches.executed), "share", batches.row.size,
            note="useful / executed work, by the reference entry's times",
        ),
    )  # fmt: skip


def _shares(batches: Batches, desk: Desk) -> None:
    """What the accuracies do not know, as shares of measured time: no promise, no reference, first runs."""
    measured = batches.measured
    for name, part, note in (
        ("uncovered", np.where(batches.promised > 0, 0, measured), "ran without a promise"),
        ("unreferenced", np.where(batches.best > 0, 0, measured), "no entry of the reference set is known for it"),
        ("first_runs", np.where(batches.first, measured, 0), "first runs of a shape"),
    ):
        desk.add(name, share_of(part, measured), "share", measured.size, note=f"of measured time: {note}")


def _regret(accuracy: float) -> float:
    return 1 / accuracy - 1 if accuracy > 0 else float("inf")


def _map(comparison: Comparison, change: Callable[[float], float]) -> Comparison:
    """A falling ``change`` of a comparison: its value, and both ends of its interval."""
    if comparison.value is None:
        return comparison
    value, interval = change(comparison.value), comparison.interval
    if interval is not None:
        interval = msgspec.structs.replace(interval, lo=change(interval.hi), hi=change(interval.lo))
    return msgspec.structs.replace(comparison, value=value, interval=interval)
