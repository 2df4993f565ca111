"""Options of a plan that go to a backend as they are: an unknown one is a failure, never ignored."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from trimtab.domain.noun import EntryId
from trimtab.domain.profile import CompileFailure, FailureKind


def failure(entry: EntryId, kind: FailureKind, message: str) -> CompileFailure:
    """A failure as a value; the plan is filled in by whoever asked."""
    return CompileFailure(entry=entry, kind=kind, message=message)


def suggest(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """ "did you mean ...; known: ..." for a word that is not in ``known``."""
    near = difflib.get_close_matches(word, list(known), n=1)
    listed = f"known: {', '.join(known)}" if known else "there are none"
    return f"did you mean {near[0]!r}? {listed}" if near else listed


def refuse_unknown(entry: EntryId, extra: Mapping[str, str], known: Mapping[str, object]) -> CompileFailure | None:
    """The failure for the first option that ``known`` does not hold, or None."""
    for name in extra:
        if name not in known:
            return failure(entry, "unknown-option", f"no option {name!r}: {suggest(name, known)}")
    return None


def refuse_value(
    entry: EntryId, extra: Mapping[str, str], known: Mapping[str, tuple[str, ...]]
) -> CompileFailure | None:
    """The failure for the first option whose value is not among those listed for it, or None."""
    for name, value in extra.items():
        if value not in known[name]:
            return failure(entry, "unknown-option", f"option {name} = {value!r}: {suggest(value, known[name])}")
    return None


def brief(error: BaseException, limit: int = 400) -> str:
    """What a runtime's exception says, on one line, without the places in its own source."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Exception from ", "Check '"))]
    text = " ".join(kept or [line for line in lines if line]) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
