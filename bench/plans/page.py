"""From visits to the table: one row for each plan and shape band, one for each failure.

A visit gives one median warm time. *warm* = their geometric mean; *A/A* = the largest over the smallest, less 1: what
the same plan differs from itself. *ratio* = warm time over the reference's in the same visit; geometric mean, and the
range over the visits. *operators* = what is run one after another (the launches), of how many the network has.
The reference is one of the plans, so that its own row shows what a ratio differs by where nothing does: a plan whose
range overlaps that one is not told apart from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import NamedTuple

from plans.catalogue import NETWORKS, Band
from plans.visits import Quality, Visit
from trimtab.domain.noun import Noun
from trimtab.domain.profile import CompileProfile, ShapeTiming
from trimtab.evidence.stats.quantiles import quantile

MS, MIB = 1e-6, 2**20
MINOR = 0.005
FASTEST = 3


class Row(Noun, frozen=True, kw_only=True):
    """One plan in one band. Times in ms, compile in s, memory in MiB; None = not known."""

    network: str
    backend: str
    precision: str
    fusion: str
    mapping: str
    band: str
    warm: float
    spread: float | None
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
    """What went wrong in the same way, and where: plan and entry of each."""

    network: str
    kind: str
    message: str
    places: tuple[str, ...]


def rows(visits: Sequence[Visit]) -> list[Row]:
    """A row for each plan and band that was timed in every visit of the plan."""
    found = []
    for group in _by_plan(visits):
        for band in _bands(group[0].network):
            own = [one for visit in group if (one := _timed(visit.profiles, band))]
            beside = [one for visit in group if (one := _timed(visit.reference, band))]
            if len(own) == len(beside) == len(group):
                found.append(_row(group, band, own, beside))
    return found


def failures(visits: Sequence[Visit]) -> list[Failure]:
    """Every failure of every visit; those that say the same are one."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for visit in visits:
        for one in visit.failures:
            places = found.setdefault((visit.network, one.kind, one.message), {})
            places[f"{visit.plan.id} ({one.entry})"] = None
    return [
        Failure(network=network, kind=kind, message=message, places=tuple(places))
        for (network, kind, message), places in found.items()
    ]


def reference_spread(visits: Sequence[Visit], network: str) -> dict[str, tuple[int, float, float, float]]:
    """Band -> (visits, lowest, median and highest warm time of the reference, ms): its A/A over the whole bench."""
    mine = [visit.reference for visit in visits if visit.network == network]
    found = {}
    for band in _bands(network):
        walls = [_warm(one.timing) for profiles in mine if (one := _timed(profiles, band))]
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


class _Timed(NamedTuple):
    profile: CompileProfile
    timing: ShapeTiming


def _timed(profiles: Sequence[CompileProfile], band: Band) -> _Timed | None:
    """The entry that ran the end of ``band``, and its times."""
    pairs = (_Timed(profile, timing) for profile in profiles for timing in profile.timings)
    return next((one for one in pairs if one.timing.executed == (1, band.hi) and one.timing.wall_ns), None)


def _warm(timing: ShapeTiming) -> float:
    return quantile(timing.wall_ns, 0.5) * MS


def _mean(values: Sequence[float]) -> float:
    """Geometric: a factor up and the same factor down cancel."""
    return exp(sum(map(log, values)) / len(values))


def _row(group: Sequence[Visit], band: Band, own: Sequence[_Timed], beside: Sequence[_Timed]) -> Row:
    warm = [_warm(one.timing) for one in own]
    ratios = [ours / _warm(theirs.timing) for ours, theirs in zip(warm, beside, strict=True)]
    first, spec, look = group[0], group[0].plan.compile, own[0].profile.inspection
    scratch = max(profile.scratch_bytes for profile in first.profiles)
    options = ", ".join(f"{name} = {value}" for name, value in spec.options.items())
    return Row(
        network=first.network,
        backend=spec.backend,
        precision=spec.precision,
        fusion=options or spec.optimisation,
        mapping=first.mapping,
        band=band.label,
        warm=_mean(warm),
        spread=max(warm) / min(warm) - 1 if len(warm) > 1 else None,
        ratio=_mean(ratios),
        ratio_range=(min(ratios), max(ratios)),
        first=_mean([one.timing.first_ns * MS for one in own]),
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
            _table(("network", "plan (entry)", "kind", "message"), _lost(lost)),
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
    yield "\n".join(_fastest(mine))
    yield _table(_HEAD, [_cells(row) for row in mine])


def _fastest(mine: Sequence[Row]) -> Iterator[str]:
    """The three fastest of each band; never without what they answer and what they computed in."""
    for band in dict.fromkeys(row.band for row in mine):
        first = sorted((row for row in mine if row.band == band), key=lambda row: row.ratio)[:FASTEST]
        said = "; ".join(
            f"{row.ratio:.2f} {row.backend} {row.precision}, {row.fusion}, {row.mapping} "
            f"({_judged(row.quality)}; {_shares(row)})"
            for row in first
        )
        yield f"- fastest at {band}: {said}"


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.ratio_range
    between = "" if row.spread is None else f" ({low:.2f}–{high:.2f})"
    return (
        row.backend,
        row.precision,
        row.fusion,
        row.mapping,
        row.band,
        f"{row.warm:.3g}",
        "one visit" if row.spread is None else f"±{row.spread:.0%}",
        f"{row.ratio:.2f}{between}",
        f"{row.first:.3g}",
        f"{row.compile:.2g}",
        f"{row.held:.0f} / {row.peak:.0f} / {'?' if row.scratch is None else f'{row.scratch:.0f}'}",
        f"{row.operators} of {row.operators_before}",
        _judged(row.quality),
        _shares(row),
    )


def _judged(quality: Quality | None) -> str:
    if quality is None or not quality.values:
        return "not compared" + (f": {quality.note}" if quality and quality.note else "")
    return ", ".join(f"{metric} {value:.4f}" for metric, value in quality.values.items()) + f" (n={quality.samples})"


def _shares(row: Row) -> str:
    largest = sorted(((n, s) for n, s in row.executed.items() if s >= MINOR), key=lambda item: -item[1])
    return ", ".join(f"{name} {share:.0%}" for name, share in largest) or "not known"


def _lost(lost: Sequence[Failure]) -> list[tuple[str, ...]]:
    return [(one.network, "; ".join(one.places), one.kind, one.message) for one in lost]


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
