"""Compiling beside serving on real runtimes: what they say they can is tried, and answers stay right."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import backends_nets as nets
import numpy as np
import pytest
from backends_kit import ACCURACY, COMPUTES_NOTHING, MISSING, compiled, every
from msgspec.structs import replace

from parts import run_info, workload_of
from trimtab import backends
from trimtab.domain.events import (
    Arrived,
    Command,
    EntryAsked,
    EntryReady,
    Event,
    PlanChange,
    Remapped,
)
from trimtab.domain.plan import CompileSpec, Entry, Plan
from trimtab.domain.ports import ModelFile
from trimtab.domain.profile import CompileOptions
from trimtab.domain.trace import MARK_KINDS
from trimtab.domain.workload import Workload
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.readers.payload import RandomPayloads
from trimtab.runtime import wire
from trimtab.runtime.beside import ABILITY, unable
from trimtab.runtime.link import ProcessCrew
from trimtab.runtime.replay import ReplayRequest, replay
from trimtab.runtime.worker import Job

CORES = tuple(sorted(os.sched_getaffinity(0)))
ANY = nets.entry("dynamic", (3,), (64,))
WIDE = Entry(id="wide", kind="static", lo=(48,), hi=(48,))


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    return nets.NETS["line"][0](tmp_path_factory.mktemp("beside"))


@every(null=COMPUTES_NOTHING, torch="it says that it cannot")
def test_an_entry_is_compiled_in_a_thread_while_another_one_serves(name: str, line: ModelFile) -> None:
    backend, reference = backends.factory(name)(), nets.NETS["line"][1]
    assert unable(backend.info()) == ""
    serving = compiled(backend.compile(line, ANY, CompileOptions()))
    given, wide = nets.inputs(line, 1, 17), nets.inputs(line, 1, 48, seed=3)
    want, made = reference(given)["y"], []
    thread = threading.Thread(target=lambda: made.append(backend.compile(line, WIDE, CompileOptions())))
    thread.start()
    answers = [serving.run(given)["y"]]
    while thread.is_alive():
        answers.append(serving.run(given)["y"])
    thread.join()
    for got in answers:
        np.testing.assert_allclose(got, want, atol=ACCURACY[name] * np.abs(want).max())
    want = reference(wide)["y"]
    got = compiled(made[0]).run(wide)["y"]
    np.testing.assert_allclose(got, want, atol=ACCURACY[name] * np.abs(want).max())


@every()
def test_every_runtime_says_whether_it_can(name: str) -> None:
    said = [ability for ability in backends.info(name).abilities if ability.name == ABILITY]
    assert len(said) == 1
    assert said[0].why


# --- ONNX Runtime in worker processes ---------------------------------------------------------------------------------

needs_ort = pytest.mark.skipif("onnxruntime" in MISSING, reason="onnxruntime is not installed")


class AtWideRequests:
    """Asks for the wide entry when the first wide request comes, and swaps it in when it is ready."""

    def __init__(self, spec: CompileSpec) -> None:
        self._spec, self._asked = spec, False

    def observe(self, event: Event, commands: Sequence[Command]) -> list[PlanChange]:
        if isinstance(event, Arrived) and event.dims == WIDE.hi and not self._asked:
            self._asked = True
            return [EntryAsked(event.t, 0, WIDE)]
        if isinstance(event, EntryReady) and event.entry == WIDE.id:
            return [Remapped(event.t, replace(self._spec, entries=(WIDE, *self._spec.entries)))]
        return []


def shifted(requests: int, gap_ms: float) -> Workload:
    """Narrow requests, then wide ones."""
    widths = [17] * (requests // 2) + [48] * (requests - requests // 2)
    return workload_of(np.arange(requests) * gap_ms * 1e6, widths)


@needs_ort
def test_a_shift_in_the_middle_is_met_by_a_compile_beside_and_a_swap(line: ModelFile) -> None:
    plan = Plan(id="p", compile=CompileSpec(backend="onnxruntime", entries=(ANY,)))
    run = run_info(source="measured", cores=CORES[-1:], driver_core=CORES[0])
    trace = replay(
        ReplayRequest(
            workload=shifted(120, 10.0),
            plan=plan,
            model=line,
            backend=backends.factory("onnxruntime"),
            payloads=RandomPayloads(line.spec, ("width",), 1),
            router=Router(plan.compile),
            predictor=CostModel.from_profiles(()),
            cores=run.cores,
            driver_core=run.driver_core,
            run=run,
            share_driver_core=len(CORES) == 1,
            controller=AtWideRequests(plan.compile),
        )
    )
    assert trace.requests["error"].tolist() == [0] * 120
    kinds = [MARK_KINDS[kind] for kind in trace.marks["kind"].tolist()]
    assert (kinds.count("prepare"), kinds.count("remap"), kinds.count("roll-back")) == (1, 1, 0)
    swapped = int(trace.marks["t"][kinds.index("remap")])
    late = trace.requests["enqueued"] > swapped
    entries = [trace.entries[code] for code in trace.batches["entry"][trace.requests["batch"]].tolist()]
    assert late.any()
    assert {entry for entry, after in zip(entries, late, strict=True) if after} == {"wide"}
    assert {entry for entry, after in zip(entries, late, strict=True) if not after} == {ANY.id}


def ask(crew: ProcessCrew, *orders: wire.Order) -> list[wire.Reply]:
    """The answers to ``orders``, as many as they are, in the order in which they come."""
    for order in orders:
        crew.send(0, order)
    answers: list[wire.Reply] = []
    while len(answers) < len(orders):
        answers += [reply for _, reply in crew.wait(crew.now() + 60_000_000_000)]
    return answers


@needs_ort
def test_answers_stay_right_on_both_entries(line: ModelFile) -> None:
    job = Job(backends.factory("onnxruntime"), line, RandomPayloads(line.spec, ("width",), 1))
    reference = nets.NETS["line"][1]
    crew = ProcessCrew(job, [CORES[-1:]], 1)
    crew.start(0)
    try:
        while not crew.wait(crew.now() + 60_000_000_000):
            pass
        ask(crew, wire.Compile(ANY, CompileOptions(), ()))
        runs = [wire.Run(k, ANY.id, (1, 17), ((k, (17,)),)) for k in range(20)]
        beside = wire.CompileBeside(wire.Compile(WIDE, CompileOptions(), ((1, 48),)), CORES[:1])
        told = ask(crew, beside, *runs)
        members = ((7, (48,)),)
        answers = ask(crew, wire.Answer(ANY.id, (1, 48), members), wire.Answer(WIDE.id, (1, 48), members))
    finally:
        crew.stop()
    assert sum(isinstance(reply, wire.Beside) and isinstance(reply.reply, wire.Compiled) for reply in told) == 1
    assert [reply.error for reply in told if isinstance(reply, wire.Ran)] == ["none"] * 20
    want = reference(job.payloads.request(7, (48,)))["y"]
    for reply in answers:
        assert isinstance(reply, wire.Answers)
        np.testing.assert_allclose(wire.unpack(reply.outputs[0]["y"]), want, atol=1e-5 * np.abs(want).max())
