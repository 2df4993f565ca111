"""Two packets compared, as Markdown: short enough for a comment on a pull request, and plain enough for a terminal.

Names come from packets: they are escaped, so that none of them is markup, a link or a mention.
"""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.domain.comparison import Gate, GateRow, Repeated, Reproduction
from trimtab.domain.figure import Interval
from trimtab.domain.quote import escaped, said

_MOST = 6


def gate(found: Gate) -> str:
    """The gate's outcome, one row a metric, and what else is not the same."""
    lines = [f"### trimtab gate: {found.outcome}", "", escaped(found.sentence), ""]
    if found.rows:
        lines += ["| Metric | Old | New | Change | Forgiven | |", "|---|---|---|---|---|---|"]
        lines += [_gate_row(row) for row in found.rows]
        lines.append("")
    lines += _listed("Not comparable", found.forbids)
    lines += _listed("Not the same", found.differs)
    lines += _listed("Left out", found.notes)
    lines += [escaped(found.how), ""] if found.how else []
    lines.append(f"{escaped(found.old)} → {escaped(found.new)}")
    return "\n".join(lines) + "\n"


def reproduction(found: Reproduction) -> str:
    """The outcome of a repetition, one row a primary figure, and what is not the same."""
    lines = [f"### trimtab reproduce: {found.outcome}", "", escaped(found.sentence), ""]
    if found.rows:
        lines += ["| Figure | Then | Now | Now / then | Floor | Differs beyond | |", "|---|---|---|---|---|---|---|"]
        lines += [_repeated_row(row) for row in found.rows]
        lines.append("")
    lines += _listed("Not comparable", found.forbids)
    lines += _listed("Not the same", found.differs)
    lines += _listed("Code of the study that was run", found.imports if found.rows else ())
    lines += [f"New runs: {escaped(found.folder)}"] if found.folder else []
    return "\n".join(lines).rstrip() + "\n"


def _gate_row(row: GateRow) -> str:
    unit = "share" if row.metric in ("goodput", "miss") else "ms"
    floor = "no floor" if row.floor is None else f"floor {said(row.floor, 'share')}"
    forgiven = f"{said(row.margin, 'share')} ({floor})"
    cells = (
        f"{row.metric} ({row.role})",
        said(row.old, unit),
        said(row.new, unit),
        said(row.change, "share", row.interval),
        forgiven,
        _status(row.status, row.note),
    )
    return _row(cells)


def _repeated_row(row: Repeated) -> str:
    cells = (
        escaped(row.figure),
        said(row.then, row.unit),
        said(row.now, row.unit),
        _ratio(row.ratio, row.interval),
        said(row.floor, "share"),
        said(row.apart, "share"),
        _status(row.outcome, row.note),
    )
    return _row(cells)


def _ratio(ratio: float | None, interval: Interval | None) -> str:
    return said(ratio, "", interval)


def _status(status: str, note: str) -> str:
    return f"**{status}**: {escaped(note)}" if note else f"**{status}**"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _listed(title: str, lines: tuple[str, ...]) -> list[str]:
    if not lines:
        return []
    rest = [f"- and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return [f"{title}:", *(f"- {escaped(line)}" for line in lines[:_MOST]), *rest, ""]
