"""Building blocks of the charts: Vega-Lite layers as plain dicts, in the report's own style.

Every chart is one layered view as wide as its column, with the same room for the vertical axis, so that charts under
each other share their horizontal axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trimtab.domain.figure import Cell, Series
from trimtab.domain.noun import Noun
from trimtab.report.page import Axis, Chart, Panel, Spec
from trimtab.report.palette import CAUSES, colour

ROOM = {"left": 52, "right": 12, "top": 16, "bottom": 22}
TIGHT = {"bottom": 6}
TITLED = {"bottom": 36}
"""Pixels around the plot for axis labels; text that needs more spills over and never moves the plot. TIGHT: no labels
below; TITLED: labels and a title."""

WIDTH = 640
"""Pixels that a chart has where nobody says otherwise; the page gives it the width of its column."""

SCIENTIFIC = "datum.value && (abs(datum.value) >= 1e6 || abs(datum.value) < 1e-3)"
TICK = f"{SCIENTIFIC} ? replace(format(datum.value, '.3~g'), '+', '') : datum.label"
"""What a tick says: very large and very small numbers in as many signs as there is room for."""

CHOSEN = ("time_lo", "time_hi", "size_lo", "size_hi", "window_lo", "window_hi", "stream", "told")
"""The signals that all charts share: the ends of what is chosen on each axis, the stream, and whose story is told."""

Datum = dict[str, Any]


def config() -> Spec:
    """The style that all charts share."""
    axis = {
        "labelColor": colour("muted"),
        "titleColor": colour("muted"),
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": 400,
        "gridColor": colour("hairline"),
        "domainColor": colour("rule"),
        "ticks": False,
        "domain": False,
        "labelPadding": 8,
    }
    return {
        "background": "transparent",
        "font": "Inter, system-ui, sans-serif",
        "aria": False,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False, "domain": True, "labelFlush": True},
        "axisY": {
            "titleAngle": 0,
            "titleAnchor": "end",
            "titleAlign": "right",
            "titleX": -8,
            "titleY": -8,
        },
        "text": {"fontSize": 11, "color": colour("muted")},
        "legend": {"disable": True},
    }


def finite(cell: Cell) -> Cell:
    """A JSON value: infinities and nan become null, which charts leave out."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def rows(series: Series, **rename: str) -> list[Datum]:
    """The series as chart rows. ``rename`` maps the chart's field to the series' column."""
    wanted = {field: column for field, column in rename.items() if column in series.columns}
    names = wanted or {name: name for name in series.columns}
    columns = [[finite(cell) for cell in series.columns[column]] for column in names.values()]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def chart(
    id: str,  # noqa: A002 - the word of the noun
    layers: Sequence[Spec],
    height: int,
    alt: str,
    room: Mapping[str, int] | None = None,
    axis: Axis = "",
) -> Chart:
    """Layers on common scales, as wide as the column and ``height`` pixels high in all; ``room`` overrides ROOM.

    Every chart knows what is chosen (:data:`CHOSEN`); a layer follows by filtering or fading with :func:`inside`.
    """
    spec: Spec = {
        "params": [{"name": name, "value": None} for name in CHOSEN],
        "width": WIDTH,
        "height": height,
        "padding": {**ROOM, **(room or {})},
        "autosize": {"type": "none", "contains": "padding"},
        "layer": list(layers),
    }
    return Chart(id=id, spec=spec, height=height, alt=alt, axis=axis)


def inside(**fields: str) -> str:
    """The test whether a row is in what is chosen. ``fields``: axis or ``stream`` -> the row's field."""
    tests = []
    for axis, field in fields.items():
        if axis == "stream":
            tests.append(f"(stream === null || datum.{field} === stream)")
        else:
            tests.append(f"({axis}_lo === null || (datum.{field} >= {axis}_lo && datum.{field} <= {axis}_hi))")
    return " && ".join(tests)


EVERYBODY = "stream === null && size_lo === null"
"""The test that neither a stream nor a band of shapes is chosen."""


def named(cause: str, spec: Spec) -> Spec:
    """The same layer, all of whose marks belong to ``cause``: they dim when the pointer is on another one."""
    return {**spec, "name": f"cause_{cause}"} if cause in CAUSES else spec


def faded(test: str, rest: float = 0.12) -> Spec:
    """The opacity of marks that step back, to ``rest``, where they are outside of what is chosen."""
    return {"condition": {"test": test, "value": 1}, "value": rest}


def hues(field: str, causes: Iterable[str]) -> Spec:
    """The colour of marks by cause; one without a hue is grey."""
    domain = sorted(set(causes))
    known = [colour(name if name in CAUSES else "unprofiled") for name in domain]
    return {"field": field, "type": "nominal", "scale": {"domain": domain, "range": known}}


def layer(mark: str | Spec, data: Iterable[Mapping[str, Any]], **encoding: Spec) -> Spec:
    """One mark over literal rows."""
    return {
        "data": {"values": [dict(row) for row in data]},
        "mark": {"type": mark} if isinstance(mark, str) else mark,
        "encoding": encoding,
    }


def x(field: str, *, title: str = "", domain: Sequence[float] | None = None, **axis: Any) -> Spec:
    """A quantitative horizontal position."""
    return _position(field, title, domain, axis)


def y(field: str, *, title: str = "", domain: Sequence[float] | None = None, **axis: Any) -> Spec:
    """A quantitative vertical position."""
    return _position(field, title, domain, {"tickCount": 3, **axis})


def _position(field: str, title: str, domain: Sequence[float] | None, axis: dict[str, Any]) -> Spec:
    scale: Spec = {"nice": False, "zero": False} if domain is not None else {}
    if domain is not None:
        scale["domain"] = list(domain)
    return {
        "field": field,
        "type": "quantitative",
        "axis": {"title": title or None, "labelExpr": TICK, **axis},
        **({"scale": scale} if scale else {}),
    }


def shares(position: Spec) -> Spec:
    """The same position with its ticks in per cent."""
    said = {"labelExpr": "format(datum.value*100,'~r')+' %'"}
    return {**position, "axis": {**position["axis"], **said}}


def unlabelled(position: Spec) -> Spec:
    """The same position without tick labels and title: the chart below carries them."""
    return {**position, "axis": {**position["axis"], "labels": False, "title": None}}


class Base(Noun, frozen=True, kw_only=True):
    """What the charts of one stack share: the horizontal position, what it means, and whether this one carries its
    labels."""

    where: Spec
    last: bool
    axis: Axis = ""

    @property
    def room(self) -> Mapping[str, int]:
        return TITLED if self.last else TIGHT

    def height(self, plot: int) -> int:
        """Pixels of a chart whose plot has about ``plot`` of them, labels below included."""
        return plot + self.room["bottom"]


Maker = Callable[[Base], Panel | None]
"""Makes one panel of a stack, or None where it has nothing to show."""


def stack(makers: Sequence[Maker], where: Spec, axis: Axis = "") -> tuple[Panel, ...]:
    """The panels that can be made, under each other; only the lowest carries the labels of the shared axis."""
    inner = Base(where=unlabelled(where), last=False, axis=axis)
    made = [(maker, panel) for maker in makers if (panel := maker(inner)) is not None]
    if not made:
        return ()
    lowest = made[-1][0](Base(where=where, last=True, axis=axis))
    above = tuple(panel for _, panel in made[:-1])
    return (*above, lowest) if lowest is not None else above


def to(field: str) -> Spec:
    """The far end of a range (``x2``, ``y2``)."""
    return {"field": field}


def silent(position: Spec) -> Spec:
    """The same position without an axis of its own."""
    return {**position, "axis": None}


def line(look: str) -> Spec:
    """The ink of a plan: static is grey and thinner, adapted is ink and thicker."""
    if look == "static":
        return {"type": "line", "color": colour("static"), "strokeWidth": 1.75, "clip": True}
    return {"type": "line", "color": colour("ink"), "strokeWidth": 2.25, "clip": True}


def band() -> Spec:
    """The interval of a curve."""
    return {"type": "area", "color": colour("curve-band"), "opacity": 0.75, "clip": True, "line": False}


def floor_band() -> Spec:
    """The noise floor around zero: the same warm grey everywhere."""
    return {"type": "rect", "color": colour("band"), "clip": True}


def bound() -> Spec:
    """The SLA bound: a dashed line in the colour of failure."""
    return {"type": "rule", "color": colour("fail"), "strokeDash": [4, 3], "strokeWidth": 1, "opacity": 0.85}


def words(**place: Any) -> Spec:
    """A direct label, on a halo of the ground: no line behind it strikes it through. Its layer comes after the lines'.
    ``stroke=None`` = no halo, for labels on a mark."""
    halo: Spec = {"stroke": colour("ground"), "strokeWidth": 4, "strokeJoin": "round"}
    return {"type": "text", "align": "left", "baseline": "middle", "color": colour("muted"), **halo, **place}
