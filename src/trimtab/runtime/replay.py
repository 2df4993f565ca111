"""Replay: the same arrivals, in real time, against real workers, from a declared start state. Gives a measured Trace.

The driver keeps to its own core, does not collect garbage while it serves, and stops its workers whatever happens.
Ctrl-C ends the run in good order: the trace so far comes back, marked as not complete; a second one breaks off.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import msgspec

from trimtab.domain.noun import EntryId
from trimtab.domain.plan import Entry, Plan
from trimtab.domain.ports import BackendFactory, Controller, ModelFile, Payloads, Predictor, Progress
from trimtab.domain.profile import CompileOptions
from trimtab.domain.trace import RunInfo, Trace
from trimtab.domain.workload import Workload
from trimtab.mapping.route import Router
from trimtab.runtime.affinity import check_cores, pinned
from trimtab.runtime.driver import Driver, Outside, Terms
from trimtab.runtime.link import ProcessCrew
from trimtab.runtime.sample import Sampler
from trimtab.runtime.undisturbed import ctrl_c, no_garbage_collection
from trimtab.runtime.verify import Infinities
from trimtab.runtime.worker import Job
from trimtab.serving.machine import Machine
from trimtab.serving.record import Recorder
from trimtab.serving.rows import Sink

NOTES = 8
"""How many remarks a run keeps."""


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one replay needs.

    ``cores``: the core of each worker. ``pins``: where a worker's threads may run, if that is more than its one core.
    ``share_driver_core``: let a worker use the driver's core (only for studies of placement on few cores).
    ``hang_s``: a batch that takes longer is a hang; ``prepare_s``: the same for one compile or one process start.
    ``infinities`` are those that outputs may hold. ``sink`` gets the rows of the trace as they come. ``controller`` may
    change the plan while it serves, and is used for this one run; ``predictor`` then promises times of whatever it may
    bring. What it asks for is compiled on the driver's core.
    """

    workload: Workload
    plan: Plan
    model: ModelFile
    backend: BackendFactory
    payloads: Payloads
    router: Router
    predictor: Predictor
    cores: tuple[int, ...]
    driver_core: int
    run: RunInfo
    pace: bool = True
    hang_s: float = 10.0
    prepare_s: float = 600.0
    share_driver_core: bool = False
    pins: tuple[tuple[int, ...], ...] = ()
    infinities: Infinities = None
    sink: Sink | None = None
    controller: Controller | None = None


def replay(request: ReplayRequest, progress: Progress | None = None) -> Trace:
    """Run it. Raises MachineError for cores that cannot be had, RunError where a worker cannot get ready."""
    check_cores(request.cores, request.driver_core, request.share_driver_core)
    pins = request.pins or tuple((core,) for core in request.cores)
    check_cores([core for pin in pins for core in pin], request.driver_core, request.share_driver_core)
    machine = Machine(request.plan, request.router, request.predictor, request.cores)
    entries = tuple(request.router.entries)
    recorder = Recorder(request.run, request.workload, entries, request.cores, request.sink)
    job = Job(request.backend, request.model, request.payloads, request.infinities)
    crew = ProcessCrew(job, pins, request.plan.serve.threads)
    sampler = Sampler({request.driver_core, *(core for pin in pins for core in pin)}, lambda: crew.pids.values())
    with pinned({request.driver_core}), ctrl_c() as interrupt, _stopping(crew, recorder), no_garbage_collection():
        outside = Outside(sampler.read, progress, interrupt.is_set)
        terms = Terms(round(request.hang_s * 1e9), round(request.prepare_s * 1e9), request.pace, request.driver_core)
        options = options_of(request.plan)
        driver = Driver(request.workload, machine, recorder, crew, options, terms, outside, request.controller)
        driver.start()
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        why = driver.serve()
        share = (time.process_time_ns() - cpu) / max(1, time.monotonic_ns() - wall)
    trace = recorder.trace(complete=not why)
    note = "; ".join(filter(None, (request.run.note, why, *list(driver.roster.notes)[:NOTES])))
    return msgspec.structs.replace(trace, run=msgspec.structs.replace(trace.run, driver_cpu_share=share, note=note))


def options_of(plan: Plan) -> CompileOptions:
    """What every entry of a plan is compiled with."""
    spec = plan.compile
    return CompileOptions(
        threads=plan.serve.threads, precision=spec.precision, optimisation=spec.optimisation, extra=spec.options
    )


def compiles(plan: Plan) -> dict[EntryId, tuple[Entry, CompileOptions]]:
    """Each entry of a plan with the options that it is compiled with."""
    options = options_of(plan)
    return {entry.id: (entry, options) for entry in plan.compile.entries}


@contextlib.contextmanager
def _stopping(crew: ProcessCrew, recorder: Recorder) -> Iterator[None]:
    """No worker outlives the run, and what was recorded reaches the sink."""
    try:
        yield
    finally:
        crew.stop()
        recorder.flush()
