"""Validate: every question about a candidate is one cell of a matrix, slices x conditions x metrics.

Both plans were replayed in turn on the same held-out arrivals, at least three fresh replays each. A cell compares them
by the ratio candidate / baseline with a paired block bootstrap (``evidence.bootstrap``), and beside it stands the A/A
floor: how far replays of one and the same plan differ in this very metric on this very slice.

*Primary*: superiority. Pass = the whole interval is better than the floor; fail = the whole interval is not (no benefit
above the floor); else inconclusive. *Guard*: non-inferiority. Pass = the interval of the worsening lies below the
margin, fail = above it, else inconclusive; the guards share alpha by Holm (1979), over one-sided p-values from the
resamples, separately for passing and for failing. *Informative*: pass = not worse than the floor, fail = worse than it;
such a cell never decides.

*Thin tails.* Near saturation a queue remembers so long that a replay's percentile rests on too few effective samples,
and the interval comes out too narrow (10 to 17 % false alarms of a nominal 5 % at utilisation 0.9). Wherever that is so
in any replay of either arm, every claim but superiority, which clears the floor anyway, must hold for the interval
widened by the floor at both ends. docs/metrics.md has the table, ``bench/decisions.py`` makes it.

*Queues that only grow.* An arm that cannot keep up drifts, and no blocks can be drawn from it. There a guard still
fails where every replay of the candidate is worse than every one of the baseline by more than the margin, and, on top,
than replays of one plan differ; such a cell never passes.

*Arms that lost different numbers of requests* are judged on goodput, and the cell says so. A guard then forgives a
margin of goodput: that of the study's goodput guard on the same slice, else on held-out traffic, else GOODPUT_MARGIN. A
margin meant for a percentile would forgive every tenth request.

What makes a cell inconclusive, always with its reason: a margin below the floor (unless the candidate is better
than the floor, or worse than it: what is clearly better is not worse, what is clearly worse fails), a provisional floor
(then nothing passes, though it may fail), too few blocks, runs that must not be compared, a slice without requests, a
percentile that rests on too few effective samples of the candidate (all its replays together; a tail that is seen too
thinly looks too short, and only on the candidate's side does that flatter it).

*Conditions.* The primary cell and every guard that names none are decided on the traffic as recorded; a guard that
names a condition is decided under it, on all requests of its replays. What was not replayed is a cell, too, with the
reason: a guard of that kind is not run, which is never a pass.

*More replays.* After the fixed rounds ``replays_wanted`` says how often each condition must be replayed so that its
must-pass cells can be decided at all: 3 replays for a floor that holds, and as many as the candidate's percentile needs
effective samples. It looks at how many replays there are and at how the candidate's tail hangs together, never at how
the arms differ, and is asked once: whether more is measured does not depend on what the cells would say so far, so
there is one look at them, and the error rates stay those of a fixed number of replays. Nothing stops early on a pass.
What more requests would decide is said by each open cell, and left to the next study.

Limits. Replays share their arrivals: a verdict holds for such traffic, not for all traffic. Informative cells are many
and uncorrected: one in twenty of them may stray.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from trimtab.domain.figure import Interval
from trimtab.domain.study import Guard, Sla
from trimtab.domain.verdict import CellStatus, MatrixCell
from trimtab.evidence.figures import MIB
from trimtab.evidence.stats.quantiles import holm
from trimtab.retuning import _metric as metric
from trimtab.retuning._weigh import Bench, Weighed
from trimtab.retuning.arms import AS_RECORDED, CONDITIONS, HELD_OUT, Arms

ALPHA = 0.025
"""One-sided, so that it agrees with the two-sided 95 % intervals that are printed. 1,000 resamples carry 25 guards."""

GOODPUT_MARGIN = 0.01
"""How much goodput, as a share of the baseline's, a guard forgives where the study declares no margin of goodput."""

NOT_ASKED, NOTHING_REPLAYED = "not asked for", "no candidate was replayed"
"""Why a condition has no replays, where it is not that it could not be applied."""

_QUICK = 400
_WIDENED = " (widened by the floor: few effective samples)"


@dataclass(frozen=True)
class Matrix:
    """The cells, and how many guards had to share alpha."""

    cells: tuple[MatrixCell, ...]

    @property
    def primary(self) -> MatrixCell | None:
        return next((cell for cell in self.cells if cell.role == "primary"), None)

    @property
    def guards(self) -> tuple[MatrixCell, ...]:
        return tuple(cell for cell in self.cells if cell.role == "guard")


def validate(
    sla: Sla,
    guards: Sequence[Guard],
    arms: Sequence[Arms],
    slices: Mapping[str, NDArray[np.int64]],
    seed: int,
    *,
    resamples: int = 1000,
    refused: Mapping[str, str] | None = None,
) -> Matrix:
    """The matrix. The first of ``arms`` decides, and each guard under the condition that it names; the rest informs.

    ``slices`` maps names to positions within the replayed arrivals and holds ``held-out``. ``refused``: conditions that
    were asked for and could not be applied, with the reason.
    """
    bench = Bench(sla, slices, seed)
    main = arms[0] if arms else Arms(AS_RECORDED, (), (), refusal=NOTHING_REPLAYED)
    pairs = {arm.condition: arm for arm in (main, *arms)}

    @cache  # guards often ask again what the primary cell asked
    def weigh(condition: str, part: str, name: str) -> Weighed:
        return bench.weigh(pairs[condition], part, name, resamples)

    def missing(condition: str) -> str:
        return (refused or {}).get(condition, NOT_ASKED) if arms else NOTHING_REPLAYED

    cells = [_primary(weigh(main.condition, HELD_OUT, sla.metric))]
    replayed = [guard for guard in guards if guard.condition in pairs]
    weighed = [(guard, weigh(guard.condition, guard.slice, guard.metric)) for guard in replayed]
    cells += _guards([_on_goodput(guard, each, guards) for guard, each in weighed])
    cells += [_guard_not_run(guard, missing(guard.condition)) for guard in guards if guard.condition not in pairs]
    told = {(cell.condition, cell.slice, cell.metric) for cell in cells}
    told |= {(guard.condition, guard.slice, guard.metric) for guard in guards}
    cells += [_informative(bench.weigh(*about, _QUICK)) for about in _further(sla, arms, slices, told)]
    cells += [_memory(main)] if arms else []
    ran = {arm.condition for arm in arms}
    cells += [_not_run(condition, sla.metric, missing(condition)) for condition in CONDITIONS if condition not in ran]
    return Matrix(tuple(cells))


def replays_wanted(
    sla: Sla, guards: Sequence[Guard], arms: Sequence[Arms], slices: Mapping[str, NDArray[np.int64]]
) -> dict[str, int]:
    """Replays an arm that the must-pass cells of each condition need; only conditions that have too few."""
    bench, wanted = Bench(sla, slices, 0), {}
    for pair in arms:
        about = {(guard.slice, guard.metric) for guard in guards if guard.condition == pair.condition}
        about |= {(HELD_OUT, sla.metric)} if pair is arms[0] else set()
        most = max((bench.replays_wanted(pair, part, name) for part, name in about), default=0)
        if most > min(len(pair.baseline), len(pair.candidate)):
            wanted[pair.condition] = most
    return wanted


def _further(
    sla: Sla, arms: Sequence[Arms], slices: Mapping[str, NDArray[np.int64]], told: Set[tuple[str, str, str]]
) -> Iterator[tuple[Arms, str, str]]:
    """What informs beside the cells that decide: every metric, every slice, every further condition."""
    for main in arms[:1]:
        about = [(HELD_OUT, name) for name in metric.METRICS] + [(part, sla.metric) for part in slices]
        yield from ((main, *each) for each in dict.fromkeys(about) if (main.condition, *each) not in told)
    for other in arms[1:]:
        if (other.condition, HELD_OUT, sla.metric) not in told:
            yield other, HELD_OUT, sla.metric


def _primary(weighed: Weighed) -> MatrixCell:
    barrier = weighed.barrier()
    if weighed.better(weighed.limit) and not barrier:
        return weighed.cell("primary", "pass", "")
    if not weighed.problem and weighed.worse(weighed.limit * metric.worse_by(weighed.judged.metric, weighed.unsure)):
        return weighed.cell("primary", "fail", "no benefit above the floor")
    return weighed.cell("primary", "inconclusive", barrier or _touches(weighed, "the floor"))


def _touches(weighed: Weighed, what: str) -> str:
    return f"the interval{_WIDENED if weighed.unsure else ''} touches {what}"


def _on_goodput(guard: Guard, weighed: Weighed, guards: Sequence[Guard]) -> tuple[Guard, Weighed]:
    """A guard that is judged on goodput instead of its own metric gets a margin of goodput, and says whose."""
    if weighed.judged.metric == guard.metric:
        return guard, weighed
    declared = {(each.condition, each.slice): each.margin for each in guards if each.metric == "goodput"}
    nearest = [(guard.condition, guard.slice), (guard.condition, HELD_OUT), (AS_RECORDED, HELD_OUT)]
    margin = next((declared[about] for about in nearest if about in declared), None)
    whose = "the study's margin" if margin else "the default margin, a goodput guard in the study sets another"
    margin = margin or GOODPUT_MARGIN
    note = f"{weighed.judged.note}, within {margin * 100:.3g} % ({whose})"
    said = dataclasses.replace(weighed.judged, note=note)
    return replace(guard, margin=margin), dataclasses.replace(weighed, judged=said)


def _guards(found: Sequence[tuple[Guard, Weighed]]) -> list[MatrixCell]:
    passing = holm([_p_pass(weighed, weighed.surely_better_than(guard.margin)) for guard, weighed in found])
    failing = holm([_p_fail(weighed, weighed.surely_worse_than(guard.margin)) for guard, weighed in found])
    return [
        _guard(guard, weighed, p <= ALPHA, f <= ALPHA, len(found))
        for (guard, weighed), p, f in zip(found, passing, failing, strict=True)
    ]


def _p_pass(weighed: Weighed, ratio: float) -> float:
    return metric.p_not_better(weighed.judged.comparison, weighed.judged.metric, ratio)


def _p_fail(weighed: Weighed, ratio: float) -> float:
    return metric.p_not_worse(weighed.judged.comparison, weighed.judged.metric, ratio)


def _guard(guard: Guard, weighed: Weighed, below: bool, above: bool, sharing: int) -> MatrixCell:
    if weighed.worse_in_every_replay(guard.margin):
        note = f"worse by more than {guard.margin * 100:.3g} % in every replay; {weighed.judged.comparison.reason}"
        return weighed.cell("guard", "fail", note, guard.margin)
    floor, barrier = weighed.floor.value, weighed.barrier()
    if floor is not None and guard.margin < floor and not weighed.problem and not _clear(weighed, floor):
        note = f"the margin of {guard.margin * 100:.3g} % lies below the floor of {floor * 100:.3g} %"
        return weighed.cell("guard", "inconclusive", note, guard.margin, sharing)
    if above:
        return weighed.cell("guard", "fail", f"worse by more than {guard.margin * 100:.3g} %", guard.margin)
    if below and not barrier:
        return weighed.cell("guard", "pass", "", guard.margin)
    touches = _touches(weighed, "the margin")
    if weighed.better(weighed.surely_better_than(guard.margin)):
        touches = f"not surely within the margin, with alpha shared by {sharing} guards"
    return weighed.cell("guard", "inconclusive", barrier or touches, guard.margin, sharing)


def _clear(weighed: Weighed, floor: float) -> bool:
    """Better or worse than the floor, so that no margin below it is in question."""
    return weighed.better(weighed.limit) or weighed.worse(metric.worse_by(weighed.judged.metric, floor))


def _informative(weighed: Weighed) -> MatrixCell:
    floor, barrier = weighed.floor.value or 0.0, weighed.barrier()
    if weighed.floor.value is not None and weighed.worse(metric.worse_by(weighed.judged.metric, floor)):
        return weighed.cell("informative", "fail", "worse than the floor")
    if weighed.better(weighed.surely_better_than(floor)) and not barrier:
        return weighed.cell("informative", "pass", "")
    return weighed.cell("informative", "inconclusive", barrier or _touches(weighed, "the floor"))


def _memory(arms: Arms) -> MatrixCell:
    """Peak memory of the workers; one value a replay, so the interval is the range over pairs of replays."""
    before, after = arms.baseline_bytes, arms.candidate_bytes
    cell = MatrixCell(
        id=f"informative/{arms.condition}/{HELD_OUT}/memory".replace(" ", "-"),
        slice=HELD_OUT,
        condition=arms.condition,
        metric="memory",
        role="informative",
        status="inconclusive",
        samples=min(len(before), len(after)),
    )
    if arms.refusal or not before or not after:
        return replace(cell, note=arms.refusal or "peak memory was not readable in every arm")
    lo, hi = min(after) / max(before) - 1, max(after) / min(before) - 1
    floor = max(max(before) / min(before), max(after) / min(after)) - 1
    enough = cell.samples >= 3
    status: CellStatus = "inconclusive"
    if enough and hi <= floor:
        status = "pass"
    elif enough and lo > floor:
        status = "fail"
    return replace(
        cell,
        status=status,
        baseline=max(before) / MIB,
        candidate=max(after) / MIB,
        change=max(after) / max(before) - 1,
        interval=Interval(lo=lo, hi=hi, level=1.0, method="range over replays"),
        floor=floor,
        note="" if enough else "fewer than 3 replays an arm",
    )


def _not_run(condition: str, name: str, why: str) -> MatrixCell:
    return MatrixCell(
        id=f"informative/{condition}/{HELD_OUT}/{name}".replace(" ", "-"),
        slice=HELD_OUT,
        condition=condition,
        metric=name,
        role="informative",
        status="not-run",
        note=why,
    )


def _guard_not_run(guard: Guard, why: str) -> MatrixCell:
    cell = _not_run(guard.condition, guard.metric, why)
    id_ = f"guard/{guard.condition}/{guard.slice}/{guard.metric}".replace(" ", "-")
    return replace(cell, id=id_, slice=guard.slice, role="guard", margin=guard.margin)
