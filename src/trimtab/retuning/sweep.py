"""The sweep over the number of entries as the packet holds it: a series to draw, and the answer in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.domain.figure import Finding, Series
from trimtab.mapping.priced import EntryPrice, Priced, cheapest


def series(rows: Sequence[Priced], price: EntryPrice) -> Series:
    """``retune.sweep``: by number of entries, ms a request to run, to start, in all, MiB, and whether they fit."""
    best = cheapest(rows)
    limit = "no memory limit is known" if price.limit_mib is None else f"limit {price.limit_mib:.4g} MiB"
    return Series(
        id="retune.sweep",
        columns={
            "count": tuple(row.fit.count for row in rows),
            "run_ms": tuple(row.fit.mean_ms for row in rows),
            "start_ms": tuple(row.start_ms for row in rows),
            "total_ms": tuple(row.total_ms for row in rows),
            "memory_mib": tuple(row.memory_mib for row in rows),
            "fits": tuple(row.fits for row in rows),
            "best": tuple(row is best for row in rows),
        },
        units={"run_ms": "ms", "start_ms": "ms", "total_ms": "ms", "memory_mib": "MiB"},
        scope="tune",
        artifact="profiles",
        note=f"{price.start_ms:.4g} ms to start an entry, {price.requests:,.0f} requests a start; {limit}",
    )


def told(rows: Sequence[Priced], price: EntryPrice) -> Finding:
    """How many entries are worth their start, and what lies on both sides."""
    return Finding(text=_text(rows, price), owner="runtime")


def _text(rows: Sequence[Priced], price: EntryPrice) -> str:
    best = cheapest(rows)
    if best is None:
        return f"Not even one entry fits into the memory limit of {price.limit_mib:.4g} MiB."
    paid = f"with {price.start_ms:.3g} ms to compile and warm each, at {price.requests:,.0f} requests a start"
    text = f"{_entries(best.fit.count)} least {paid}: {best.total_ms:.3g} ms a request by profile"
    sides = [row for row in (rows[0], rows[-1]) if row.fit.count != best.fit.count]
    compared = [f"{row.total_ms:.3g} with {row.fit.count}" for row in sides]
    text = f"{text} ({', '.join(compared)})" if compared else text
    above = [row for row in rows if row.fit.count > best.fit.count]
    if not above:
        return f"{text}; more were not tried, and may cost less."
    if not above[0].fits:
        return f"{text}; more do not fit into {price.limit_mib:.4g} MiB."
    return f"{text}."


def _entries(count: int) -> str:
    return "1 entry costs" if count == 1 else f"{count} entries cost"
