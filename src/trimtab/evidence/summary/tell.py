"""The figures and tables of a summary, as findings store them."""

from __future__ import annotations

from typing import Any

from trimtab.domain.figure import Figure, Series
from trimtab.domain.noun import NEVER
from trimtab.domain.summary import Layer, Point, Summary
from trimtab.evidence.figures import NS_MS, Desk, percent, series

Columns = dict[str, list[Any]]
MOST_ROWS = 40


def tell(summary: Summary, shares: dict[str, float], file: str) -> tuple[tuple[Figure, ...], tuple[Series, ...]]:
    """Figures ``summary.<group>.<name>`` and series ``summary.<table>``; ``file`` is what they rest on."""
    desk = Desk("summary", "this file", file)
    tables: list[Series] = []
    if len(summary.points) == 1:
        _point(summary.points[0], desk)
    elif summary.points:
        tables.append(_points(summary.points, file))
    if any(point.stages for point in summary.points):
        tables.append(_stages(summary.points, file))
    for name, share in shares.items():
        desk.add(f"precision.{name}", share, "share", len(summary.layers), note="of the time of layers that compute")
    if summary.layers:
        tables.append(_layers(summary.layers, file))
    return tuple(desk.figures), tuple(tables)


def _point(point: Point, desk: Desk) -> None:
    count = point.count or 0
    given = {
        "requests": (point.count, "requests"),
        "offered": (point.offered, "1/s"),
        "achieved": (point.achieved, "1/s"),
        "clients": (point.clients, "in flight"),
    }
    for name, (value, unit) in given.items():
        if value is not None:
            desk.add(f"load.{name}", float(value), unit, count)
    for name, value in point.latency.items():
        desk.add(f"latency.{name}", value * NS_MS, "ms", count)


def _points(points: tuple[Point, ...], file: str) -> Series:
    rows = points[:MOST_ROWS]
    names = dict.fromkeys(name for point in points for name in point.latency)
    columns: Columns = {"point": [point.name for point in rows]}
    for name in ("count", "offered", "achieved"):
        if any(getattr(point, name) is not None for point in points):
            columns[HEADERS[name]] = [getattr(point, name) for point in rows]
    columns |= {f"{name}, ms": [_ms(point.latency.get(name)) for point in rows] for name in names}
    return series("summary.points", columns, {}, file, scope="this file", note=_more(len(points)))


HEADERS = {"count": "requests", "offered": "offered, 1/s", "achieved": "achieved, 1/s"}


def _stages(points: tuple[Point, ...], file: str) -> Series:
    rows = points[:MOST_ROWS]
    names = dict.fromkeys(name for point in points for name in point.stages)
    columns: Columns = {"point": [point.name for point in rows]}
    columns |= {f"{name}, ms": [_ms(point.stages.get(name)) for point in rows] for name in names}
    return series("summary.stages", columns, {}, file, scope="this file", note="means: parts of the mean latency")


def _layers(layers: tuple[Layer, ...], file: str) -> Series:
    timed = [layer for layer in layers if layer.took != NEVER]
    whole = sum(layer.took for layer in timed) or 1
    rows = sorted(layers, key=lambda layer: -layer.took)[:MOST_ROWS]
    columns: Columns = {"layer": [layer.name for layer in rows]}
    if any(layer.kind for layer in layers):
        columns["kind"] = [layer.kind or None for layer in rows]
    if timed:
        columns["a run, ms"] = [_ms(layer.took) for layer in rows]
    if len(timed) == len(layers):
        columns["share"] = [percent(layer.took / whole) for layer in rows]
    for name in ("dtype", "reads", "writes"):
        if any(getattr(layer, name) for layer in layers):
            columns[TYPES[name]] = [getattr(layer, name) or None for layer in rows]
    return series("summary.layers", columns, {}, file, scope="this file", note=_more(len(layers)))


TYPES = {"dtype": "type", "reads": "reads", "writes": "writes"}


def _ms(took: int | None) -> float | None:
    return None if took is None or took == NEVER else took * NS_MS


def _more(count: int) -> str:
    return f"{count - MOST_ROWS} more" if count > MOST_ROWS else ""
