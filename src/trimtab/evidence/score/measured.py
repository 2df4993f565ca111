"""What adapting while serving wins when it is measured: static and adapted replays in turn on the same arrivals (R24).

Definitions
-----------
measured static, adapted   the primary metric, median over the arm's replays (an interval from 5 replays on)
measured gain              (static, adapted) over all replays, with its paired block bootstrap interval
measured floor             the A/A floor of both arms: what replays of one arm differ by among themselves
beside                     warm batches that ran while their worker had an entry compiled beside it: their wall time
                           over what it would have been at the pace (wall over promise) of the other warm batches of
                           the same entry, - 1; above 0 = slower. Entries differ in how well their promise fits, and a
                           compile is asked for when one of them serves badly: a comparison across entries would charge
                           the compile with that

Everything is charged where it happened: the compile as a mark of its own, what it slows in the times of the batches
beside it, the controller's own work in the loader slip. A gain counts where its interval lies above 0 and it exceeds
the floor. Simulated runs stand beside it in the table and never meet it in a ratio.

Limits. One table of entries is refitted in each run anew: how soon drift is proved differs from replay to replay, and
is part of what replays differ by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.figure import Figure, Finding, Interval, Series
from trimtab.domain.noun import EntryId
from trimtab.domain.study import Sla
from trimtab.domain.trace import MARK_KINDS, Table, Trace
from trimtab.evidence._latency_tables import table
from trimtab.evidence.figures import MS, NS_MS, Desk, percent, series
from trimtab.evidence.latency import latencies, metric_value, misses, over_replays
from trimtab.evidence.score.adaptation import Adaptation
from trimtab.evidence.score.gain import paired_gains
from trimtab.evidence.stats.floor import Floor, aa_floor

PREPARE = MARK_KINDS.index("prepare")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Replays of the plan as it is, and under the online controller, made in turn. At least one of each."""

    static: tuple[Trace, ...]
    adapted: tuple[Trace, ...]

    def typical(self, sla: Sla) -> Trace:
        """The adapted replay whose primary metric is the median."""
        return sorted(self.adapted, key=lambda trace: metric_value(trace, sla))[len(self.adapted) // 2]


class Beside(NamedTuple):
    """Warm batches that ran while an entry was compiled beside their worker, of entries that ran without one too, and
    how much slower they were (None: not known) than those."""

    batches: int
    slower: float | None


def absent(reason: str, desk: Desk) -> None:
    """Store the gain without a value: why nothing was replayed under the controller."""
    desk.add("measured_gain", None, "share", 0, note=f"not measured: {reason}")


def figures(found: Measured, sla: Sla, rng: np.random.Generator, desk: Desk) -> Figure:
    """Every figure on ``desk``; returns the gain in the primary metric."""
    won = paired_gains("measured_gain", found.static, found.adapted, sla, rng, desk)
    for name, arm in (("static", found.static), ("adapted", found.adapted)):
        _arm(f"measured_{name}", arm, sla, desk)
    floor = _floor(found, sla)
    note = floor.reason or f"measured {sla.metric}, {floor.replays} replays of each arm"
    desk.add("measured_floor", floor.value, "share", len(floor.differences), note=note, artifact="traces")
    spans = [_spans(trace) for trace in found.adapted]
    compiled = sum(len(span) for span in spans)
    took = sum(int((span[:, 1] - span[:, 0]).sum()) for span in spans)
    note = "measured, over all adapted replays: from asking for an entry until it was whole"
    desk.add("measured_compiling", took * NS_MS, "ms", compiled, note=note, artifact="traces")
    slow = beside(found.adapted)
    note = "batches beside a compile, wall time over promise, against others of the same entry; above 0 = slower"
    desk.add("measured_beside", slow.slower, "share", slow.batches, note=note, artifact="traces")
    return won


def _arm(name: str, traces: Sequence[Trace], sla: Sla, desk: Desk) -> None:
    scale, unit = (1.0, "share") if sla.metric == "goodput" else (MS, "ms")
    values = [metric_value(trace, sla) * scale for trace in traces]
    middle, interval = over_replays(values)
    note = f"{sla.metric}, median of {len(values)} replays, {min(values):.4g} to {max(values):.4g}"
    requests = sum(len(trace.requests) for trace in traces)
    desk.add(name, middle, unit, requests, interval=interval, note=note, artifact="traces")


def _floor(found: Measured, sla: Sla) -> Floor:
    arms = [[metric_value(trace, sla) for trace in arm] for arm in (found.static, found.adapted)]
    return aa_floor(arms, "absolute" if sla.metric == "goodput" else "relative")


def _spans(trace: Trace) -> NDArray[np.int64]:
    """int64[compiles, 3]: start, end, worker of each compile beside serving."""
    marks = trace.marks.take(trace.marks["kind"] == PREPARE)
    return np.stack([marks["t"], marks["end"], marks["worker"].astype(np.int64)], axis=1)


def beside(traces: Sequence[Trace]) -> Beside:
    """What compiles did to the batches beside them; None where no entry ran warm both beside one and without."""
    alone: defaultdict[EntryId, _Sums] = defaultdict(_nothing)
    with_one: defaultdict[EntryId, _Sums] = defaultdict(_nothing)
    for trace in traces:
        b = trace.batches
        warm = b.take((b["error"] == 0) & ~b["first_seen"] & (b["promised"] > 0))
        under_way = _under_way(trace, warm)
        for code, entry in enumerate(trace.entries):
            mine = warm["entry"] == code
            with_one[entry] += _sums(warm, mine & under_way)
            alone[entry] += _sums(warm, mine & ~under_way)
    known = [entry for entry, (count, *_) in with_one.items() if count and alone[entry][0]]
    if not known:
        return Beside(0, None)
    expected = sum(with_one[entry][2] * alone[entry][1] / alone[entry][2] for entry in known)
    took = sum(with_one[entry][1] for entry in known)
    return Beside(int(sum(with_one[entry][0] for entry in known)), float(took / expected - 1))


def _under_way(trace: Trace, batches: Table) -> NDArray[np.bool_]:
    """bool[batches]: whether an entry was being compiled beside the batch's worker meanwhile."""
    found = np.zeros(len(batches), dtype=np.bool_)
    for start, end, worker in _spans(trace).tolist():
        found |= (batches["worker"] == worker) & (batches["started"] < end) & (batches["ended"] > start)
    return found


_Sums = NDArray[np.float64]
"""float64[3]: batches, their wall time and their promises, ns."""


def _nothing() -> _Sums:
    return np.zeros(3)


def _sums(batches: Table, chosen: NDArray[np.bool_]) -> _Sums:
    rows = batches.take(chosen)
    return np.array([len(rows), (rows["ended"] - rows["started"]).sum(), rows["promised"].sum()], dtype=np.float64)


def runs(found: Measured, simulated: Adaptation | None, sla: Sla) -> Series:
    """One row an arm: the primary metric over its replays, and the share of requests that miss the bound."""
    scale, unit = (1.0, "share") if sla.metric == "goodput" else (MS, "ms")

    def rows() -> Iterator[dict[str, Any]]:
        arms: list[tuple[str, str, Sequence[Trace]]] = [
            ("static", "measured", found.static),
            ("adapted", "measured", found.adapted),
        ]
        if simulated is not None:
            kept = (simulated.static, simulated.adapted, simulated.clairvoyant)
            arms += [
                (name, "simulated", [trace])
                for name, trace in zip(("static", "adapted", "clairvoyant"), kept, strict=True)
            ]
        for name, source, traces in arms:
            values = sorted(metric_value(trace, sla) * scale for trace in traces)
            late = [float(misses(latencies(trace, sla), sla).mean()) for trace in traces]
            yield {
                "run": name,
                "source": source,
                "value": over_replays(values)[0],
                "lowest": values[0],
                "highest": values[-1],
                "replays": len(values),
                "requests": len(traces[0].requests),
                "miss_rate": over_replays(late)[0],
            }

    units = dict.fromkeys(("value", "lowest", "highest"), unit) | {"miss_rate": "share"}
    note = (
        f"{sla.metric}; simulated runs cover all traffic before the held-out slice, and are no part of any ratio here"
    )
    return series("score.measured", table(list(rows())), units, "traces", note=note)


def said(found: Measured, won: Figure, sla: Sla) -> Finding:
    """Whether the controller won anything that replays of one arm do not differ by, in one sentence."""
    floor, slow = _floor(found, sla), beside(found.adapted)
    compiled = sum(len(_spans(trace)) for trace in found.adapted)
    ids = ("score.measured_gain", "score.measured_static", "score.measured_adapted", "score.measured_floor")
    n = len(found.adapted)
    replays = f"In {n} {'replay' if n == 1 else 'replays'} of each arm, in turn"
    if won.value is None:
        return Finding(text=f"{replays}, the gain is unknown: {won.note}.", figures=ids, owner="runtime")
    text = f"{replays}, refitting while serving makes {sla.metric} {_change(won.value, won.interval)}"
    apart = f"replays of one arm differ by {percent(floor.value)}" if floor.value is not None else ""
    text += f"; {'; '.join(part for part in (apart, floor.reason) if part)}. {_verdict(won, floor)}"
    if slow.slower is not None:
        many = "1 compile" if compiled == 1 else f"{compiled} compiles"
        longer = "longer" if slow.slower >= 0 else "less"
        text += (
            f" {many} beside serving; the {slow.batches} warm batches beside took {percent(abs(slow.slower))} {longer}"
        )
        text += " than others."
    return Finding(text=text, figures=ids, owner="runtime")


def _change(value: float, between: Interval | None) -> str:
    text = f"{percent(abs(value))} {'better' if value >= 0 else 'worse'}"
    return text + (f" [{percent(between.lo)}, {percent(between.hi)}]" if between else " (no interval)")


def _verdict(won: Figure, floor: Floor) -> str:
    if won.value is None or won.interval is None or floor.value is None or floor.provisional:
        return "That proves nothing yet."
    if won.interval.lo > 0 and won.value > floor.value:
        return "The gain is real."
    if won.interval.hi < 0 and -won.value > floor.value:
        return "The loss is real."
    return "No difference is shown."
