"""From what the profiler saw, and what Inductor says that it fused, to the operators of an inspection.

Inductor plans *pieces*: calls of library routines, and loops, each made of one or more operators of the network. It
tells them in order of execution before it writes code, and while it is inspected each loop is made a function of its
own, so that the profiler times every piece. (In service Inductor puts neighbouring loops into one function, which
saves calls and changes no loop.) Pieces and calls are matched in order, separately for routines and loops; where their
numbers differ nothing is claimed to be fused, and the note says so.

An operator of the network may end up in several pieces; it counts once, for the first loop that holds it, and the one
that a routine is called for counts for the routine. Where Inductor puts a routine of its own in the place of several
operators, it names the last of them only, so that what is fused is a lower bound. Loops over half-precision data
compute in float32, so that is their precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from trimtab.backends._torch_network import HALF, short_type
from trimtab.backends._torch_profile import WRITTEN, Called
from trimtab.domain.profile import Operator

_NUMBERED = re.compile(rf"^(graph_\d+_)?(?P<kernel>{WRITTEN}_(?:(?P<kind>\w+?)_)?\d+)$")
_UNNAMED = "loop"


class Piece(NamedTuple):
    """What Inductor planned as one: a loop that it writes, or one call of a library routine. ``sources``: names of the
    network's operators that it was made from, the last one last; ``dtype`` is that of its result."""

    written: bool
    sources: tuple[str, ...]
    dtype: str


class Found(NamedTuple):
    """The part of an inspection that a form of a program knows."""

    operators: tuple[Operator, ...]
    before: int
    note: str


def pieces(nodes: Iterable[Any]) -> list[Piece]:
    """Inductor's plan in our words; entries that run nothing are left out."""
    from torch._inductor import ir
    from torch._inductor.scheduler import NopKernelSchedulerNode

    planned = []
    for node in nodes:
        if isinstance(node, NopKernelSchedulerNode) or isinstance(node.node, ir.MultiOutput):
            continue
        parts = [part.node for part in node.get_nodes() if part.node is not None]
        planned.append(Piece(not node.is_extern(), _sources(parts), _dtype(parts)))
    return planned


def _sources(parts: Sequence[Any]) -> tuple[str, ...]:
    origins = {origin for part in parts for origin in part.origins if origin.op == "call_function"}
    order = {node: place for origin in origins for place, node in enumerate(origin.graph.nodes)} if origins else {}
    names = []
    for origin in sorted(origins, key=lambda origin: order[origin]):
        stack = origin.meta.get("source_fn_stack")  # none: Inductor's own addition
        names += [str(stack[-1][0])] if stack else []
    return tuple(dict.fromkeys(names))


def _dtype(parts: Sequence[Any]) -> str:
    kinds = [short_type(part.get_dtype()) for part in parts if part.maybe_get_dtype() is not None]
    return kinds[-1] if kinds else "none"


def eager(calls: Sequence[Called], before: int | None) -> Found:
    """Every call is an operator of its own, and nothing is folded."""
    note = "nothing is fused in eager mode; times are those of a profiled run"
    return Found(
        _numbered(_routine(call, call.name.rpartition("::")[2], ()) for call in calls), before or len(calls), note
    )


def compiled(calls: Sequence[Called], planned: Sequence[Piece], before: int) -> Found:
    """Calls joined with the pieces that they are."""
    routines, loops = ([piece for piece in planned if piece.written is written] for written in (False, True))
    note = "each loop is timed as a function of its own"
    if (len(loops), len(routines)) != (sum(c.written for c in calls), sum(not c.written for c in calls)):
        note = f"what was fused is not known: {len(planned)} pieces were planned and {len(calls)} calls seen"
        return Found(_numbered(_unplanned(call) for call in calls), before, note)
    called_for = {name for piece in routines for name in piece.sources[-1:]}
    looped = {name for piece in loops for name in piece.sources} - called_for
    order = {True: iter(_claimed(loops, called_for)), False: iter(_claimed(routines, looped))}
    return Found(_numbered(_planned(call, *next(order[call.written])) for call in calls), before, note)


def _claimed(planned: Sequence[Piece], taken: set[str]) -> list[tuple[Piece, tuple[str, ...]]]:
    """Each piece with those of its sources that no earlier one has."""
    claimed = []
    for piece in planned:
        own = tuple(name for name in piece.sources if name not in taken)
        taken.update(own)
        claimed.append((piece, own))
    return claimed


def _planned(call: Called, piece: Piece, own: tuple[str, ...]) -> Operator:
    if not call.written:
        return _routine(call, own[-1] if own else call.name, own[:-1])
    precision = "f32" if piece.dtype in HALF else piece.dtype
    return _loop(call, own[-1] if own else "", own[:-1], precision)


def _unplanned(call: Called) -> Operator:
    return _loop(call, "", (), "unknown") if call.written else _routine(call, call.name.rpartition("::")[2], ())


def _routine(call: Called, name: str, fused: tuple[str, ...]) -> Operator:
    kind = call.name.rpartition("::")[2]
    precision = call.types[0] if call.types else "none"
    return Operator(name=name, kind=kind, kernel=call.kernel, precision=precision, ns=call.ns, fused=fused)


def _loop(call: Called, name: str, fused: tuple[str, ...], precision: str) -> Operator:
    match = _NUMBERED.match(call.name)
    kernel, kind = (match["kernel"], match["kind"] or _UNNAMED) if match else (call.name, _UNNAMED)
    return Operator(name=name or kernel, kind=kind, kernel=kernel, precision=precision, ns=call.ns, fused=fused)


def _numbered(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The same, with names that differ."""
    import msgspec

    seen: dict[str, int] = {}
    unique = []
    for operator in operators:
        count = seen[operator.name] = seen.get(operator.name, 0) + 1
        name = operator.name if count == 1 else f"{operator.name}_{count}"
        unique.append(msgspec.structs.replace(operator, name=name))
    return tuple(unique)
