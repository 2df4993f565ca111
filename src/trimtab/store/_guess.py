"""Which column of a trace is what, by name and by content. A guess: the study that it goes into says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from trimtab.domain.study import TimeUnit

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
_OUTPUT_WORDS = ("output", "generated", "decode", "latency", "duration", "id")
_MOST_STREAMS = 1000
_EPOCHS: tuple[tuple[float, TimeUnit], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e8, "s"))


def dim_name(given: str, axis: int, axes: int) -> str:
    """A plain name for a dynamic axis: the file's own, made safe, or one by the usual layouts."""
    plain = re.sub(r"[^a-z0-9_]+", "_", given.lower()).strip("_")
    if plain and not plain.isdigit() and plain != "batch":
        return plain
    usual = {(4, 2): "height", (4, 3): "width", (2, 1): "length", (3, 1): "length"}
    return usual.get((axes, axis), f"axis{axis}")


def guess_time(columns: Columns) -> str:
    """The column of arrival times: in order, and named or written like times; empty if there is none."""
    ordered = [name for name, values in columns.items() if _in_order(values)]
    written = [name for name in ordered if _ISO.match(next((v for v in columns[name] if v), ""))]
    named = [name for name in ordered if any(word in name.lower() for word in _TIME_WORDS)]
    short = [name for name in ordered if re.fullmatch(r"t|ts|t_(s|ms|us|ns)", name.lower())]
    return next(iter([*written, *named, *short]), "")


def guess_unit(name: str, values: Sequence[Text]) -> TimeUnit:
    """The unit of a time column: by how it is written, by its name's ending, by the size of a present-day epoch."""
    first = next((value for value in values if value), "")
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
    """A column of positive whole numbers for each dim, the likest names paired first; empty where none is left."""
    free = [name for name, values in columns.items() if name != time and _sizes(values)]
    found = dict.fromkeys(dims, "")
    pairs = [(dim, name) for dim in dims for name in free]
    for dim, name in sorted(pairs, key=lambda pair: -_likeness(*pair)):
        if not found[dim] and name not in found.values():
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
    kind = next((kind for kind in _SIZE_WORDS if kind in dim or dim in _SIZE_WORDS[kind]), dim)
    words = (dim, *_SIZE_WORDS.get(kind, ()))
    exact = 8 if low == dim else 0
    named = 4 if any(low == word or (len(word) > 1 and word in low) for word in words) else 0
    ending = 2 if any(low.endswith(f"_{word}") for word in words) else 0
    return exact + named + ending - (3 if any(word in low for word in _OUTPUT_WORDS) else 0)
