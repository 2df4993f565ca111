"""A torch network as a compiled entry: arrays in, arrays out, in whichever form it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trimtab.backends import _torch_operators, _torch_profile
from trimtab.backends._shapes import check_outputs, executed_of, refuse_fixed
from trimtab.backends._torch_network import HALF, Network, short_type
from trimtab.backends._torch_operators import Found
from trimtab.domain.noun import BATCH, Executed
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Arrays, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileEvent, Inspection
from trimtab.domain.study import DType
from trimtab.errors import ModelError

WORDS: dict[DType, str] = {
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "u8": "uint8",
    "bool": "bool",
}
"""A study's element types as torch calls them."""


class Form(Protocol):
    """How a network is run: compiled or not. ``events`` are drained as those of a CompiledEntry."""

    def run(self, tensors: Sequence[Any]) -> Any: ...

    def events(self) -> tuple[CompileEvent, ...]: ...

    def inspect(self, tensors: Sequence[Any]) -> Found: ...


class Eager:
    """The module as it is. ``operators``: how many its graph has, where it has one."""

    def __init__(self, call: Callable[..., Any], operators: int | None) -> None:
        self._call, self._operators = call, operators

    def run(self, tensors: Sequence[Any]) -> Any:
        return self._call(*tensors)

    def events(self) -> tuple[CompileEvent, ...]:
        return ()

    def inspect(self, tensors: Sequence[Any]) -> Found:
        return _torch_operators.eager(_torch_profile.profiled(lambda: self._call(*tensors)), self._operators)


class TorchEntry(CompiledEntry):
    """One network in one form: arrays in, arrays out. It can run once it is started. ``half``: the element type to
    which torch lowers what it can; empty = none."""

    def __init__(self, torch: Any, network: Network, model: ModelFile, entry: Entry, half: str) -> None:
        self._torch, self._model, self._entry, self._half = torch, model, entry, half
        self._network: Network | None = network  # it stays loaded for as long as an entry has it
        self._inputs = input_names(network, model)
        self._form: Form | None = None
        self._events: list[CompileEvent] = []

    def start(self, form: Form, shapes: Sequence[Executed]) -> None:
        """Take ``form`` and run it at ``shapes``, fed with pad values: it is compiled, and its outputs are checked."""
        self._form = form
        for executed in shapes:
            self._named(self._run(form, self._filler(executed)))

    def run(self, inputs: Arrays) -> dict[str, NDArray[Any]]:
        form = self._opened()
        refuse_fixed(self._model, self._entry, executed_of(self._model, inputs))
        return self._named(self._run(form, [self._tensor(inputs[name]) for name in self._inputs]))

    def inspect(self, inputs: Arrays) -> Inspection:
        form, executed = self._opened(), executed_of(self._model, inputs)
        with self._mode():
            found = form.inspect([self._tensor(inputs[name]) for name in self._inputs])
        form.events()  # what inspecting compiled is nobody's event
        return Inspection(executed=executed, operators=found.operators, operators_before=found.before, note=found.note)

    def events(self) -> tuple[CompileEvent, ...]:
        told, self._events = tuple(self._events), []
        return told

    def close(self) -> None:
        self._form = self._network = None

    def _opened(self) -> Form:
        if self._form is None:
            raise RuntimeError("the entry is closed")
        return self._form

    def _run(self, form: Form, tensors: Sequence[Any]) -> Any:
        try:
            with self._mode():
                return form.run(tensors)
        finally:
            self._events += form.events()

    @contextmanager
    def _mode(self) -> Iterator[None]:
        """Nothing is kept for gradients and, where asked for, operators compute in half precision."""
        with self._torch.inference_mode():
            if not self._half:
                yield
                return
            with self._torch.autocast("cpu", dtype=getattr(self._torch, self._half)):
                yield

    def _tensor(self, array: NDArray[Any]) -> Any:
        whole = np.ascontiguousarray(array)
        own = whole if whole.flags.writeable else whole.copy()  # torch knows no read-only memory
        return self._torch.from_numpy(own)

    def _filler(self, executed: Executed) -> list[Any]:
        sizes = dict(zip((BATCH, *self._model.dim_names), executed, strict=True))
        by_name = {spec.name: spec for spec in self._model.spec.inputs}
        tensors = []
        for name in self._inputs:
            spec = by_name[name]
            shape = [sizes[axis] if isinstance(axis, str) else axis for axis in spec.shape]
            tensors.append(self._torch.full(shape, spec.pad, dtype=getattr(self._torch, WORDS[spec.dtype])))
        return tensors

    def _named(self, returned: Any) -> dict[str, NDArray[Any]]:
        """The study's outputs by name. ModelError where the network returns others."""
        names = [spec.name for spec in self._model.spec.outputs]
        if isinstance(returned, Mapping):
            check_outputs(self._model, returned)
            return {name: _array(returned[name]) for name in names}
        values = (returned,) if isinstance(returned, self._torch.Tensor) else tuple(returned)
        if len(values) != len(names):
            raise ModelError(
                f"the network returns {len(values)} outputs, the study names {len(names)}: {', '.join(names)}",
                where=self._model.path,
                fix="name all of them in its order, or return a dict by name",
            )
        return {name: _array(value) for name, value in zip(names, values, strict=True)}


def input_names(network: Network, model: ModelFile) -> tuple[str, ...]:
    """The inputs in the order in which the network takes them."""
    return tuple(network.inputs) if network.inputs is not None else tuple(spec.name for spec in model.spec.inputs)


def _array(value: Any) -> NDArray[Any]:
    whole = value.float() if short_type(value.dtype) in HALF else value
    array: NDArray[Any] = whole.numpy()
    return array
