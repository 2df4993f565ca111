"""One worker process: it holds payloads and compiled entries, runs batches, and says what each one cost.

What lies where in time. A request's own arrays (the client's work) are there before ``started``. ``started``..``ended``
holds what serving costs: assembling the batch (padding, copying; reported as ``assembly_ns``) and running the
network. Counters are read just outside of that, and the outputs are checked after it; both keep the worker occupied,
so the driver sees them as the time from ``ended`` to done (about 30 us, plus one pass over the outputs).
"""

from __future__ import annotations

import gc
import os
import pickle
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import msgspec

from trimtab.domain.events import BatchReport, ErrorKind
from trimtab.domain.noun import NEVER, EntryId, Executed, Ns
from trimtab.domain.ports import Arrays, Backend, BackendFactory, CompiledEntry, ModelFile, Payloads
from trimtab.domain.profile import CompileFailure, FailureKind
from trimtab.errors import TrimtabError
from trimtab.mapping.pad import assemble, filler, split
from trimtab.runtime import starved, wire
from trimtab.runtime.counters import Counters
from trimtab.runtime.grading import Grader
from trimtab.runtime.pace import PaceKernel
from trimtab.runtime.payloads import PayloadStore
from trimtab.runtime.verify import Infinities, OutputCheck


class Job(NamedTuple):
    """What a worker needs to know; sent once, pickled, from the driver that started it."""

    backend: BackendFactory
    model: ModelFile
    payloads: Payloads
    infinities: Infinities = None


class _Outcome(NamedTuple):
    """What one run gave: its marks, its outputs (empty on failure) and what went wrong."""

    started: Ns
    ended: Ns
    report: BatchReport
    inputs: Arrays
    outputs: Arrays
    error: ErrorKind
    message: str


class Worker:
    """The worker without its process: ``handle`` one order, return the reply. Clock and counters can be replaced."""

    def __init__(
        self, backend: Backend, job: Job, counters: Counters, clock: Callable[[], Ns] = time.monotonic_ns
    ) -> None:
        self._backend, self._model, self._counters, self._clock = backend, job.model, counters, clock
        self._store = PayloadStore(job.payloads)
        self._entries: dict[EntryId, CompiledEntry] = {}
        self._check = OutputCheck(tuple(out.name for out in job.model.spec.outputs), job.infinities)
        self._pace: PaceKernel | None = None
        self._handlers: dict[type, Callable[[Any], wire.Reply | None]] = {
            wire.Load: self._load,
            wire.Compile: self._compile,
            wire.Run: self._run,
            wire.Answer: self._answer,
            wire.Grade: Grader().grade,
            wire.Inspect: self._inspect,
            wire.RunPace: self._run_pace,
            wire.Forget: self._forget,
        }

    def handle(self, order: wire.Order) -> wire.Reply | None:
        """Do what is ordered; None where an order has no answer."""
        return self._handlers[type(order)](order)

    def hello(self) -> wire.Hello:
        cores = tuple(sorted(os.sched_getaffinity(0)))
        return wire.Hello(os.getpid(), cores, self._backend.info().versions, self._counters.unread)

    def _load(self, order: wire.Load) -> wire.Loaded:
        self._store.load(order.members)
        return wire.Loaded(len(self._store), self._store.bytes)

    def _compile(self, order: wire.Compile) -> wire.Reply:
        entry = order.entry
        before = self._counters.resident_bytes()
        self._counters.begin()
        started = self._clock()
        try:
            compiled = self._backend.compile(self._model, entry, order.options)
        except Exception as error:
            return wire.Refused(_failure(entry.id, error, ""))
        ended = self._clock()
        if isinstance(compiled, CompileFailure):
            return wire.Refused(compiled)
        peak, after = self._counters.peak_bytes(), self._counters.resident_bytes()
        self._close(entry.id)
        self._entries[entry.id] = compiled
        for executed in order.warm:
            outcome = self._execute(entry.id, executed, ())
            if outcome.error != "none":
                kind: FailureKind = "out-of-memory" if outcome.error == "out-of-memory" else "compiler-error"
                message = f"warming {executed}: {outcome.message}"
                return wire.Refused(CompileFailure(entry=entry.id, kind=kind, message=message))
        gc.freeze()  # a compiled network is thousands of objects that no later collection needs to visit
        return wire.Compiled(entry.id, started, ended, before, after, peak, order.warm)

    def _run(self, order: wire.Run) -> wire.Ran:
        outcome = self._execute(order.entry, order.executed, order.members)
        error, message = self._verdict(outcome, order.executed, order.members)
        return wire.Ran(order.batch, outcome.started, outcome.ended, error, outcome.report, message)

    def _answer(self, order: wire.Answer) -> wire.Reply:
        outcome = self._execute(order.entry, order.executed, order.members)
        error, message = self._verdict(outcome, order.executed, order.members)
        if error != "none":
            return wire.Ran(NEVER, outcome.started, outcome.ended, error, outcome.report, message)
        true = [dims for _, dims in order.members]
        try:
            own = split(self._model.spec, self._model.dim_names, outcome.outputs, true)
        except TrimtabError as fault:  # an output whose shape follows the data is cut by no rule
            return wire.Ran(NEVER, outcome.started, outcome.ended, "bad-output", outcome.report, fault.what)
        return wire.Answers(tuple({name: wire.pack(array) for name, array in member.items()} for member in own))

    def _inspect(self, order: wire.Inspect) -> wire.Reply:
        try:
            arrays = [self._store.get(payload, dims) for payload, dims in order.members]
            inspection = self._entries[order.entry].inspect(self._assemble(order.executed, arrays))
        except Exception as error:
            return wire.Refused(_failure(order.entry, error, "inspecting: "))
        return wire.Inspected(order.entry, inspection)

    def _run_pace(self, order: wire.RunPace) -> wire.Paced:
        self._pace = self._pace or PaceKernel()
        started = self._clock()
        times = [self._pace.run() for _ in range(order.runs)]
        return wire.Paced(started, self._clock(), tuple(t[0] for t in times), tuple(t[1] for t in times))

    def _forget(self, order: wire.Forget) -> None:
        self._close(order.entry)

    def _close(self, entry: EntryId) -> None:
        gone = self._entries.pop(entry, None)
        if gone is not None:
            gone.close()

    def _execute(self, entry: EntryId, executed: Executed, members: tuple[wire.Member, ...]) -> _Outcome:
        try:
            arrays = [self._store.get(payload, dims) for payload, dims in members]
        except Exception as fault:
            now = self._clock()
            return _Outcome(now, now, BatchReport(), {}, {}, _kind(fault), _said(fault))
        inputs: Arrays = {}
        outputs: Arrays = {}
        error: ErrorKind = "none"
        message = ""
        before = self._counters.begin()
        started = assembled = self._clock()
        try:
            inputs = self._assemble(executed, arrays)
            assembled = self._clock()
            outputs = self._entries[entry].run(inputs)
        except Exception as fault:
            error, message = _kind(fault), _said(fault)
        ended = self._clock()
        report = self._with_events(entry, self._counters.end(before, assembled - started))
        return _Outcome(started, ended, report, inputs, outputs, error, message)

    def _with_events(self, entry: EntryId, report: BatchReport) -> BatchReport:
        """The report of a run, with what the runtime compiled in it."""
        compiled = self._entries[entry].events() if entry in self._entries else ()
        if not compiled:
            return report
        return msgspec.structs.replace(report, compile_events=len(compiled), compiled=compiled)

    def _assemble(self, executed: Executed, arrays: list[Arrays]) -> Arrays:
        spec, names = self._model.spec, self._model.dim_names
        return assemble(spec, names, arrays, executed) if arrays else filler(spec, names, executed)

    def _verdict(
        self, outcome: _Outcome, executed: Executed, members: tuple[wire.Member, ...]
    ) -> tuple[ErrorKind, str]:
        if outcome.error != "none":
            return outcome.error, outcome.message
        if members:
            fault = self._check.judge(outcome.inputs, outcome.outputs, executed[0])
        else:
            fault = self._check.judge_filled(outcome.outputs, executed[0])
        return ("bad-output", fault) if fault else ("none", "")


def serve(fd: int) -> None:
    """Read the job, say hello, then answer orders until told to stop or until the driver is gone."""
    pipe = Connection(fd)
    try:
        job = Job(*pickle.loads(pipe.recv_bytes()))  # noqa: S301 - from the driver that started this process
        worker = _start(job, pipe)
        while worker and not isinstance(order := wire.decode_order(pipe.recv_bytes()), wire.Stop):
            reply = worker.handle(order)
            if reply is not None:
                pipe.send_bytes(wire.encode(reply))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the driver is gone


def _start(job: Job, pipe: Connection) -> Worker | None:
    try:
        worker = Worker(job.backend(), job, Counters())
        hello: wire.Reply = worker.hello()
    except Exception as error:
        pipe.send_bytes(wire.encode(wire.Broken(_said(error))))
        return None
    pipe.send_bytes(wire.encode(hello))
    return worker


def _failure(entry: EntryId, error: Exception, when: str) -> CompileFailure:
    kind: FailureKind = "out-of-memory" if _starved(error) else "compiler-error"
    return CompileFailure(entry=entry, kind=kind, message=when + _said(error))


def _kind(error: Exception) -> ErrorKind:
    return "out-of-memory" if _starved(error) else "backend-error"


def _starved(error: Exception) -> bool:
    return isinstance(error, MemoryError) or starved.refused(str(error))


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
