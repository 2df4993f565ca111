"""Time by layer (``trtexec --exportProfile``) and what the layers are (``--exportLayerInfo``), of a TensorRT engine.

The profile holds a mean over its runs, under the profiler: layers one after another, each with a cost of its own, so
their sum is more than an inference takes. The information on layers holds the format and type of every tensor and no
time; without ``--profilingVerbosity=detailed`` it holds names only. Both name layers alike: given together, each is
completed by the other.

A layer is taken to compute in the type of its first input that is one to compute in; who reformats computes in none.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec

from trimtab.domain.dtypes import dtype_name
from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.summary import Layer, Summary
from trimtab.errors import DataError
from trimtab.readers._file import whole
from trimtab.readers._format import Format
from trimtab.readers._json import BROKEN, document, opening
from trimtab.readers._spans import report
from trimtab.readers._summed import MS, count, duration, number

PROFILE = "trtexec profile"
INFO = "trtexec layer information"
LARGEST = 64 << 20
LONGEST = 400
NO_LAYER = "no layer with a time"
NO_TYPE = "no layer with its types"
MEANS = "means over profiled runs, layer by layer: their sum is more than an inference takes"
TIMES = "time by layer of the same engine, in the same command (trtexec --exportProfile)"
TYPES = "what the layers are, in the same command (trtexec --exportLayerInfo --profilingVerbosity=detailed)"
_MOVES = re.compile(r"^Reformatting CopyNode|^Reformat", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+[0-9]+(?:E[0-9]M[0-9])?|Float|Half|Double", re.IGNORECASE)


class _Timed(msgspec.Struct, gc=False):
    name: str = ""
    count: int | float | None = None
    mean: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="averageMs")
    share: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="percentage")


class _Tensor(msgspec.Struct, gc=False):
    format: str = msgspec.field(default="", name="Format/Datatype")
    type: str = msgspec.field(default="", name="Datatype")


class _Layer(msgspec.Struct, gc=False):
    name: str = msgspec.field(default="", name="Name")
    kind: str = msgspec.field(default="", name="LayerType")
    inputs: list[_Tensor] = msgspec.field(default=[], name="Inputs")
    outputs: list[_Tensor] = msgspec.field(default=[], name="Outputs")


class _Info(msgspec.Struct, gc=False):
    layers: list[_Layer | str] = msgspec.field(name="Layers")


def read_profile(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """The layers of a profile with their mean times. DataError for what is no whole profile."""
    rows = document(path, whole(path, LARGEST), list[_Timed], PROFILE, "export it again")
    runs = next((count(row.count) for row in rows if row.count is not None and not row.name), None)
    named = [row for row in rows if row.count is None or row.name]
    timed = [(row, duration(_number(row.mean), MS)) for row in named]
    layers = tuple(
        Layer(name=row.name[:LONGEST], took=took, moves=bool(_MOVES.match(row.name)))
        for row, took in timed
        if row.name and took != NEVER
    )
    told = report(
        path, PROFILE, rows=len(named), used=len(layers), unit="layers",
        dropped=Counter({NO_LAYER: len(named) - len(layers)}), strict=strict, notes=(MEANS,),
    )  # fmt: skip
    share = sum(_number(row.share) or 0.0 for row in named)
    facts = {"runs": str(runs)} if runs else {}
    if 0 < share < 99:
        facts["share of the profile that this file holds"] = f"{share:.1f} %"
    return Summary(tool=PROFILE, layers=layers, facts=facts, instead=TYPES), told


def read_info(path: Path, strict: bool) -> tuple[Summary, ReadReport]:
    """The layers of an engine with their types. DataError for names only, and for what is no whole file."""
    rows = document(path, whole(path, LARGEST), _Info, INFO, "export it again").layers
    if rows and all(isinstance(row, str) for row in rows):
        raise DataError(
            f"{path.name} holds the names of layers only", where=str(path),
            fix="build the engine with --profilingVerbosity=detailed, and export it again",
        )  # fmt: skip
    layers = tuple(_typed(row) for row in rows if isinstance(row, _Layer) and row.name)
    told = report(
        path, INFO, rows=len(rows), used=len(layers), unit="layers",
        dropped=Counter({NO_TYPE: len(rows) - len(layers)}), strict=strict,
    )  # fmt: skip
    return Summary(tool=INFO, layers=layers, instead=TIMES), told


def _typed(row: _Layer) -> Layer:
    reads, writes = _type(row.inputs), _type(row.outputs)
    moves = bool(_MOVES.match(row.kind))
    return Layer(
        name=row.name[:LONGEST],
        kind=row.kind[:80],
        dtype="" if moves else reads,
        reads=reads,
        writes=writes,
        moves=moves,
    )


def _type(tensors: list[_Tensor]) -> str:
    """The first type to compute in among the tensors; "" where there is none (indices, shapes)."""
    words = (word for one in tensors for word in _WORD.findall(f"{one.type} {one.format}"[:LONGEST]))
    return next((name for word in words if (name := dtype_name(word))), "")


def _number(raw: msgspec.Raw) -> float | None:
    try:
        return number(msgspec.json.decode(raw, type=float))
    except BROKEN:
        return None


def holds_profile(head: bytes) -> bool:
    """An array of layers with their mean times."""
    start = opening(head)[:8192]
    return start.startswith(b"[") and b'"averageMs"' in start and b'"timeMs"' in start


def holds_info(head: bytes) -> bool:
    """An object whose first key is that of the layers."""
    return re.match(rb'\{\s*"Layers"\s*:\s*\[', opening(head)) is not None


FORMAT_PROFILE = Format(PROFILE, holds_profile, read_profile)
FORMAT_INFO = Format(INFO, holds_info, read_info)
