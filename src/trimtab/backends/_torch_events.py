"""What torch says of its own compiling: one record for each attempt, kept until it is fetched.

Torch compiles a function when it first runs (``compile``), and again when a guard of what it compiled fails for new
inputs (``recompile``); the record names that guard. Beyond its recompile limit it gives up: inputs that fit nothing
compiled run uncompiled from then on (``eager``), which is said once, at the attempt that was refused. Code that it
cannot compile runs uncompiled too and is said in the same way; code without any operator is skipped, which is no event.

The list is the process's and holds the last 64 attempts, so it must be fetched around each run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trimtab.domain.noun import NEVER
from trimtab.domain.profile import CompileEvent

SKIPPED = "SkipFrame"
LIMIT = "recompile limit exceeded"
LONGEST = 300
"""Characters of a reason that are kept."""
_PLACE = re.compile(r"^\d+/\d+: ")
_ARGUMENT = re.compile(r"\b(?:L\[')?tensors(?:'\])?\[(\d+)\]")


def records() -> list[Any]:
    """Torch's records since the last call, in order; they are forgotten."""
    from torch._dynamo import utils

    found: list[Any] = utils.get_compilation_metrics()
    if found:
        utils.clear_compilation_metrics()
    return found


def events(found: Sequence[Any], names: Sequence[str]) -> tuple[CompileEvent, ...]:
    """Records in our words. ``names``: the inputs, in the order in which the compiled function takes them."""
    return tuple(event(record, names) for record in found if not _idle(record))


def event(record: Any, names: Sequence[str]) -> CompileEvent:
    """One record in our words."""
    took = NEVER if record.duration_us is None else record.duration_us * 1000
    guard = guard_of(record.recompile_reason or "", names)
    if record.fail_type is None:
        return CompileEvent(kind="recompile" if guard else "compile", reason=guard or "first run", ns=took)
    if LIMIT in (record.fail_reason or ""):
        return CompileEvent(kind="eager", reason=f"recompile limit reached: {guard}", ns=took)
    return CompileEvent(kind="eager", reason=_line(f"{record.fail_type}: {record.fail_reason}"), ns=took)


def guard_of(reason: str, names: Sequence[str]) -> str:
    """The guard that failed, by the inputs' names, without where in torch's and the user's source it came from."""

    def named(match: re.Match[str]) -> str:
        place = int(match[1])
        return names[place] if place < len(names) else match[0]

    return _line(_ARGUMENT.sub(named, _PLACE.sub("", reason).partition("  # ")[0]))


def _idle(record: Any) -> bool:
    """Whether there was nothing to compile in the code that torch looked at."""
    return record.fail_type == SKIPPED or (record.fail_type is None and not record.graph_op_count)


def _line(text: str) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…"
