"""Fusion levels that were candidates: what compiling gave, with what became of the tail (R14, R29).

The compile stage knows operators, time and memory of each level; the search knows the simulated primary metric of its
plan, and the replays the measured one, which outranks it. They stand in one row and are told in one sentence, so that
no level is chosen for its launches or its time without its memory and its tail. Of a plan with several entries the one
that holds most in a run speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trimtab.domain.figure import Cell, Finding, Interval, Series
from trimtab.domain.study import Sla
from trimtab.evidence.fusion import trade
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.confirm import Confirmed
from trimtab.retuning.search import Simulated

Row = Mapping[str, Cell]
HOLDING = ("workspace", "scratch", "peak")
"""By which an entry holds most: the first of them that is known."""


def joined(fusion: Series | None, rows: Sequence[Simulated], confirmed: Sequence[Confirmed], sla: Sla) -> Series | None:
    """The rows of ``compile.fusion`` whose plan was simulated, with the metric and its change against the baseline, and
    the ``trade`` of each plan in words; None where no level was a candidate."""
    tried = {row.move.plan.id: row for row in rows if row.move.kind in (NO_CHANGE, "optimisation")}
    if fusion is None or not any(row.move.kind == "optimisation" for row in tried.values()):
        return None
    kept = [row for row in fusion.rows if row["plan"] in tried]
    if not kept:
        return None
    found = [tried[str(row["plan"])] for row in kept]
    told = _trades(kept, tried, {row.move.plan.id: row for row in confirmed}, sla)
    columns: dict[str, tuple[Cell, ...]] = {name: tuple(row[name] for row in kept) for name in fusion.columns}
    columns["simulated"] = tuple(None if row.failed else row.value for row in found)
    columns["change"] = tuple(row.change for row in found)
    columns["lo"] = tuple(row.spread.lo if row.spread else None for row in found)
    columns["hi"] = tuple(row.spread.hi if row.spread else None for row in found)
    columns["trade"] = tuple(told.get(at) for at in range(len(kept)))
    units = {**fusion.units, "simulated": metric.unit(sla.metric), **dict.fromkeys(("change", "lo", "hi"), "share")}
    return Series(
        id="retune.fusion",
        columns=columns,
        units=units,
        scope="tune",
        artifact=fusion.artifact,
        note=f"simulated {sla.metric} beside what compiling gave",
    )


def told(found: Series) -> Iterator[Finding]:
    """The trade of each level that was tried, a sentence each."""
    for row in found.rows:
        if row["trade"]:
            yield Finding(text=str(row["trade"]), figures=(f"retune.simulated.{row['plan']}",), owner="compiler")


def _trades(
    rows: Sequence[Row], tried: Mapping[str, Simulated], confirmed: Mapping[str, Confirmed], sla: Sla
) -> dict[int, str]:
    """Place of a plan's speaking row -> its sentence against the baseline's row of the same entry."""
    bases = {row["entry"]: row for row in rows if tried[str(row["plan"])].move.kind == NO_CHANGE}
    speaking: dict[str, int] = {}
    for at, row in enumerate(rows):
        plan = str(row["plan"])
        if row["entry"] not in bases or row is bases[row["entry"]]:
            continue
        if plan not in speaking or _held(row) > _held(rows[speaking[plan]]):
            speaking[plan] = at
    return {
        at: _sentence(rows[at], bases[rows[at]["entry"]], _tail(tried[plan], confirmed.get(plan), sla))
        for plan, at in speaking.items()
    }


def _sentence(row: Row, base: Row, tail: str) -> str:
    return f"{row['entry']} with {row['level']} instead of {base['level']}: {trade(row, base)}; {tail}."


def _held(row: Row) -> float:
    return next((cell for name in HOLDING if isinstance(cell := row[name], float) and cell > 0), 0.0)


def _tail(simulated: Simulated, confirmed: Confirmed | None, sla: Sla) -> str:
    """What replays found, where the plan was replayed; else what the simulation says."""
    if confirmed is not None and confirmed.judged is not None:
        change, interval = metric.change(confirmed.judged.comparison)
        return f"{confirmed.judged.metric} {_moved(change, interval)}, measured"
    return f"{sla.metric} {_moved(simulated.change, simulated.spread)}, simulated"


def _moved(change: float | None, interval: Interval | None) -> str:
    if change is None:
        return "not known"
    ends = "" if interval is None else f" ({metric.signed(interval.lo)} to {metric.signed(interval.hi)})"
    return f"{metric.signed(change)}{ends}"
