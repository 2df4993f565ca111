"""One worker: it holds payloads and compiled entries, runs batches, and says what each one cost.

What lies where in time. A request's own arrays (the client's work) are there before ``started``. ``started``..``ended``
holds what serving costs: assembling the batch (padding, copying; reported as ``assembly_ns``) and running the
network. Counters are read just outside of that, and the outputs are checked after it; both keep the worker occupied,
so the driver sees them as the time from ``ended`` to done (about 30 us, plus one pass over the outputs).
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from trimtab.domain.events import BatchReport, ErrorKind
from trimtab.domain.noun import NEVER, EntryId, Executed, Ns
from trimtab.domain.ports import Arrays, Backend, BackendFactory, CompiledEntry, ModelFile, Payloads
from trimtab.domain.profile import CompileFailure, FailureKind
from trimtab.errors import TrimtabError, said
from trimtab.mapping.pad import assemble, filler, split
from trimtab.runtime import wire
from trimtab.runtime.beside import unable
from trimtab.runtime.counters import Counters
from trimtab.runtime.grading import Grader
from trimtab.runtime.own_threads import OwnThreads
from trimtab.runtime.pace import PaceKernel
from trimtab.runtime.payloads import PayloadStore
from trimtab.runtime.starved import ran_out
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


class _Made(NamedTuple):
    """A compiled entry, and when compiling it began and ended."""

    program: CompiledEntry
    started: Ns
    ended: Ns


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
        self._compiling = threading.Lock()
        self.threads = OwnThreads()
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
        made = self._make(order)
        if isinstance(made, CompileFailure):
            return wire.Refused(made)
        peak, after = self._counters.peak_bytes(), self._counters.resident_bytes()
        self._close(entry.id)
        self._entries[entry.id] = made.program
        for executed in order.warm:
            outcome = self._execute(entry.id, executed, ())
            if outcome.error != "none":
                kind: FailureKind = "out-of-memory" if outcome.error == "out-of-memory" else "compiler-error"
                message = f"warming {executed}: {outcome.message}"
                return wire.Refused(CompileFailure(entry=entry.id, kind=kind, message=message))
        gc.freeze()  # a compiled network is thousands of objects that no later collection needs to visit
        return wire.Compiled(entry.id, made.started, made.ended, before, after, peak, order.warm)

    def compile_beside(self, order: wire.Compile) -> wire.Compiled | wire.Refused:
        """The same for a thread beside the batches: they see the entry once it is whole, and no counter of theirs is
        touched. The peak of memory is not known."""
        id_ = order.entry.id
        before = self._counters.resident_bytes()
        why = unable(self._backend.info())
        made = CompileFailure(entry=id_, kind="unsupported", message=why) if why else self._make(order)
        if isinstance(made, CompileFailure):
            return wire.Refused(made)
        for executed in order.warm:
            try:
                made.program.run(filler(self._model.spec, self._model.dim_names, executed))
            except Exception as error:
                made.program.close()
                self.threads.closed(id_)
                return wire.Refused(_failure(id_, error, f"warming {executed}: "))
        made.program.events()  # they are told of batches only
        self._entries[id_] = made.program
        gc.freeze()
        after = self._counters.resident_bytes()
        return wire.Compiled(id_, made.started, made.ended, before, after, NEVER, order.warm)

    def _make(self, order: wire.Compile) -> _Made | CompileFailure:
        """Compile, one entry at a time in this process: no runtime is asked for two at once."""
        with self._compiling:
            started = self._clock()
            try:
                with self.threads.noted(order.entry.id):
                    program = self._backend.compile(self._model, order.entry, order.options)
            except Exception as error:
                return _failure(order.entry.id, error, "")
            if isinstance(program, CompileFailure):
                self.threads.closed(order.entry.id)
                return program
            return _Made(program, started, self._clock())

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
            self.threads.closed(entry)

    def _execute(self, entry: EntryId, executed: Executed, members: tuple[wire.Member, ...]) -> _Outcome:
        try:
            arrays = [self._store.get(payload, dims) for payload, dims in members]
        except Exception as fault:
            now = self._clock()
            return _Outcome(now, now, BatchReport(), {}, {}, _kind(fault), said(fault))
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
            error, message = _kind(fault), said(fault)
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


def _failure(entry: EntryId, error: Exception, when: str) -> CompileFailure:
    kind: FailureKind = "out-of-memory" if ran_out(error) else "compiler-error"
    return CompileFailure(entry=entry, kind=kind, message=when + said(error))


def _kind(error: Exception) -> ErrorKind:
    return "out-of-memory" if ran_out(error) else "backend-error"
