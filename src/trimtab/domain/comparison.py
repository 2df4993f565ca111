"""Two packets compared: one run again from its own seeds, or yesterday's and today's at a gate."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.figure import Interval
from trimtab.domain.noun import Noun

Agreement = Literal["agree", "differ", "inconclusive", "not comparable"]
Passage = Literal["pass", "fail", "inconclusive"]


class Repeated(Noun, frozen=True, kw_only=True):
    """One primary figure, measured again. ``ratio`` = now / then with its ``interval``; ``floor`` = how far replays
    of one plan differed then, as a share; ``apart`` = beyond which share it differs: two occasions explain no more."""

    figure: str
    unit: str
    then: float | None
    now: float | None
    ratio: float | None
    interval: Interval | None
    floor: float | None
    apart: float | None = None
    outcome: Agreement
    note: str = ""


class Reproduction(Noun, frozen=True, kw_only=True):
    """What running a packet again gave. ``forbids``: what differs so that nothing was run; ``differs``: what also
    differs. ``folder`` holds the new runs."""

    outcome: Agreement
    sentence: str
    rows: tuple[Repeated, ...] = ()
    forbids: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    folder: str = ""


class GateRow(Noun, frozen=True, kw_only=True):
    """One metric of what runs today, in two packets. ``change`` = (new - old) / old; ``margin`` = the worsening that is
    forgiven."""

    metric: str
    slice: str
    role: Literal["primary", "guard"]
    old: float | None
    new: float | None
    change: float | None
    interval: Interval | None
    floor: float | None
    margin: float
    status: Passage
    note: str = ""


class Gate(Noun, frozen=True, kw_only=True):
    """Whether what runs today got worse from one packet to the next. ``forbids``: why they cannot be compared;
    ``differs``: what else is not the same; ``how``: on what the comparison rests."""

    old: str
    new: str
    outcome: Passage
    sentence: str
    how: str = ""
    rows: tuple[GateRow, ...] = ()
    forbids: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
