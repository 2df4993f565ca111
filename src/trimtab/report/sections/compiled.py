"""Compile: what each entry cost, what the runtime made of it, and the precision it really computes in."""

from __future__ import annotations

from trimtab.domain.profile import CompileFailure, CompileProfile
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.book import Book, source
from trimtab.report.page import Cell, Column, Grid, Mark, Row, Section, Strip

KERNELS = 2
"""How many kernel names a row shows: those with most of the profiled time."""


def section(book: Book) -> Section | None:
    profiles, failures = book.record.profiles, book.record.failures
    if not profiles and not failures:
        return None
    return Section(
        id="compile",
        nav="Compile",
        eyebrow="Compile",
        heading=_heading(book),
        lead=book.headline("compile"),
        blocks=(_table(profiles, failures),),
        source=source(
            "Precision by share of profiled time; fusions are original operators folded into another",
            artifact="profiles/",
        ),
    )


def _heading(book: Book) -> str:
    profiles, declared = book.record.profiles, book.record.study.quality.precision
    entries = words.opened(words.many(len(profiles), "entry was", "entries were"))
    failed = len(book.record.failures)
    tail = f"; {words.many(failed, 'compile')} failed" if failed else ""
    executed = sorted({name for profile in profiles for name in profile.inspection.precision_share()})
    other = [name for name in executed if name != declared]
    if not executed:
        return f"{entries} compiled{tail}."
    if not other:
        return f"{entries} compiled{tail}; all run in {declared}, as declared."
    return f"{entries} compiled{tail}; {declared} is declared, {words.listed(other)} is what runs too."


def _table(profiles: tuple[CompileProfile, ...], failures: tuple[CompileFailure, ...]) -> Grid:
    to = scale([profile.compile_ns / 1e6 for profile in profiles])
    columns = (
        Column(label="Entry"),
        Column(label="Compile time", align="right"),
        Column(label=""),
        Column(label="Memory", align="right"),
        Column(label="Operators", align="right"),
        Column(label="Fusions", align="right"),
        Column(label="Runs in"),
        Column(label="Kernels with most time"),
    )
    rows = [_row(profile, to) for profile in profiles] + [_failed(failure) for failure in failures]
    return Grid(columns=columns, rows=tuple(rows), title="Entries")


def _row(profile: CompileProfile, to: Scale) -> Row:
    inspection = profile.inspection
    ms = profile.compile_ns / 1e6
    bar = Strip(marks=(Mark(form="bar", x=to.at(0.0), x2=to.at(ms), look="neutral"),), alt=words.time(ms))
    before = words.count(inspection.operators_before)
    operators = f"{before} → {words.count(len(inspection.operators))}" if inspection.operators else before
    precision = [f"{name} {words.percent(share)}" for name, share in inspection.precision_share().items()]
    return Row(
        cells=(
            Cell(text=profile.entry, sub=f"{profile.plan}, {profile.backend}"),
            Cell(text=words.time(ms)),
            Cell(strip=bar),
            Cell(text=words.memory(profile.memory_bytes), sub=f"peak {words.memory(profile.peak_bytes)}"),
            Cell(text=operators),
            Cell(text=words.count(inspection.fusions)),
            Cell(text=", ".join(precision) or "not known"),
            Cell(text=", ".join(_kernels(profile)) or "not known", look="muted"),
        )
    )


def _kernels(profile: CompileProfile) -> tuple[str, ...]:
    time: dict[str, int] = {}
    for operator in profile.inspection.operators:
        time[operator.kernel] = time.get(operator.kernel, 0) + max(operator.ns, 0)
    return tuple(sorted(time, key=lambda name: (-time[name], name))[:KERNELS])


def _failed(failure: CompileFailure) -> Row:
    return Row(
        cells=(
            Cell(text=failure.entry, sub=failure.plan),
            Cell(text=failure.kind, glyph="fail", look="fail-ink"),
            Cell(text=words.short(failure.message, 240), span=6, look="muted"),
        )
    )
