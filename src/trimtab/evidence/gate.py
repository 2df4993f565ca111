"""The quality gate: a plan's answers by shape band and by compiled entry, and the worst of each.

Theory. A mean over all requests hides the bucket that answers wrongly: traffic gives it few of the samples. So the same
metric is taken over *parts*: all requests, those that were padded, each band of shapes, each entry. A plan holds its
floor if all of them and the worst band and the worst entry do. In a mean a request counts for as many requests of
traffic as it stands for: those of its entry, shared out over the entry's samples by how often each occurs.

Padding is judged apart from precision: a padded request is put to the same compile options once more, unpadded, in a
dynamic entry; the part ``padding`` of an entry holds the agreement of the two. Where a runtime cannot run the request
unpadded there is no such part, and the comparison with the reference (padding and precision together) must do. A plan
that batches is also asked in batches, where requests are padded to the largest of their batch: the part ``batched``.

A part with a request that the reference cannot answer is inconclusive: it is never judged on the rest. A worst part is
a failing one first, then an open one, then the one with the worst value.

Limits: a part is as sure as its samples are many, and they stand beside it. Entries that no request is routed to are
not judged. Who shares a batch with whom is drawn once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from trimtab.domain.figure import Cell, Series
from trimtab.domain.study import ERRORS, QualitySpec
from trimtab.domain.verdict import CellStatus
from trimtab.evidence.quality import Floats, meets, summary

Row = dict[str, Cell]
Kind = Literal["all", "padded", "batched", "band", "entry", "padding"]
ORDER: dict[CellStatus, int] = {"fail": 0, "inconclusive": 1, "pass": 2}


class Part(NamedTuple):
    """Requests judged together: ``rows`` of the series, their ``values`` (nan where nothing can be judged), and as
    ``weights`` how many requests of traffic each stands for."""

    kind: Kind
    name: str
    rows: tuple[int, ...]
    values: Floats
    weights: Floats


def parts(found: Series) -> tuple[Part, ...]:
    """All parts of one plan's series: columns ``value``, ``route``, ``band``, ``entry``, ``unpadded``, ``batched``,
    ``requests``."""
    columns = found.columns
    if not columns or not columns["value"]:
        return ()
    values, weights = _floats(columns["value"]), _floats(columns["requests"])
    padded = [row for row, route in enumerate(columns["route"]) if route == "padded"]
    out = [_part("all", "all shapes", range(values.size), values, weights)]
    if padded:
        out.append(_part("padded", "padded shapes", padded, values, weights))
    if not all(cell is None for cell in columns["batched"]):
        out.append(_part("batched", "in batches", range(values.size), _floats(columns["batched"]), weights))
    out += [_part("band", name, rows, values, weights) for name, rows in _groups(columns["band"])]
    out += [_part("entry", name, rows, values, weights) for name, rows in _groups(columns["entry"])]
    return (*out, *_padding(columns, padded, weights))


def worst(found: Sequence[Part], kind: Kind, spec: QualitySpec) -> Part | None:
    """The part of a kind that decides; None where there is none."""
    return min((part for part in found if part.kind == kind), key=lambda part: _rank(part, spec), default=None)


def status(part: Part, spec: QualitySpec) -> CellStatus:
    """Pass, fail, or inconclusive where a request could not be judged."""
    if not part.values.size or np.isnan(part.values).any():
        return "inconclusive"
    return "pass" if meets(spec.metric, _figure(part, spec), spec.floor) else "fail"


def value(part: Part, spec: QualitySpec) -> float | None:
    """The part's figure; None where a request could not be judged."""
    figure = _figure(part, spec)
    return None if np.isnan(figure) else figure


def worst_row(part: Part, spec: QualitySpec) -> int | None:
    """The row of the request that answers worst; None where none was judged."""
    if np.isnan(part.values).all():
        return None
    at = np.nanargmax(part.values) if spec.metric in ERRORS else np.nanargmin(part.values)
    return part.rows[int(at)]


def decisive(found: Sequence[Part], spec: QualitySpec) -> tuple[Part, ...]:
    """The parts that a plan must hold: all requests, alone and in batches, the padded ones, and the worst band, entry
    and padding."""
    kinds: tuple[Kind, ...] = ("all", "padded", "batched", "band", "entry", "padding")
    return tuple(part for kind in kinds if (part := worst(found, kind, spec)) is not None)


def verdict(found: Sequence[Part], spec: QualitySpec) -> CellStatus:
    """Of a plan: pass only if every decisive part passes."""
    seen = [status(part, spec) for part in decisive(found, spec)]
    return min(seen, key=ORDER.__getitem__, default="inconclusive")


def row(part: Part, spec: QualitySpec, times: Sequence[float | None], before: Sequence[float | None]) -> Row:
    """One part as a row: quality beside speed. ``times`` and ``before``: warm ms of every request of the series under
    this plan and under the baseline; their means are over the requests that both promise a time for."""
    at = worst_row(part, spec)
    known = [(times[i], before[i], w) for i, w in zip(part.rows, part.weights, strict=True)
             if times[i] is not None and before[i] is not None]  # fmt: skip
    mine, theirs, shares = np.array(known, dtype=np.float64).reshape(-1, 3).T
    return {
        "kind": part.kind,
        "part": part.name,
        "metric": spec.metric,
        "value": value(part, spec),
        "worst": None if at is None else float(part.values[part.rows.index(at)]),
        "floor": spec.floor,
        "status": status(part, spec),
        "samples": len(part.rows),
        "time": float(np.average(mine, weights=shares)) if known else None,
        "baseline_time": float(np.average(theirs, weights=shares)) if known else None,
    }


def _figure(part: Part, spec: QualitySpec) -> float:
    return summary(spec.metric, part.values, part.weights)


def _part(kind: Kind, name: str, rows: Sequence[int] | range, values: Floats, weights: Floats) -> Part:
    return Part(kind, name, tuple(rows), values[list(rows)], weights[list(rows)])


def _padding(columns: Mapping[str, tuple[Cell, ...]], padded: Sequence[int], weights: Floats) -> Iterator[Part]:
    """By entry, what padding alone does; nothing where no request could be run unpadded."""
    values = _floats(columns["unpadded"])
    if np.isnan(values[list(padded)]).all():
        return
    entries = columns["entry"]
    for name in dict.fromkeys(str(entries[row]) for row in padded):
        yield _part("padding", name, [row for row in padded if entries[row] == name], values, weights)


def _groups(column: Sequence[Cell]) -> list[tuple[str, list[int]]]:
    """Rows by name, in order of appearance; a request without a name (no entry takes it) is in no group."""
    names = dict.fromkeys(str(name) for name in column if name)
    return [(name, [row for row, own in enumerate(column) if own == name]) for name in names]


def _floats(column: Sequence[Cell]) -> Floats:
    return np.array([np.nan if cell is None else cell for cell in column], dtype=np.float64)


def _rank(part: Part, spec: QualitySpec) -> tuple[int, float, str]:
    found = _figure(part, spec)
    bad = 0.0 if np.isnan(found) else (-found if spec.metric in ERRORS else found)
    return ORDER[status(part, spec)], bad, part.name
