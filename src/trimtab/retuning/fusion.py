"""Fusion levels that were candidates: what compiling gave, with what the simulated tail makes of it (R14, R29).

The compile stage knows operators, time and peak memory of each level; the search knows the simulated primary metric of
its plan. They stand in one row, so that no level is chosen for its time without its memory.
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
    """Each level that was tried: the simulated change and its peak memory, in one sentence."""
    rows = [dict(zip(found.columns, cells, strict=True)) for cells in zip(*found.columns.values(), strict=True)]
    said = []
    for row in rows:
        change, peak = row["change"], row["peak"]
        moved = metric.signed(change) if isinstance(change, float) else "not known"
        memory = f"{peak:.4g} MiB" if isinstance(peak, float) and peak > 0 else "not known"
        said.append(f"{row['level']} {sla.metric} {moved}, peak {memory}")
    plans = tuple(f"retune.simulated.{row['plan']}" for row in rows)
    text = f"Fusion levels, simulated, each with its peak memory: {'; '.join(dict.fromkeys(said))}."
    return Finding(text=text, figures=tuple(dict.fromkeys(plans)), owner="compiler")
