"""IREE's kernels as operators: which ones a run launches, and which operators of the network went into each.

IREE gives every operation of its IR the place that it came from, and its importer makes that place the name of an ONNX
operator. Once kernels have been formed (the *flow* phase), each kernel is a function of its own; the operators that its
arithmetic comes from are what it computes. A kernel is named after the one of them that does the most work, the others
were folded into it. An operator that is split over several kernels is named at the last of them and folded into none.

A kernel's name ends in what it computes, its extents and its element types (``matmul_like_40x96x240_f32``); the first
element type is that of its first input. A kernel that only moves data is named by that alone.

Limits: operators that only move data become part of how others address it, and leave no name; kernels that compute the
same at several places of the network are kept once, with the names of the first place. So ``fused`` is a lower bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trimtab.backends._precision import named
from trimtab.domain.noun import Ns
from trimtab.domain.profile import Operator

EXPORT = re.compile(r"^    flow\.executable\.export public @([\w$.]+)")
TOP_LEVEL = re.compile(r"^  (?:util|flow|hal)\.")
ARITHMETIC = re.compile(r"^ +(?:%\S+(?:, %\S+)* = )?(?:arith|math|linalg|iree_linalg_ext)\.(?!constant|fill)")
RESULT = re.compile(r"^ +} -> tensor<")
PLACE = re.compile(r" loc\((.*)\)$")
NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
LABEL = re.compile(r"^(?P<id>.*?_dispatch_\d+)_(?P<label>.+)$")
TYPES = re.compile(r"[_x]((?:bf|f|i|si|ui)\d+)(?:x(?:bf|f|i|si|ui)\d+)*(?:_dispatch_tensor_store)?$")
EXTENTS = re.compile(r"_[\dDx]+(?:_|$)")

HEAVY = ("Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "Attention")
"""Operators that do a kernel's work wherever they are in it."""


class Launch(NamedTuple):
    """One launch of a kernel, by the kernel's name."""

    kernel: str
    ns: Ns


def members(ir: str, known: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Kernel -> the operators of ``known`` that it computes, in their order. ``ir``: the flow phase, with places."""
    order = {name: i for i, name in enumerate(known)}
    found: dict[str, set[str]] = {}
    inside: set[str] = set()
    for line in ir.splitlines():
        if TOP_LEVEL.match(line):
            inside = set()
        export = EXPORT.match(line)
        if export:
            inside = found.setdefault(export[1], set())
        place = PLACE.search(line) if ARITHMETIC.match(line) or RESULT.match(line) else None
        if place:
            inside.update(name for name in NAME.findall(place[1]) if name in order)
    return {kernel: tuple(sorted(names, key=order.__getitem__)) for kernel, names in found.items()}


def operators(
    launches: Sequence[Launch], parts: Mapping[str, Sequence[str]], kinds: Mapping[str, str]
) -> tuple[Operator, ...]:
    """One row a launch, in execution order. ``parts``: kernel -> its operators; ``kinds``: operator -> ONNX kind."""
    leaders = _leaders(dict.fromkeys(launch.kernel for launch in launches), parts, kinds)
    taken = set(leaders.values())
    rows: list[Operator] = []
    seen: dict[str, int] = {}
    for launch in launches:
        count = seen[launch.kernel] = seen.get(launch.kernel, 0) + 1
        split = LABEL.match(launch.kernel)
        name, label = (split["id"], split["label"]) if split else (launch.kernel, launch.kernel)
        leader = leaders.get(launch.kernel, "")
        folded = [] if count > 1 else [part for part in parts.get(launch.kernel, ()) if part not in taken]
        taken.update(folded)
        rows.append(
            Operator(
                name=name if count == 1 else f"{name}#{count}",
                kind=kinds.get(leader, EXTENTS.split(label)[0]),
                kernel=label,
                precision=_precision(label),
                ns=launch.ns,
                fused=tuple(folded),
            )
        )
    return tuple(rows)


def _leaders(kernels: Iterable[str], parts: Mapping[str, Sequence[str]], kinds: Mapping[str, str]) -> dict[str, str]:
    """Kernel -> the operator that it is named after: its first heavy one, else its last. An operator names one kernel,
    the last that wants it."""
    wanted = {}
    for kernel in kernels:
        names = parts.get(kernel, ())
        if names:
            wanted[next((name for name in names if kinds[name] in HEAVY), names[-1])] = kernel
    return {kernel: name for name, kernel in wanted.items()}


def _precision(label: str) -> str:
    types = TYPES.search(label)
    return named(types[1]) if types else "none"
