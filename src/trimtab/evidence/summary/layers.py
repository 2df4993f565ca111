"""Layers of a network: which take the time, in which types they compute, and where a type changes.

A file of times and one of types tell of the same layers by the same names; :func:`joined` puts them together. The share
of a type is one of the time of layers that compute; who only converts or copies computes in no type. Where more than
5 % of that time is of layers that do not say their type, nothing is said; counts of layers are no time.
"""

from __future__ import annotations

import msgspec

from trimtab.domain.noun import NEVER
from trimtab.domain.summary import Layer, Summary
from trimtab.evidence.figures import percent
from trimtab.evidence.timeline.cover import lasting

UNSAID = 0.05


def joined(summary: Summary, others: tuple[Summary, ...]) -> tuple[Summary, int]:
    """The layers of ``summary`` with what ``others`` say of layers of the same names, and how many these are."""
    known = {layer.name: layer for other in others for layer in other.layers}
    if not summary.layers or not known:
        return summary, 0
    own = tuple(_both(layer, known[layer.name]) if layer.name in known else layer for layer in summary.layers)
    found = sum(layer.name in known for layer in summary.layers)
    return msgspec.structs.replace(summary, layers=own), found


def _both(layer: Layer, other: Layer) -> Layer:
    return Layer(
        name=layer.name,
        kind=layer.kind or other.kind,
        took=layer.took if layer.took != NEVER else other.took,
        dtype=layer.dtype or other.dtype,
        reads=layer.reads or other.reads,
        writes=layer.writes or other.writes,
        moves=layer.moves or other.moves,
    )


def types(layers: tuple[Layer, ...]) -> dict[str, float]:
    """Share of time by the type in which layers compute, the largest first; empty where it cannot be told."""
    timed = [layer for layer in layers if layer.took != NEVER and not layer.moves]
    whole = sum(layer.took for layer in timed)
    sums: dict[str, int] = {}
    for layer in timed:
        sums[layer.dtype] = sums.get(layer.dtype, 0) + layer.took
    unsaid = sums.pop("", 0)
    if not sum(sums.values()) or unsaid > UNSAID * whole:
        return {}
    shares = {name: took / (whole - unsaid) for name, took in sums.items() if took}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def changes(layers: tuple[Layer, ...]) -> str:
    """A sentence on the layers that read one type and write another; empty where none does or types are not said."""
    known = [layer for layer in layers if layer.reads and layer.writes]
    turned = [layer for layer in known if layer.reads != layer.writes]
    if not turned:
        return ""
    pairs = dict.fromkeys(f"{layer.reads} to {layer.writes}" for layer in turned)
    timed = [layer for layer in turned if layer.took != NEVER]
    took = f", in {lasting(sum(layer.took for layer in timed))} a run" if len(timed) == len(turned) else ""
    return f"{len(turned)} of {len(known)} layers change the type ({', '.join(list(pairs)[:4])}){took}"


def moves(layers: tuple[Layer, ...]) -> str:
    """A sentence on layers that only convert or copy; empty where none does, or a layer is not timed."""
    moving = [layer for layer in layers if layer.moves]
    whole, took = sum(layer.took for layer in layers), sum(layer.took for layer in moving)
    if not took or any(layer.took == NEVER for layer in layers):
        return ""
    return f"{percent(took / whole)} of the layers' time converts types or layouts, in {len(moving)} layers"
