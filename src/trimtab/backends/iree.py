"""IREE on the CPU: an ONNX network compiled ahead of time into kernels of its own (*dispatches*).

It computes in the element types that the network was exported with. A static entry, and every axis that the study or
the entry fixes, is written into the network's inputs before it is compiled. An open axis has no bounds: IREE's ONNX
importer has no such notion, and the program may still run a shape outside the entry's range. Nothing is compiled while
it runs: the kernels of an open axis are made for any size.

Its levels are those of the compiler, whose own default is the lowest, O0. From O2 on they include aggressive fusion;
``fusion`` says by itself how far operators share a kernel. IREE has no switch that keeps all operators apart, so that
``less`` is the least: it leaves out what can be left out. ``convolution = "im2col"`` makes convolutions matrix products
of patches that are written out first: more launches and far more memory, for kernels that IREE compiles better.
``data_tiling`` packs what matrix products multiply into tiles, which costs memory and compile time. What a fused kernel
keeps between its operators is on the stack; one that needs more than ``stack_limit`` is a compile failure.

One thread is the thread that calls (device *local-sync*); more are a pool (*local-task*), which is not pinned and which
a process makes once, so that all its entries have the same number of threads.
"""

from __future__ import annotations

import mmap
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.backends import _iree_profile, _onnx
from trimtab.backends._iree_compiler import FUNCTION, CompilerError, compiled
from trimtab.backends._iree_dispatches import members, operators
from trimtab.backends._options import brief, failure, refuse
from trimtab.backends._shapes import (
    check_entry,
    check_file,
    executed_of,
    input_ranges,
    refuse_fixed,
)
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Ability, Arrays, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Inspection

PACKAGES = ("iree.compiler", "iree.runtime", "onnx")
EXTRA = "iree"

LEVELS = {"default": "O0", "off": "O0", "basic": "O1", "extended": "O2", "all": "O3"}

MEANS: dict[str, dict[str, tuple[str, ...]]] = {
    "fusion": {
        "default": (),
        "aggressive": ("--iree-dispatch-creation-enable-aggressive-fusion=true",),
        "less": (
            "--iree-dispatch-creation-enable-aggressive-fusion=false",
            "--iree-dispatch-creation-fuse-multi-use=false",
            "--iree-dispatch-creation-element-wise-fuse-multi-reduction=false",
        ),
    },
    "convolution": {
        "direct": (),
        "im2col": ("--iree-global-opt-use-im2col-for-convs=true",),
    },
    "data_tiling": {
        "default": (),
        "off": ("--iree-opt-data-tiling=false",),
        "on": ("--iree-opt-data-tiling=true",),
    },
    "stack_limit": {
        "32k": ("--iree-llvmcpu-stack-allocation-limit=32768",),
        "1m": ("--iree-llvmcpu-stack-allocation-limit=1048576",),
    },
    "target_cpu": {
        "host": ("--iree-llvmcpu-target-cpu=host",),
        "generic": ("--iree-llvmcpu-target-cpu=generic",),
    },
}
"""Extra options, their values (the default first), and what each one is in the compiler's words."""

CHOICES = {name: tuple(values) for name, values in MEANS.items()}

TARGET = (
    "--iree-input-type=onnx",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
)
PLACES = (
    "--compile-to=flow",
    "--mlir-print-debuginfo",
    "--mlir-elide-elementsattrs-if-larger=16",
    "--mlir-elide-resource-strings-if-larger=16",
)
"""Instead of a program: its kernels as IR, with the place that each operation came from and without weights."""

ENTRY_S = 8.0
"""Compiling the text recogniser of the demo took 7 to 10 s, a text embedder 3 to 4 s."""

ALONE, POOLED, POOL_SIZE = "local-sync", "local-task", "--task_topology_group_count={}"

_pools: list[int] = []
"""The threads of this process's pool, once it has one: IREE makes it with its first local-task device."""


def make() -> IreeBackend:
    return IreeBackend()


class IreeBackend:
    name = "iree"

    def __init__(self) -> None:
        import iree.runtime

        self._iree = iree.runtime

    def info(self) -> BackendInfo:
        own = "computes in the network's own element types"
        return BackendInfo(
            name=self.name,
            available=True,
            why="llvm-cpu kernels on its local-sync and local-task devices",
            entry_s=ENTRY_S,
            versions={name: version(name) for name in ("iree-base-compiler", "iree-base-runtime", "onnx")},
            abilities=(
                Ability(name="static shapes", ok=True, why="input shapes are written into the network"),
                Ability(name="padded buckets", ok=True, why="as static shapes"),
                Ability(
                    name="dynamic shapes", ok=True, why="open axes, without bounds; no shape is compiled for later"
                ),
                Ability(name="precision default", ok=True, why=own),
                Ability(name="precision f32", ok=True, why=own),
                Ability(name="precision bf16", ok=False, why="the CPU target does not lower an f32 network"),
                Ability(name="precision f16", ok=False, why="the CPU target does not lower an f32 network"),
                Ability(name="precision int8", ok=False, why="the CPU target does not quantise"),
                Ability(
                    name="graph-optimisation levels", ok=True, why="off = O0, its default: it fuses; O1, O2, all = O3"
                ),
                Ability(name="threads", ok=True, why="one is the caller's; more are a pool, not pinned"),
                Ability(name="compile beside serving", ok=True, why="its compiler is a process of its own"),
                Ability(name="kernel names", ok=True, why="each launch of each kernel, from its device profile"),
            ),
        )

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        check_entry(model, entry)
        check_file(model)
        refusal = refuse(entry.id, options.extra, CHOICES, {}) or _refuse(entry, options)
        if refusal:
            return refusal
        network = _onnx.checked(model, entry)
        names = tuple(_onnx.inputs_of(network)), _onnx.outputs_of(network)
        try:
            program = compiled(model.path, input_ranges(model, entry), arguments(options), options.threads)
            return IreeEntry(self._iree, program, names, model, entry, options)
        except CompilerError as error:
            return failure(entry.id, error.kind, str(error))
        except MemoryError as error:
            return failure(entry.id, "out-of-memory", brief(error))
        except (RuntimeError, ValueError) as error:
            return failure(entry.id, "compiler-error", f"IREE's runtime refuses the program: {brief(error)}")


class IreeEntry(CompiledEntry):
    """One loaded program. ``names``: the network's inputs and outputs, in its own order."""

    def __init__(
        self,
        iree: Any,
        program: bytes,
        names: tuple[tuple[str, ...], tuple[str, ...]],
        model: ModelFile,
        entry: Entry,
        options: CompileOptions,
    ) -> None:
        self._iree, self._model, self._entry, self._options = iree, model, entry, options
        self._inputs, self._outputs = names
        self._program: mmap.mmap | None = mmap.mmap(-1, len(program))  # aligned, so that IREE uses it as it is
        self._program.write(program)
        self._function: Any = self._load()

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        if self._function is None:
            raise RuntimeError("the entry is closed")
        refuse_fixed(self._model, self._entry, executed_of(self._model, inputs))
        try:
            results = self._function(*self._given(inputs))
        except Exception as error:  # one built-in type for each of IREE's status codes
            raise _fault(error) from error
        by_name = dict(zip(self._outputs, results if isinstance(results, tuple) else (results,), strict=True))
        return {spec.name: np.array(by_name[spec.name].to_host()) for spec in self._model.spec.outputs}

    def inspect(self, inputs: Arrays) -> Inspection:
        if self._program is None:
            raise RuntimeError("the entry is closed")
        executed = executed_of(self._model, inputs)
        network = _onnx.read(self._model.path)
        kinds = {node.name: node.op_type for node in network.graph.node}
        ranges = input_ranges(self._model, self._entry)
        words = (*arguments(self._options), *PLACES)
        ir = compiled(self._model.path, ranges, words, self._options.threads).decode()
        found = _iree_profile.profile(self._program[:], self._given(inputs), _device_words(self._options.threads))
        return Inspection(
            executed=executed,
            operators=operators(found.launches, members(ir, tuple(kinds)), kinds),
            operators_before=_onnx.operators_of(network),
            note=f"one row a launch; times are medians of {_iree_profile.RUNS - 1} warm runs, by IREE's profiler",
            workspace_bytes=found.held,
        )

    def close(self) -> None:
        self._function = self._program = None

    def _given(self, inputs: Arrays) -> list[NDArray[Any]]:
        """The arrays in the network's own order."""
        return [np.ascontiguousarray(inputs[name]) for name in self._inputs]

    def _load(self) -> Any:
        iree, instance = self._iree, self._iree.VmInstance()
        device = _device(iree, self._options.threads)
        module = iree.VmModule.wrap_buffer(instance, self._program)
        context = iree.VmContext(instance, [iree.create_hal_module(instance, device), module])
        return iree.FunctionInvoker(context, device, module.lookup_function(FUNCTION))


def arguments(options: CompileOptions) -> tuple[str, ...]:
    """What the compiler is told about a plan's options."""
    chosen = [MEANS[name][options.extra.get(name, values[0])] for name, values in CHOICES.items()]
    return (*TARGET, f"--iree-opt-level={LEVELS[options.optimisation]}", *(word for words in chosen for word in words))


def _device(iree: Any, threads: int) -> Any:
    if threads == 1:
        return iree.get_device(ALONE, cache=False)
    if not _pools:
        iree.flags.parse_flags(POOL_SIZE.format(threads))
        _pools.append(threads)
    return iree.get_device(POOLED, cache=False)


def _device_words(threads: int) -> tuple[str, ...]:
    """The same device, as IREE's tools take it."""
    if threads == 1:
        return (f"--device={ALONE}",)
    return (f"--device={POOLED}", POOL_SIZE.format(threads))


def _fault(error: Exception) -> Exception:
    """What IREE says of a run, without the names of what it was calling."""
    said = str(error).partition("; while ")[0]
    return MemoryError(brief(RuntimeError(said))) if "RESOURCE_EXHAUSTED" in said else RuntimeError(said)


def _refuse(entry: Entry, options: CompileOptions) -> CompileFailure | None:
    if options.precision not in ("default", "f32"):
        why = f"IREE on the CPU computes in the network's own types; {options.precision!r} is not a choice"
        return failure(entry.id, "unsupported", why)
    if options.threads > 1 and _pools not in ([], [options.threads]):
        why = f"IREE has one pool a process, and this one has {_pools[0]} threads, not {options.threads}"
        return failure(entry.id, "unsupported", why)
    return None
