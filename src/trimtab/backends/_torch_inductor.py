"""torch.compile with Inductor: one program for each entry, with settings, a compile cache and events of its own.

Torch keeps what it compiled by code object, so every entry gets a function with a code object of its own, and asks for
a cache of its own too. Some settings are the process's and not the program's (the folder that torch writes into,
whether weights are constants); all entries of a worker belong to one plan, so they agree.

No helper processes are started to compile: they would outlive the compile on a core that is not theirs.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sysconfig
import tempfile
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from trimtab.backends import _torch_events, _torch_operators, _torch_profile
from trimtab.backends._shapes import Range
from trimtab.backends._torch_operators import Found, Piece
from trimtab.domain.profile import CompileEvent

FOLDER = "TORCHINDUCTOR_CACHE_DIR"
FUSION: dict[str, dict[str, Any]] = {
    "on": {},
    "off": {
        "max_fusion_size": 1,
        "cpp.max_horizontal_fusion_size": 1,
        "epilogue_fusion": False,
        "realize_reads_threshold": 0,
        "realize_opcount_threshold": 0,
        "realize_acc_reads_threshold": 0,
    },
    "aggressive": {
        "max_fusion_size": 1024,
        "cpp.max_horizontal_fusion_size": 1024,
        "aggressive_fusion": True,
        "score_fusion_memory_threshold": 0,
    },
}
"""Inductor's settings: how many loops may become one, and when a value is stored and not computed where it is used."""

_NUMBERS = itertools.count()


class Settings(NamedTuple):
    """What a plan says of compiling, every choice made. ``limit`` None: torch's own."""

    dynamic: str
    fusion: str
    freezing: bool
    shared: bool
    limit: int | None
    threads: int


class Inductor:
    """What Inductor needs of a process. The folder that it writes into lives as long as this."""

    def __init__(self) -> None:
        self._users = os.environ.get(FOLDER)
        self._own = ""

    def compiled(
        self,
        call: Callable[..., Any],
        names: Sequence[str],
        ranges: Sequence[tuple[Range, ...]],
        settings: Settings,
    ) -> Compiled:
        """``call`` as a program; it is compiled when it first runs. ``names`` and ``ranges``: its inputs, in order."""
        import torch._inductor.config as config

        config.compile_threads = 1
        config.freezing = settings.freezing
        folder = self._users if settings.shared else self._fresh()
        os.environ.pop(FOLDER, None)
        if folder is not None:
            os.environ[FOLDER] = folder
        return Compiled(call, names, ranges, settings)

    def _fresh(self) -> str:
        if not self._own:
            self._own = tempfile.mkdtemp(prefix="trimtab-inductor-")
            weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        return self._own


class Compiled:
    """One program. It compiles while it runs: at first, and whenever what it has does not fit."""

    def __init__(
        self,
        call: Callable[..., Any],
        names: Sequence[str],
        ranges: Sequence[tuple[Range, ...]],
        settings: Settings,
    ) -> None:
        self._call, self._names, self._ranges, self._settings = call, names, ranges, settings
        self._program = self._compiled({})

    def run(self, tensors: Sequence[Any]) -> Any:
        from torch._dynamo import mark_dynamic

        for tensor, axis, least, most in self._open(tensors) if self._settings.dynamic == "always" else ():
            mark_dynamic(tensor, axis, min=least, max=most)
        return self._program(*tensors)

    def events(self) -> tuple[CompileEvent, ...]:
        return _torch_events.events(_torch_events.records(), self._names)

    def inspect(self, tensors: Sequence[Any]) -> Found:
        """Compiled once more, in pieces that the profiler can tell apart. What is open to the program is open here."""
        from torch._dynamo import maybe_mark_dynamic

        planned: list[Piece] = []

        def listen(nodes: list[Any]) -> list[Any]:
            planned.extend(_torch_operators.pieces(nodes))
            return nodes

        watched = {"cpp.enable_kernel_profile": True, "fx_graph_cache": False, "_post_fusion_custom_pass": listen}
        program = self._compiled(watched)
        for tensor, axis, _, _ in self._open(tensors) if self._settings.dynamic != "never" else ():
            maybe_mark_dynamic(tensor, axis)
        _torch_events.records()
        with _single_loops():
            program(*tensors)
        before = sum(record.graph_op_count or 0 for record in _torch_events.records())
        calls = _torch_profile.profiled(lambda: program(*tensors))
        return _torch_operators.compiled(calls, planned, before)

    def _compiled(self, extra: dict[str, Any]) -> Callable[..., Any]:
        import torch

        settings = self._settings
        options = {"cpp.threads": settings.threads} | FUSION[settings.fusion] | extra
        open_axes = any(lo < hi for axes in self._ranges for lo, hi in axes)
        program: Callable[..., Any] = torch.compile(
            _own(self._call),
            dynamic=None if open_axes and settings.dynamic != "never" else False,
            options=options,
            recompile_limit=settings.limit,
            isolate_recompiles=True,
        )
        return program

    def _open(self, tensors: Sequence[Any]) -> Iterator[tuple[Any, int, int, int]]:
        """Open axes with their ranges. A size of 1, or one outside the range, is for torch to decide."""
        for tensor, axes in zip(tensors, self._ranges, strict=True):
            for axis, (lo, hi) in enumerate(axes):
                least = max(lo, 2)
                if least < hi and least <= tensor.shape[axis] <= hi:
                    yield tensor, axis, least, hi


def _own(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` with a code object, and a name, that no other program has."""
    assert isinstance(call, types.FunctionType)
    name = f"entry_{next(_NUMBERS)}"
    code = call.__code__.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, call.__globals__, name, call.__defaults__, call.__closure__)


@contextmanager
def _single_loops() -> Iterator[None]:
    """Meanwhile Inductor writes each loop as a function of its own: it starts a new one once it has any argument."""
    from torch._inductor.codegen.cpp import CppScheduling

    most = CppScheduling.MAX_FUSED_KERNEL_ARGS_NUM
    CppScheduling.MAX_FUSED_KERNEL_ARGS_NUM = 0
    try:
        yield
    finally:
        CppScheduling.MAX_FUSED_KERNEL_ARGS_NUM = most


def compiler_path() -> str:
    """The C++ compiler that Inductor would use; empty where there is none."""
    return shutil.which(os.environ.get("CXX", "g++")) or ""


def compiler_version(path: str) -> dict[str, str]:
    """Name and version of the C++ compiler; nothing where it does not say."""
    if not path:
        return {}
    said = subprocess.run([path, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=False)
    return {Path(path).name: said.stdout.strip()} if said.returncode == 0 else {}


def missing() -> str:
    """Why Inductor cannot compile here; empty where it can."""
    if not compiler_path():
        return f"Inductor needs a C++ compiler: {os.environ.get('CXX', 'g++')} is not installed"
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        return f"Inductor needs the C headers of Python: there is no {headers / 'Python.h'}"
    return ""
