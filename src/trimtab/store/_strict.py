"""Compare plain data with the types of a noun and report EVERY fault, each with the path of its key.

msgspec stops at the first fault and names it from the inside; an engineer who fixes a file by hand wants all of them.
"""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from trimtab.errors import did_you_mean

Path = tuple[str | int, ...]
_AT = re.compile(r"^(?P<text>.*) - at (?:key in )?`\$(?P<path>.*)`$", re.DOTALL)
_STEP = re.compile(r"\[(?P<index>\d+)\]")
_MISSING = msgspec.NODEFAULT
_WORDS = {"int": "an integer", "float": "a number", "str": "text", "bool": "a boolean", "object": "a table"}


class Fault(NamedTuple):
    """One thing that is wrong: where in the data, what, and how to fix it."""

    path: Path
    text: str
    fix: str = ""


def faults(data: Any, kind: Any, path: Path = ()) -> Iterator[Fault]:
    """Unknown keys, missing keys, wrong types and numbers that are not finite, in the order of the data."""
    struct = _struct_of(kind)
    if struct is not None:
        yield from _struct_faults(data, struct, path)
        return
    item = _item_of(kind)
    if item is None:
        yield from _leaf_faults(data, kind, path)
        return
    container, inner = item
    if not isinstance(data, container):
        yield Fault(path, f"expected {_word(container)}, got {describe(data)}")
        return
    words = _words_of(typing.get_args(kind)[0]) if container is dict else []
    for key, value in _pairs(data):
        if words and key not in words:
            yield Fault((*path, key), "unknown key", did_you_mean(str(key), words))
        else:
            yield from faults(value, inner, (*path, key))


def dotted(path: Path) -> str:
    """``workload.slices[1].band``; a key that is not a bare TOML key is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += f"{'.' if text else ''}{part if bare else repr(part)}"
    return text or "the top level"


def meant(word: str, known: Iterable[str]) -> str:
    """``did you mean `time`?``, or the list of what is known, or nothing."""
    names = list(known)
    return did_you_mean(word, names) or (f"known here: {', '.join(names)}" if names else "")


def unique(names: Iterable[str], path: Path, text: str) -> Iterator[Fault]:
    """A fault for each name that is there more than once; ``text`` says what is wrong with that."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(path, f"{name!r} {text}", "use each once")


def describe(value: Any) -> str:
    """A value and its type in the words of TOML, shortened."""
    shown = repr(value)
    return f"{_word(type(value))} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _struct_faults(data: Any, struct: type[msgspec.Struct], path: Path) -> Iterator[Fault]:
    if not isinstance(data, dict):
        yield Fault(path, f"expected a table, got {describe(data)}")
        return
    hints = _hints(struct)
    known = {field.name: field for field in msgspec.structs.fields(struct)}
    for key, value in data.items():
        if key in known:
            yield from faults(value, hints[key], (*path, key))
        else:
            yield Fault((*path, key), "unknown key", did_you_mean(key, known))
    for name, field in known.items():
        if name not in data and field.default is _MISSING and field.default_factory is _MISSING:
            yield Fault((*path, name), "missing", f"add it: {_expectation(hints[name])}")


def _leaf_faults(data: Any, kind: Any, path: Path) -> Iterator[Fault]:
    try:
        msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        yield _from_msgspec(str(error), data, kind, path)
        return
    for inner, number in _numbers(data, path):
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            yield Fault(inner, f"expected an integer of at most 64 bits, got {describe(number)}")
        elif not math.isfinite(number):
            yield Fault(inner, f"expected a finite number, got {number}")


def _from_msgspec(message: str, data: Any, kind: Any, path: Path) -> Fault:
    found = _AT.match(message)
    if found:
        message = found["text"]
        path = (*path, *(int(step["index"]) for step in _STEP.finditer(found["path"])))
    words, value = _words_of(kind), _reach(data, path)
    if words:
        return Fault(
            path, f"expected one of {', '.join(words)}; got {describe(value)}", did_you_mean(str(value), words)
        )
    expected = message.split(", got")[0].replace("`", "")
    for ours, theirs in _WORDS.items():
        expected = re.sub(rf"\b{ours}\b", theirs, expected)
    return Fault(path, f"{expected[:1].lower()}{expected[1:]}, got {describe(value)}")


def _reach(data: Any, path: Path) -> Any:
    last = path[-1] if path else None
    return data[last] if isinstance(data, list) and isinstance(last, int) and last < len(data) else data


def _numbers(data: Any, path: Path) -> Iterator[tuple[Path, int | float]]:
    if isinstance(data, int | float) and not isinstance(data, bool):
        yield path, data
    elif isinstance(data, dict | list):
        for key, value in _pairs(data):
            yield from _numbers(value, (*path, key))


def _pairs(data: Any) -> list[tuple[str | int, Any]]:
    return list(data.items()) if isinstance(data, dict) else list(enumerate(data))


def _struct_of(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _item_of(kind: Any) -> tuple[type, Any] | None:
    """(container, element type) of ``tuple[Struct, ...]`` and of any dict; None for anything else."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis and _struct_of(args[0]):
        return list, args[0]
    if origin is dict:
        return dict, args[1]
    return None


def _words_of(kind: Any) -> list[str]:
    """The words of a Literal, also inside a union with None or as the items of an array."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _words_of(args[0])
    if origin is typing.Literal:
        return [str(word) for word in args]
    if origin is tuple:
        return _words_of(args[0])
    if origin is typing.Union or isinstance(kind, types.UnionType):
        return [word for arg in args for word in _words_of(arg)]
    return []


def _expectation(kind: Any) -> str:
    struct = _struct_of(kind)
    if struct is not None:
        return f"a table with {', '.join(struct.__struct_fields__)}"
    item = _item_of(kind)
    if item is not None:
        return f"{_word(item[0])} of tables"
    words = _words_of(kind)
    return f"one of {', '.join(words)}" if words else f"a value of type {_type_word(kind)}"


def _type_word(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return _type_word(typing.get_args(kind)[0])
    return _word(origin) if isinstance(origin, type) else _word(kind) if isinstance(kind, type) else str(kind)


def _word(kind: type) -> str:
    words = {**_WORDS, "dict": "a table", "list": "an array", "tuple": "an array"}
    return words.get(kind.__name__, kind.__name__)


@functools.cache
def _hints(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return typing.get_type_hints(struct, include_extras=True)
