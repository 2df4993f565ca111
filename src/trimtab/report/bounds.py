"""The bound in a chart, and its name at that end and on that side of it where the curves leave most room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from trimtab.report import marks
from trimtab.report.page import Spec
from trimtab.report.palette import colour

Point = tuple[float, float]
Curve = Sequence[Point]
"""Points from left to right."""

RISE = 0.07
"""How far the middle of a name stands from its line, as a share of the plot's height."""
SIGN = 0.02
"""The width of one sign as a share of the plot's, where plots are narrowest."""


def named(
    where: Spec,
    high: Spec,
    value: float,
    text: str,
    curves: Iterable[Curve],
    ends: tuple[float, float] | None = None,
) -> list[Spec]:
    """A dashed line at ``value`` and its name. ``curves``: what the name keeps clear of. ``ends`` of the vertical axis,
    where its own depend on what is chosen."""
    left, right = where["scale"]["domain"]
    low_high = ends or tuple(high["scale"]["domain"])
    at_right, below = _place((left, right), low_high, value, len(text), list(curves))
    row = {where["field"]: right if at_right else left, high["field"]: value, "text": text}
    side: Spec = {"dx": -4, "align": "right"} if at_right else {"dx": 4}
    name = marks.words(**side, dy=9 if below else -8, color=colour("fail"))
    return [
        marks.layer(marks.bound(), [row], y=high),
        marks.layer(name, [row], x=where, y=high, text=marks.to("text")),
    ]


def _place(
    sides: tuple[float, float], ends: tuple[float, ...], value: float, signs: int, curves: list[Curve]
) -> tuple[bool, bool]:
    """Whether the name stands at the right end, and whether below its line."""
    left, right = sides
    low, top = ends
    rise, width = RISE * (top - low), min(SIGN * signs, 1.0) * (right - left)

    def room(place: tuple[bool, bool]) -> float:
        at_right, below = place
        middle = value - rise if below else value + rise
        if middle - rise / 2 < low:  # it would stand on the labels of the axis
            return -1.0
        span = (right - width, right) if at_right else (left, left + width)
        pieces = (piece for curve in curves for piece in _reach(curve, *span))
        return min((max(lowest - middle, middle - highest, 0.0) for lowest, highest in pieces), default=top - low)

    return max(((True, False), (False, False), (True, True), (False, True)), key=room)


def _reach(curve: Curve, left: float, right: float) -> Iterator[tuple[float, float]]:
    """The lowest and the highest value of each piece of the curve between ``left`` and ``right``."""
    for (x0, y0), (x1, y1) in pairwise(curve) if len(curve) > 1 else zip(curve, curve, strict=True):
        begin, end = max(x0, left), min(x1, right)
        if begin > end:
            continue
        slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
        at = (y0 + slope * (begin - x0), y0 + slope * (end - x0)) if x1 > x0 else (y0, y1)
        yield min(at), max(at)
