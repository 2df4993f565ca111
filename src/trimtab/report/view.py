"""Record -> Page: what the report says. Pure: the same record gives the same page, and nothing else is looked at.

A number that is not in the packet cannot be printed: sections choose, round and place stored figures, and count listed
things; they never compute a statistic. A section without data is absent, never empty.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.domain.packet import Record
from trimtab.report import words
from trimtab.report.book import Book
from trimtab.report.page import Page, Section
from trimtab.report.sections import (
    batching,
    candidates,
    compiled,
    envelope,
    latency,
    memory,
    provenance,
    quality,
    queue,
    requests,
    score,
    server,
    shapes,
    signing,
    simulation,
    sizing,
    tail,
    validation,
    verdict,
)

SECTIONS: tuple[Callable[[Book], Section | None], ...] = (
    server.section,
    score.section,
    tail.section,
    requests.section,
    latency.section,
    shapes.section,
    queue.section,
    batching.section,
    compiled.section,
    quality.section,
    memory.section,
    simulation.section,
    candidates.section,
    validation.section,
    sizing.section,
    envelope.section,
    provenance.runs,
    signing.owners,
    provenance.reproduce,
    provenance.figures,
)
"""In the order of the page. A new section is one module and one line here."""


def view(record: Record) -> Page:
    """The page of one packet."""
    book = Book(record)
    made = (section(book) for section in SECTIONS)
    return Page(
        title=f"{record.study.name}: trimtab report",
        opening=verdict.opening(book),
        sections=tuple(section for section in made if section is not None),
        rail=_rail(record),
        notice="not as sealed" if record.doubts else "",
        warnings=record.doubts,
    )


def _rail(record: Record) -> tuple[str, ...]:
    facts = [record.study.name, f"model {record.study.model.revision}", server.short(record)]
    if record.verdict is not None:
        facts.append(signing.short(record))
    if record.manifest is not None:
        facts += [words.moment(record.manifest.created), f"trimtab {record.manifest.trimtab}"]
    return tuple(fact for fact in facts if fact)
