"""Fusion levels that were candidates: what compiling gave, with what the simulated tail makes of it (R14, R29).

The compile stage knows operators, time and memory of each level; the search knows the simulated primary metric of its
plan. They stand in one row, so that no level is chosen for its time without its memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.figure import Cell, Finding, Series
from trimtab.domain.study import Sla
from trimtab.retuning import _metric as metric
from trimtab.retuning._change import NO_CHANGE
from trimtab.retuning.search import Simulated


def joined(fusion: Series | None, rows: Sequence[Simulated], sla: Sla) -> Series | None:
    """The rows of ``compile.fusion`` whose plan was simulated, with the metric and its change against the baseline;
    None where no level was a candidate."""
    tried = {row.move.plan.id: row for row in rows if row.move.kind in (NO_CHANGE, "optimisation")}
    if fusion is None or not any(row.move.kind == "optimisation" for row in tried.values()):
        return None
    keep = [i for i, plan in enumerate(fusion.columns["plan"]) if plan in tried]
    if not keep:
        return None
    columns: dict[str, tuple[Cell, ...]] = {
        name: tuple(cells[i] for i in keep) for name, cells in fusion.columns.items()
    }
    found = [tried[str(plan)] for plan in columns["plan"]]
    columns["simulated"] = tuple(None if row.failed else row.value for row in found)
    columns["change"] = tuple(row.change for row in found)
    columns["lo"] = tuple(row.spread.lo if row.spread else None for row in found)
    columns["hi"] = tuple(row.spread.hi if row.spread else None for row in found)
    units = {**fusion.units, "simulated": metric.unit(sla.metric), **dict.fromkeys(("change", "lo", "hi"), "share")}
    return Series(
        id="retune.fusion",
        columns=columns,
        units=units,
        scope="tune",
        artifact=fusion.artifact,
        note=f"simulated {sla.metric} beside what compiling gave",
    )


def told(found: Series, sla: Sla) -> Finding:
    """Each level that was tried: the simulated change and its peak memory, in one sentence. Of several entries those
    that hold most speak for their level."""
    rows = [dict(zip(found.columns, cells, strict=True)) for cells in zip(*found.columns.values(), strict=True)]
    levels: dict[Cell, list[dict[str, Cell]]] = {}
    for row in rows:
        levels.setdefault(row["level"], []).append(row)
    said = [f"{level} {sla.metric} {_level(entries)}" for level, entries in levels.items()]
    plans = tuple(f"retune.simulated.{row['plan']}" for row in rows)
    text = f"Fusion levels, simulated, each with its peak memory: {'; '.join(said)}."
    return Finding(text=text, figures=tuple(dict.fromkeys(plans)), owner="compiler")


def _level(entries: Sequence[dict[str, Cell]]) -> str:
    change, peak, workspace = entries[0]["change"], _most(entries, "peak"), _most(entries, "workspace")
    moved = metric.signed(change) if isinstance(change, float) else "not known"
    memory = "not known" if peak is None else f"{peak:.4g} MiB"
    held = "" if workspace is None else f", of which one run holds {workspace:.4g} MiB"
    return f"{moved}, peak {memory}{held}"


def _most(entries: Sequence[dict[str, Cell]], name: str) -> float | None:
    known = [cell for row in entries if isinstance(cell := row[name], float) and cell > 0]
    return max(known, default=None)
