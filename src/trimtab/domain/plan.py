"""A Plan: what is compiled, and how it is served.

A plan has two halves. Changing :class:`CompileSpec` costs a compile; :class:`ServePolicy` can be changed while
serving. Online adaptation may touch only what a signed proposal bounds.
"""

from __future__ import annotations

from typing import Literal, get_args

from trimtab.domain.noun import Dims, EntryId, Executed, Noun, Ns

EntryKind = Literal["static", "bucket", "dynamic"]
Precision = Literal["default", "f32", "bf16", "f16", "int8"]
Optimisation = Literal["default", "off", "basic", "extended", "all"]

ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


class Entry(Noun, frozen=True, kw_only=True):
    """One compiled program of a plan and the shapes it covers.

    ``static``: exactly ``hi`` (then ``lo == hi``). ``bucket``: compiled at ``hi``; a request with ``lo <= dims <= hi``
    is padded up to ``hi``. ``dynamic``: compiled for the whole range ``lo..hi``; a batch runs at the largest dims
    among its members. ``batch`` is the compiled range of batch sizes; where both ends are equal a smaller batch is
    padded up to it.
    """

    id: EntryId
    kind: EntryKind
    lo: Dims
    hi: Dims
    batch: tuple[int, int] = (1, 1)


class CompileSpec(Noun, frozen=True, kw_only=True):
    """The half of a plan that costs a compile.

    ``fallback`` names the entry that takes shapes outside every entry's range (the runtime may still run them, at a
    price); without one such requests are rejected. ``precision = "default"`` is whatever the runtime silently chooses.
    ``options`` goes to the backend as is; an option the backend does not know is a compile failure, never ignored.
    """

    backend: str
    entries: tuple[Entry, ...]
    fallback: EntryId | None = None
    precision: Precision = "default"
    optimisation: Optimisation = "default"
    options: dict[str, str] = {}


class BatchPolicy(Noun, frozen=True, kw_only=True):
    """When a queue's head is ready to run, and with how many others. ``kind`` names a function in ``serving/batch``."""

    kind: str = "none"
    max_size: int = 1
    hold_ms: float = 0.0

    @property
    def hold_ns(self) -> Ns:
        """The longest that a policy may hold a request back while a worker is free, ns."""
        return round(self.hold_ms * 1e6)


class ServePolicy(Noun, frozen=True, kw_only=True):
    """The half of a plan that can be changed live.

    ``order`` and ``placement`` name functions in ``serving/order`` and ``serving/place``. ``workers`` x ``threads``:
    each worker is one pinned process; ``threads`` is the runtime's intra-op pool inside it. ``warm`` lists executed
    dims ``(n, *dims)`` that every fresh worker runs once before it takes traffic. ``admit`` bounds the requests in the
    system, waiting or running: one more is rejected on arrival (None: everybody may wait).
    """

    batch: BatchPolicy = BatchPolicy()
    order: str = "fifo"
    placement: str = "shared"
    workers: int = 1
    threads: int = 1
    warm: tuple[Executed, ...] = ()
    admit: int | None = None


class Plan(Noun, frozen=True, kw_only=True):
    """A named pair of halves; ``id`` is a file-safe word."""

    id: str
    compile: CompileSpec
    serve: ServePolicy = ServePolicy()
    note: str = ""


THEIRS = Plan(
    id="server",
    compile=CompileSpec(backend="kserve-v2", entries=()),
    note="what a server that is not ours runs; nothing of it is known here",
)
"""Stands for the plan of a server that a study drives: it names its runs, and nothing can be compiled from it."""


class Bounds(Noun, frozen=True, kw_only=True):
    """How far a plan may be refitted while it serves.

    ``entries``: the most padded entries of a table that has settled; ``spare``: how many more a worker may hold while
    old ones are kept beside new ones. ``low`` .. ``high``: the dims that they may cover, each end a multiple of
    ``step`` (or ``high`` itself). ``compile_s``: seconds of compiling in any hour, over all workers.
    ``memory_bytes``: what added entries may hold, over all workers.
    """

    entries: int
    spare: int
    low: Dims
    high: Dims
    compile_s: float
    memory_bytes: int
    step: int = 1

    @property
    def held(self) -> int:
        """The most padded entries that a worker holds at any time."""
        return self.entries + self.spare


OPTION_KINDS: dict[str, str] = {
    "disable": "optimisation",
    "freezing": "optimisation",
    "fusion": "optimisation",
    "snippets": "optimisation",
    "convolution": "optimisation",
    "data_tiling": "optimisation",
    "stack_limit": "optimisation",
    "quantise": "precision",
    "integer_kernels": "precision",
    "float_precision": "precision",
}
"""How the name of a backend's option begins -> the decision that it is part of."""


def kind_of_option(name: str) -> str:
    """The decision that a backend's option is part of: how far operators are fused (``optimisation``), how a
    ``precision`` is made, or else the ``backend`` itself."""
    return next((kind for start, kind in OPTION_KINDS.items() if name.startswith(start)), "backend")
