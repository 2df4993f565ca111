"""What a compiler's log proves: compiles that stalled calls, and code that runs without a program.

Theory
------
A compile runs inside the call that met the new shape: the call waits for all of it. So a recompile for a size stalled
one call by what it took; that is arithmetic and needs no interval. Which requests these calls served, and whether they
own the tail, the log does not say.

`cold-shape`: at least one recompile whose newest failed guard is about a size, and how long it took.
`mapping-fallback`: the limit of recompiles was reached, or a compile failed: from then on that code runs uncompiled.
A first compile is the cost of a start, a graph that ends early (a break) is slower everywhere: neither is a class.

Limits: a compile that ran on a thread of its own stalls nobody; torch.compile has none unless it is told so. A failed
compile may have ended the program instead; the log of one that goes on shows further compiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from trimtab.domain.noun import NEVER
from trimtab.domain.spans import Compilation
from trimtab.evidence.classify.classes import Suspect
from trimtab.evidence.timeline.cover import Ints, lasting

_SIZE = re.compile(r"(?:size|stride|rank|shape) mismatch|\.size\(|\.shape\b|\.stride\(|\bstorage_offset\b|\bs\d+\b|"
                   r"\bMod\(|Eq\(|Ne\(")  # fmt: skip
_PROGRAM = re.compile(r"^!?\d+(?:/\d+)+: ")
_NUMBERS = re.compile(r"\bexpected \S+, actual \S+")
LONGEST = 120


class Compiles(msgspec.Struct, frozen=True):
    """A log's compiles, sorted into what they prove."""

    all: tuple[Compilation, ...]
    again: tuple[Compilation, ...]
    for_size: tuple[Compilation, ...]
    stopped: tuple[Compilation, ...]
    failed: tuple[Compilation, ...]
    broken: tuple[Compilation, ...]
    reasons: tuple[tuple[str, int], ...]


def compiles(given: Sequence[Compilation]) -> Compiles:
    """Sort the compiles. A recompile counts under its first reason, the guard of the newest program."""
    again = tuple(one for one in given if one.again)
    reasons = Counter(_reason(one.reasons[0]) for one in again if one.reasons)
    return Compiles(
        all=tuple(given),
        again=again,
        for_size=tuple(one for one in again if one.reasons and not one.limit and _SIZE.search(one.reasons[0])),
        stopped=tuple(one for one in given if one.limit),
        failed=tuple(one for one in given if one.failure),
        broken=tuple(one for one in given if one.breaks),
        reasons=tuple(reasons.most_common()),
    )


def took(given: Sequence[Compilation]) -> Ints:
    """How long each took, ns, of those that say so."""
    return np.array([one.took for one in given if one.took != NEVER], dtype=np.int64)


def suspects(found: Compiles) -> tuple[Suspect, ...]:
    """What the log proves on its own, code without a program first."""
    return tuple(one for one in (_fallback(found), _cold(found)) if one is not None)


def _fallback(found: Compiles) -> Suspect | None:
    evidence = []
    if found.stopped:
        code = list(dict.fromkeys(one.code for one in found.stopped))
        limits = ", ".join(dict.fromkeys(one.limit for one in found.stopped))
        evidence.append(f"{limits} was reached by {_some(code)}: further shapes of it run uncompiled")
    if found.failed:
        kinds = Counter(one.failure for one in found.failed)
        evidence += [
            f"{count} of {len(found.all)} compiles gave no program: {why[:LONGEST]}" for why, count in kinds.items()
        ]
    if not evidence:
        return None
    return Suspect("mapping-fallback", None, tuple(evidence[:4]), certain=True)


def _cold(found: Compiles) -> Suspect | None:
    if not found.for_size:
        return None
    stalls = took(found.for_size)
    seen = f"{len(found.for_size)} of {len(found.all)} compiles are recompiles for a size"
    if not stalls.size:
        return Suspect("cold-shape", None, (seen,), missing=("how long each compile took (TORCH_TRACE=<folder>)",))
    each = f"each stalled the call that met it: {lasting(stalls.min())} to {lasting(stalls.max())}"
    return Suspect("cold-shape", None, (seen, f"{each}, {lasting(stalls.sum())} together"), certain=True)


def first_compiles(found: Compiles) -> str:
    """A sentence on what starting cost; empty where no first compile says how long it took."""
    first = took([one for one in found.all if not one.again])
    if not first.size:
        return ""
    known = f"first compiles, {first.size} of {len(found.all)}, took {lasting(first.sum())}"
    return f"{known}; the longest {lasting(first.max())}"


def breaks(found: Compiles) -> str:
    """A sentence on graphs that end early; empty where none does."""
    return f"{len(found.broken)} of {len(found.all)} compiles end early, in a graph break" if found.broken else ""


def _reason(text: str) -> str:
    """A guard without its program and its sizes, so that equal ones are counted together."""
    return _NUMBERS.sub("expected another", _PROGRAM.sub("", text)).strip()


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
