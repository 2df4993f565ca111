"""The first study of a user: a commented TOML text from a network's dims and a trace's columns.

Every guess is marked as one. The text is a valid study whenever the trace has usable columns, so the loop runs with it
at once; the comments say what to decide before its verdict means anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit

from trimtab.domain.noun import BATCH
from trimtab.domain.study import DType
from trimtab.errors import ModelError
from trimtab.store._guess import Text, dim_name, guess_sizes, guess_stream, guess_time, guess_unit

FILL_IN = "FILL IN"
_RULE = "# ----------------------------------------------------------------------------------------------"


class DraftInput(NamedTuple):
    """One input of the network. In ``shape`` a text or None is a dynamic axis (its name, if the file gives one)."""

    name: str
    shape: tuple[int | str | None, ...]
    dtype: DType = "f32"


class DraftModel(NamedTuple):
    """The network as its file describes it; ``path`` is relative to where the study will be."""

    path: str
    inputs: tuple[DraftInput, ...]
    outputs: tuple[str, ...]
    sha256: str = ""


class DraftTrace(NamedTuple):
    """The trace: ``path`` relative to where the study will be, and the first values of each column, as text."""

    path: str
    columns: Mapping[str, Sequence[Text]]


def draft_study(name: str, model: DraftModel, trace: DraftTrace, cores: Sequence[int], backend: str) -> str:
    """A commented study. ``cores`` are those of this machine that may be used; the last becomes the driver's.

    ModelError for a network that has no dim besides its batch: a study is about shapes that change.
    """
    shapes = [tuple(_axis(spec, k) for k in range(len(spec.shape))) for spec in model.inputs]
    dims = list(dict.fromkeys(size for shape in shapes for size in shape if isinstance(size, str) and size != BATCH))
    if not dims:
        raise ModelError(
            "no size of this network changes besides its batch: there is no mapping to study",
            where=model.path,
            fix="export it with dynamic axes (named sizes instead of numbers), and give a trace of their sizes",
        )
    time = guess_time(trace.columns)
    columns = guess_sizes(trace.columns, dims, time)
    ranges = {dim: _range(trace.columns.get(columns[dim], ())) for dim in dims}
    has_batch = bool(shapes) and all(BATCH in shape for shape in shapes)
    return "\n".join(
        [
            *_opening(name),
            *_model(model, shapes),
            *_dims(ranges, len(next(iter(trace.columns.values()), ()))),
            *_workload(trace, time, columns),
            *_sla(),
            *_envelope(cores),
            *_baseline(backend, ranges),
            *_space(has_batch),
            *_rest(),
        ]
    )


def _axis(spec: DraftInput, axis: int) -> int | str:
    size = spec.shape[axis]
    if isinstance(size, int) and size > 0:
        return size
    if axis == 0 and len(spec.shape) > 1:
        return BATCH
    return dim_name(size if isinstance(size, str) else "", axis, len(spec.shape))


def _range(values: Sequence[Text]) -> tuple[int, int]:
    sizes = [int(float(value)) for value in values if value]
    return (min(sizes), max(sizes)) if sizes else (1, 1)


def _opening(name: str) -> list[str]:
    return [
        "# A study holds everything that a run depends on. Lines marked GUESS or CHOOSE need your eye.",
        "# Check it with `trimtab run`: every fault is reported with its line. `trimtab schema` helps editors.",
        "",
        f"name = {_toml(_folder_name(name))}",
        "schema = 1",
    ]


def _model(model: DraftModel, shapes: Sequence[tuple[int | str, ...]]) -> list[str]:
    lines = [
        *_section("The network"),
        "[model]",
        f"path = {_toml(model.path)}  # relative to this file",
        'revision = "1"  # CHOOSE: the version that you know it by',
        f"{'' if model.sha256 else '# '}sha256 = {_toml(model.sha256)}  # pins the file; without it any is accepted",
    ]
    for spec, shape in zip(model.inputs, shapes, strict=True):
        lines += [
            "",
            "[[model.inputs]]",
            f"name = {_toml(spec.name)}",
            f'shape = {_toml(list(shape))}  # "{BATCH}" is the batch axis; other names are dims',
            f"dtype = {_toml(spec.dtype)}",
            "pad = 0.0  # CHOOSE: the value that fills this input up to a larger shape",
        ]
    for output in model.outputs:
        lines += [
            "",
            "[[model.outputs]]",
            f"name = {_toml(output)}",
            "# CHOOSE: if its size follows a dim, say which part of a padded output is real:",
            '# crop = [{ axis = 1, dim = "width", up = 1, down = 8 }]',
        ]
    return lines


def _dims(ranges: Mapping[str, tuple[int, int]], rows: int) -> list[str]:
    lines = [*_section("The dims that change from request to request: the range that the network accepts")]
    for dim, (lo, hi) in ranges.items():
        lines += [
            f"[dims.{_toml_key(dim)}]  # GUESS: what the first {rows} rows of the trace hold",
            f"lo = {lo}",
            f"hi = {hi}",
            "",
        ]
    return lines[:-1]


def _workload(trace: DraftTrace, time: str, columns: Mapping[str, str]) -> list[str]:
    stream = guess_stream(trace.columns, {time, *columns.values()})
    mapped = ", ".join(f"{_toml_key(dim)} = {_toml(column or FILL_IN)}" for dim, column in columns.items())
    return [
        *_section("The traffic"),
        "[workload]",
        "# rate = 20.0  # requests/s; arrivals are stretched in time to reach it. Left out: as recorded",
        "# limit = 5000  # use only so many rows",
        "tune_share = 0.4  # the first share of the time is for tuning, the rest judges",
        "",
        "[workload.arrivals]",
        f"file = {_toml(trace.path)}  # relative to this file",
        f"time = {_toml(time or FILL_IN)}  # GUESS; columns: {_comment(', '.join(trace.columns))}",
        f"unit = {_toml(guess_unit(time, trace.columns.get(time, ())))}  # GUESS: s, ms, us, ns or iso",
        "",
        "[workload.shapes]",
        f"dims = {{ {mapped} }}  # GUESS: dim = column",
        f"stream = {_toml(stream)}  # GUESS: the column of the client; empty: all requests are one stream",
        '# file = "shapes.csv"  # a second file, joined row by row, if the trace has no shapes of its own',
        "",
        "[workload.payload]",
        'kind = "random"  # may time, never judges quality; "real" or "rendered" need a bank:',
        '# bank = "payloads.npz"  # arrays <input>/<key>, one request each',
    ]


def _sla() -> list[str]:
    return [
        *_section("The target: ONE primary metric (p50, p95, p99 or goodput) and its bound"),
        "[sla]",
        'metric = "p95"  # CHOOSE',
        "bound_ms = 100.0  # CHOOSE",
        "# deadline_ms = 1000.0  # a request later than this counts as failed",
        "",
        "[quality]",
        'precision = "f32"  # what is declared; what really runs is measured',
        'metric = "argmax-agreement"  # CHOOSE: argmax-agreement, max-error, cosine or neighbour-agreement',
        "floor = 0.99  # CHOOSE",
        'reference = "onnxruntime"',
    ]


def _envelope(cores: Sequence[int]) -> list[str]:
    driver = cores[-1] if cores else 0
    return [
        *_section("The machine that the plan assumes; each line is probed and checked during the run"),
        "[envelope]",
        f"cores = {_toml(list(cores))}  # those that may be used",
        f"driver_core = {driver}  # the load generator's; workers get the others",
        '# memory_gib = 8.0, quota_cores = 2.0, governor = "performance", virtual = false: one a line',
    ]


def _baseline(backend: str, ranges: Mapping[str, tuple[int, int]]) -> list[str]:
    lo = [lo for lo, _ in ranges.values()]
    hi = [hi for _, hi in ranges.values()]
    return [
        *_section("The plan that runs today, which every other one is compared with"),
        "[baseline]",
        'id = "today"',
        "",
        "[baseline.compile]",
        f"backend = {_toml(backend)}  # `trimtab backends` lists them",
        f'entries = [{{ id = "any", kind = "dynamic", lo = {_toml(lo)}, hi = {_toml(hi)} }}]',
        'fallback = "any"  # takes shapes outside every range; without it they are rejected',
        "",
        "[baseline.serve]",
        "workers = 1",
        "threads = 1",
    ]


def _space(has_batch: bool) -> list[str]:
    batches = 'batches = [{ kind = "size-hold", max_size = 4, hold_ms = 5.0 }]'
    return [
        *_section("What retuning may try besides the baseline"),
        "[space]",
        "buckets = [4, 8]  # so many padded entries, fitted to the tune slice",
        "warm_shapes = [8, 16]  # warm the so many most frequent shapes at start",
        batches if has_batch else f"# {batches}  # the network has no batch axis",
        "max_entries = 12",
    ]


def _rest() -> list[str]:
    return [
        *_section("What must not get worse, by more than a share of the baseline"),
        "[[guards]]",
        'metric = "p99"',
        "margin = 0.10",
        "",
        "# Who answers for what; fewer required roles print as a reduced sign-off",
        "[owners]",
        '# compiler = "name"',
        '# runtime = "name"',
        '# observability = "name"',
        "",
        "# [signoff.keys]  # the line of each owner's .pub file; can be named after the run as well",
        '# runtime = "ssh-ed25519 AAAA... name"',
        "",
        "[budget]",
        'time = "10m"',
        "",
    ]


def _section(title: str) -> list[str]:
    return ["", _RULE, f"# {title}", ""]


def _folder_name(name: str) -> str:
    """``name`` with what a folder's name should not hold replaced; a run's packet is named after it."""
    return re.sub(r"[^A-Za-z0-9._ -]+", "-", name).strip(".- ")[:80] or "study"


def _toml(value: Any) -> str:
    return str(tomlkit.item(value).as_string())


def _toml_key(key: str) -> str:
    return tomlkit.key(key).as_string()


def _comment(text: str) -> str:
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 200 else f"{printable[:197]}..."
