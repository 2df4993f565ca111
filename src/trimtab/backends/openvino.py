"""OpenVINO on the CPU.

Left to itself, OpenVINO runs an FP32 network in bfloat16 on a CPU that can; ``precision = "default"`` keeps that, and
the inspection shows it per operator. A hint that it would silently turn into another precision, or a thread count that
it would silently lower, is a failure here.

int8 takes a network that is quantised, by whoever exported it or here (option ``quantise``); what stays float computes
in ``float_precision``. ``integer_kernels = "off"`` computes a quantised network in floats: what are integers worth?
``snippets = "off"`` leaves out the kernels that it generates for chains of small operators: the one fusion that it lets
its user choose.

A static entry is reshaped to one shape. In a dynamic entry the open dims have no bounds, so that the compiled program
is the runtime's own default and may still run a shape outside the entry's range; ``bounds = "on"`` declares ``lo..hi``
to the compiler instead, and other shapes are then refused. On the text recogniser of the demo bounds changed neither
kernels nor times nor memory.

Two faults of 2026.4.1 shape how it is run. With one thread a synchronous ``infer`` loses errors that occur inside the
graph: it returns the outputs of the previous run and later crashes the process. The asynchronous path reports them (8
us a run dearer, computing on a thread of its own). And after such an error the program goes on failing for the last
good shape, so it is compiled again before the error is passed on; its shapes are cold then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimtab.backends import _quantise
from trimtab.backends._execution_graph import computes, is_quantised, mean_times, operators
from trimtab.backends._openvino_config import CHOICES, GROUP_SIZE, HINTS, capabilities_of, config_of, floats_of
from trimtab.backends._options import brief, failure, refuse
from trimtab.backends._quantise import NetworkFile, QuantiseError, Quantiser, missing_tools, refuse_int8, refuse_recipe
from trimtab.backends._shapes import (
    Range,
    check_entry,
    check_file,
    check_network,
    check_outputs,
    executed_of,
    input_ranges,
    refuse_fixed,
)
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Ability, Arrays, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions, FailureKind, Inspection
from trimtab.errors import ModelError

PACKAGES = ("openvino",)
EXTRA = "openvino"

DTYPES = {"boolean": "bool"}
"""OpenVINO's names of element types where they differ from a study's."""

DYNAMIC = "OpenVINO computes dynamically quantised products in f32, several times slower than the float network"
PROFILED_RUNS = 5


def make() -> OpenVinoBackend:
    return OpenVinoBackend()


class OpenVinoBackend:
    name = "openvino"

    def __init__(self) -> None:
        import openvino

        self._ov = openvino
        self._core = openvino.Core()
        self._quantiser = Quantiser()

    def info(self) -> BackendInfo:
        listed = self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        silent = self._core.get_property("CPU", "INFERENCE_PRECISION_HINT").to_string()
        device = self._core.get_property("CPU", "FULL_DEVICE_NAME")
        lacking = missing_tools()
        saying = f"{device} lists {' '.join(listed)}"
        precisions = [
            Ability(name=f"precision {name}", ok=capability in listed, why=saying)
            for name, (_, capability) in HINTS.items()
        ]
        return BackendInfo(
            name=self.name,
            available=True,
            why=f"CPU device: {device}",
            versions={"openvino": self._ov.get_version()},
            abilities=(
                Ability(name="static shapes", ok=True, why="the network is reshaped before it is compiled"),
                Ability(name="padded buckets", ok=True, why="as static shapes"),
                Ability(name="dynamic shapes", ok=True, why="the first run of a new shape pays for its kernels"),
                Ability(name="precision default", ok=True, why=f"left alone it computes in {silent} here"),
                *precisions,
                Ability(name="precision int8", ok="INT8" in listed, why=f"a quantised network; {saying}"),
                Ability(name="quantise dynamic", ok=False, why=DYNAMIC),
                Ability(
                    name="quantise static", ok=not lacking, why=lacking or "by ONNX Runtime's tools, when compiled"
                ),
                Ability(name="graph-optimisation levels", ok=False, why="OpenVINO has none"),
                Ability(name="single fusions", ok=True, why="its generated kernels (snippets) can be left out"),
                Ability(name="threads", ok=True, why="as many as this machine has cores, one stream, not pinned"),
                Ability(name="compile beside serving", ok=True, why="it gives Python's lock back while it compiles"),
                Ability(name="kernel names", ok=True, why="execution graph: kernel and precision of each operator"),
            ),
        )

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        check_entry(model, entry)
        check_file(model)
        refusal = self._refuse(entry, options)
        if refusal:
            return refusal
        network = self._read(model.path)
        check_network(model, entry, {_name(port): _type_and_shape(port) for port in network.inputs})
        check_outputs(model, [name for port in network.outputs for name in port.get_names()])
        refusal = refuse_int8(entry.id, options, is_quantised(network))
        if refusal:
            return refusal
        ranges = input_ranges(model, entry)
        shapes = {name: self._shape(axes, options.extra.get("bounds") == "on") for name, axes in ranges.items()}
        try:
            file = self._quantiser.file_for(model, options)
            network = self._read(file.path) if file.made else network
            network.reshape(shapes)
            program = OpenVinoEntry(self._core, network, file, model, entry, config_of(options))
        except QuantiseError as error:
            return failure(entry.id, error.kind, str(error))
        except MemoryError as error:
            return failure(entry.id, "out-of-memory", brief(error))
        except RuntimeError as error:
            return failure(entry.id, _kind(error), f"OpenVINO refuses shape {_texts(ranges)}: {brief(error)}")
        refusal = _substituted(entry, options, program)
        if refusal:
            program.close()
        return refusal or program

    def _refuse(self, entry: Entry, options: CompileOptions) -> CompileFailure | None:
        refusal = refuse(entry.id, options.extra, CHOICES, _quantise.LISTS) or refuse_recipe(entry.id, options)
        if refusal:
            return refusal
        if options.optimisation != "default":
            why = f"OpenVINO has no graph-optimisation levels; {options.optimisation!r} cannot be chosen"
            return failure(entry.id, "unsupported", why)
        if options.extra.get("quantise") == "dynamic":
            return failure(entry.id, "unsupported", DYNAMIC)
        if "float_precision" in options.extra and options.precision != "int8":
            why = "option float_precision is for what int8 leaves float; the plan declares "
            return failure(entry.id, "unknown-option", why + repr(options.precision))
        listed = self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        for precision, capability in capabilities_of(options).items():
            if capability not in listed:
                why = f"this CPU does not compute in {precision}: it lists {' '.join(listed)}"
                return failure(entry.id, "unsupported", why)
        return None

    def _read(self, path: str) -> Any:
        try:
            return self._core.read_model(path)
        except RuntimeError as error:
            raise ModelError(
                f"OpenVINO cannot read the network: {brief(error)}",
                where=path,
                fix="give an ONNX file or OpenVINO IR that loads",
            ) from error

    def _shape(self, axes: tuple[Range, ...], bounded: bool) -> Any:
        dims = [self._ov.Dimension(lo, hi) if lo == hi or bounded else self._ov.Dimension() for lo, hi in axes]
        return self._ov.PartialShape(dims)


class OpenVinoEntry(CompiledEntry):
    """One compiled program and its one inference request."""

    def __init__(
        self, core: Any, network: Any, file: NetworkFile, model: ModelFile, entry: Entry, config: dict[str, Any]
    ) -> None:
        self._core, self._file, self._model, self._entry, self._config = core, file, model, entry, config
        self._shapes = {port.get_any_name(): port.get_partial_shape() for port in network.inputs}
        self.program, self._request = self._start(network)
        ports = {name: i for i, port in enumerate(self.program.outputs) for name in port.get_names()}
        self._outputs = {spec.name: ports[spec.name] for spec in model.spec.outputs}

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        if self._request is None:
            raise RuntimeError("the entry is closed")
        refuse_fixed(self._model, self._entry, executed_of(self._model, inputs))
        given = {spec.name: np.ascontiguousarray(inputs[spec.name]) for spec in self._model.spec.inputs}
        self._request.start_async(given, share_inputs=True)
        try:
            self._request.wait()
        except RuntimeError as error:
            self.program, self._request = self._start(self._network())
            raise RuntimeError(brief(error)) from error
        return {name: np.array(self._request.get_output_tensor(i).data) for name, i in self._outputs.items()}

    def inspect(self, inputs: Arrays) -> Inspection:
        executed = executed_of(self._model, inputs)
        network = self._core.read_model(self._file.path)
        before = [op.get_friendly_name() for op in network.get_ops() if computes(op)]
        network.reshape(self._shapes)
        config = self._config | {"PERF_COUNT": True}
        profiled = OpenVinoEntry(self._core, network, self._file, self._model, self._entry, config)
        profiled.run(inputs)
        first = mean_times(profiled.program.get_runtime_model())
        for _ in range(PROFILED_RUNS - 1):
            profiled.run(inputs)
        graph, dynamic = profiled.program.get_runtime_model(), profiled.program.get_property(GROUP_SIZE) > 0
        found = operators(graph, set(before), first, PROFILED_RUNS, dynamic)
        profiled.close()
        timed = f"times are means of {PROFILED_RUNS - 1} warm runs, exact to about a microsecond"
        note = "; ".join(filter(None, (self._file.note, timed)))
        return Inspection(executed=executed, operators=found, operators_before=len(before), note=note)

    def close(self) -> None:
        self._request = self.program = None

    def _network(self) -> Any:
        network = self._core.read_model(self._file.path)
        network.reshape(self._shapes)
        return network

    def _start(self, network: Any) -> tuple[Any, Any]:
        program = self._core.compile_model(network, "CPU", self._config)
        return program, program.create_infer_request()


def _substituted(entry: Entry, options: CompileOptions, program: OpenVinoEntry) -> CompileFailure | None:
    """A failure where the compiled program would use another precision or other threads than asked for."""
    threads = program.program.get_property("INFERENCE_NUM_THREADS")
    if threads != options.threads:
        why = f"OpenVINO would use {threads} threads instead of {options.threads}"
        return failure(entry.id, "unsupported", why)
    floats = floats_of(options)
    if not floats:
        return None
    wanted = HINTS[floats][0]
    hint = program.program.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    if hint == wanted:
        return None
    return failure(entry.id, "unsupported", f"OpenVINO would compute in {hint} instead of {wanted}")


def _name(port: Any) -> str:
    return str(port.get_any_name())


def _type_and_shape(port: Any) -> tuple[str, tuple[int | None, ...]]:
    kind = port.get_element_type().get_type_name()
    sizes = tuple(d.get_length() if d.is_static else None for d in port.get_partial_shape())
    return DTYPES.get(kind, kind), sizes


def _kind(error: RuntimeError) -> FailureKind:
    return "out-of-memory" if "alloc" in str(error) else "compiler-error"


def _texts(ranges: dict[str, tuple[Range, ...]]) -> str:
    shapes = {n: [str(lo) if lo == hi else f"{lo}..{hi}" for lo, hi in axes] for n, axes in ranges.items()}
    return ", ".join(f"{name}[{','.join(axes)}]" for name, axes in shapes.items())
