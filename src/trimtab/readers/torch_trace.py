"""A structured trace of torch.compile (the folder that TORCH_TRACE names): one file a rank, one compile after another.

A line is a glog prefix and a JSON object with one key that says what it is; lines that begin with a tab are the payload
of the object before them. A compile is what bears the same rank, frame_id and frame_compile_id: it starts
(``dynamo_start``), may tell why it had to be (``recompile_reasons``), what its caches said, and ends with
``compilation_metrics``. Of the payloads only those reasons are read.

How long a compile took has borne several names; the first that is there counts. Without metrics it did not end.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from trimtab.domain.imported import ReadReport
from trimtab.domain.noun import NEVER, Ns
from trimtab.domain.spans import Compilation, Spans
from trimtab.errors import DataError
from trimtab.readers._file import byte_lines, open_bytes
from trimtab.readers._format import Format
from trimtab.readers._json import BROKEN
from trimtab.readers._spans import report, table

NAME = "torch.compile trace"
MOST_COMPILES = 100_000
MOST_REASONS = 64
LONGEST_REASON = 500
MOST_PAYLOAD = 1 << 20
NO_JSON = "a line that is no JSON object"
NO_LINE = "a line of no known form"
UNFINISHED = "compiles that did not end in this file"
_LINE = re.compile(
    rb"(?:\[rank(?P<rank>\d{1,6})\]:)?[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{3,9} \d+ [^\]]*\] (?P<json>\{.*)", re.S
)
_CACHE = re.compile(r"(?:fx_graph|aotautograd)_cache_(hit|miss|bypass)")
_LIMIT = re.compile(r"exceeding the (\w+limit)\b.*?currently set to (\d+)", re.S)
_RANKING = ("", "hit", "bypass", "miss")
_TOOK = (("duration_us", 1e3), ("entire_frame_compile_time_s", 1e9), ("dynamo_cumulative_compile_time_us", 1e3))
_START = (("start_time_us", 1e3), ("start_time", 1e9))


class _Artifact(msgspec.Struct, gc=False):
    name: str = ""


class _Line(msgspec.Struct, gc=False):
    """What a line may hold; the many other keys are skipped."""

    compilation_metrics: dict[str, Any] | None = None
    dynamo_start: msgspec.Raw = msgspec.Raw(b"")
    artifact: _Artifact | None = None
    frame_id: int | None = None
    frame_compile_id: int | None = None
    compiled_autograd_id: int | None = None
    rank: int | None = None
    has_payload: str | None = None


class _Draft:
    """One compile while its lines are read."""

    def __init__(self, id: str, rank: int, again: bool) -> None:  # noqa: A002 - the word of the noun
        self.id, self.rank, self.again = id, rank, again
        self.code = ""
        self.reasons: tuple[str, ...] = ()
        self.cache = ""
        self.metrics: dict[str, Any] | None = None


_Key = tuple[int, int | None, int, int]


class _Compiles:
    """The compiles of one file, in the order in which they start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.drafts: dict[_Key, _Draft] = {}
        self.ignored: Counter[str] = Counter()

    def take(self, line: _Line, rank: int) -> _Draft | None:
        """Note one line; the compile whose payload follows, if it is one that is read."""
        draft = self._draft(line, rank)
        if draft is None:
            return None
        if line.compilation_metrics is not None:
            draft.metrics = line.compilation_metrics
            return None
        if line.artifact is None:
            return None
        if line.artifact.name == "recompile_reasons":
            return draft if line.has_payload is not None else None
        cached = _CACHE.fullmatch(line.artifact.name)
        if cached:  # two caches: one miss is a compile, whatever the other says
            draft.cache = max(draft.cache, cached[1], key=_RANKING.index)
        return None

    def _draft(self, line: _Line, rank: int) -> _Draft | None:
        if line.frame_id is None or line.frame_compile_id is None:
            return None
        told = line.compilation_metrics is not None or bytes(line.dynamo_start) != b"" or line.artifact is not None
        key = (rank, line.compiled_autograd_id, line.frame_id, line.frame_compile_id)
        draft = self.drafts.get(key)
        if draft is None and told:
            if len(self.drafts) == MOST_COMPILES:
                raise DataError(
                    f"{self.path.name} holds more than {MOST_COMPILES} compiles", where=str(self.path),
                    fix="give a shorter stretch of it",
                )  # fmt: skip
            prefix = "" if line.compiled_autograd_id is None else f"!{line.compiled_autograd_id}/"
            name = f"{prefix}{line.frame_id}/{line.frame_compile_id}"
            draft = self.drafts[key] = _Draft(name, rank, line.frame_compile_id > 0)
        return draft


def read(path: Path, strict: bool) -> tuple[Spans, ReadReport]:
    """The compiles of ``path``, and how they were read. DataError for what is no such trace, or has no compile."""
    compiles, dropped = _Compiles(path), Counter[str]()
    decoder = msgspec.json.Decoder(_Line)
    lines, payload, of = 0, bytearray(), None
    with open_bytes(path) as file:
        for line in byte_lines(path, file):
            if line.startswith(b"\t"):
                if of is not None and len(payload) < MOST_PAYLOAD:
                    payload += line[1:]
                continue
            _reasons(of, payload, dropped)
            of, payload = None, bytearray()
            if not line.strip():
                continue
            lines += 1
            found = _LINE.match(line)
            if found is None:
                dropped[NO_LINE] += 1
                continue
            try:
                told = decoder.decode(found["json"])
            except BROKEN:
                dropped[NO_JSON] += 1
                continue
            rank = told.rank if told.rank is not None else int(found["rank"] or NEVER)
            of = compiles.take(told, rank)
    _reasons(of, payload, dropped)
    return _spans(path, compiles, lines, dropped, strict)


def _reasons(draft: _Draft | None, payload: bytearray, dropped: Counter[str]) -> None:
    """The payload of ``recompile_reasons``: a list of sentences, the newest program first; or one sentence, bare."""
    if draft is None:
        return
    text = bytes(payload).strip()
    try:
        reasons = msgspec.json.decode(text, type=list[str]) if text[:1] == b"[" else [text.decode(errors="replace")]
    except BROKEN:
        dropped["reasons that are no list"] += 1
        return
    draft.reasons = tuple(reason[:LONGEST_REASON] for reason in reasons[:MOST_REASONS])


def _spans(
    path: Path, compiles: _Compiles, lines: int, dropped: Counter[str], strict: bool
) -> tuple[Spans, ReadReport]:
    drafts = list(compiles.drafts.values())
    _name(compiles.drafts)
    starts = [_start(draft) for draft in drafts]
    known = [start for start in starts if start != NEVER]
    origin = min(known, default=None)
    made = tuple(_made(draft, start, origin) for draft, start in zip(drafts, starts, strict=True))
    if not made:
        raise DataError(
            f"{path.name} is a {NAME} that tells of no compile", where=str(path),
            fix="run the program until it has compiled something, with TORCH_TRACE set",
        )  # fmt: skip
    open_ = sum(draft.metrics is None for draft in drafts)
    read = report(
        path, NAME, rows=lines, used=lines - sum(dropped.values()), unit="lines", dropped=dropped,
        strict=strict, notes=[f"{len(made)} compiles", *([f"{open_} {UNFINISHED}"] if open_ else [])],
    )  # fmt: skip
    spans = Spans(
        tool=NAME, table=table({}, 0), compiles=made, origin=origin, facts=_facts(drafts), complete=not open_,
    )  # fmt: skip
    return spans, read


def _name(drafts: dict[_Key, _Draft]) -> None:
    """The code of each compile: its own metrics', else that of another compile of the same frame."""
    frames: dict[tuple[int, int | None, int], str] = {}
    for key, draft in drafts.items():
        draft.code = _code(draft.metrics or {})
        if draft.code:
            frames.setdefault(key[:3], draft.code)
    for key, draft in drafts.items():
        draft.code = draft.code or frames.get(key[:3], "")


def _made(draft: _Draft, start: Ns, origin: Ns | None) -> Compilation:
    told = draft.metrics or {}
    size, limit = _number(told, "cache_size") or 0, _limit(told)
    return Compilation(
        id=draft.id,
        code=draft.code or "(unknown)",
        rank=draft.rank,
        start=NEVER if origin is None or start == NEVER else start - origin,
        took=_first(told, _TOOK),
        again=draft.again or size > 0,
        reasons=draft.reasons,
        breaks=_texts(told.get("restart_reasons")),
        cache=draft.cache,
        failure="" if limit else _failure(told),
        limit=limit,
    )


def _code(told: dict[str, Any]) -> str:
    name, file, line = (told.get(key) for key in ("co_name", "co_filename", "co_firstlineno"))
    if not isinstance(name, str):
        return ""
    place = f" ({file}:{line})" if isinstance(file, str) else ""
    return f"{name}{place}"[:LONGEST_REASON]


def _limit(told: dict[str, Any]) -> str:
    """The limit of recompiles that stopped this compile; "" if none did."""
    found = _LIMIT.search(str(told.get("fail_reason")))
    return f"{found[1]} ({found[2]})" if found else ""


def _failure(told: dict[str, Any]) -> str:
    kind, why = told.get("fail_type"), told.get("fail_reason")
    if not isinstance(kind, str) or not kind:
        return ""
    return f"{kind}: {' '.join(str(why).split())}"[:LONGEST_REASON] if why else kind


def _texts(value: Any) -> tuple[str, ...]:
    given = value if isinstance(value, list) else []
    return tuple(str(one)[:LONGEST_REASON] for one in given[:MOST_REASONS])


def _start(draft: _Draft) -> Ns:
    return _first(draft.metrics or {}, _START)


def _first(told: dict[str, Any], names: tuple[tuple[str, float], ...]) -> Ns:
    """The first of ``names`` that is a time, as ns; NEVER if none is."""
    for name, scale in names:
        value = _number(told, name)
        if value is not None and 0 <= value * scale < 4e18:
            return round(value * scale)
    return NEVER


def _number(told: dict[str, Any], name: str) -> float | None:
    value = told.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _facts(drafts: list[_Draft]) -> dict[str, str]:
    ranks = sorted({draft.rank for draft in drafts if draft.rank != NEVER})
    python = next((str(draft.metrics["python_version"])[:80] for draft in drafts
                   if draft.metrics and isinstance(draft.metrics.get("python_version"), str)), "")  # fmt: skip
    facts = {"ranks": ", ".join(map(str, ranks[:32]))} if ranks else {}
    return facts | ({"python": python} if python else {})


def holds(head: bytes) -> bool:
    """Its first line is a glog prefix with a JSON object."""
    found = _LINE.match(head.lstrip())
    return found is not None and found["json"].startswith(b'{"')


FORMAT = Format(NAME, holds, read)
