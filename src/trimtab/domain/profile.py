"""A CompileProfile: what compiling one Entry gave, or a CompileFailure as a value."""

from __future__ import annotations

from typing import Literal

from trimtab.domain.noun import EntryId, Executed, Noun, Ns
from trimtab.domain.plan import Optimisation, Precision

FailureKind = Literal["unsupported", "unknown-option", "compiler-error", "out-of-memory", "timeout", "crash", "quality"]
CompileEventKind = Literal["compile", "recompile", "eager"]


class CompileOptions(Noun, frozen=True, kw_only=True):
    """What one entry is compiled with; the plan's words, one set per entry."""

    threads: int = 1
    precision: Precision = "default"
    optimisation: Optimisation = "default"
    extra: dict[str, str] = {}


class Operator(Noun, frozen=True, kw_only=True):
    """One operator as it runs after optimisation.

    ``kind`` is the graph operator, ``kernel`` what the runtime chose to execute it (OpenVINO exec type, ORT kernel),
    ``precision`` the element type it really computes in, ``ns`` its time in one profiled run (NEVER if not known),
    ``fused`` the original operators folded into it.
    """

    name: str
    kind: str
    kernel: str
    precision: str
    ns: Ns
    fused: tuple[str, ...] = ()


class Inspection(Noun, frozen=True, kw_only=True):
    """What a backend can say about a compiled entry: operators in execution order, and the shape that was profiled.

    ``workspace_bytes``: the most that the runtime's own allocator held at once in one run of that shape: inputs,
    outputs, what lies between, and weights that it rearranged (NEVER: it does not count).
    """

    executed: Executed
    operators: tuple[Operator, ...]
    operators_before: int
    note: str = ""
    workspace_bytes: int = -1

    @property
    def fusions(self) -> int:
        """How many original operators were folded into another one."""
        return sum(len(op.fused) for op in self.operators)

    def precision_share(self) -> dict[str, float]:
        """Share of profiled time by executed precision; by count of operators where no times are known."""
        timed = any(op.ns > 0 for op in self.operators)
        weights: dict[str, float] = {}
        for op in self.operators:
            weights[op.precision] = weights.get(op.precision, 0.0) + (max(op.ns, 0) if timed else 1.0)
        total = sum(weights.values())
        return {name: weight / total for name, weight in sorted(weights.items())} if total else {}


class ShapeTiming(Noun, frozen=True, kw_only=True):
    """Raw service times of one entry at one executed shape.

    ``first_ns`` is the very first run of the shape in its process (wall); ``wall_ns`` and ``cpu_ns`` are the warm
    repeats that followed, interleaved with other shapes and entries, in the order taken. ``dispatch_ns`` and
    ``completion_ns`` of each repeat: from the driver's order to its start, and from its end to the driver's knowing.
    They keep the worker as busy as the run does. Empty where they were not taken.
    """

    executed: Executed
    first_ns: Ns
    wall_ns: tuple[Ns, ...]
    cpu_ns: tuple[Ns, ...]
    dispatch_ns: tuple[Ns, ...] = ()
    completion_ns: tuple[Ns, ...] = ()


class CompileEvent(Noun, frozen=True, kw_only=True):
    """A runtime compiled by itself while it ran a batch: for code that it had not compiled yet (``compile``), because
    what it had compiled does not fit the inputs (``recompile``), or it gave up and runs uncompiled (``eager``).

    ``reason`` is the runtime's own: which of its assumptions failed. ``ns`` is what it took (NEVER: it does not say).
    """

    kind: CompileEventKind
    reason: str
    ns: Ns


class FirstRun(Noun, frozen=True, kw_only=True):
    """The first run of a shape, wall ns, as traffic brings it to a fresh process. ``dispatch_ns`` and ``completion_ns``
    as in :class:`ShapeTiming`; NEVER where they were not taken."""

    executed: Executed
    ns: Ns
    dispatch_ns: Ns = -1
    completion_ns: Ns = -1


class ServedRun(Noun, frozen=True, kw_only=True):
    """A run of a request of traffic, alone, in order of arrival, at dims that its entry has run before.

    ``ns`` wall; ``idle_ns``: how long the worker had been free before the order; ``dispatch_ns`` and ``completion_ns``
    as in :class:`ShapeTiming`.
    """

    executed: Executed
    ns: Ns
    idle_ns: Ns
    dispatch_ns: Ns
    completion_ns: Ns


class MemoryPoint(Noun, frozen=True, kw_only=True):
    """What the process held after an entry had run ``shapes`` distinct shapes."""

    shapes: int
    resident_bytes: int


class CompileProfile(Noun, frozen=True, kw_only=True):
    """All that is known about one compiled entry before it serves traffic.

    ``first_runs``: what new shapes cost, one after the other as they come in traffic; only dynamic entries meet new
    shapes. ``served``: what came again between them. ``peak_bytes``: the most that the process held while the entry was
    compiled or ran. ``scratch_bytes``: the most that one run took above what was held before it (NEVER: not readable).
    ``growth``: memory over the number of shapes that a dynamic entry has run, those of its ``first_runs``.
    """

    plan: str
    entry: EntryId
    backend: str
    versions: dict[str, str]
    options: CompileOptions
    compile_ns: Ns
    memory_bytes: int
    peak_bytes: int
    inspection: Inspection
    timings: tuple[ShapeTiming, ...]
    first_runs: tuple[FirstRun, ...] = ()
    served: tuple[ServedRun, ...] = ()
    scratch_bytes: int = -1
    growth: tuple[MemoryPoint, ...] = ()


class CompileFailure(Noun, frozen=True, kw_only=True):
    """Compiling, or the first run, did not work. A value: failures are rows of every table."""

    entry: EntryId
    kind: FailureKind
    message: str
    plan: str = ""
