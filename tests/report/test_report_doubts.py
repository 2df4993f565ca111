"""What the page says where requests failed, and where a simulation missed the replays."""

from __future__ import annotations

import math

import sample_record as sample
from msgspec.structs import replace

from trimtab.domain.figure import Figure, Findings
from trimtab.domain.packet import Record
from trimtab.report.page import Page, Prose, Section
from trimtab.report.view import view

G = "\u00a0"
SAID = "414 of 3,312 requests failed (12.5 %): 414 crash (entry any-width, at 0 to 40 s)"


def part(page: Page, id_: str) -> Section:
    return next(section for section in page.sections if section.id == id_)


def with_figures(record: Record, stage: str, *changed: Figure) -> Record:
    """The record with these figures in the place of those of the same id."""
    ids, found = {figure.id for figure in changed}, record.findings[stage]
    kept = tuple(figure for figure in found.figures if figure.id not in ids)
    return with_findings(record, stage, replace(found, figures=(*kept, *changed)))


def with_findings(record: Record, stage: str, found: Findings) -> Record:
    return replace(record, findings={**record.findings, stage: found})


def counted(id_: str, value: float, unit: str, note: str = "") -> Figure:
    return Figure(id=id_, value=value, unit=unit, samples=3312, scope="this run", artifact="accounts", note=note)


def lossy() -> Record:
    """An eighth of the requests crashed, so p95 lies among them."""
    record = with_figures(
        sample.ship(),
        "attribute",
        counted("tail.p95.bound", math.inf, "ms"),
        counted("tail.p95.failed_requests", 414, "requests"),
    )
    found = record.findings["attribute"]
    series = tuple(replace(s, note=SAID) if s.id == "attribute.classes" else s for s in found.series)
    return with_findings(record, "attribute", replace(found, series=series))


def test_failed_requests_own_the_tail_that_they_fill() -> None:
    page = view(lossy())
    assert page.opening is not None
    owner = page.opening.answers[1]
    assert (owner.value, owner.caption, owner.strip) == ("Failed requests", "414 of 3,312 requests failed", None)
    assert "Failed requests own the p95 tail: 414 of 3,312 requests failed." in page.opening.text
    assert part(page, "tail").heading == "Failed requests own the p95 tail: 414 of 3,312 requests failed."


def test_what_failed_is_told_before_the_classes() -> None:
    blocks = part(view(lossy()), "tail").blocks
    assert blocks[1] == Prose(paragraphs=(("", f"{SAID}."),))


def test_cores_from_a_simulation_that_misses_the_replays_are_not_simply_enough() -> None:
    note = "simulated; the simulation misses the replayed p95 by +40.0 %; replays differ by 6.0 %"
    record = with_figures(sample.ship(), "retune", counted("retune.cores_needed", 2.0, "cores", note))
    sizing = part(view(record), "sizing")
    assert sizing.heading == (
        "A simulation that misses the replays says that two cores are enough for this SLA at this traffic."
    )
    assert sizing.lead.startswith(
        "Not to be relied on: the simulation misses the replayed p95 by +40.0 %; replays differ by 6.0 %. "
    )
