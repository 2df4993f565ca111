"""Options of a plan that go to a backend as they are: an unknown one is a failure, never ignored."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.domain.noun import EntryId
from trimtab.domain.profile import CompileFailure, FailureKind
from trimtab.errors import did_you_mean


def failure(entry: EntryId, kind: FailureKind, message: str) -> CompileFailure:
    """A failure as a value; the plan is filled in by whoever asked."""
    return CompileFailure(entry=entry, kind=kind, message=message)


def suggest(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """ "did you mean ...; known: ..." for a word that is not in ``known``."""
    listed = f"known: {', '.join(known)}" if known else "there are none"
    return f"{did_you_mean(word, known)} {listed}".strip()


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


def words_of(text: str) -> tuple[str, ...]:
    """The words of a list: ``"Conv, MatMul"`` -> ``("Conv", "MatMul")``."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def refuse(
    entry: EntryId,
    extra: Mapping[str, str],
    choices: Mapping[str, tuple[str, ...]],
    lists: Mapping[str, tuple[str, ...]],
) -> CompileFailure | None:
    """The failure for the first option that neither ``choices`` (one word) nor ``lists`` (some words) allows."""
    return (
        refuse_unknown(entry, extra, {**choices, **lists})
        or refuse_value(entry, {name: value for name, value in extra.items() if name in choices}, choices)
        or _refuse_word(entry, {name: value for name, value in extra.items() if name in lists}, lists)
    )


def _refuse_word(
    entry: EntryId, extra: Mapping[str, str], lists: Mapping[str, tuple[str, ...]]
) -> CompileFailure | None:
    for name, text in extra.items():
        words = words_of(text)
        if not words:
            return failure(entry, "unknown-option", f"option {name} is empty: {suggest('', lists[name])}")
        for word in words:
            if word not in lists[name]:
                return failure(entry, "unknown-option", f"option {name}: no {word!r}: {suggest(word, lists[name])}")
    return None
