"""What crosses between the machine that gives the command and the process that makes a trial: tagged msgpack messages.

Arrays travel as :class:`trimtab.runtime.wire.Tensor`. Nothing is pickled, and nothing names a path of the other
machine: files are laid first, by digest, and the job names them where they lie.
"""

from __future__ import annotations

from typing import Any, TypeAlias, get_origin

import msgspec
import numpy as np

from trimtab import errors
from trimtab.domain.envelope import Envelope
from trimtab.domain.ports import ModelFile
from trimtab.domain.study import Study
from trimtab.loop.trials.trial import Result, Trial
from trimtab.runtime import wire


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    pass


class Look(_Message, frozen=True):
    """To the process: say what the machine is. ``cores`` are those whose pace is measured, ``runtimes`` those whose
    versions are read."""

    cores: tuple[int, ...]
    runtimes: tuple[str, ...]


class Job(_Message, frozen=True):
    """To the process: make ``trial``. ``study`` and ``model`` name files of its machine."""

    study: Study
    model: ModelFile
    trial: Trial


class Step(_Message, frozen=True):
    """From it: how far it is, in the words of the progress."""

    stage: str
    done: float
    total: float | None
    note: str


class Rows(_Message, frozen=True):
    """From it: rows of a trace."""

    table: str
    rows: list[list[Any]]


class Seen(_Message, frozen=True):
    """From it, last: what the machine is."""

    envelope: Envelope


class Ended(_Message, frozen=True):
    """From it, last: the trial is made."""

    result: Result


class Stopped(_Message, frozen=True):
    """From it, last: Ctrl-C ended a trial that gives nothing when it is cut off."""


class Fault(_Message, frozen=True):
    """From it, last: what a user can act on, or (``kind`` empty) a bug."""

    kind: str
    what: str
    where: str
    fix: str


class Lost(_Message, frozen=True):
    """From its node, last: the process ended without a word."""

    why: str


Order: TypeAlias = Look | Job
Said: TypeAlias = Step | Rows | Seen | Ended | Stopped | Fault | Lost


def fault(error: Exception) -> Fault:
    """``error`` as a message."""
    if isinstance(error, errors.TrimtabError):
        return Fault(type(error).__name__, error.what, error.where, error.fix)
    return Fault("", errors.said(error), "", "")


def raised(said: Fault, machine: str) -> errors.TrimtabError:
    """The error that a fault on ``machine`` is, with the machine's name."""
    kind = getattr(errors, said.kind, None) if said.kind else None
    where = f"{said.where}; machine {machine}" if said.where else f"machine {machine}"
    if isinstance(kind, type) and issubclass(kind, errors.TrimtabError):
        return kind(said.what, where=where, fix=said.fix)
    return errors.RunError(f"a trial broke: {said.what}", where=where, fix="this is a bug of trimtab; please report it")


def _encode(value: object) -> object:
    if isinstance(value, np.ndarray):
        return wire.pack(value)
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} does not cross")


def _decode(kind: type, value: Any) -> object:
    if get_origin(kind) is np.ndarray:
        return wire.unpack(msgspec.convert(value, wire.Tensor)).copy()  # a message's own memory cannot be written to
    raise NotImplementedError(f"{kind} does not cross")


encode = msgspec.msgpack.Encoder(enc_hook=_encode).encode
decode_order = msgspec.msgpack.Decoder(Order, dec_hook=_decode).decode
decode_said = msgspec.msgpack.Decoder(Said, dec_hook=_decode).decode
