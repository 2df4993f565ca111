"""Runs, seeds, how to check and repeat it, and every stored figure."""

from __future__ import annotations

import math

import msgspec

from trimtab.domain.figure import Figure
from trimtab.domain.packet import STAGES
from trimtab.domain.trace import RunInfo
from trimtab.report import words
from trimtab.report.book import Book, source
from trimtab.report.page import Cell, Code, Column, Facts, Fold, Grid, Row, Section

DIGEST = 12
"""Characters of a digest that are shown."""


def runs(book: Book) -> Section | None:
    """Which runs are behind all this, and the seeds of every source of randomness."""
    found = book.record.runs
    if not found:
        return None
    kinds = [f"{words.many(sum(run.source == kind for run in found), f'{kind} run')}" for kind in _sources(found)]
    study = book.record.study
    seeds: dict[str, int] = msgspec.to_builtins(study.seeds)
    facts = Facts(
        title="Seeds and versions",
        pairs=(
            ("Seeds", ", ".join(f"{name} {seed}" for name, seed in seeds.items())),
            ("Model", f"{study.model.revision} {study.model.sha256[:DIGEST]}".strip()),
            ("Workload", found[0].workload_sha256[:DIGEST]),
            ("Envelope", found[0].envelope_sha256[:DIGEST]),
            ("Start state", found[0].start_state),
        ),
    )
    return Section(
        id="runs",
        nav="Runs and seeds",
        eyebrow="Replay",
        heading=f"{words.opened(words.listed(kinds))} {'is' if len(found) == 1 else 'are'} behind this report.",
        blocks=(_runs(found), facts),
        source=source(artifact="traces/, study.toml"),
    )


def _sources(found: tuple[RunInfo, ...]) -> list[str]:
    return list(dict.fromkeys(run.source for run in found))


def _runs(found: tuple[RunInfo, ...]) -> Grid:
    columns = (
        Column(label="Run"),
        Column(label="Plan"),
        Column(label="Slice"),
        Column(label="Source"),
        Column(label="Workers", align="right"),
        Column(label="Cores"),
        Column(label="Seed", align="right"),
        Column(label="Driver's CPU", align="right"),
        Column(label="State"),
    )
    return Grid(columns=columns, rows=tuple(_run(run) for run in found))


def _run(run: RunInfo) -> Row:
    share = words.percent(run.driver_cpu_share) if math.isfinite(run.driver_cpu_share) else words.NOTHING
    cores = ", ".join(str(core) for core in run.cores)
    state = "complete" if run.complete else "broken off"
    return Row(
        cells=(
            Cell(text=run.id),
            Cell(text=run.plan),
            Cell(text=run.slice),
            Cell(text=run.source),
            Cell(text=words.count(run.workers)),
            Cell(text="; ".join(filter(None, (cores, f"driver {run.driver_core}")))),
            Cell(text=str(run.seed)),
            Cell(text=share),
            Cell(text=state, sub=run.note),
        )
    )


def reproduce(book: Book) -> Section | None:
    """How to check and to repeat it."""
    manifest = book.record.manifest
    if manifest is None:
        return None
    files = words.many(len(manifest.files), "file")
    lines = (
        ("trimtab verify PACKET", f"checks the hashes of {files}, documents, signatures and policy, offline"),
        ("trimtab report PACKET", "shows this report in the terminal and rewrites it"),
        *_again(book),
        (
            "trimtab run STUDY --fresh",
            "measures everything again, from the same seeds; model and traffic lie beside the study",
        ),
    )
    return Section(
        id="reproduce",
        nav="Reproduce",
        eyebrow="Packet",
        heading="Check it, or run it again from its seeds.",
        blocks=(Code(lines=lines),),
        source=source(
            f"Packet schema {manifest.packet_schema}, trimtab {manifest.trimtab}, {words.moment(manifest.created)}"
        ),
    )


def _again(book: Book) -> tuple[tuple[str, str], ...]:
    if book.record.study.workload.target:
        return (("trimtab compare PACKET NEW --gate", "holds a later packet of the same study against this one"),)
    return (
        (
            "trimtab reproduce PACKET",
            "replays baseline and proposal again from the same seeds and compares them with this",
        ),
    )


def figures(book: Book) -> Section | None:
    """Every stored figure: interval, samples, scope and artifact."""
    found = {stage: book.found(stage) for stage in STAGES}
    folds = [fold(stage, one.figures) for stage, one in found.items() if one is not None and one.figures]
    if not folds:
        return None
    return Section(
        id="figures",
        nav="All figures",
        eyebrow="Packet",
        heading="Every stored figure, with its interval, samples, scope and artifact.",
        blocks=tuple(folds),
        source="",
    )


def fold(stage: str, items: tuple[Figure, ...]) -> Fold:
    """Figures of one stage, closed until asked for."""
    rows = tuple(_figure(item) for item in items)
    said = f"{words.opened(stage)}: {words.many(len(rows), 'figure')}"
    return Fold(summary=said, grid=Grid(columns=FIGURE_COLUMNS, rows=rows))


FIGURE_COLUMNS = (
    Column(label="Figure"),
    Column(label="Value", align="right"),
    Column(label="Interval"),
    Column(label="Samples", align="right"),
    Column(label="Effective", align="right"),
    Column(label="Scope"),
    Column(label="Artifact"),
    Column(label="Note"),
)


def _figure(item: Figure) -> Row:
    effective = words.count(item.effective) if item.effective is not None and math.isfinite(item.effective) else ""
    return Row(
        cells=(
            Cell(text=item.id),
            Cell(text=words.figure(item)),
            Cell(text=words.spread(item.interval, item.unit)),
            Cell(text=words.count(item.samples)),
            Cell(text=effective),
            Cell(text=item.scope),
            Cell(text=item.artifact, look="muted"),
            Cell(text=item.note, look="muted"),
        )
    )
