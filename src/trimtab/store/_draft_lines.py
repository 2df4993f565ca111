"""The parts of a drafted study, each a list of lines, and what they are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit

from trimtab.domain.noun import BATCH
from trimtab.domain.study import DType
from trimtab.store._axes import Axis, Follows
from trimtab.store._guess import Text, guess_random, guess_unit

FILL_IN = "FILL IN"
BUDGET_MIN = 10
_RULE = "# ----------------------------------------------------------------------------------------------"


class DraftInput(NamedTuple):
    """One input of the network. In ``shape`` a text or None is an open axis (its name, if the file gives one)."""

    name: str
    shape: tuple[Axis, ...]
    dtype: DType = "f32"


class DraftOutput(NamedTuple):
    """One output; ``shape`` as of an input, None where the file gives none."""

    name: str
    shape: tuple[Axis, ...] | None = None


class DraftModel(NamedTuple):
    """The network as its file describes it; ``path`` is relative to where the study will be."""

    path: str
    inputs: tuple[DraftInput, ...]
    outputs: tuple[DraftOutput, ...]
    sha256: str = ""


class DraftTrace(NamedTuple):
    """The trace: ``path`` relative to where the study will be, and the first values of each column, as text."""

    path: str
    columns: Mapping[str, Sequence[Text]]


class Facts(NamedTuple):
    """What is known beside names: the range of each dim over ``rows`` of the trace, the rate to replay at (None: as
    recorded), the SLA's bound, and how long a run may take. ``why``: what the rate and the bound were taken from."""

    ranges: Mapping[str, tuple[int, int]]
    rows: int
    rate: float | None = None
    rate_why: str = ""
    bound_ms: float = 100.0
    bound_why: str = ""
    minutes: int = BUDGET_MIN


class Guessed(NamedTuple):
    """Which columns of the trace are what."""

    time: str
    sizes: Mapping[str, str]
    stream: str


def opening(name: str) -> list[str]:
    return [
        "# A study holds everything that a run depends on. Lines marked GUESS or CHOOSE need your eye.",
        "# Check it with `trimtab workload`: every fault is reported with its line. `trimtab schema` helps editors.",
        "",
        f"name = {_toml(_folder_name(name))}",
        "schema = 1",
    ]


def model(spec: DraftModel) -> list[str]:
    return [
        *_section("The network"),
        "[model]",
        f"path = {_toml(spec.path)}  # relative to this file",
        'revision = "1"  # CHOOSE: the version that you know it by',
        f"{'' if spec.sha256 else '# '}sha256 = {_toml(spec.sha256)}  # pins the file; without it any is accepted",
    ]


def inputs(specs: Sequence[DraftInput], shapes: Sequence[tuple[int | str, ...]]) -> list[str]:
    lines: list[str] = []
    for spec, shape in zip(specs, shapes, strict=True):
        lines += [
            "",
            "[[model.inputs]]",
            f"name = {_toml(spec.name)}",
            f'shape = {_toml(list(shape))}  # "{BATCH}" is the batch axis; other names are dims',
            f"dtype = {_toml(spec.dtype)}",
            "pad = 0.0  # CHOOSE: the value that fills this input up to a larger shape",
        ]
        drawn = guess_random(spec.name, spec.dtype)
        if drawn is not None:
            lines.append(f"random = {_toml(list(drawn))}  # GUESS, by its name: lowest and highest of random payloads")
    return lines


def outputs(specs: Sequence[DraftOutput], open_axes: Sequence[tuple[Follows, ...] | None]) -> list[str]:
    lines: list[str] = []
    for output, axes in zip(specs, open_axes, strict=True):
        lines += ["", "[[model.outputs]]", f"name = {_toml(output.name)}", *_crop(axes)]
    return lines


def _crop(axes: tuple[Follows, ...] | None) -> list[str]:
    """Which part of a padded output is real: known where the file gives its axis the name of an input's."""
    if axes == ():
        return []
    sure = [each for each in axes or () if each.dim]
    if sure and sure == list(axes or ()):
        rules = ", ".join(f"{{ axis = {each.axis}, dim = {_toml(each.dim)} }}" for each in sure)
        return [f"crop = [{rules}]  # GUESS, by the names in the file: what is real of a padded output"]
    return [
        "# CHOOSE: if its size follows a dim, say which part of a padded output is real:",
        '# crop = [{ axis = 1, dim = "width", up = 1, down = 8 }]',
    ]


def dims(known: Facts) -> list[str]:
    lines = [*_section("The dims that change from request to request: the range that the network accepts")]
    for dim, (lo, hi) in known.ranges.items():
        lines += [
            f"[dims.{_toml_key(dim)}]  # GUESS: what {known.rows} rows of the trace hold; widen it to what it accepts",
            f"lo = {lo}",
            f"hi = {hi}",
            "",
        ]
    return lines[:-1]


def workload(trace: DraftTrace, guessed: Guessed, known: Facts) -> list[str]:
    time, sizes = guessed.time, guessed.sizes
    mapped = ", ".join(f"{_toml_key(dim)} = {_toml(column or FILL_IN)}" for dim, column in sizes.items())
    return [
        *_section("The traffic"),
        "[workload]",
        _rate(known),
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
        f"stream = {_toml(guessed.stream)}  # GUESS: the column of the client; empty: all requests are one stream",
        '# file = "shapes.csv"  # a second file, joined row by row, if the trace has no shapes of its own',
        "",
        "[workload.payload]",
        'kind = "random"  # may time, never judges quality; "real" or "rendered" need a bank:',
        '# bank = "payloads.npz"  # arrays <input>/<key>, one request each',
    ]


def _rate(known: Facts) -> str:
    if known.rate is not None:
        return f"rate = {known.rate}  # GUESS, requests/s: {known.rate_why}. Remove the line to replay as recorded"
    return "# rate = 20.0  # requests/s; arrivals are stretched in time to reach it. Left out: as recorded"


def sla(known: Facts) -> list[str]:
    return [
        *_section("The target: ONE primary metric (p50, p95, p99 or goodput) and its bound"),
        "[sla]",
        'metric = "p95"  # CHOOSE',
        f"bound_ms = {known.bound_ms}  # CHOOSE{f'; {known.bound_why}' if known.bound_why else ''}",
        "# deadline_ms = 1000.0  # a request later than this counts as failed",
        "",
        "[quality]",
        'precision = "f32"  # what is declared; what really runs is measured',
        'metric = "argmax-agreement"  # CHOOSE: argmax-agreement, max-error, cosine or neighbour-agreement',
        "floor = 0.99  # CHOOSE",
        'reference = "onnxruntime"',
    ]


def envelope(cores: Sequence[int]) -> list[str]:
    driver = cores[-1] if cores else 0
    return [
        *_section("The machine that the plan assumes; each line is probed and checked during the run"),
        "[envelope]",
        f"cores = {_toml(list(cores))}  # those that may be used",
        f"driver_core = {driver}  # the load generator's; workers get the others",
        '# memory_gib = 8.0, quota_cores = 2.0, governor = "performance", virtual = false: one a line',
    ]


def baseline(backend: str, ranges: Mapping[str, tuple[int, int]]) -> list[str]:
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


def space(has_batch: bool) -> list[str]:
    batches = 'batches = [{ kind = "size-hold", max_size = 4, hold_ms = 5.0 }]'
    return [
        *_section("What retuning may try besides the baseline"),
        "[space]",
        "buckets = [4, 8]  # so many padded entries, fitted to the tune slice",
        "warm_shapes = [8, 16]  # warm the so many most frequent shapes at start",
        batches if has_batch else f"# {batches}  # the network has no batch axis",
        "max_entries = 12",
    ]


def rest(minutes: int) -> list[str]:
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
        f'time = "{minutes}m"  # an aim: less time, fewer requests in each replay',
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
