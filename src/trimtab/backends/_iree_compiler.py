"""IREE's compiler, in a process of its own for each network.

A compiler that crashes is then the failure of one entry and not the end of its worker; what it holds while it compiles
is not the served program's memory; and options that the compiler keeps for the whole of a process cannot leak from one
entry into the next. It is pinned with its worker and uses as many threads as the plan.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

import msgspec

from trimtab import child
from trimtab.backends._options import brief
from trimtab.backends._shapes import Range
from trimtab.domain.noun import Noun
from trimtab.domain.profile import FailureKind

FUNCTION = "main"
"""What the network is called in the compiled program."""


IR = re.compile(r"(: %| #hal\.).*")
"""Where the compiler goes on to show the operation, or the whole target, that it speaks of."""


class Order(Noun, frozen=True, kw_only=True):
    """What the process is told, as JSON. ``flags``: the compiler's arguments."""

    path: str
    ranges: dict[str, tuple[Range, ...]]
    flags: tuple[str, ...]


class CompilerError(Exception):
    """There is no program; ``kind`` says how it failed."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind


def compiled(path: str, ranges: Mapping[str, tuple[Range, ...]], flags: Sequence[str], threads: int) -> bytes:
    """What IREE's compiler writes for the ONNX network at ``path``: by default a program, with ``--compile-to`` IR."""
    order = Order(path=path, ranges=dict(ranges), flags=tuple(flags))
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:
        done = subprocess.run(
            child.command("trimtab.backends._iree_importer"),
            input=msgspec.json.encode(order),
            capture_output=True,
            env=child.environment(
                IREE_COMPILER_THREAD_COUNT=str(threads),
                TMPDIR=folder,  # the linker's own files go even where it crashes
            ),
            check=False,
        )
    if done.returncode != 0:
        raise _failed(done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout


def _failed(code: int, said: str) -> CompilerError:
    why = complaint(said)
    if "out of memory" in why or "bad_alloc" in why:
        return CompilerError("out-of-memory", f"IREE's compiler: {why}")
    if code < 0:
        return CompilerError("crash", f"IREE's compiler ended by {signal.Signals(-code).name}: {why}")
    return CompilerError("compiler-error", f"IREE's compiler: {why}")


def complaint(said: str) -> str:
    """What went wrong, from all that the compiler said: its first error, how many followed, else its last words."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("LLVM ERROR")]
    errors = [IR.sub("", line.partition("error: ")[2]) for line in lines if "error: " in line]
    first = (fatal or errors or lines[-1:] or ["it said nothing"])[0]
    more = f" (and {len(errors) - 1} more errors)" if len(errors) > 1 and not fatal else ""
    return brief(RuntimeError(first + more))
