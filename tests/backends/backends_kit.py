"""Every runtime that is here, why the others are left out, and compiling that must not fail."""

from __future__ import annotations

import os

import msgspec
import pytest

from trimtab import backends
from trimtab.domain.plan import Entry
from trimtab.domain.ports import Backend, BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.errors import MissingTool

COMPUTES_NOTHING = "the null backend computes no network"
READS_NOTHING = "the null backend reads no network"
ACCURACY = {"iree": 1e-5, "onnxruntime": 1e-5, "openvino": 3e-2, "torch": 1e-5}
"""Share of the largest output; OpenVINO may compute in bfloat16 when left alone (8 bits of mantissa)."""


def missing(name: str) -> str:
    """Why a runtime is left out: it is not installed. In CI none may be missing."""
    try:
        backends.factory(name)
    except MissingTool as error:
        return "" if os.environ.get("CI") else error.what
    return ""


MISSING = {name: missing(name) for name in backends.names() if missing(name)}


def every(**cannot: str) -> pytest.MarkDecorator:
    """Parametrise over all backends; those named in ``cannot`` are skipped with that reason."""
    cannot = MISSING | cannot
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(name, marks=pytest.mark.skip(reason=cannot[name])) if name in cannot else name
            for name in backends.names()
        ],
    )


class Eager:
    """Torch without compiling, unless a test asks for it: that takes seconds for each tiny network."""

    name = "torch"

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def info(self) -> BackendInfo:
        return self._backend.info()

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        extra = {"mode": "eager"} | options.extra
        return self._backend.compile(model, entry, msgspec.structs.replace(options, extra=extra))


def compiled(result: CompiledEntry | CompileFailure) -> CompiledEntry:
    assert not isinstance(result, CompileFailure), result
    return result


def compiled_with(backend: Backend, model: ModelFile, entry: Entry, **options: object) -> CompiledEntry:
    return compiled(backend.compile(model, entry, CompileOptions(**options)))  # type: ignore[arg-type]
