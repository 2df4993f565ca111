"""The stored account of the tail, opened for reading: its parts in order, who owns it, and how a part is drawn."""

from __future__ import annotations

import math

from trimtab.domain.figure import Series
from trimtab.domain.noun import Noun
from trimtab.report import words
from trimtab.report.arms import Scale
from trimtab.report.book import Book, each, real
from trimtab.report.page import Mark
from trimtab.report.palette import cause, cause_look

FIRST = ("useful", "co-batching", "capacity")
"""What a request costs by itself, and the queue that useful work makes: they open the waterfall."""
LAST = ("unprofiled", "unmodelled")
REMARKS = {
    "useful": "the work itself",
    "capacity": "needs more cores or less work",
    "unmodelled": "not attributable",
    "unprofiled": "profile these shapes first",
}
"""What stands where a cause has no removal gain."""


class Part(Noun, frozen=True, kw_only=True):
    """One cause's part of the tail, ms a request."""

    cause: str
    own: float
    inherited: float
    typical: float
    share: float | None
    gain: float | None
    lo: float | None
    hi: float | None
    again: float | None

    @property
    def size(self) -> float:
        return max(self.own, 0.0) + max(self.inherited, 0.0)

    @property
    def half(self) -> float | None:
        """Half the width of the gain's interval."""
        return None if self.lo is None or self.hi is None else (self.hi - self.lo) / 2


def primary_set(book: Book) -> tuple[str, Series | None]:
    """The set that belongs to the primary metric, else the other one."""
    names = ("p99", "p95") if book.record.study.sla.metric == "p99" else ("p95", "p99")
    found = ((name, book.series(f"tail.{name}.waterfall")) for name in names)
    return next(((name, series) for name, series in found if series is not None), (names[0], None))


def parts_of(series: Series) -> list[Part]:
    """In the order of the waterfall: the work itself, then causes by size, then what is not explained."""
    parts = [
        Part(
            cause=cause(str(row["cause"])),
            own=real(row.get("own")) or 0.0,
            inherited=real(row.get("inherited")) or 0.0,
            typical=real(row.get("typical")) or 0.0,
            share=real(row.get("share")),
            gain=real(row.get("gain")),
            lo=real(row.get("gain_lo")),
            hi=real(row.get("gain_hi")),
            again=real(row.get("resimulated")),
        )
        for row in each(series)
    ]

    def place(part: Part) -> tuple[int, float]:
        if part.cause in FIRST:
            return FIRST.index(part.cause) - len(FIRST), 0.0
        return (1 if part.cause in LAST else 0), -part.size

    return sorted((part for part in parts if part.size or part.typical), key=place)


def lost(book: Book, name: str) -> str:
    """How many requests failed, where the percentile falls among them; else empty."""
    bound, failed = book.figure(f"tail.{name}.bound"), book.figure(f"tail.{name}.failed_requests")
    if bound is None or failed is None or bound.value != math.inf:
        return ""
    return f"{words.figure(failed)} of {words.count(failed.samples)} requests failed"


def owner_of(parts: list[Part]) -> Part | None:
    """The part with the largest share."""
    known = [part for part in parts if part.share is not None]
    return max(known, key=lambda part: part.share or 0.0) if known else None


def bars(to: Scale, at: float, part: Part) -> list[Mark]:
    """Own solid, inherited in the same hue with a fine hatch."""
    look, own, end = cause_look(part.cause), at + max(part.own, 0.0), at + part.size
    made = [Mark(form="bar", x=to.at(at), x2=to.at(own), look=f"{look} gap", cause=part.cause)] if part.own > 0 else []
    if part.inherited > 0:
        made.append(Mark(form="bar", x=to.at(own), x2=to.at(end), look=f"{look} gap inherited", cause=part.cause))
    return made
