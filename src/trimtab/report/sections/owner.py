"""Who owns the tail, as the first screen says it: one answer with a picture, and one sentence for the verdict."""

from __future__ import annotations

from trimtab.report import words
from trimtab.report.arms import Scale
from trimtab.report.book import Book
from trimtab.report.page import Answer, Mark, Strip
from trimtab.report.palette import cause_label
from trimtab.report.sections import account
from trimtab.report.sections.account import Part

LABEL = "Owner of the tail"

MEANINGS = {
    "useful": "the work that each request needs",
    "capacity": "the work alone keeps the cores too busy",
    "cold": "first runs of shapes that a worker had not run before",
    "padding": "work on positions that only fill up a shape",
    "premium": "the entry that ran is slower than the best one known",
    "interference": "runs that took longer than the same shape does alone",
    "off-core": "time in which a worker had no core",
    "hold": "waiting for a batch to fill",
    "imbalance": "waiting for one core while another was free",
    "dispatch": "time from the scheduler to the worker",
    "co-batching": "running together with others",
    "unavailable": "no worker was alive",
}
"""Cause -> what it is, for those who have not read the glossary."""


def answer(book: Book) -> Answer | None:
    """Who owns the tail, with its share."""
    name, series = account.primary_set(book)
    if failed := account.lost(book, name):
        return Answer(label=LABEL, value="Failed requests", caption=failed)
    parts = account.parts_of(series) if series else []
    owner = account.owner_of(parts)
    if owner is None:
        return None
    ranked = sorted(parts, key=lambda part: -(part.share or 0.0))
    shown = [f"{cause_label(part.cause)} {words.percent(part.share)}" for part in ranked[:3] if part.share]
    return Answer(
        label=LABEL,
        value=f"{cause_label(owner.cause)}, {words.percent(owner.share)}",
        caption=_split(owner),
        strip=_stacked(ranked),
        under=tuple(shown),
        foot=_gain(name, owner),
    )


def sentence(book: Book) -> str:
    """The owner of the tail and what that is, for the verdict."""
    name, series = account.primary_set(book)
    if failed := account.lost(book, name):
        return f"Failed requests own the {name} tail: {failed}."
    owner = account.owner_of(account.parts_of(series)) if series else None
    if owner is None:
        return ""
    label, meaning = cause_label(owner.cause), MEANINGS.get(owner.cause, "")
    own = "own" if label.endswith("s") else "owns"
    return f"{label} {own} {words.percent(owner.share)} of the {name} tail{f': {meaning}' if meaning else ''}."


def _split(part: Part) -> str:
    """Its own cost, and what reaches a request through the queue."""
    if not part.inherited or not part.own:
        return "all of it own" if part.own else "all of it from the queue"
    return f"{words.time(part.own)} own, {words.time(part.inherited)} from the queue"


def _stacked(parts: list[Part]) -> Strip:
    to = Scale(lo=0.0, hi=sum(part.size for part in parts) or 1.0)
    marks: list[Mark] = []
    at = 0.0
    for part in parts:
        marks += account.bars(to, at, part)
        at += part.size
    return Strip(marks=tuple(marks), alt=words.listed([cause_label(part.cause) for part in parts[:3]]))


def _gain(name: str, part: Part) -> str:
    if part.gain is None:
        return account.REMARKS.get(part.cause, "")
    interval = ""
    if part.lo is not None and part.hi is not None:
        interval = f" ({words.number(part.lo, part.half)} to {words.number(part.hi, part.half)})"
    return f"Removed alone: {name} {words.number(part.gain, part.half)}{words.GAP}ms less{interval}"
