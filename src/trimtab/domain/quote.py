"""Quotations: how an owner's document takes a figure or a sentence from the packet, so that a changed one is noticed.

    p95 changes by −77 % [−85, −67]<!-- validate.primary/normal/held-out/p95 -->

What stands before the comment must be exactly what the packet says today; the comment names where. Plain Markdown shows
the value and hides the comment. While writing, ``{{validate.primary/normal/held-out/p95}}`` asks for a quotation.

Keys: a figure's id · ``<series>[<row>].<column>``, with its interval where the row has one · ``<stage>.headline``,
``<stage>.said[<n>]`` · ``verdict.sentence``, ``verdict.scope[<n>]``, ``verdict.not_covered[<n>]``,
``verdict.risks[<n>]`` · ``proposal.sentence``, ``proposal.rollback``, ``proposal.compile_s``, ``proposal.memory_mib``,
``proposal.rejected[<n>].reason``. Signs that could end a comment are written as in a URL.

A number with a unit that is not quoted must be marked as the owner's own: ``5 %<!-- own -->``. Plain counts ("eight
entries", "3 replays") and numbers spelt out are the owner's words and are not looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from trimtab.domain.figure import Figure, Findings, Interval, Series
from trimtab.domain.packet import Record

OWN = "own"
_MINUS = "\u2212"
_KEY = re.compile(r"<!-- ?([^\s<>]{1,400}) ?-->")
_WISH = re.compile(r"\{\{ ?([^\s{}]{1,400}) ?\}\}")
_CELL = re.compile(r"(?P<series>.+)\[(?P<row>\d{1,6})\]\.(?P<column>[^\[\]]+)")
_UNITS = r"%|ms|µs|us|ns|s|[KMG]i?B|x|/s|requests/s"
_NUMBER = re.compile(rf"(?<![\w.,{_MINUS}-])[+{_MINUS}-]?\d[\d.,]{{0,24}} {{0,2}}(?:{_UNITS})(?![\w%])")
_UNSPOKEN = ("index", "cores", "x")
"""Units that the sentence around a figure says better."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._/:@\[\]-]")


class Fault(NamedTuple):
    """One place where a document does not say what the packet says; ``line`` counts from 1."""

    line: int
    text: str


class Quotes:
    """Everything in a packet that can be quoted, by key."""

    def __init__(self, record: Record) -> None:
        self._texts = {_safe(key): text for key, text in _texts(record)}
        self._series = {_safe(each.id): each for found in record.findings.values() for each in found.series}

    def text(self, key: str) -> str | None:
        """What the packet says under ``key``, as Markdown; None if it holds nothing there."""
        if key in self._texts:
            return self._texts[key]
        found = _CELL.fullmatch(key)
        series = self._series.get(found["series"]) if found else None
        return _cell_of(series, int(found["row"]), found["column"]) if found and series else None

    def quote(self, key: str) -> str:
        """``text<!-- key -->``; empty if the packet holds nothing there."""
        safe = key if self.text(key) is not None else _safe(key)
        text = self.text(safe)
        return "" if text is None else f"{text}<!-- {safe} -->"


def fill(document: str, quotes: Quotes) -> str:
    """``document`` with every ``{{key}}`` that the packet knows replaced by its quotation; nothing else is touched."""
    return _WISH.sub(lambda wish: quotes.quote(wish[1]) or wish[0], document)


def check(document: str, quotes: Quotes) -> list[Fault]:
    """Every quotation that the packet does not bear out, every wish that is still open, and every number with a unit
    that is neither quoted nor marked as the owner's own."""
    faults: list[Fault] = []
    line, seen = 1, 0
    for at, text in sorted(_faults(_without_code(document), quotes)):
        line, seen = line + document.count("\n", seen, at), at
        faults.append(Fault(line, text))
    return faults


def measured(text: str) -> bool:
    """Whether a text holds a number with a unit, so that it must be quoted to be said."""
    return _NUMBER.search(text) is not None


def escaped(text: str) -> str:
    """Data as plain Markdown text: no markup, no element, no link, no mention, one line."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    for sign in "\\`*[]|~":
        printable = printable.replace(sign, f"\\{sign}")
    printable = printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    printable = printable.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("{{", "{ {")
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", printable)


def said(value: float | None, unit: str, interval: Interval | None = None) -> str:
    """A figure as text: ``−77 % [−85, −67]``, ``17.7 ms``, ``unknown``, ``beyond the deadline``."""
    if value is None or math.isnan(value):
        return "unknown"
    if value == math.inf and unit in ("ms", "s", "us", "ns"):
        return "beyond the deadline"
    scale, shown = (100.0, "%") if unit == "share" else (1.0, "" if unit in _UNSPOKEN else escaped(unit))
    text = f"{_number(value * scale)} {shown}".rstrip()
    return text if interval is None else f"{text} [{_number(interval.lo * scale)}, {_number(interval.hi * scale)}]"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
    text = text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
    return "0" if text in ("-0", "0") else text.replace("-", _MINUS)


def _faults(document: str, quotes: Quotes) -> Iterator[tuple[int, str]]:
    covered: list[tuple[int, int]] = []
    for mark in _KEY.finditer(document):
        if mark[1] == OWN:
            continue
        text = quotes.text(mark[1])
        if text is None:
            yield mark.start(), f"the packet holds nothing called {mark[1]}"
            continue
        start = mark.start() - len(text)
        if start < 0 or document[start : mark.start()] != text or _glued(document, start):
            yield mark.start(), f"{mark[1]} is {text} in the packet; the document says something else"
            start = document.rfind("\n", 0, mark.start()) + 1  # said once: the number before it is this one
        covered.append((start, mark.end()))
    for wish in _WISH.finditer(document):
        yield wish.start(), f"{wish[0]} is not filled in: run `trimtab draft`"
    yield from _unquoted(document, covered)


def _unquoted(document: str, covered: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Numbers with a unit outside every quotation; both lists run from left to right."""
    spans, position = sorted(covered), 0
    for number in _NUMBER.finditer(document):
        while position < len(spans) and spans[position][1] <= number.start():
            position += 1
        inside = position < len(spans) and spans[position][0] <= number.start()
        if not inside and not document.startswith(f"<!-- {OWN} -->", number.end()):
            yield (
                number.start(),
                f"{number[0].strip()} is not quoted from the packet; quote it, or mark it <!-- {OWN} -->",
            )


def _glued(document: str, start: int) -> bool:
    """Whether the text before a quotation would change what it says: a digit, a sign or a decimal point."""
    return start > 0 and (document[start - 1].isalnum() or document[start - 1] in f".,+-{_MINUS}")


def _without_code(document: str) -> str:
    """The document with fenced code blanked out; positions stay."""
    lines, inside = [], False
    for line in document.split("\n"):
        fence = line.startswith(("```", "~~~"))
        lines.append(" " * len(line) if inside or fence else line)
        inside ^= fence
    return "\n".join(lines)


def _safe(key: str) -> str:
    encoded = _UNSAFE.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign[0].encode()), key)
    return encoded.replace("--", "-%2D")


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    for stage, found in record.findings.items():
        yield from _findings(stage, found)
    if record.verdict is not None:
        yield "verdict.sentence", escaped(record.verdict.sentence)
        for name in ("scope", "not_covered", "risks"):
            for row, text in enumerate(getattr(record.verdict, name)):
                yield f"verdict.{name}[{row}]", escaped(text)
    proposal = record.proposal
    if proposal is None:
        return
    yield "proposal.sentence", escaped(proposal.move.sentence)
    yield "proposal.rollback", escaped(proposal.rollback)
    yield "proposal.compile_s", said(proposal.move.compile_s, "s")
    yield "proposal.memory_mib", said(proposal.move.memory_mib, "MiB")
    for row, rejected in enumerate(proposal.rejected):
        yield f"proposal.rejected[{row}].reason", escaped(rejected.reason)


def _findings(stage: str, found: Findings) -> Iterator[tuple[str, str]]:
    yield f"{stage}.headline", escaped(found.headline)
    for row, finding in enumerate(found.findings):
        yield f"{stage}.said[{row}]", escaped(finding.text)
    for figure in found.figures:
        yield figure.id, _figure(figure)


def _figure(figure: Figure) -> str:
    return said(figure.value, figure.unit, figure.interval)


def _cell_of(series: Series, row: int, column: str) -> str | None:
    names = {_safe(name): name for name in series.columns}
    if column not in names or row >= len(series.columns[names[column]]):
        return None
    value, unit = series.columns[names[column]][row], series.units.get(names[column], "")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return escaped(value)
    return said(value, unit, _interval(series, row, names[column]))


def _interval(series: Series, row: int, column: str) -> Interval | None:
    """The interval of a cell, where its neighbours hold one: ``gain_lo`` and ``gain_hi``, or ``lo`` and ``hi`` of a
    ``change``."""
    ends = ("lo", "hi") if column == "change" else (f"{column}_lo", f"{column}_hi")
    lo, hi = (series.columns[end][row] if end in series.columns else None for end in ends)
    if not isinstance(lo, int | float) or not isinstance(hi, int | float):
        return None
    return Interval(lo=float(lo), hi=float(hi))
