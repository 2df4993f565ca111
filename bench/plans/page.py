"""From visits to the table: one row for each plan and shape band, one for each failure.

*warm* = median of the visits' medians; *A/A* = the larger of them over the smaller, less 1: what the same plan differs
from itself. *ratio* = warm time over the reference's in the same visit; geometric mean, and the range over the visits.
Ratios whose range reaches 1 within the A/A spread of the reference say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

from plans.catalogue import NETWORKS, Band
from plans.visits import Quality, Visit
from trimtab.domain.noun import Noun
from trimtab.domain.profile import CompileProfile, ShapeTiming
from trimtab.evidence.stats.quantiles import quantile

MS, MIB = 1e-6, 2**20


class Row(Noun, frozen=True, kw_only=True):
    """One plan in one band. Times in ms, compile in s, memory in MiB; None = not known."""

    network: str
    backend: str
    precision: str
    fusion: str
    mapping: str
    band: str
    warm: float
    spread: float
    ratio: float
    ratio_range: tuple[float, float]
    first: float
    compile: float
    held: float
    peak: float
    scratch: float | None
    operators: int
    operators_before: int
    quality: Quality | None
    executed: dict[str, float]


class Failure(Noun, frozen=True, kw_only=True):
    network: str
    plan: str
    entry: str
    kind: str
    message: str


def rows(visits: Sequence[Visit]) -> list[Row]:
    """A row for each plan and band that was timed in every visit of the plan."""
    found = []
    for group in _by_plan(visits):
        for band in _bands(group[0].network):
            timed = [_timed(visit.profiles, band) for visit in group]
            beside = [_timed(visit.reference, band) for visit in group]
            known = [one for one in timed if one is not None]
            against = [one for one in beside if one is not None]
            if len(known) == len(against) == len(group):
                found.append(_row(group, band, known, against))
    return found


def failures(visits: Sequence[Visit]) -> list[Failure]:
    """Every failure, once a plan and entry."""
    found = {}
    for visit in visits:
        for one in visit.failures:
            found.setdefault(
                (visit.network, visit.plan.id, one.entry),
                Failure(network=visit.network, plan=visit.plan.id, entry=one.entry, kind=one.kind, message=one.message),
            )
    return list(found.values())


def reference_spread(visits: Sequence[Visit], network: str) -> dict[str, tuple[int, float, float, float]]:
    """Band -> (visits, lowest, median and highest warm time of the reference, ms): its A/A over the whole bench."""
    found = {}
    for band in _bands(network):
        walls = [
            _warm(timing)
            for visit in visits
            if visit.network == network and (timing := _timed(visit.reference, band)) is not None
        ]
        if walls:
            found[band.label] = (len(walls), min(walls), quantile(walls, 0.5), max(walls))
    return found


def _by_plan(visits: Sequence[Visit]) -> list[list[Visit]]:
    groups: dict[tuple[str, str], list[Visit]] = {}
    for visit in sorted(visits, key=lambda v: v.round):
        groups.setdefault((visit.network, visit.plan.id), []).append(visit)
    return list(groups.values())


def _bands(network: str) -> tuple[Band, ...]:
    return next(one.bands for one in NETWORKS if one.name == network)


def _entry(profiles: Sequence[CompileProfile], band: Band) -> CompileProfile | None:
    return next((p for p in profiles if any(t.executed == (1, band.hi) for t in p.timings)), None)


def _timed(profiles: Sequence[CompileProfile], band: Band) -> ShapeTiming | None:
    return next((t for p in profiles for t in p.timings if t.executed == (1, band.hi) and t.wall_ns), None)


def _warm(timing: ShapeTiming) -> float:
    return quantile(timing.wall_ns, 0.5) * MS


def _row(group: Sequence[Visit], band: Band, timed: Sequence[ShapeTiming], beside: Sequence[ShapeTiming]) -> Row:
    warm = [_warm(timing) for timing in timed]
    ratios = [own / _warm(other) for own, other in zip(warm, beside, strict=True)]
    first, spec = group[0], group[0].plan.compile
    entry = _entry(first.profiles, band)
    assert entry is not None
    look = entry.inspection
    scratch = max(profile.scratch_bytes for profile in first.profiles)
    options = ", ".join(f"{name} = {value}" for name, value in spec.options.items())
    return Row(
        network=first.network,
        backend=spec.backend,
        precision=spec.precision,
        fusion=options or spec.optimisation,
        mapping=first.mapping,
        band=band.label,
        warm=quantile(warm, 0.5),
        spread=max(warm) / min(warm) - 1,
        ratio=exp(sum(map(log, ratios)) / len(ratios)),
        ratio_range=(min(ratios), max(ratios)),
        first=quantile([timing.first_ns for timing in timed], 0.5) * MS,
        compile=sum(profile.compile_ns for profile in first.profiles) / 1e9,
        held=sum(profile.memory_bytes for profile in first.profiles) / MIB,
        peak=max(profile.peak_bytes for profile in first.profiles) / MIB,
        scratch=scratch / MIB if scratch >= 0 else None,
        operators=len(look.operators),
        operators_before=look.operators_before,
        quality=next((one for one in first.quality if one.band == band.label), None),
        executed=look.precision_share(),
    )


# --- Markdown ---------------------------------------------------------------------------------------------------

_HEAD = (
    "runtime", "precision", "fusion", "entries", "band", "warm, ms", "A/A", "ratio (range)", "first run, ms",
    "compile, s", "held / peak / scratch, MiB", "operators", "quality", "executed",
)  # fmt: skip


def page(visits: Sequence[Visit], refusals: Sequence[tuple[str, str, str]], facts: Sequence[str]) -> str:
    """The whole page as Markdown."""
    parts = [
        "# Plans: runtime, fusion, precision and shape band",
        "Written by `make bench-plans` from measured visits; nothing is filled in by hand.",
        "\n".join(f"- {fact}" for fact in facts),
        __doc__.partition("\n\n")[2].strip() if __doc__ else "",
    ]
    found = rows(visits)
    for network in dict.fromkeys(visit.network for visit in visits):
        parts += _network(visits, found, network)
    lost = failures(visits)
    if lost:
        parts += [
            "## What did not compile or run",
            _table(("network", "plan", "entry", "kind", "message"), _lost(lost)),
        ]
    if refusals:
        parts += ["## What a runtime says it cannot do here", _table(("runtime", "what", "why"), refusals)]
    return "\n\n".join(parts) + "\n"


def _network(visits: Sequence[Visit], found: Sequence[Row], network: str) -> Iterator[str]:
    mine = [row for row in found if row.network == network]
    one = next(visit for visit in visits if visit.network == network)
    yield f"## {network}"
    spread = ", ".join(
        f"{band}: {median:.3g} ms ({low:.3g} to {high:.3g}, {count} visits)"
        for band, (count, low, median, high) in reference_spread(visits, network).items()
    )
    yield f"The reference, one after every visit: {spread}. Quality is judged on {one.payloads} payloads."
    yield _table(_HEAD, [_cells(row) for row in mine])


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.ratio_range
    return (
        row.backend,
        row.precision,
        row.fusion,
        row.mapping,
        row.band,
        f"{row.warm:.3g}",
        f"±{row.spread:.0%}",
        f"{row.ratio:.2f} ({low:.2f}–{high:.2f})",
        f"{row.first:.3g}",
        f"{row.compile:.2g}",
        f"{row.held:.0f} / {row.peak:.0f} / {'?' if row.scratch is None else f'{row.scratch:.0f}'}",
        f"{row.operators} of {row.operators_before}",
        _judged(row.quality),
        ", ".join(f"{name} {share:.0%}" for name, share in _largest(row.executed)) or "not known",
    )


def _judged(quality: Quality | None) -> str:
    if quality is None or not quality.values:
        return "not compared" + (f": {quality.note}" if quality and quality.note else "")
    return ", ".join(f"{metric} {value:.4f}" for metric, value in quality.values.items()) + f" (n={quality.samples})"


def _largest(shares: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(((n, s) for n, s in shares.items() if s >= 0.005), key=lambda item: -item[1])


def _lost(lost: Sequence[Failure]) -> list[tuple[str, ...]]:
    return [(one.network, one.plan, one.entry, one.kind, one.message) for one in lost]


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
