"""What a driver and a worker say to each other: tagged msgpack messages over one pipe, no pickle once it runs.

Times are ``time.monotonic_ns`` (CLOCK_MONOTONIC), which all processes of one machine share.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from trimtab.domain.events import BatchReport, ErrorKind
from trimtab.domain.noun import Dims, EntryId, Executed, Ns
from trimtab.domain.plan import Entry
from trimtab.domain.profile import CompileFailure, CompileOptions, Inspection

Member: TypeAlias = tuple[int, Dims]
"""(payload id, true dims) of one request in a batch."""


class _Message(msgspec.Struct, frozen=True, gc=False, tag=True, array_like=True):
    """Encoded as an array: half the bytes and half the time of a map."""


class Tensor(_Message, frozen=True):
    """An array, in both directions."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


# --- driver to worker ---------------------------------------------------------------------------------------


class Load(_Message, frozen=True):
    """Hold the arrays of these requests, as far as the payload store has room. Answered by ``Loaded``."""

    members: tuple[Member, ...]


class Compile(_Message, frozen=True):
    """Compile ``entry`` and run each of ``warm`` once. Answered by ``Compiled`` or ``Refused``."""

    entry: Entry
    options: CompileOptions
    warm: tuple[Executed, ...]


class CompileBeside(_Message, frozen=True):
    """Do what ``order`` says in a thread on ``cores``, and go on serving meanwhile. Answered by ``Beside``."""

    order: Compile
    cores: tuple[int, ...]


class Run(_Message, frozen=True):
    """Run ``members`` as one batch at ``executed`` dims. Answered by ``Ran``.

    No members: the run is fed with the pad values, to time or to warm a shape.
    """

    batch: int
    entry: EntryId
    executed: Executed
    members: tuple[Member, ...]


class Answer(_Message, frozen=True):
    """Run like ``Run``, and hand over each member's own outputs. Answered by ``Answers``, or ``Ran`` if it failed."""

    entry: EntryId
    executed: Executed
    members: tuple[Member, ...]


class Grade(_Message, frozen=True):
    """Put both answers to one request to the user's function ``module:name``, looked for beside ``folder`` first.
    Answered by ``Graded``."""

    function: str
    folder: str
    reference: dict[str, Tensor]
    outputs: dict[str, Tensor]


class Inspect(_Message, frozen=True):
    """Answered by ``Inspected``, or ``Refused``."""

    entry: EntryId
    executed: Executed
    members: tuple[Member, ...]


class RunPace(_Message, frozen=True):
    """Run the pace kernel ``runs`` times. Answered by ``Paced``."""

    runs: int = 1


class Forget(_Message, frozen=True):
    """Close ``entry``. No answer."""

    entry: EntryId


class Stop(_Message, frozen=True):
    """End the process. No answer but the end of the pipe."""


Order = Load | Compile | CompileBeside | Run | Answer | Grade | Inspect | RunPace | Forget | Stop

# --- worker to driver ---------------------------------------------------------------------------------------


class Hello(_Message, frozen=True):
    """The process runs, pinned to ``cores``. ``unread`` says which counters cannot be read here, and why."""

    pid: int
    cores: tuple[int, ...]
    versions: dict[str, str]
    unread: dict[str, str]


class Broken(_Message, frozen=True):
    """The process runs, but its backend does not start. It ends now."""

    message: str


class Loaded(_Message, frozen=True):
    members: int
    held_bytes: int


class Compiled(_Message, frozen=True):
    """``started``/``ended`` cover the compile alone; memory is what was resident around it."""

    entry: EntryId
    started: Ns
    ended: Ns
    memory_before: int
    memory_after: int
    peak_bytes: int
    warmed: tuple[Executed, ...]


class Refused(_Message, frozen=True):
    failure: CompileFailure


class Beside(_Message, frozen=True):
    """What became of a ``CompileBeside``. Answers to later orders may come before it."""

    reply: Compiled | Refused


class Ran(_Message, frozen=True):
    """``started``..``ended`` holds the assembly of the batch (``report.assembly_ns``) and the run of the network."""

    batch: int
    started: Ns
    ended: Ns
    error: ErrorKind
    report: BatchReport
    message: str = ""


class Answers(_Message, frozen=True):
    """One mapping of output name to tensor for each member."""

    outputs: tuple[dict[str, Tensor], ...]


class Graded(_Message, frozen=True):
    """What the user's function said, or why it said nothing (``message``)."""

    value: float
    message: str = ""


class Inspected(_Message, frozen=True):
    entry: EntryId
    inspection: Inspection


class Paced(_Message, frozen=True):
    """The time of each run's two halves, and when all of them began and ended."""

    started: Ns
    ended: Ns
    compute_ns: tuple[Ns, ...]
    stream_ns: tuple[Ns, ...]


Reply = Hello | Broken | Loaded | Compiled | Refused | Beside | Ran | Answers | Graded | Inspected | Paced

encode = msgspec.msgpack.Encoder().encode
decode_order = msgspec.msgpack.Decoder(Order).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def pack(array: NDArray[Any]) -> Tensor:
    """An array as a message."""
    return Tensor(array.dtype.str, array.shape, array.tobytes())


def unpack(tensor: Tensor) -> NDArray[Any]:
    """The array of a message (read-only: it is the message's own memory)."""
    return np.frombuffer(tensor.data, dtype=tensor.dtype).reshape(tensor.shape)
