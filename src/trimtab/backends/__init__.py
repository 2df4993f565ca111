"""SHELL: one file per runtime; a backend only compiles, runs and inspects.

A backend is a module of this package whose name has no leading underscore. It offers three names: ``PACKAGES`` (what
it imports), ``EXTRA`` (which optional dependency of trimtab brings them) and ``make() -> Backend``. Importing the
module is cheap: the runtime itself is imported when it is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import partial
from types import ModuleType
from typing import NamedTuple

from trimtab.domain.ports import Backend, BackendFactory, BackendInfo
from trimtab.errors import MissingTool, ModelError, UsageError, did_you_mean

Axes = tuple[int | str | None, ...]
"""The axes of a tensor: a size, the name that the network's file gives to an open axis, or None: open, without one."""


class Network(NamedTuple):
    """Inputs by name: element type and axes. Outputs by name: axes, or None where the file does not give them."""

    inputs: dict[str, tuple[str, Axes]]
    outputs: dict[str, Axes | None]


def names() -> tuple[str, ...]:
    """Every backend that trimtab knows, installed or not, in alphabetical order."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")))


def factory(name: str) -> BackendFactory:
    """A picklable recipe for the backend ``name``: the worker that calls it imports the runtime.

    Raises UsageError for a name that does not exist, MissingTool where the runtime is not installed.
    """
    module = _module(name)
    missing = _missing(module)
    if missing:
        raise MissingTool(_not_installed(missing), where=f"backend {name!r}", fix=_install(module))
    return partial(_make, name)


def info(name: str) -> BackendInfo:
    """What ``name`` can do on this machine. A runtime that is absent or broken is a value, never an error."""
    module = _module(name)
    missing = _missing(module)
    if missing:
        return _unavailable(name, f"{_not_installed(missing)}; {_install(module)}")
    try:
        return _make(name).info()
    except Exception as error:
        return _unavailable(name, f"installed, but it does not start: {type(error).__name__}: {error}")


def describe(path: str) -> Network:
    """What an ONNX file says of its inputs and outputs. ModelError if it is not one, MissingTool without ``onnx``."""
    if path.endswith(".pt2"):
        raise ModelError(
            "only ONNX networks can be described; this is an exported torch program",
            where=path,
            fix="draft the study from its ONNX twin, or write it by hand with model.torch instead of model.path",
        )
    if importlib.util.find_spec("onnx") is None:
        raise MissingTool("onnx is not installed", where=path, fix="pip install 'trimtab[onnx]'")
    from trimtab.backends import _onnx

    proto = _onnx.read(path)
    kinds = {name: kind for name, (kind, _) in _onnx.inputs_of(proto).items()}
    axes = _onnx.axes_of(proto.graph.input)
    inputs = {name: (kind, axes[name] or ()) for name, kind in kinds.items()}
    return Network(inputs, _onnx.axes_of(proto.graph.output))


def _make(name: str) -> Backend:
    backend: Backend = _module(name).make()
    return backend


def _module(name: str) -> ModuleType:
    known = names()
    if name in known:
        return importlib.import_module(f"{__name__}.{name}")
    fix = f"{did_you_mean(name, known)} known: {', '.join(known)}".strip()
    raise UsageError(f"there is no backend {name!r}", where="backend", fix=fix)


def _missing(module: ModuleType) -> list[str]:
    return [package for package in module.PACKAGES if not _installed(package)]


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


def _not_installed(packages: list[str]) -> str:
    return f"{' and '.join(packages)} {'is' if len(packages) == 1 else 'are'} not installed"


def _install(module: ModuleType) -> str:
    return f"pip install 'trimtab[{module.EXTRA}]'"


def _unavailable(name: str, why: str) -> BackendInfo:
    return BackendInfo(name=name, available=False, why=why, versions={}, abilities=())
