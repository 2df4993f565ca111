"""Which column of a trace is what, by name and by content. A guess: the study that it goes into says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from trimtab.domain.study import DType, TimeUnit

Text = str | None
Columns = Mapping[str, Sequence[Text]]

_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_TIME_WORDS = ("time", "arriv", "start", "sched", "date")
_STREAM_WORDS = ("stream", "client", "user", "tenant", "customer", "session", "image", "camera", "app")
_SIZE_WORDS = {
    "width": ("width", "image_w", "w", "px", "cols"),
    "height": ("height", "image_h", "h", "rows"),
    "length": ("length", "len", "context", "prompt", "prefill", "input", "token", "seq", "chars"),
}
_OUTPUT = re.compile(r"output|generated|decode|latency|duration|(^|_)id$")
_RANDOM = {"mask": (1, 1), "type_ids": (0, 0), "segment": (0, 0), "position": (0, 0)}
"""Inputs that are no contents: numbers drawn for them would hide the contents, or point outside of a small table."""
_MOST_STREAMS = 1000
_EPOCHS: tuple[tuple[float, TimeUnit], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e8, "s"))


def guess_random(name: str, dtype: DType) -> tuple[int, int] | None:
    """Lowest and highest of what random payloads put into an integer input of this name; None: nothing is known."""
    if dtype not in ("i64", "i32", "u8"):
        return None
    return next((drawn for word, drawn in _RANDOM.items() if word in name.lower()), None)


def guess_time(columns: Columns) -> str:
    """The column of arrival times: named or written like times, those in order first; empty if there is none."""
    ordered = [name for name, values in columns.items() if _in_order(values)]
    written = [name for name in ordered if _ISO.match(_first(columns[name]))]
    named = [name for name in ordered if any(word in name.lower() for word in _TIME_WORDS)]
    short = [name for name in ordered if re.fullmatch(r"t|ts|t_(s|ms|us|ns)", name.lower())]
    unsorted = [name for name, values in columns.items() if _ISO.match(_first(values)) or _named_time(name, values)]
    return next(iter([*written, *named, *short, *unsorted]), "")


def _named_time(name: str, values: Sequence[Text]) -> bool:
    numbers = bool(values) and all(value is not None and _NUMBER.fullmatch(value) for value in values)
    return numbers and any(word in name.lower() for word in _TIME_WORDS)


def _first(values: Sequence[Text]) -> str:
    return next((value for value in values if value), "")


def guess_unit(name: str, values: Sequence[Text]) -> TimeUnit:
    """The unit of a time column: by how it is written, by its name's ending, by the size of a present-day epoch."""
    first = _first(values)
    if _ISO.match(first):
        return "iso"
    units: dict[str, TimeUnit] = {"s": "s", "sec": "s", "ms": "ms", "us": "us", "ns": "ns"}
    ending = re.split(r"[_.]", name.lower())[-1]
    if ending in units:
        return units[ending]
    if not _NUMBER.fullmatch(first):
        return "s"
    by_size = next((unit for least, unit in _EPOCHS if float(first) >= least), None)
    if by_size is not None:
        return by_size
    return "ms" if all(value is None or value.isdigit() for value in values) else "s"


def guess_sizes(columns: Columns, dims: Sequence[str], time: str) -> dict[str, str]:
    """A column of positive whole numbers for each dim, the likest names paired first. Empty where no name is like it,
    but for one dim and one column, which need no name."""
    free = [name for name, values in columns.items() if name != time and _sizes(values)]
    found = dict.fromkeys(dims, "")
    least = 0 if len(dims) == len(free) == 1 else 1
    likely = [(_likeness(dim, name), dim, name) for dim in dims for name in free]
    for likeness, dim, name in sorted(likely, key=lambda each: -each[0]):
        if likeness >= least and not found[dim] and name not in found.values():
            found[dim] = name
    return found


def guess_stream(columns: Columns, taken: Collection[str]) -> str:
    """A column that is named like a client and repeats its values; empty if there is none."""
    for name, values in columns.items():
        kinds = len(set(values))
        named = any(word in name.lower() for word in _STREAM_WORDS) and not _sizes_named(name)
        if name not in taken and named and None not in values and kinds <= min(_MOST_STREAMS, len(values) // 2):
            return name
    return ""


def _in_order(values: Sequence[Text]) -> bool:
    if not values or any(value is None for value in values):
        return False
    texts = [value for value in values if value is not None]
    if all(_ISO.match(text) for text in texts):
        return texts == sorted(texts)
    if not all(_NUMBER.fullmatch(text) for text in texts):
        return False
    numbers = [float(text) for text in texts]
    return numbers == sorted(numbers) and numbers[0] >= 0


def _sizes(values: Sequence[Text]) -> bool:
    if not values:
        return False
    for value in values:
        if value is None or not _NUMBER.fullmatch(value):
            return False
        number = float(value)
        if not 1 <= number < 2**31 or number != int(number):
            return False
    return True


def _sizes_named(name: str) -> bool:
    return re.search(r"_(w|h|width|height|count|tokens|chars)$", name.lower()) is not None


def _likeness(dim: str, name: str) -> int:
    low = name.lower()
    kind = next((kind for kind, words in _SIZE_WORDS.items() if _has_word(dim, words)), dim)
    words = (dim, *_SIZE_WORDS.get(kind, ()))
    exact = 8 if low == dim else 0
    named = 4 if _has_word(low, words) else 0
    ending = 2 if any(low.endswith(f"_{word}") for word in words) else 0
    return exact + named + ending - (3 if _OUTPUT.search(low) else 0)


def _has_word(name: str, words: Sequence[str]) -> bool:
    """Short words must be the whole name: many names hold their letters."""
    return any(name == word or (len(word) > 2 and word in name) for word in words)
