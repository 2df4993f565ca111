"""ONNX Runtime on the CPU execution provider.

It computes in the element types of the network: as it was exported or, for int8, as it was quantised here (option
``quantise``). ``integer_kernels = "off"`` computes a network with quantise and dequantise operators in floats.
The level of optimisation, and ``disable`` with a list of optimisers, say how far operators are fused.

A static entry, and every axis that the study or the entry fixes, is written into the network's inputs before the
session is made: the optimiser knows those shapes, and others are refused. An open axis has no bounds: ONNX Runtime has
no such notion, and may still run a shape outside the entry's range.

Threads that wait for work do not spin (``spinning = "on"`` restores the runtime's default): a worker that has nothing
to do must leave its cores alone, or its own measurements and its neighbours' are wrong. With one thread there is no
pool and no difference.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.backends import _onnx, _quantise
from trimtab.backends._optimisers import OPTIMISERS, absent
from trimtab.backends._options import brief, failure, refuse, words_of
from trimtab.backends._precision import precision
from trimtab.backends._quantise import NetworkFile, QuantiseError, Quantiser, refuse_int8, refuse_recipe
from trimtab.backends._shapes import (
    check_entry,
    check_file,
    executed_of,
    input_ranges,
    refuse_fixed,
)
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Ability, Arrays, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, Inspection, Operator

PACKAGES = ("onnxruntime", "onnx")
EXTRA = "onnx"

CHOICES: dict[str, tuple[str, ...]] = {
    "spinning": ("off", "on"),
    "arena": ("on", "off"),
    "memory_pattern": ("on", "off"),
    "integer_kernels": ("on", "off"),
    **_quantise.CHOICES,
}
"""Extra options and their values, the default first."""

LISTS: dict[str, tuple[str, ...]] = {"disable": OPTIMISERS, **_quantise.LISTS}
"""Extra options that list words: optimisers that are left out, operators that are quantised."""

LEVELS = {
    "default": "ORT_ENABLE_ALL",
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
PROVIDER = "CPUExecutionProvider"
ERRORS_ONLY = 3
PROFILED_RUNS = 5


def make() -> OnnxRuntimeBackend:
    return OnnxRuntimeBackend()


class OnnxRuntimeBackend:
    name = "onnxruntime"

    def __init__(self) -> None:
        import onnxruntime

        self._ort = onnxruntime
        self._quantiser = Quantiser()

    def info(self) -> BackendInfo:
        import onnx

        usable = PROVIDER in self._ort.get_available_providers()
        own = "computes in the network's own element types"
        lowers = "the CPU provider does not lower an f32 network"
        made = "made when the entry is compiled"
        return BackendInfo(
            name=self.name,
            available=usable,
            why=f"{PROVIDER} is {'there' if usable else 'missing from this build'}",
            versions={"onnxruntime": self._ort.__version__, "onnx": onnx.__version__},
            abilities=(
                Ability(name="static shapes", ok=True, why="input shapes are written into the network"),
                Ability(name="padded buckets", ok=True, why="as static shapes"),
                Ability(name="dynamic shapes", ok=True, why="open axes, without bounds"),
                Ability(name="precision default", ok=True, why=own),
                Ability(name="precision f32", ok=True, why=own),
                Ability(name="precision bf16", ok=False, why=lowers),
                Ability(name="precision f16", ok=False, why=f"{lowers}; one in f16 computes in f32, between casts"),
                Ability(name="precision int8", ok=True, why="a quantised network, or one that is quantised here"),
                Ability(name="quantise dynamic", ok=True, why=f"{made}; activations are scaled while they run"),
                Ability(name="quantise static", ok=True, why=f"{made} from calibration inputs"),
                Ability(name="graph-optimisation levels", ok=True, why="off, basic, extended, all (its default)"),
                Ability(name="single fusions", ok=True, why="each of its optimisers can be left out: disable"),
                Ability(name="threads", ok=True, why="intra-op pool, operators one after another, not pinned"),
                Ability(name="compile beside serving", ok=True, why="it keeps Python's lock meanwhile: batches wait"),
                Ability(name="kernel names", ok=True, why="provider and operator, from its profiler"),
            ),
        )

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        check_entry(model, entry)
        check_file(model)
        refusal = self._refuse(entry, options)
        if refusal:
            return refusal
        network = _onnx.checked(model, entry)
        refusal = _refuse_precision(entry, options, network)
        if refusal:
            return refusal
        try:
            file = self._quantiser.file_for(model, options)
            network = _onnx.read(file.path) if file.made else network  # one network in memory, not two
            return OnnxRuntimeEntry(self._ort, network, file, model, entry, options)
        except QuantiseError as error:
            return failure(entry.id, error.kind, str(error))
        except MemoryError as error:
            return failure(entry.id, "out-of-memory", brief(error))
        except Exception as error:  # its exceptions share no base class; all mean: no session
            return failure(entry.id, "compiler-error", f"ONNX Runtime refuses the network: {brief(error)}")

    def _refuse(self, entry: Entry, options: CompileOptions) -> CompileFailure | None:
        refusal = refuse(entry.id, options.extra, CHOICES, LISTS) or refuse_recipe(entry.id, options)
        if refusal:
            return refusal
        gone = absent(_left_out(options), Path(self._ort.capi.onnxruntime_pybind11_state.__file__))
        if not gone:
            return None
        why = f"option disable: ONNX Runtime {self._ort.__version__} has no optimiser {gone[0]!r}"
        return failure(entry.id, "unknown-option", why)


class OnnxRuntimeEntry(CompiledEntry):
    """One session."""

    def __init__(
        self, ort: Any, network: Any, file: NetworkFile, model: ModelFile, entry: Entry, options: CompileOptions
    ) -> None:
        self._ort, self._file, self._model, self._entry, self._options = ort, file, model, entry, options
        self._outputs = [spec.name for spec in model.spec.outputs]
        self._session = self._open(network, _settings(ort, file, options))

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        if self._session is None:
            raise RuntimeError("the entry is closed")
        refuse_fixed(self._model, self._entry, executed_of(self._model, inputs))
        given = {spec.name: np.ascontiguousarray(inputs[spec.name]) for spec in self._model.spec.inputs}
        return dict(zip(self._outputs, self._session.run(self._outputs, given), strict=True))

    def inspect(self, inputs: Arrays) -> Inspection:
        executed = executed_of(self._model, inputs)
        network = _onnx.read(self._file.path)
        with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
            settings = _settings(self._ort, self._file, self._options)
            settings.enable_profiling = True
            settings.profile_file_prefix = str(Path(folder) / "profile")
            settings.optimized_model_filepath = str(Path(folder) / "optimised.onnx")
            settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights")
            profiled = self._open(network, settings)
            given = {spec.name: np.ascontiguousarray(inputs[spec.name]) for spec in self._model.spec.inputs}
            for _ in range(PROFILED_RUNS):
                profiled.run(self._outputs, given)
            events = msgspec.json.decode(Path(profiled.end_profiling()).read_bytes(), type=list[Event])
            optimised = _onnx.read(settings.optimized_model_filepath)
        timed = f"times are medians of {PROFILED_RUNS - 1} warm runs, in whole microseconds"
        return Inspection(
            executed=executed,
            operators=_operators(events, optimised, _onnx.folded(network, optimised)),
            operators_before=_onnx.operators_of(network),
            note="; ".join(filter(None, (self._file.note, timed))),
        )

    def close(self) -> None:
        self._session = None

    def _open(self, network: Any, settings: Any) -> Any:
        _onnx.fix_inputs(network, input_ranges(self._model, self._entry))
        left_out = list(_left_out(self._options))
        return self._ort.InferenceSession(
            network.SerializeToString(), settings, providers=[PROVIDER], disabled_optimizers=left_out
        )


class Arguments(msgspec.Struct, frozen=True):
    """What ONNX Runtime's profiler says of one operator; all other keys are skipped."""

    op_name: str = ""
    provider: str = ""
    input_type_shape: tuple[dict[str, tuple[int, ...]], ...] = ()
    output_type_shape: tuple[dict[str, tuple[int, ...]], ...] = ()


class Event(msgspec.Struct, frozen=True):
    name: str
    cat: str = ""
    ts: int = 0
    dur: int = 0
    args: Arguments = Arguments()


def _left_out(options: CompileOptions) -> tuple[str, ...]:
    """The optimisers that the plan does without."""
    return words_of(options.extra.get("disable", ""))


def _refuse_precision(entry: Entry, options: CompileOptions, network: Any) -> CompileFailure | None:
    """The provider lowers nothing: what is declared must be the network's own type, or be made by quantising it."""
    wanted = options.precision
    if wanted in ("bf16", "f16") and not _onnx.holds_type(network, wanted):
        why = f"ONNX Runtime on the CPU computes in the network's own types; {wanted!r} is not one of them"
        return failure(entry.id, "unsupported", why)
    return refuse_int8(entry.id, options, _onnx.quantised_operators(network) > 0)


def _settings(ort: Any, file: NetworkFile, options: CompileOptions) -> Any:
    choice = {name: values[0] for name, values in CHOICES.items()} | options.extra
    settings = ort.SessionOptions()
    settings.log_severity_level = ERRORS_ONLY
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    settings.graph_optimization_level = getattr(ort.GraphOptimizationLevel, LEVELS[options.optimisation])
    settings.enable_cpu_mem_arena = choice["arena"] == "on"
    settings.enable_mem_pattern = choice["memory_pattern"] == "on"
    spinning = "1" if choice["spinning"] == "on" else "0"
    settings.add_session_config_entry("session.intra_op.allow_spinning", spinning)
    if choice["integer_kernels"] == "off":
        settings.add_session_config_entry("session.disable_quant_qdq", "1")
        settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    settings.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", _onnx.folder_of(file.path)
    )
    return settings


def _operators(events: list[Event], optimised: Any, folded: dict[str, tuple[str, ...]]) -> tuple[Operator, ...]:
    """Operators in execution order, each with its median time over the warm runs: one disturbed run must not decide the
    shares. An operator that ran several times in one run (a loop) is one row."""
    warm = [e for e in events if e.name == "model_run"][1:]
    found: dict[str, Arguments] = {}
    took: dict[str, list[int]] = {}
    for event in sorted((e for e in events if e.cat == "Node"), key=lambda e: e.ts):
        run = next((i for i, whole in enumerate(warm) if whole.ts <= event.ts <= whole.ts + whole.dur), None)
        if run is None or not event.name.endswith("_kernel_time"):
            continue
        name = event.name.removesuffix("_kernel_time")
        found.setdefault(name, event.args)
        took.setdefault(name, [0] * len(warm))[run] += event.dur
    nodes = {node.name: node for node in optimised.graph.node}
    return tuple(
        _operator(name, arguments, nodes.get(name), round(median(took[name]) * 1000), folded.get(name, ()))
        for name, arguments in found.items()
    )


def _operator(name: str, arguments: Arguments, node: Any, ns: int, fused: tuple[str, ...]) -> Operator:
    domain = f"{node.domain}." if node is not None and node.domain else ""
    return Operator(
        name=name,
        kind=arguments.op_name,
        kernel=f"{arguments.provider}/{domain}{arguments.op_name}",
        precision="int8" if _onnx.multiplies_bytes(node) else _precision(arguments),
        ns=ns,
        fused=fused,
    )


def _precision(arguments: Arguments) -> str:
    given, made = (
        [_onnx.short_type(kind) for item in items for kind in item]
        for items in (arguments.input_type_shape, arguments.output_type_shape)
    )
    return precision(arguments.op_name, given, made)
