"""PyTorch on the CPU: compiled by Inductor, or eager.

``mode = "compile"`` (the default) is torch.compile with Inductor, which writes C++ and needs a compiler; ``"eager"``
runs the module as it is. Torch compiles when a program first runs, so compiling an entry runs it: at its largest shape
and, where axes are open, in the middle of its range and with its smallest batch, so that axes which torch finds to be
dynamic only at a second size are so before traffic comes. What it still compiles later (sizes of 1 are a case of their
own to it) are events of the batch in which it happens.

``dynamic``: ``"auto"`` lets torch find out which axes change; ``"always"`` declares the entry's ranges beforehand, so
that one program serves the whole range or compiling fails; ``"never"`` compiles each shape for itself. Each entry has a
cache of its own, and ``recompile_limit`` (torch's own is 8) bounds what it holds; what a limit or a failure leaves to
run uncompiled is an event too.

How far operators are fused is a level: ``off`` (no two loops are joined; a chain of element-wise operators on one value
is a single loop from the start), ``basic`` (Inductor's default), ``all`` (weights are constants, so they are packed in
advance and convolutions and products take the next operator in). The options ``fusion`` and ``freezing`` say the same
one by one, and ``fusion = "aggressive"`` joins loops that have no data in common too. Half precision is autocast:
torch's own list says which operators run in it; outputs come back as float32.

Compiled code goes into a folder that lives as long as the worker, so that no worker finds another one's and compile
times are those of a fresh machine; ``cache = "shared"`` uses torch's own folder, and compile times are what that leaves
to do. A worker that is killed leaves its folder behind. Importing torch takes seconds and 200 MB, so it is left to
whoever needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.backends import _torch_network
from trimtab.backends._options import brief, failure, refuse_unknown, refuse_value
from trimtab.backends._shapes import check_entry, check_network, check_outputs, input_ranges
from trimtab.backends._torch_entry import Eager, Form, TorchEntry, input_names
from trimtab.backends._torch_inductor import Inductor, Settings, compiler_path, compiler_version, missing
from trimtab.backends._torch_network import HALF, Library, Network, short_type
from trimtab.domain.noun import EntryId, Executed
from trimtab.domain.plan import Entry, Optimisation, Precision
from trimtab.domain.ports import Ability, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileEvent, CompileFailure, CompileOptions, FailureKind
from trimtab.errors import ModelError

PACKAGES = ("torch",)
EXTRA = "torch"

CHOICES: dict[str, tuple[str, ...]] = {
    "mode": ("compile", "eager"),
    "dynamic": ("auto", "always", "never"),
    "fusion": ("on", "off", "aggressive"),
    "freezing": ("off", "on"),
    "cache": ("fresh", "shared"),
}
"""Extra options and their values, the default first."""

ENTRY_S = 25.0
"""Compiling a text embedder of six layers took 16 to 30 s, where nothing is kept from before."""

LIMIT = "recompile_limit"
"""The option that is a whole number."""

LEVELS: dict[Optimisation, dict[str, str]] = {
    "default": {},
    "off": {"fusion": "off"},
    "basic": {},
    "all": {"freezing": "on"},
}
"""What each level says in options. An option that the plan gives itself wins."""


def make() -> TorchBackend:
    return TorchBackend()


class TorchBackend:
    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._inductor, self._library = Inductor(), Library()

    def info(self) -> BackendInfo:
        compiler, lacking = compiler_path(), missing()
        compiled = lacking or f"Inductor, with {compiler}"
        cpu = self._torch.backends.cpu.get_cpu_capability()
        halves = [self._half("bf16", cpu), self._half("f16", cpu)]
        return BackendInfo(
            name=self.name,
            available=True,
            why=f"CPU with {cpu}",
            entry_s=ENTRY_S,
            versions={"torch": str(self._torch.__version__)} | compiler_version(compiler),
            abilities=(
                Ability(name="mode compile", ok=not lacking, why=compiled),
                Ability(name="mode eager", ok=True, why="the module as it is"),
                Ability(name="static shapes", ok=True, why="compiled for its one shape"),
                Ability(name="padded buckets", ok=True, why="as static shapes"),
                Ability(name="dynamic shapes", ok=True, why="found out at a second size, or declared: dynamic"),
                Ability(name="precision default", ok=True, why="the network's own element types"),
                Ability(name="precision f32", ok=True, why="of a network whose weights are float32"),
                *halves,
                Ability(name="precision int8", ok=False, why="needs a network that is already quantised"),
                Ability(name="graph-optimisation levels", ok=not lacking, why=lacking or "off, basic, all"),
                Ability(name="threads", ok=True, why="its intra-op pool, set for the process"),
                Ability(
                    name="compile beside serving", ok=False, why="its compiler and its threads are the process's own"
                ),
                Ability(name="kernel names", ok=True, why="its profiler, and the code that Inductor wrote"),
                Ability(name="compile events", ok=True, why="recompiles by the guard that failed, the fall to eager"),
            ),
        )

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        check_entry(model, entry)
        refusal = self._refuse(entry.id, options)
        if refusal:
            return refusal
        model = _torch_network.source(model)
        network = self._library.network(model)
        if network.inputs is not None:
            check_network(model, entry, network.inputs)
        if network.outputs is not None:
            check_outputs(model, network.outputs)
        refusal = _refuse_types(entry.id, options.precision, network)
        if refusal:
            return refusal
        self._torch.set_num_threads(options.threads)
        program = TorchEntry(self._torch, network, model, entry, HALF.get(options.precision, ""))
        try:
            program.start(self._form(network, model, entry, options), rehearsal(entry, options.extra))
        except ModelError:
            raise
        except MemoryError as error:
            return failure(entry.id, "out-of-memory", brief(error))
        except Exception as error:  # torch's own, the C++ compiler's and the network's share no base class
            return failure(entry.id, _kind(error), f"torch cannot run the network: {brief(error)}")
        why = _uncompiled(program.events()) if options.extra.get("mode") != "eager" else ""
        if not why:
            return program
        program.close()
        return failure(entry.id, "compiler-error", f"torch would run it uncompiled: {why}")

    def _refuse(self, entry: EntryId, options: CompileOptions) -> CompileFailure | None:
        extra = options.extra
        words = {name: value for name, value in extra.items() if name != LIMIT}
        refusal = refuse_unknown(entry, extra, {**CHOICES, LIMIT: ()}) or refuse_value(entry, words, CHOICES)
        if refusal:
            return refusal
        limit = extra.get(LIMIT, "1")
        if not limit.isdecimal() or int(limit) < 1:
            return failure(entry, "unknown-option", f"option {LIMIT} = {limit!r}: give a whole number from 1")
        why = _eager_refuses(options) if extra.get("mode") == "eager" else _inductor_refuses(options)
        why = why or self._precision_refuses(options.precision)
        return failure(entry, "unsupported", why) if why else None

    def _precision_refuses(self, precision: Precision) -> str:
        if precision == "int8":
            return "int8 needs a network that is already quantised"
        return "" if self._computes(precision) else f"this CPU does not compute in {precision}"

    def _half(self, precision: Precision, cpu: str) -> Ability:
        able = self._computes(precision)
        why = f"autocast, with oneDNN's kernels for {cpu}" if able else f"oneDNN has no such kernels for this {cpu} CPU"
        return Ability(name=f"precision {precision}", ok=able, why=why)

    def _computes(self, precision: Precision) -> bool:
        kernels = self._torch.ops.mkldnn
        if precision == "bf16":
            return bool(kernels._is_mkldnn_bf16_supported())
        return precision != "f16" or bool(kernels._is_mkldnn_fp16_supported())

    def _form(self, network: Network, model: ModelFile, entry: Entry, options: CompileOptions) -> Form:
        module = network.module

        def call(*tensors: Any) -> Any:
            return module(*tensors)

        choice = {name: values[0] for name, values in CHOICES.items()} | LEVELS[options.optimisation] | options.extra
        if choice["mode"] == "eager":
            return Eager(call, network.operators)
        names = input_names(network, model)
        ranges = input_ranges(model, entry)
        settings = Settings(
            dynamic=choice["dynamic"],
            fusion=choice["fusion"],
            freezing=choice["freezing"] == "on",
            shared=choice["cache"] == "shared",
            limit=int(choice[LIMIT]) if LIMIT in choice else None,
            threads=options.threads,
        )
        return self._inductor.compiled(call, names, [ranges[name] for name in names], settings)


def rehearsal(entry: Entry, extra: Mapping[str, str]) -> tuple[Executed, ...]:
    """The shapes that compiling runs: the largest; where axes are open, the middle of all of them, so that torch sees
    which change, and there the smallest batch. One alone where each shape is compiled for itself, or none is."""
    spans = [entry.batch, *zip(entry.lo if entry.kind == "dynamic" else entry.hi, entry.hi, strict=True)]
    largest = tuple(hi for _, hi in spans)
    if extra.get("dynamic") == "never" or extra.get("mode") == "eager":
        return (largest,)
    middle = tuple(max((lo + hi) // 2, min(hi, 2)) for lo, hi in spans)
    return tuple(dict.fromkeys((largest, middle, (entry.batch[0], *middle[1:]))))


def _eager_refuses(options: CompileOptions) -> str:
    moot = next((name for name in options.extra if name != "mode"), "")
    if moot:
        return f"option {moot} means nothing in eager mode: nothing is compiled"
    return "" if options.optimisation == "default" else "eager mode has no graph-optimisation levels"


def _inductor_refuses(options: CompileOptions) -> str:
    if options.optimisation not in LEVELS:
        return f"Inductor has the levels off, basic and all; {options.optimisation!r} is none of them"
    return missing()


def _refuse_types(entry: EntryId, precision: Precision, network: Network) -> CompileFailure | None:
    """f32 is not made out of a network whose weights are of another type."""
    floats = {short_type(weight.dtype) for weight in network.module.parameters() if weight.is_floating_point()}
    if precision != "f32" or floats <= {"f32"}:
        return None
    return failure(entry, "unsupported", f"the network's weights are {' and '.join(sorted(floats))}, not f32")


def _uncompiled(events: Sequence[CompileEvent]) -> str:
    """Why what was to be compiled is not, by the events of compiling; empty where it is."""
    gave_up = [event.reason for event in events if event.kind == "eager"]
    if gave_up:
        return gave_up[0]
    return "" if events else "it found nothing to compile"


def _kind(error: Exception) -> FailureKind:
    return "out-of-memory" if "allocate memory" in str(error) else "compiler-error"
