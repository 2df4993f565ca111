"""A job without a network, for a worker that only runs the pace kernel, or a user's own function."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from trimtab.domain.plan import Entry
from trimtab.domain.ports import BackendInfo, CompiledEntry, ModelFile
from trimtab.domain.profile import CompileFailure, CompileOptions
from trimtab.domain.study import ModelSpec
from trimtab.runtime.worker import Job


class Vacant:
    """Compiles nothing and has no payloads."""

    name = "vacant"

    def info(self) -> BackendInfo:
        return BackendInfo(name=self.name, available=True, why="holds no network", versions={}, abilities=())

    def compile(self, model: ModelFile, entry: Entry, options: CompileOptions) -> CompiledEntry | CompileFailure:
        return CompileFailure(entry=entry.id, kind="unsupported", message="this worker holds no network")

    def request(self, payload: int, dims: tuple[int, ...]) -> dict[str, NDArray[Any]]:
        raise LookupError("this worker has no payloads")


_NOTHING = ModelFile(path="", sha256="", spec=ModelSpec(path="", revision="", inputs=(), outputs=()), dim_names=())
VACANT = Job(Vacant, _NOTHING, Vacant())
