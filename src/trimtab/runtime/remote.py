"""Replay against a server that is not ours: the same arrivals, in real time, open loop. Gives a trace of Source driven.

Requests leave at their scheduled times, however many answers are outstanding; latency counts from the SCHEDULED time,
to the moment when gRPC's own thread hands the answer over. What a request waits in our hands is told as the loader's
slip. A request without a good answer failed, and has a kind: the server could not be reached (``unavailable``), did
not answer in time (``timeout``), refused it (``rejected``), answered with an error (``backend-error``), or with outputs
that are wrong, empty, stale or not numbers (``bad-output``). None is sent twice.

The messages are made before the clock starts, as far as memory allows: making one is the client's work and not the
server's. Answers are looked at in the gaps between arrivals; where there are none, once MOST_WAITING of them wait.

Limits. Serialising a message and reading an answer off the wire is part of the latency, and both run on the driver's
core. The queue, the batches and the workers inside the server are not known from here, so the trace has none.
"""

from __future__ import annotations

import queue
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from trimtab.domain.events import Arrived, ErrorKind, Stopped
from trimtab.domain.noun import Ns
from trimtab.domain.ports import Arrays, Payloads, Progress
from trimtab.domain.study import ModelSpec
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.runtime._tensors import decoded
from trimtab.runtime.affinity import check_cores, pinned
from trimtab.runtime.kserve import Connection, Failed
from trimtab.runtime.undisturbed import ctrl_c, no_garbage_collection
from trimtab.runtime.verify import OutputCheck
from trimtab.serving.record import Recorder
from trimtab.serving.rows import Sink

LEAD: Ns = 20_000_000
"""From the start of the clock to the first arrival, ns."""
GAP: Ns = 2_000_000
"""The gap to the next arrival in which an answer may be looked at, ns."""
MOST_WAITING = 256
"""Answers that may wait to be looked at."""
BOUND_BYTES = 256 * 2**20
"""Of messages that are kept ready."""
GRACE_NS: Ns = 5_000_000_000
"""After the time that an answer may take: gRPC ends the call itself, a little later."""
LEAST_S = 0.001
PERIOD: Ns = 500_000_000
NOTES = 8
"""How many different messages of failures a run keeps."""

Key = tuple[int, tuple[int, ...]]


class RemoteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run against a server needs. ``wait_s``: how long after its scheduled time a request may take.
    ``name`` stands before each request's number in its id, for whoever joins the server's own trace."""

    workload: Workload
    model: ModelSpec
    payloads: Payloads
    driver_core: int
    run: RunInfo
    wait_s: float
    name: str
    sink: Sink | None = None


class _Ended(NamedTuple):
    t: Ns
    request: int
    call: Any


def drive(request: RemoteRequest, connection: Connection, stage: str, progress: Progress) -> Trace:
    """Run it. Ctrl-C ends it in good order: the trace so far comes back, not complete; a second one breaks off."""
    check_cores((), request.driver_core, may_share=True)
    recorder = Recorder(request.run, request.workload, (), (), request.sink)
    with pinned({request.driver_core}), ctrl_c() as interrupt, no_garbage_collection():
        sender = _Sender(request, connection, recorder)
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        try:
            why = sender.serve(interrupt.is_set, lambda done: progress.step(stage, done, len(request.workload)))
        finally:
            recorder.flush()
        share = (time.process_time_ns() - cpu) / max(1, time.monotonic_ns() - wall)
    trace = recorder.trace(complete=not why)
    note = "; ".join(filter(None, (request.run.note, why, *sender.notes)))
    return msgspec.structs.replace(trace, run=msgspec.structs.replace(trace.run, driver_cpu_share=share, note=note))


class _Sender:
    """One run: ``serve``. Times are ns from the first scheduled arrival."""

    def __init__(self, request: RemoteRequest, connection: Connection, recorder: Recorder) -> None:
        load = request.workload
        self._request, self._connection, self._recorder = request, connection, recorder
        self._scheduled: list[Ns] = load.scheduled.tolist()
        self._stream: list[int] = load.stream.tolist()
        self._due: list[Ns] = load.due.tolist()
        self._keys: list[Key] = [
            (payload, tuple(row)) for payload, row in zip(load.payload.tolist(), load.dims.tolist(), strict=True)
        ]
        self._ready = _Messages(request, connection)
        self._ready.fill(self._keys)
        self._check = OutputCheck(tuple(output.name for output in request.model.outputs))
        self._ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
        self._open: dict[int, Any] = {}
        self._next = 0
        self._origin: Ns = 0
        self.notes: dict[str, None] = {}

    def serve(self, interrupted: Callable[[], bool], report: Callable[[int], None]) -> str:
        """Send everything and take every answer. Returns why it ended early; empty: it is complete."""
        self._origin = time.monotonic_ns() + LEAD
        told: Ns = 0
        last = (self._scheduled[-1] if self._scheduled else 0) + round(self._request.wait_s * 1e9) + GRACE_NS
        while self._next < len(self._scheduled) or self._open:
            if interrupted():
                return self._give_up("stopped by Ctrl-C")
            t = self._t()
            if t > last:
                return self._give_up(f"{len(self._open)} requests neither ended nor timed out")
            if t - told > PERIOD:
                told = t
                report(self._next)
            if not self._send_due(t):
                self._wait_or_look(t)
        self._recorder.note(Stopped(self._t()), ())
        return ""

    def _send_due(self, t: Ns) -> bool:
        """Send the next request if its time has come."""
        number = self._next
        if number >= len(self._scheduled) or self._scheduled[number] > t:
            return False
        self._next += 1
        message = self._ready.get(self._keys[number])
        message.id = f"{self._request.name}{number}"
        left = self._request.wait_s - (t - self._scheduled[number]) / 1e9
        ended, origin = self._ended, self._origin

        def then(call: Any) -> None:
            ended.put(_Ended(time.monotonic_ns() - origin, number, call))

        dims, scheduled, sent = self._keys[number][1], self._scheduled[number], self._t()
        self._open[number] = self._connection.send(message, max(left, LEAST_S), then)
        arrived = Arrived(sent, number, self._stream[number], dims, scheduled, self._due[number])
        self._recorder.note(arrived, ())
        return True

    def _wait_or_look(self, t: Ns) -> None:
        """Until the next arrival: look at one answer where there is time for it, else sleep."""
        gap = self._scheduled[self._next] - t if self._next < len(self._scheduled) else PERIOD
        if gap < GAP and self._ended.qsize() < MOST_WAITING:
            time.sleep(gap / 1e9)
            return
        try:
            self._take(self._ended.get(timeout=min(gap, PERIOD) / 1e9))
        except queue.Empty:
            return

    def _take(self, ended: _Ended) -> None:
        del self._open[ended.request]
        answer = self._connection.answer(ended.call)
        failed = answer if isinstance(answer, Failed) else self._judged(ended.request, answer)
        kind: ErrorKind = "none"
        if failed is not None:
            kind = failed.kind
            if len(self.notes) < NOTES:
                self.notes.setdefault(f"{failed.kind}: {failed.message}")
        self._recorder.answered(ended.t, ended.request, kind)

    def _judged(self, request: int, response: Any) -> Failed | None:
        """Why a response is no answer; None where it is one."""
        try:
            outputs = decoded(response)
        except ValueError as error:
            return Failed("bad-output", str(error))
        fault = self._check.judge(self._ready.inputs(self._keys[request]), outputs, 1)
        return Failed("bad-output", fault) if fault else None

    def _give_up(self, why: str) -> str:
        for call in self._open.values():
            call.cancel()
        self._recorder.note(Stopped(self._t()), ())
        return why

    def _t(self) -> Ns:
        return time.monotonic_ns() - self._origin


class _Messages:
    """Messages by payload and dims, with their inputs: made before the run up to BOUND_BYTES, the others when they are
    needed (the least recently used go)."""

    def __init__(self, request: RemoteRequest, connection: Connection) -> None:
        self._payloads, self._model, self._connection = request.payloads, request.model, connection
        self._held: OrderedDict[Key, tuple[Any, Arrays]] = OrderedDict()
        self._bytes = 0

    def fill(self, keys: list[Key]) -> None:
        """Make messages in the order of their first use until the bound is reached."""
        for key in dict.fromkeys(keys):
            if self._bytes >= BOUND_BYTES:
                return
            self._hold(key)

    def get(self, key: Key) -> Any:
        return self._pair(key)[0]

    def inputs(self, key: Key) -> Arrays:
        return self._pair(key)[1]

    def _pair(self, key: Key) -> tuple[Any, Arrays]:
        if key not in self._held:
            return self._hold(key)
        self._held.move_to_end(key)
        return self._held[key]

    def _hold(self, key: Key) -> tuple[Any, Arrays]:
        arrays = self._payloads.request(*key)
        made = self._held[key] = (self._connection.message(self._model, arrays), arrays)
        self._bytes += _size(arrays)
        while self._bytes > BOUND_BYTES and len(self._held) > 1:
            _, (_, gone) = self._held.popitem(last=False)
            self._bytes -= _size(gone)
        return made


def _size(arrays: Arrays) -> int:
    """Of a payload and of the message that holds it once more."""
    return 2 * sum(array.nbytes for array in arrays.values())
