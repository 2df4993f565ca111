"""A profile that ONNX Runtime wrote (``enable_profiling``): runs of the network, their operators, loading before them.

What repeats others is counted and not read: the executor inside a run, fences around an operator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER
from trimtab.domain.spans import KIND, Spans
from trimtab.readers._format import Format
from trimtab.readers._runs import set_run_shapes
from trimtab.readers._shapes import NOTHING, Written, ort_inputs
from trimtab.readers._spans import Codes, report, table, texts
from trimtab.readers._walk import Event, Walk
from trimtab.readers.chrome import lane_text

NAME = "ONNX Runtime profile"
_TIME = "_kernel_time"
_NODE, _SESSION, _KERNEL = "Node", "Session", "Kernel"
_REPEATS = ("_fence_before", "_fence_after", "Executor::Execute")


class _Args(msgspec.Struct, gc=False):
    operator: str = msgspec.field(default="", name="op_name")
    provider: str = ""
    inputs: msgspec.Raw = msgspec.field(default=NOTHING, name="input_type_shape")


_NO_ARGS = _Args()


class _Profiled(Event, gc=False):
    args: _Args | None = None


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The spans of ``path``, and how they were read. DataError for what is no such profile, or has no span."""
    written = Written(ort_inputs)
    operators: Codes[str] = Codes()
    providers: Codes[str] = Codes()

    def more(events: list[_Profiled]) -> dict[str, NDArray[Any]]:
        args = [event.args or _NO_ARGS for event in events]
        return {
            "inputs": written.add([bytes(one.inputs) for one in args]),
            "operator": np.array([operators[one.operator] for one in args], dtype=np.int32),
            "provider": np.array([providers[one.provider] for one in args], dtype=np.int32),
        }

    walk = Walk(path, _Profiled, more)
    walk.read()
    columns, names = dict(walk.columns), texts(walk.names)
    repeats = np.array([name.endswith(_REPEATS) for name in names], dtype=bool)
    again = repeats[columns["name"]] if columns else np.zeros(0, dtype=bool)
    columns = {name: column[~again] for name, column in columns.items()}
    used, doubled = int((~again).sum()), int(again.sum())
    read = report(
        path, NAME, rows=walk.events.seen, used=used, unit="events", dropped=walk.dropped, strict=strict,
        ignored=(*walk.ignored, *((f"{doubled} fences and executors, around what is read",) if doubled else ())),
        notes=walk.notes,
    )  # fmt: skip
    columns["kind"] = _kinds(columns, names, texts(walk.cats))
    columns["shape"], columns["dtype"], shapes, dtypes = written.columns(columns["inputs"])
    columns["device"] = np.where(columns["kind"] == KIND["kernel"], 0, NEVER)
    columns["name"], named = _named(columns, names, texts(operators))
    found = table(columns, used)
    set_run_shapes(found)
    spans = Spans(
        tool=NAME, table=found, names=named, shapes=shapes, dtypes=dtypes, complete=walk.events.complete,
        lanes=(*(lane_text(pid, tid, "") for pid, tid in walk.lanes), "(other lanes)"),
        facts=_facts(columns, texts(providers)),
    )  # fmt: skip
    return spans, read


def _kinds(columns: dict[str, NDArray[Any]], names: tuple[str, ...], cats: tuple[str, ...]) -> NDArray[np.int8]:
    by_cat = {_NODE: "op", _KERNEL: "kernel"}
    kind: NDArray[np.int8] = np.array([KIND[by_cat.get(name, "other")] for name in cats], np.int8)[columns["cat"]]
    by_name = np.array([KIND[_session_kind(name)] for name in names], dtype=np.int8)[columns["name"]]
    session = np.array([name == _SESSION for name in cats])[columns["cat"]]
    kind[session] = by_name[session]
    return kind


def _session_kind(name: str) -> str:
    if name == "model_run":
        return "run"
    return "compile" if name.startswith(("session_initialization", "model_loading")) else "other"


def _named(
    columns: dict[str, NDArray[Any]], names: tuple[str, ...], operators: tuple[str, ...]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Operators are named by what they are and which node: ``Conv conv1``."""
    codes: Codes[str] = Codes()
    pairs = columns["name"].astype(np.int64) * len(operators) + columns["operator"]
    unique, inverse = np.unique(pairs, return_inverse=True)
    parts = (divmod(pair, len(operators)) for pair in unique.tolist())
    own = [codes[f"{operators[kind]} {names[name].removesuffix(_TIME)}".strip()] for name, kind in parts]
    return np.array(own, dtype=np.int32)[inverse], codes.names()


def _facts(columns: dict[str, NDArray[Any]], providers: tuple[str, ...]) -> dict[str, str]:
    """Operators by execution provider."""
    ops = columns["provider"][columns["kind"] == KIND["op"]]
    counts = {providers[code]: int((ops == code).sum()) for code in np.unique(ops)}
    return {f"operators on {name}": str(count) for name, count in counts.items() if name}


def holds(head: bytes) -> bool:
    """An array that begins with the loading of a model or with an operator of a node."""
    compact = head.replace(b" ", b"")
    start = compact.lstrip(b"\xef\xbb\xbf\t\r\n")
    return start.startswith(b"[") and (b'"cat":"Session"' in compact or b'"cat":"Node"' in compact)


FORMAT = Format(NAME, holds, read)
