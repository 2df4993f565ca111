"""The base of every noun, and the few scalar types that all rooms share.

Units are fixed once: **time is int64 nanoseconds of one monotonic clock**, memory is bytes, shares are 0..1. A
missing time is :data:`NEVER`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

Ns: TypeAlias = int
"""Integer nanoseconds."""

Dims: TypeAlias = tuple[int, ...]
"""Values of the model's dynamic dims, in the order of ``Study.dims``; the batch size is never among them."""

Executed: TypeAlias = tuple[int, ...]
"""What really ran: ``(batch size, *dims)``."""

EntryId: TypeAlias = str

NEVER = -1
"""A time that did not happen, in events and in columns."""

Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e9)]
"""A length, a rate or a share; above the limit (as ms: eleven days) it is a slip, and no longer a time in ns."""
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Meta(ge=1, lt=2**31)]

BATCH = "batch"
"""The name that a study gives to the batch axis of an input or output."""


class Noun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen record; decoding refuses unknown fields. Subclasses repeat ``frozen`` and ``kw_only`` (msgspec applies
    ``kw_only`` to a class's own fields only, and type checkers want both)."""
