"""Events (what happened) and Commands (what to do): the whole language of the serving machine.

Times arrive on events, as ns of the run's own clock (0 = the first scheduled arrival). Every command carries
``cause``, the sequence number of the event that led to it.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from trimtab.domain.noun import Dims, EntryId, Executed, Ns
from trimtab.domain.plan import CompileSpec, Entry
from trimtab.domain.profile import CompileEvent
from trimtab.domain.route import RouteKind

ErrorKind = Literal[
    "none",
    "rejected",
    "crash",
    "hang",
    "out-of-memory",
    "backend-error",
    "bad-output",
    "entry-failed",
    "unfinished",
    "unavailable",
    "timeout",
]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
"""Order is the code in columns; 0 is success. The last two are a server's: it could not be reached, it did not answer
in time."""


class _Fact(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Positional and untracked by the garbage collector: a simulation makes hundreds of thousands."""


class BatchReport(msgspec.Struct, frozen=True, gc=False):
    """What a worker measured around one batch. Counters are differences over the batch; NEVER = not readable."""

    on_cpu_ns: Ns = -1
    runqueue_ns: Ns = -1
    minor_faults: int = -1
    major_faults: int = -1
    migrations: int = -1
    peak_bytes: int = -1
    compile_events: int = 0
    """How often the runtime compiled, or gave up compiling, while the batch ran."""
    assembly_ns: Ns = -1
    """Of started..ended: padding and copying the members into one batch."""
    resident_bytes: int = -1
    """What the process held once the batch was done."""
    compiled: tuple[CompileEvent, ...] = ()
    """What those compile events were, where the runtime says."""


# --- events -------------------------------------------------------------------------------------------------


class Arrived(_Fact, frozen=True):
    """Request ``request`` (its index in the workload) entered the queue at ``t``, the enqueue time. ``due`` = its
    deadline on the run's clock; NEVER = none."""

    t: Ns
    request: int
    stream: int
    dims: Dims
    scheduled: Ns
    due: Ns = -1


class TimerFired(_Fact, frozen=True):
    t: Ns
    token: int


class BatchDone(_Fact, frozen=True):
    """A worker finished a batch. ``t`` = when the driver knew; ``started``/``ended`` = the worker's own marks."""

    t: Ns
    worker: int
    batch: int
    started: Ns
    ended: Ns
    error: ErrorKind = "none"
    report: BatchReport = BatchReport()


class WorkerUp(_Fact, frozen=True):
    """A fresh worker process exists; it has no entry yet."""

    t: Ns
    worker: int


class WorkerDown(_Fact, frozen=True):
    t: Ns
    worker: int
    error: ErrorKind


class EntryReady(_Fact, frozen=True):
    """Worker ``worker`` holds a compiled ``entry`` that has already run each of ``warmed``."""

    t: Ns
    worker: int
    entry: EntryId
    warmed: tuple[Executed, ...]


class EntryFailed(_Fact, frozen=True):
    t: Ns
    worker: int
    entry: EntryId
    message: str


class Occupied(_Fact, frozen=True):
    """A worker is busy with something that is not a request (``pace``, ``warm-up``) until it says ``Released``."""

    t: Ns
    worker: int
    label: str


class Released(_Fact, frozen=True):
    t: Ns
    worker: int
    label: str


class Stopped(_Fact, frozen=True):
    """The run is over: whatever has not ended ends now, as ``unfinished``."""

    t: Ns


# --- changes of the plan while it serves: a controller's answers, taken by the machine like any other event ---------


class EntryAsked(_Fact, frozen=True):
    """A worker that is up and does not hold ``entry`` is to get it, prepared on a core that serves nobody. ``warm`` is
    run there once each; what is not among it is a first run of the worker's own."""

    t: Ns
    worker: int
    entry: Entry
    warm: tuple[Executed, ...] = ()


class Remapped(_Fact, frozen=True):
    """From now on ``spec`` routes what arrives, and what waits. ``why``: the trigger, in words."""

    t: Ns
    spec: CompileSpec
    kind: Literal["remap", "roll-back"] = "remap"
    why: str = ""


class EntryDropped(_Fact, frozen=True):
    """No table needs ``entry`` any more: each worker lets it go once nobody waits for it or runs on it."""

    t: Ns
    entry: EntryId


PlanChange = EntryAsked | Remapped | EntryDropped

Event = (
    Arrived
    | TimerFired
    | BatchDone
    | WorkerUp
    | WorkerDown
    | EntryReady
    | EntryFailed
    | Occupied
    | Released
    | Stopped
    | PlanChange
)

# --- commands -----------------------------------------------------------------------------------------------


class Dispatch(_Fact, frozen=True):
    """Run ``members`` (request ids) on ``worker`` as one batch at ``executed`` dims.

    ``first_seen``: this worker never ran this entry at these dims. ``changed``: its previous batch ran other dims or
    another entry. ``outside``: the dims lie outside every entry's covered range. ``promised`` is what the profile
    promised at compile time, ``expected`` what is expected now (0 = no promise). ``ready``: since when the batch policy
    let it run; a member that came later was ready on arrival. ``idle``: how long the worker had been free, ns.
    """

    cause: int
    batch: int
    worker: int
    entry: EntryId
    kind: RouteKind
    members: tuple[int, ...]
    executed: Executed
    first_seen: bool
    changed: bool
    outside: bool
    promised: Ns
    expected: Ns
    ready: Ns = -1
    idle: Ns = -1


class SetTimer(_Fact, frozen=True):
    cause: int
    at: Ns
    token: int


class Finish(_Fact, frozen=True):
    """Request ``request`` has ended, once and for all."""

    cause: int
    request: int
    error: ErrorKind


class Prepare(_Fact, frozen=True):
    """Compile ``entry`` on ``worker`` and run ``warm`` once each; answered by EntryReady or EntryFailed."""

    cause: int
    worker: int
    entry: EntryId
    warm: tuple[Executed, ...]


class PrepareBeside(_Fact, frozen=True):
    """Compile ``entry`` for ``worker`` on a core that serves nobody, and run ``warm`` once each there, while the worker
    goes on serving. Answered by EntryReady or EntryFailed."""

    cause: int
    worker: int
    entry: Entry
    warm: tuple[Executed, ...]


class Retire(_Fact, frozen=True):
    cause: int
    worker: int
    entry: EntryId


class Replace(_Fact, frozen=True):
    """Start a fresh process in the place of a worker that went down."""

    cause: int
    worker: int


Command = Dispatch | SetTimer | Finish | Prepare | PrepareBeside | Retire | Replace
