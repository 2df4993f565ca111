"""How a file was read, what it lacks, and all of its figures."""

from __future__ import annotations

from trimtab.domain.imported import ReadReport
from trimtab.report import words
from trimtab.report.diagnosed.leaf import Leaf
from trimtab.report.page import Facts, Prose, Section
from trimtab.report.sections import provenance

DIGEST = 12
"""Characters of a digest that are shown."""


def missing(leaf: Leaf) -> Section | None:
    """What would say more, the next measurement first."""
    found = leaf.source.diagnosis
    rest = [what for what in found.missing if what != found.next_measurement]
    paragraphs = [("Next measurement:", words.ended(found.next_measurement))] if found.next_measurement else []
    paragraphs += [("", words.ended(words.opened(what))) for what in rest]
    count = len(paragraphs)
    heading = (
        f"{words.opened(words.many(count, 'thing'))} would say more." if count > 1 else "One thing would say more."
    )
    prose = Prose(paragraphs=tuple(paragraphs)) if paragraphs else None
    return leaf.section("missing", "Missing", "Missing", heading, (prose,))


def read(leaf: Leaf) -> Section | None:
    """What was read, what was left out, and why."""
    source = leaf.source
    reports = [source.read, *([source.baseline] if source.baseline is not None else [])]
    left = sum(sum(report.dropped.values()) for report in reports)
    heading = (
        "Everything in it was read."
        if not left
        else f"{words.opened(words.many(left, 'piece'))} left out, counted here."
    )
    return leaf.section("read", "Files read", "Reading", heading, [facts(report) for report in reports],
                        source="A file is known by its content, never by its name.")  # fmt: skip


def facts(report: ReadReport) -> Facts:
    """One file: how much of it was used, what was left out and what else to know."""
    pairs = [
        ("Read as", report.format),
        ("Used", f"{words.count(report.used)} of {words.count(report.rows)} {report.unit}"),
    ]
    pairs += [("SHA-256", f"{report.sha256[:DIGEST]}…")] if report.sha256 else []
    pairs += (
        [("Columns", ", ".join(f"{role}: {header}" for role, header in report.columns.items()))]
        if report.columns
        else []
    )
    pairs += [("Left out", f"{words.count(count)}, {reason}") for reason, count in report.dropped.items()]
    pairs += [("No value", f"{words.count(count)} of {name}") for name, count in report.unreadable.items()]
    pairs += [("Not read", ", ".join(report.ignored))] if report.ignored else []
    pairs += [("To know", words.opened(note)) for note in report.notes]
    return Facts(title=report.file, pairs=tuple(pairs))


def figures(leaf: Leaf) -> Section | None:
    """Every stored figure."""
    found = leaf.source.found
    fold = provenance.fold(found.stage, found.figures) if found.figures else None
    heading = "Every figure, with its samples and what it rests on."
    return leaf.section("figures", "All figures", "Figures", heading, (fold,))
