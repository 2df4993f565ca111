"""The Protocols between rooms. A room of the shell implements one; the core and the drivers only see these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, Command, Dispatch, Event, PlanChange
from trimtab.domain.noun import EntryId, Executed, Noun, Ns
from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileEvent, CompileFailure, CompileOptions, Inspection
from trimtab.domain.study import ModelSpec

Arrays = Mapping[str, NDArray[Any]]
"""Inputs or outputs of a network, by name."""


class ModelFile(Noun, frozen=True, kw_only=True):
    """A network ready to compile: the resolved file, its digest, and what the study says of its inputs.

    ``calibration`` is the resolved file of ``spec.calibration.bank`` (empty: the study names none). ``torch`` is
    ``spec.torch`` with its file in full; where it is the only network, ``path`` is empty and ``sha256`` is its digest.
    ``kept`` is the folder where networks that are made from this one are kept for later workers (empty: nowhere).
    """

    path: str
    sha256: str
    spec: ModelSpec
    dim_names: tuple[str, ...]
    calibration: str = ""
    calibration_sha256: str = ""
    torch: str = ""
    torch_sha256: str = ""
    kept: str = ""


class Ability(Noun, frozen=True, kw_only=True):
    """One thing that a runtime can (``+``) or cannot (``-``) do here, and why."""

    name: str
    ok: bool
    why: str


class BackendInfo(Noun, frozen=True, kw_only=True):
    """``trimtab backends``: one runtime, whether it is usable here, and what it can do.

    ``entry_s``: about how long it takes to compile one entry of a usual network, where a time budget has to reckon with
    it, s.
    """

    name: str
    available: bool
    why: str
    versions: dict[str, str]
    abilities: tuple[Ability, ...]
    entry_s: float = 0.0


class CompiledEntry(Protocol):
    """A live compiled program. It exists only inside one worker process."""

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """Run once; arrays come padded to executed dims. Raises whatever the runtime raises."""
        ...

    def inspect(self, inputs: Arrays) -> Inspection:
        """Operators, kernels, executed precision and fusions, profiled on ``inputs``. May recompile; never timed."""
        ...

    def events(self) -> tuple[CompileEvent, ...]:
        """What the runtime compiled by itself in runs since the last call. Inspecting and compiling do not count.

        A runtime that compiles nothing while it runs, or does not say so, inherits this.
        """
        return ()

    def close(self) -> None:
        """Free the runtime's memory."""
        ...


class Backend(Protocol):
    """A runtime: it only compiles, runs and inspects. No queue, no clock, no measurement."""

    name: str

    def info(self) -> BackendInfo: ...

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        """Compile one entry. Expected refusals are values; only a bug raises."""
        ...


BackendFactory = Callable[[], Backend]
"""Picklable (a module-level function or a partial of one): the spawned worker calls it."""


class Payloads(Protocol):
    """The inputs of requests. Picklable as a recipe; arrays are loaded inside the worker."""

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, NDArray[Any]]:
        """Inputs of one request at its true dims, batch axis of length 1."""
        ...


class Predictor(Protocol):
    """What is known of service times before a batch runs. 0 = no promise."""

    def warm(self, entry: EntryId, executed: Executed) -> Ns:
        """Promised warm service time, ns."""
        ...

    def expected(self, entry: EntryId, executed: Executed, first_seen: bool) -> Ns:
        """Expected service time now, the excess of a first run included, ns."""
        ...


class Service(Protocol):
    """Where simulated time comes from: what a worker would report for one batch."""

    def draw(self, batch: Dispatch) -> tuple[Ns, BatchReport]:
        """Wall time of the batch, and its report. Keyed by stable ids, never by call order."""
        ...


class Controller(Protocol):
    """Who may change the plan while it serves. Pure: time is on the events."""

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        """Take one event and what the machine made of it (who ran where, who ended: no event says so alone).

        The changes happen at once, in order, before the next event; they come back as events of their own.
        """
        ...


class Progress(Protocol):
    """Where long work says how far it is. ``total`` None = unknown."""

    def step(self, stage: str, done: float, total: float | None, note: str = "") -> None: ...
