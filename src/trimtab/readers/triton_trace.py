"""The trace of a Triton server (``trace_mode`` triton, level TIMESTAMPS): when each request passed which point.

Each object of the array adds points to the request of its ``id``, in any order. A request runs from the first byte that
the server handles to the last that it sends; without a frontend (in-process) from REQUEST_START to REQUEST_END.

    queue = QUEUE_START to COMPUTE_START: the wait for an instance and what the batcher held it for, not told apart
    compute = COMPUTE_START to COMPUTE_END: the backend, inputs and outputs copied included

Backends stamp all members of a batch alike: requests of one model that begin and end to compute at the same ns ran
together. What is left of the latency (parsing, sending) stays a remainder.

A client may give each of its requests an id (``request_id``): what one client sent is found again by it.

Limits: the clock is the server's, so client and network are not in it. A server traces one of ``trace_rate`` requests:
then arrivals, batches and load are those of the sample. Parts of an ensemble have a ``parent_id`` and are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trimtab.domain.imported import Imported, ReadReport
from trimtab.domain.noun import NEVER
from trimtab.errors import DataError
from trimtab.readers._events import Events
from trimtab.readers._format import Format
from trimtab.readers._json import opening
from trimtab.readers._requests import LATEST, MOST_REQUESTS, requests
from trimtab.readers._spans import Codes, Ints, report, texts

NAME = "Triton trace"
NO_ID = "it has no id"
NO_TIMES = "without a start or an end"
BACKWARDS = "it ended before it started"
SERVER = "times are the server's own: client and network are not in them"
SAMPLED = "a server traces one of trace_rate requests: if that is above 1, arrivals, batches and load are a sample's"
HELD = "queue holds the batcher's wait, too: a Triton trace does not tell them apart"
POINTS = (
    "HTTP_RECV_START", "GRPC_WAITREAD_END", "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END",
    "REQUEST_END", "HTTP_SEND_END", "GRPC_SEND_END",
)  # fmt: skip
_AT = {name: number for number, name in enumerate(POINTS)}
_STARTS = ("HTTP_RECV_START", "GRPC_WAITREAD_END", "REQUEST_START")
_ENDS = ("REQUEST_END", "HTTP_SEND_END", "GRPC_SEND_END")


class _Stamp(msgspec.Struct, gc=False):
    name: str = ""
    ns: int | float = NEVER


class _Told(msgspec.Struct, gc=False):
    id: int | None = None
    request_id: str | None = None
    model_name: str | None = None
    parent_id: int | None = None
    timestamps: list[_Stamp] = []
    activity: str | None = None


class _Request:
    """One request while the file is read: ns by the numbers of POINTS. ``name`` is the id that its client gave it."""

    __slots__ = ("model", "name", "part", "times")

    def __init__(self) -> None:
        self.model, self.name, self.part = "", "", False
        self.times = [NEVER] * len(POINTS)


def read(path: Path, strict: bool) -> tuple[Imported, ReadReport]:
    """The requests of ``path``, and how they were read. DataError for what is no such trace."""
    events = Events(path, _Told)
    found, dropped = _gather(path, events)
    parts = sum(one.part for one in found.values())
    whole = [one for one in found.values() if not one.part]
    times = np.array([one.times for one in whole], dtype=np.int64).reshape(len(whole), len(POINTS))
    start, end = _first(times, _STARTS), times[:, [_AT[name] for name in _ENDS]].max(axis=1, initial=NEVER)
    known = (start != NEVER) & (end != NEVER)
    keep = known & (end >= start)
    dropped[NO_TIMES] += int((~known).sum())
    dropped[BACKWARDS] += int((known & ~keep).sum())
    told = report(
        path, NAME, rows=len(whole) + dropped[NO_ID], used=int(keep.sum()), unit="requests",
        dropped=dropped + events.dropped, strict=strict,
        ignored=(f"{parts} parts of ensembles",) if parts else (), notes=(SERVER, HELD, SAMPLED, *_cut(events)),
    )  # fmt: skip
    models: Codes[str] = Codes()
    stream = np.array([models[one.model] for one, kept in zip(whole, keep, strict=True) if kept], dtype=np.int64)
    times, start, end = times[keep], start[keep], end[keep]
    stages = {"queue": _between(times, "QUEUE_START", "COMPUTE_START"),
              "compute": _between(times, "COMPUTE_START", "COMPUTE_END")}  # fmt: skip
    batch = _batches(times, stream, stages["compute"])
    held = requests(
        told, start, end, batch=batch, stages=stages, stream=stream,
        streams=tuple(name or "(model not said)" for name in texts(models)),
    )  # fmt: skip
    return held, told


class Named(NamedTuple):
    """What a server's trace holds of requests that were numbered by their client: ns by number, NEVER = not there.

    ``batch`` is a code for all that computed together, ``found`` how many of the numbers are there."""

    queue: Ints
    compute: Ints
    batch: Ints
    found: int


def numbered(paths: Iterable[Path], name: str, count: int) -> Named:
    """The requests in ``paths`` whose ids are ``name`` and a number below ``count``. Parts of ensembles are left out.
    DataError for what is no such trace."""
    times = np.full((count, len(POINTS)), NEVER, dtype=np.int64)
    seen = np.zeros(count, dtype=bool)
    for path in paths:
        for one in _gather(path, Events(path, _Told))[0].values():
            number = _number(one, name, count)
            if number != NEVER:
                times[number], seen[number] = one.times, True
    compute = _between(times, "COMPUTE_START", "COMPUTE_END")
    batch = _batches(times, np.zeros(count, dtype=np.int64), compute)
    return Named(_between(times, "QUEUE_START", "COMPUTE_START"), compute, batch, int(seen.sum()))


def _number(one: _Request, name: str, count: int) -> int:
    digits = one.name.removeprefix(name)
    if one.part or not one.name.startswith(name) or not (digits.isascii() and digits.isdigit()):
        return NEVER
    return int(digits) if int(digits) < count else NEVER


def _gather(path: Path, events: Events[_Told]) -> tuple[dict[int, _Request], Counter[str]]:
    """The requests by id; points whose time is none are left out of their request."""
    found: dict[int, _Request] = {}
    dropped = Counter[str]()
    for piece in events.pieces():
        for told in piece:
            if told.id is None:
                dropped[NO_ID] += 1
                continue
            request = found.get(told.id)
            if request is None:
                if len(found) == MOST_REQUESTS:
                    raise DataError(
                        f"{path.name} holds more than {MOST_REQUESTS} requests", where=str(path),
                        fix="give a shorter stretch of it",
                    )  # fmt: skip
                request = found[told.id] = _Request()
            request.model = request.model or (told.model_name or "")[:200]
            request.name = request.name or (told.request_id or "")[:200]
            request.part = request.part or bool(told.parent_id)
            for stamp in told.timestamps:
                at = _AT.get(stamp.name)
                if at is not None and 0 < stamp.ns < LATEST:
                    request.times[at] = int(stamp.ns)
    return found, dropped


def _first(times: Ints, names: tuple[str, ...]) -> Ints:
    """The first of several points that a request passed; NEVER where it passed none."""
    given = times[:, [_AT[name] for name in names]]
    known = np.where(given == NEVER, LATEST, given).min(axis=1, initial=LATEST)
    return np.where(known == LATEST, NEVER, known)


def _between(times: Ints, begin: str, end: str) -> Ints:
    """Time from one point to another; NEVER where one is missing, or the second comes first."""
    a, b = times[:, _AT[begin]], times[:, _AT[end]]
    return np.where((a != NEVER) & (b != NEVER) & (b >= a), b - a, NEVER)


def _batches(times: Ints, stream: Ints, compute: Ints) -> Ints:
    """A code for all that computed together; NEVER for what did not compute."""
    ran = compute != NEVER
    out = np.full(len(times), NEVER, dtype=np.int64)
    if ran.any():
        keys = np.stack((stream, times[:, _AT["COMPUTE_START"]], times[:, _AT["COMPUTE_END"]]), axis=1)[ran]
        out[ran] = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    return out


def _cut(events: Events[_Told]) -> tuple[str, ...]:
    if events.complete:
        return ()
    return ("the file ends before its list does: the server may still have been writing it",)


def holds(head: bytes) -> bool:
    """An array of objects with ``timestamps`` at the points of a request."""
    start = opening(head)
    return start.startswith(b"[") and b'"timestamps"' in start and b"_START" in start and b'"ns"' in start


FORMAT = Format(NAME, holds, read)
