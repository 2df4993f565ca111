"""Confirm: choose among what was really replayed.

The short list is replayed on the tune slice, in turn with the baseline. A move *gains* when its whole paired interval
lies beyond the baseline's own A/A floor. Of the moves that gain, the best is the one with the best value; the smallest
move whose paired interval against that one does not lie on the worse side of 0 is chosen. Where nothing gains, "no
change" is: it competes as a move of size 0. If then a move's interval reaches both sides of that floor, the replays
have not decided: the choice says so, and no verdict may call it "no benefit".

A baseline that cannot keep up has one long queue, in which nothing is independent of anything: there is no interval,
however large the gain. Where no move gains and some have no interval, the best of those whose value lies beyond the
floor is chosen, *to be measured*: "no change" would not be the smallest that is not worse, only the one nobody looked
at.

Choosing claims nothing: chosen and runner-up are measured again on held-out traffic. So a provisional floor (fewer than
three replays) is good enough here, and one replay counts as a floor of 0, said in the reason.

Limits. "Not worse" is what these replays could tell apart: with little data it favours small moves, the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from trimtab.domain.figure import Figure
from trimtab.domain.study import Sla
from trimtab.domain.verdict import Move, Rejected
from trimtab.evidence.stats.quantiles import Floats
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.search import Simulated, simulated_figure, why_not

Replays = Callable[[Move], Sequence[Floats] | str]
"""A move's latencies on the tune slice (seconds, one array a replay, the same arrivals), or why there are none."""

Outcome = Literal["gains", "does not gain", "open"]


@dataclass(frozen=True)
class Confirmed:
    """A move as really replayed.

    ``value`` of the primary metric over all its replays (nan: none) · ``badness`` sorts the best first: by the primary
    metric, then goodput, then size · ``judged`` against the baseline (None: it is the baseline, or it failed) ·
    ``floor`` it had to beat · ``reason`` why it was or was not chosen.
    """

    move: Move
    value: float
    badness: tuple[float, float, int]
    judged: metric.Judged | None
    floor: float | None = None
    reason: str = ""
    failed: str = ""


@dataclass(frozen=True)
class Choice:
    """``chosen`` is "no change" where nothing helps; ``runner_up`` the best of the rest; every row has its reason.

    ``undecided`` says why "no change" was chosen although the replays leave open whether a move gains; else empty.
    """

    chosen: Move
    runner_up: Move | None
    rows: tuple[Confirmed, ...]
    undecided: str = ""


def choose(moves: Sequence[Move], replays: Replays, sla: Sla, seed: int) -> Choice:
    """The smallest move that is not worse than the best one, among ``moves``, the baseline ("no change") first."""
    if not moves or moves[0].kind != NO_CHANGE:
        raise ValueError("the first move must be the baseline")
    rows = [_confirm(move, moves[0], replays, sla, seed) for move in moves]
    gaining = [row for row in rows if _outcome(row) == "gains"]
    better = gaining or [row for row in rows if _promises(row)]
    best = min(better, key=lambda row: row.badness) if better else rows[0]
    level = [row for row in better if row is best or not _worse(row.move, best.move, replays, sla, seed)]
    chosen = min(level, key=lambda row: row.move.size) if level else rows[0]
    explained = tuple(replace(row, reason=_reason(row, chosen, best, better, level)) for row in rows)
    rest = [row for row in rows if not row.failed and row is not chosen and row.move.kind != NO_CHANGE]
    runner = min(rest, key=lambda row: row.badness).move if rest else None
    return Choice(chosen.move, runner, explained, _undecided(explained) if chosen is rows[0] else "")


def _confirm(move: Move, baseline: Move, replays: Replays, sla: Sla, seed: int) -> Confirmed:
    mine, theirs = replays(move), replays(baseline)
    if isinstance(mine, str) or not mine:
        failed = mine if isinstance(mine, str) and mine else "not replayed"
        return Confirmed(move, math.nan, (math.inf, 0.0, move.size), None, failed=failed)
    pooled = np.concatenate(list(mine))
    value = metric.value(pooled, sla.metric, sla)
    order = -value if metric.higher_is_better(sla.metric) else value
    badness = (order, -metric.value(pooled, "goodput", sla), move.size)
    if move is baseline or isinstance(theirs, str) or not theirs:
        return Confirmed(move, value, badness, None)
    judged = metric.judge(theirs, mine, sla.metric, sla, seed)
    return Confirmed(move, value, badness, judged, metric.floor([theirs], judged.metric, sla).value)


def _outcome(row: Confirmed) -> Outcome:
    """Where the whole interval lies against the ratio that is better than the baseline by exactly the floor."""
    if row.judged is None or row.judged.comparison.interval is None:
        return "open"
    name, interval = row.judged.metric, row.judged.comparison.interval
    limit = metric.worse_by(name, -(row.floor or 0.0))
    above, below = interval.lo > limit, interval.hi < limit
    gains, lacks = (above, below) if metric.higher_is_better(name) else (below, above)
    return "gains" if gains else "does not gain" if lacks else "open"


def _promises(row: Confirmed) -> bool:
    """Whether its value, of which there is no interval, is better than the baseline's by more than the floor."""
    if row.judged is None or row.judged.comparison.interval is not None or row.judged.comparison.value is None:
        return False
    name, value = row.judged.metric, row.judged.comparison.value
    limit = metric.worse_by(name, -(row.floor or 0.0))
    return value > limit if metric.higher_is_better(name) else value < limit


def _undecided(rows: Sequence[Confirmed]) -> str:
    """What the replays leave open: the best of the open moves, and how many more there are."""
    tried = [row for row in rows if not row.failed and row.move.kind != NO_CHANGE]
    left = sorted((row for row in tried if _outcome(row) == "open"), key=lambda row: row.badness)
    if not left:
        return ""
    more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
    return f"the replays do not decide whether {left[0].move.plan.id}{more} gains: {left[0].reason}"


def _worse(move: Move, best: Move, replays: Replays, sla: Sla, seed: int) -> bool:
    mine, theirs = replays(move), replays(best)
    if isinstance(mine, str) or isinstance(theirs, str):
        return True
    direct = metric.judge(theirs, mine, sla.metric, sla, seed)
    interval = direct.comparison.interval
    if interval is None:
        return True
    return interval.hi < 1 if metric.higher_is_better(direct.metric) else interval.lo > 1


def _reason(
    row: Confirmed,
    chosen: Confirmed,
    best: Confirmed,
    better: Sequence[Confirmed],
    level: Sequence[Confirmed],
) -> str:
    if row.failed:
        return row.failed
    if row is chosen:
        return "no move is shown to gain more than the floor" if row.move.kind == NO_CHANGE else _chosen(row, best)
    if row.move.kind == NO_CHANGE:
        return f"{chosen.move.plan.id} {'may gain' if _promises(chosen) else 'gains'} more than the floor"
    if row not in better:
        return _why_no_gain(row)
    if row not in level:
        worse = "measured worse" if _promises(row) else "worse"
        return f"{worse} than {best.move.plan.id} on the same arrivals"
    return f"not better than {chosen.move.plan.id}, which changes less"


def _chosen(row: Confirmed, best: Confirmed) -> str:
    if row.judged is not None and _promises(row):
        return f"the best as measured; whether it gains is for held-out traffic to show: {row.judged.comparison.reason}"
    return "the best" if row is best else f"the smallest that is not worse than {best.move.plan.id}"


def _why_no_gain(row: Confirmed) -> str:
    if row.judged is None:
        return "the baseline could not be replayed"
    if row.judged.comparison.interval is None:
        return row.judged.comparison.reason
    floor = "0 (one replay of the baseline, no floor)" if row.floor is None else f"the floor of {row.floor * 100:.1f} %"
    return f"its interval touches {floor}" if _outcome(row) == "open" else f"no gain above {floor}"


def rejected(rows: Sequence[Simulated], choice: Choice, sla: Sla, artifact: str) -> tuple[Rejected, ...]:
    """Every candidate that was not chosen, with its figure (measured where it was replayed) and the reason."""
    measured = {row.move.plan.id: row for row in choice.rows}
    out = []
    for row in rows:
        move = row.move
        if move.plan.id == choice.chosen.plan.id:
            continue
        confirmed = measured.get(move.plan.id)
        reason = confirmed.reason if confirmed else why_not(row, sla)
        figure = measured_figure(confirmed, sla, artifact) if confirmed else simulated_figure(row, sla, artifact)
        out.append(Rejected(plan=move.plan.id, sentence=move.sentence, reason=reason, figure=figure))
    return tuple(out)


def measured_figure(row: Confirmed, sla: Sla, artifact: str) -> Figure:
    """The measured change of the metric it was judged on, with its paired interval."""
    if row.judged is None:
        value, interval, samples, note = None, None, 0, row.failed or "the baseline itself"
    else:
        value, interval = metric.change(row.judged.comparison)
        samples = row.judged.comparison.samples
        parts = (f"measured change of {row.judged.metric}", row.judged.note, row.judged.comparison.reason)
        note = "; ".join(part for part in parts if part)
    return Figure(
        id=f"retune.measured.{row.move.plan.id}",
        value=value,
        unit="share",
        samples=samples,
        scope="tune",
        artifact=artifact,
        interval=interval,
        note=note,
    )
