"""What is asked of which node, and what its answers lead to. Ray and its nodes are pretended: no cluster, no clock."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from loop_kit import Silent, write_study
from machines_kit import BESIDE, HERE, HOME, THERE
from msgspec.structs import replace

from parts import run_info, workload_of
from trimtab.domain.envelope import Envelope
from trimtab.domain.profile import CompileProfile
from trimtab.domain.trace import MARK_COLUMNS, REQUEST_COLUMNS, RunInfo, Trace, empty
from trimtab.errors import MachineError, RunError, UsageError
from trimtab.loop.trials import crossing
from trimtab.loop.trials.executor import Group, Material
from trimtab.loop.trials.pooling import Machine, Pool
from trimtab.loop.trials.ray_executor import RayExecutor
from trimtab.loop.trials.trial import Profile, Profiled, Replay, Replayed, Result, Trial
from trimtab.store.study import load_study, resolve_model

Plays = Callable[[Trial], Sequence[crossing.Said]]


class GoneError(Exception):
    """What Ray raises for an actor whose node died."""


class Remote:
    """A method of an actor: ``remote`` calls it at once, and gives a reference to what came of it."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def remote(self, *arguments: Any) -> Callable[[], Any]:
        try:
            value = self._call(*arguments)
        except GoneError as gone:
            return partial(_raise, gone)
        return lambda: value


def _raise(error: Exception) -> None:
    raise error


class PretendedNode:
    """Says of each trial what ``plays`` says, one message a poll; ``dies`` on the poll of that number."""

    def __init__(self, name: str, plays: Plays, log: list[str], dies: int | None = None) -> None:
        self.name, self.plays, self.log, self.dies = name, plays, log, dies
        self.jobs: list[crossing.Job] = []
        self.left: list[crossing.Said] = []
        self.polls = 0
        self.files: list[str] = []
        for method in ("begin", "poll", "interrupt", "stop", "lay", "folder"):
            setattr(self, method, Remote(getattr(self, f"_{method}")))

    def _begin(self, order: bytes, core: int) -> list[bytes]:
        job = crossing.decode_order(order)
        assert isinstance(job, crossing.Job)
        self.jobs.append(job)
        self.left = list(self.plays(job.trial))
        self.log.append(f"{self.name} begins {job.trial.note}")
        return []

    def _poll(self) -> list[bytes]:
        self.polls += 1
        if self.polls == self.dies:
            raise GoneError(f"{self.name} died")
        return [crossing.encode(self.left.pop(0))] if self.left else []

    def _interrupt(self) -> None:
        self.log.append(f"{self.name} is interrupted")
        (job,) = self.jobs
        assert isinstance(job.trial, Replay)
        self.left = [crossing.Ended(Replayed(trace=trace_of(job.trial.run, complete=False)))]

    def _stop(self) -> None:
        self.log.append(f"{self.name} stops")

    def _lay(self, sha256: str, name: str, data: bytes) -> str:
        self.files.append(name)
        return f"/{self.name}/{sha256[:4]}/{name}"

    def _folder(self) -> str:
        return f"/{self.name}"


class PretendedRay:
    """Of several references the longest waiting one is ready."""

    exceptions = SimpleNamespace(RayActorError=GoneError)

    def put(self, value: object) -> object:
        return value

    def get(self, reference: Any) -> Any:
        return reference()

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return references[:1], references[1:]


class Seen:
    """A watch that writes down what it is told."""

    def __init__(self, controller: object = None) -> None:
        self.log: list[str] = []
        self.kept: list[tuple[Trial, Result, Envelope]] = []
        self.shown = Silent()
        self._controller = controller

    def began(self, trial: Trial, envelope: Envelope) -> None:
        self.log.append(f"{trial.note} began on {envelope.host}")

    def rows(self, trial: Trial, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.log.append(f"{trial.note}: {list(rows)} of {table}")

    def made(self, trial: Trial, result: Result, envelope: Envelope) -> None:
        self.log.append(f"{trial.note} made on {envelope.host}")
        self.kept.append((trial, result, envelope))
        if isinstance(result, Replayed) and not result.trace.run.complete:
            raise KeyboardInterrupt

    def progress(self, trial: Trial) -> Silent:
        return self.shown

    def controller(self, trial: Trial) -> Any:
        return self._controller


def trace_of(run: RunInfo, complete: bool = True) -> Trace:
    return Trace(
        run=replace(run, complete=complete), dim_names=("width",), streams=("s",), entries=("any",), details=(),
        requests=empty(REQUEST_COLUMNS, 1), batches=empty({}), marks=empty(MARK_COLUMNS), samples=empty({}),
    )  # fmt: skip


def ends_well(trial: Trial) -> Sequence[crossing.Said]:
    step = crossing.Step("x", 0.5, 1.0, "half")
    if isinstance(trial, Replay):
        return [step, crossing.Rows("marks", [[1, 2]]), crossing.Ended(Replayed(trace=trace_of(trial.run)))]
    return [step, crossing.Ended(Profiled(profiles=(), failures=()))]


@pytest.fixture
def material(tmp_path: Path) -> Material:
    study = load_study(write_study(tmp_path))
    return Material(study, tmp_path, resolve_model(study, tmp_path), HOME)


def profile(material: Material, name: str) -> Profile:
    return Profile(stage="compile", note=name, plan=material.study.baseline, points={}, prelude={}, repeats=1, core=1)


def replay(material: Material, name: str, profiles: tuple[CompileProfile, ...] = ()) -> Replay:
    load = workload_of([0], 7, id="load")
    run = run_info(
        id=name, plan="today", slice="tune", source="measured", envelope_sha256="?", cores=(1,), driver_core=0
    )
    plan = material.study.baseline
    return Replay(stage="replay", note=name, plan=plan, run=run, workload=load, profiles=profiles, hang_s=1.0)


def cluster(*nodes: PretendedNode, machines: Sequence[tuple[Envelope, tuple[str, ...]]]) -> tuple[RayExecutor, Silent]:
    """``machines``: the envelope of each and the names of its nodes; the first is home."""
    found = [Machine(f"boot-{envelope.host}", names, envelope) for envelope, names in machines]
    shown = Silent()
    by_name = {node.name: node for node in nodes}
    return RayExecutor(PretendedRay(), by_name, Pool(found[0], tuple(found[1:]), {}), (), 0, shown), shown


TWO = ((HOME, ("a",)), (BESIDE, ("b",)))


def test_independent_trials_run_on_both_machines_at_once_and_name_the_one_that_made_them(material: Material) -> None:
    log: list[str] = []
    a, b = PretendedNode("a", ends_well, log), PretendedNode("b", ends_well, log)
    executor, _ = cluster(a, b, machines=TWO)
    watch = Seen()
    executor.perform(material, [Group((replay(material, name),)) for name in ("one", "two")], watch)
    assert log == ["a begins one", "b begins two"]
    assert watch.log[:2] == ["one began on home", "two began on beside"]
    assert {(result.trace.run.id, result.trace.run.envelope_sha256) for _, result, _ in watch.kept} == {  # type: ignore[union-attr]
        ("one", HERE),
        ("two", THERE),
    }
    assert "one: [(1, 2)] of marks" in watch.log
    assert ("x", "half on beside") in watch.shown.said


def test_a_comparison_stays_on_one_machine_though_another_is_free(material: Material) -> None:
    log: list[str] = []
    a, b = PretendedNode("a", ends_well, log), PretendedNode("b", ends_well, log)
    executor, _ = cluster(a, b, machines=TWO)
    watch = Seen()
    executor.perform(material, [Group(tuple(replay(material, name) for name in "ABBA"), THERE)], watch)
    assert log == ["b begins A", "b begins B", "b begins B", "b begins A"]
    assert {envelope.host for _, _, envelope in watch.kept} == {"beside"}


def test_files_are_sent_to_a_node_once_and_named_where_they_lie(material: Material) -> None:
    a = PretendedNode("a", ends_well, [])
    executor, _ = cluster(a, machines=TWO[:1])
    executor.perform(material, [Group((profile(material, name),)) for name in ("one", "two")], Seen())
    assert a.files == ["network.bin"]
    assert [job.model.path for job in a.jobs] == [f"/a/{material.model.sha256[:4]}/network.bin"] * 2
    assert a.jobs[0].model.kept == "/a/networks"


def test_a_comparison_whose_machine_dies_starts_again_as_a_whole_on_another(material: Material) -> None:
    log: list[str] = []
    a, b = PretendedNode("a", ends_well, log, dies=5), PretendedNode("b", ends_well, log)
    executor, shown = cluster(a, b, machines=TWO)
    watch = Seen()
    executor.perform(material, [Group((replay(material, "one"), replay(material, "two")))], watch)
    assert log == ["a begins one", "a begins two", "b begins one", "b begins two"]
    assert ("machines", "two is made again: node a is gone: a died") in shown.said
    assert [envelope.host for _, _, envelope in watch.kept] == ["home", "beside", "beside"]
    executor.perform(material, [Group((replay(material, "three"),))], watch)
    assert log[-1] == "b begins three", "what is gone is not asked again"


def test_without_another_machine_the_run_ends_and_says_what_happened(material: Material) -> None:
    a = PretendedNode("a", ends_well, [], dies=1)
    executor, _ = cluster(a, machines=TWO[:1])
    with pytest.raises(RunError, match="the machine that must go on is gone: node a is gone: a died"):
        executor.perform(material, [Group((profile(material, "one"),))], Seen())


def test_a_process_that_ends_without_a_word_is_started_again_and_given_up_after_three(material: Material) -> None:
    log: list[str] = []
    a = PretendedNode("a", lambda trial: [crossing.Lost("its process ended with code -9")], log)
    executor, shown = cluster(a, machines=TWO[:1])
    with pytest.raises(RunError, match="broke off 3 times; the last time: its process ended with code -9"):
        executor.perform(material, [Group((profile(material, "one"),))], Seen())
    assert log == ["a begins one"] * 3
    assert shown.said.count(("machines", "one is made again: its process ended with code -9")) == 3


def test_what_a_machine_refuses_is_raised_with_its_name_and_the_others_are_stopped(material: Material) -> None:
    log: list[str] = []
    refusal = crossing.fault(MachineError("core 7 does not exist", where="envelope.cores", fix="name another"))
    a, b = PretendedNode("a", lambda trial: [refusal], log), PretendedNode("b", lambda trial: [], log)
    executor, _ = cluster(a, b, machines=TWO)
    with pytest.raises(MachineError) as refused:
        executor.perform(material, [Group((profile(material, name),)) for name in ("one", "two")], Seen())
    assert refused.value.where == "envelope.cores; machine home"
    assert log[-2:] == ["a stops", "b stops"]


@pytest.mark.usefixtures("own_stack")
def test_ctrl_c_interrupts_what_runs_begins_nothing_more_and_keeps_what_comes_back(material: Material) -> None:
    log: list[str] = []

    def pressed(trial: Trial) -> Sequence[crossing.Said]:
        signal.raise_signal(signal.SIGINT)
        return []

    a = PretendedNode("a", pressed, log)
    executor, _ = cluster(a, machines=TWO[:1])
    watch = Seen()
    with pytest.raises(KeyboardInterrupt):
        executor.perform(material, [Group((replay(material, "one"), replay(material, "two")))], watch)
    assert watch.log == ["one began on home", "one made on home"]
    assert not watch.kept[0][1].trace.run.complete  # type: ignore[union-attr]


def test_a_controller_is_not_carried_and_says_so(material: Material) -> None:
    a = PretendedNode("a", ends_well, [])
    executor, _ = cluster(a, machines=TWO[:1])
    with pytest.raises(UsageError, match="under Ray a plan is not changed while it serves"):
        executor.perform(material, [Group((replay(material, "one"),))], Seen(controller=object()))
    assert a.jobs == []


def test_what_other_rooms_ask_of_it(material: Material) -> None:
    executor, _ = cluster(PretendedNode("a", ends_well, []), machines=TWO)
    assert executor.probe((0, 1), ("null",)) == HOME
    assert (executor.lends(THERE), executor.lends("x")) == (True, False)
    assert executor.identity() == ("ray", "home", "", "")
