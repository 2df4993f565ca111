"""Diagnosed files -> Page: what ``trimtab diagnose`` proves of them, drawn. Pure, like :mod:`.view`.

A number that evidence has not made cannot be printed. A section without data is absent, never empty. Several files
share the page: the first screen tells of the one whose class is proven first, and each has its sections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trimtab.domain.imported import ReadReport
from trimtab.report import words
from trimtab.report.arms import Scale, scale
from trimtab.report.diagnosed import classes, reading, requests, sizes, summary, timeline
from trimtab.report.diagnosed.leaf import Leaf, Source
from trimtab.report.page import Answer, Mark, Opening, Page, Section, Strip
from trimtab.report.palette import cause, cause_look

KIND = "diagnose"
UNPROVEN = ("insufficient-evidence", "invalid-measurement")
SECTIONS: tuple[Callable[[Leaf], Section | None], ...] = (
    requests.tail,
    classes.named,
    requests.over_time,
    sizes.sizes,
    sizes.streams,
    timeline.ranks,
    timeline.device,
    timeline.launches,
    timeline.names,
    timeline.runs,
    timeline.compiles,
    summary.points,
    summary.layers,
    reading.missing,
    reading.read,
    reading.figures,
)
"""Of each file, in the order of the page. A new section is one function and one line here."""


def view(sources: Sequence[Source]) -> Page:
    """The page of one or several files, of which there is at least one."""
    alone = len(sources) == 1
    leaves = [Leaf(source, number, alone=alone) for number, source in enumerate(sources, start=1)]
    made = (section(leaf) for leaf in leaves for section in SECTIONS)
    named = leaves[0].source.read.file if alone else words.many(len(_files(leaves)), "file")
    return Page(
        title=f"{named}: trimtab diagnose",
        opening=_opening(leaves),
        sections=tuple(section for section in made if section is not None),
        rail=tuple(f"{leaf.source.read.file}, {leaf.source.read.format}" for leaf in leaves),
        first="Diagnosis",
        kind=KIND,
    )


def _files(leaves: Sequence[Leaf]) -> list[ReadReport]:
    """How each file was read; an answer of several files together is none of its own."""
    return [leaf.source.read for leaf in leaves if leaf.source.read.sha256]


def _opening(leaves: Sequence[Leaf]) -> Opening:
    """The leading class of the file that proves one first, else of the first file."""
    leaf = next((one for one in leaves if one.source.diagnosis.classes[0].id not in UNPROVEN), leaves[0])
    found = leaf.source.diagnosis
    first = found.classes[0]
    given = (_tail(leaf), _class(leaf), _missing(leaf), _read(_files(leaves)))
    others = [f"{one.source.read.file}: {one.source.diagnosis.classes[0].id}" for one in leaves if one is not leaf]
    about = f"In {leaf.source.read.file}" if others else ""
    text = " ".join(
        words.ended(part)
        for part in (found.failures, f"{about}: {requests.heading(leaf)}".removeprefix(": "), "; ".join(others))
        if part and not part.endswith(requests.NO_PERCENTILE)
    )
    return Opening(
        status="pass" if first.id == "healthy" else "open" if first.id in UNPROVEN else "fail",
        word=f"{words.opened(first.id)}:",
        sentence=words.ended(first.evidence[0]) if first.evidence else "",
        text=text,
        pending=f"Next measurement: {words.ended(found.next_measurement)}" if found.next_measurement else "",
        answers=tuple(answer for answer in given if answer is not None),
    )


def _tail(leaf: Leaf) -> Answer | None:
    """The highest percentile, and all of them on one scale."""
    known = leaf.percentiles()
    if not known:
        return None
    name, figure = known[-1]
    held = leaf.source.sla
    bound = held.bound_ms if held is not None else None
    to = scale([*(one.value for _, one in known), bound])
    line = Mark(form="line", x=to.at(known[0][1].value or 0.0), x2=to.at(figure.value or 0.0), look="static")
    dots = [Mark(form="dot", x=to.at(one.value or 0.0), look="open") for _, one in known[:-1]]
    limit = [Mark(form="tick", x=to.at(bound), look="bound")] if bound is not None else []
    strip = Strip(marks=(line, *limit, *dots, Mark(form="dot", x=to.at(figure.value or 0.0))), alt=f"up to {name}")
    under = tuple(f"{other} {words.figure(one)}" for other, one in reversed(known[:-1]))
    foot = f"{words.count(figure.samples)} samples" if figure.samples else "samples not said"
    return Answer(label=f"Tail, {name}", value=words.figure(figure), strip=strip, under=under, foot=foot)


def _class(leaf: Leaf) -> Answer:
    """The leading class, its share, and whose matter it is."""
    first, *rest = leaf.source.diagnosis.classes
    beside = f"beside it {words.listed([one.id for one in rest])}" if rest else ""
    foot = "; ".join(part for part in (words.opened(leaf.owner(first.owner)), beside) if part)
    if first.share is None:
        return Answer(label="What explains it", value=words.opened(first.id), foot=foot)
    lo, hi = first.interval or (first.share, first.share)
    to = Scale(lo=min(0.0, lo), hi=max(1.0, hi))
    bar = Mark(form="bar", x=to.at(0.0), x2=to.at(first.share), look=cause_look(first.id), cause=cause(first.id))
    strip = Strip(marks=(bar, Mark(form="line", x=to.at(lo), x2=to.at(hi))), alt=words.percent(first.share))
    value = f"{words.opened(first.id)}, {words.percent(first.share)}"
    return Answer(label="What explains it", value=value, caption="of what removing every cause would change",
                  strip=strip, foot=foot)  # fmt: skip


def _missing(leaf: Leaf) -> Answer:
    missing = leaf.source.diagnosis.missing
    value = words.opened(words.many(len(missing), "thing")) if missing else "Nothing"
    return Answer(label="Missing to say more", value=value, caption=words.short(missing[0], 160) if missing else "")


def _read(reports: Sequence[ReadReport]) -> Answer:
    left = sum(sum(report.dropped.values()) for report in reports)
    foot = f"{words.count(left)} left out, by reason below" if left else "nothing left out"
    if len(reports) > 1:
        names = words.listed(list(dict.fromkeys(report.format for report in reports)))
        return Answer(label="Read", value=words.opened(words.many(len(reports), "file")), caption=names, foot=foot)
    [report] = reports
    value = f"{words.count(report.used)} of {words.count(report.rows)} {report.unit}"
    return Answer(label="Read", value=value, caption=report.format, foot=foot)
