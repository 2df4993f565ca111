"""Runs that several machines make: one machine a comparison, its envelope beside them, what is left when it is lost.

The machines are pretended: their replays come from the virtual clock. Nothing is measured here.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from loop_kit import STUDY, Silent, write_study
from machines_kit import BESIDE, HERE, HOME, THERE
from msgspec.structs import replace

from trimtab.domain.envelope import Envelope
from trimtab.domain.profile import CompileOptions, CompileProfile, Inspection, ShapeTiming
from trimtab.errors import MachineError, MissingTool, UsageError
from trimtab.loop import compiling, conditions, runs, stages
from trimtab.loop.context import Context
from trimtab.loop.trials import executor, ray_cluster
from trimtab.loop.trials.executor import Group, Material, Watch
from trimtab.loop.trials.trial import Profile, Profiled, Replay, Replayed
from trimtab.mapping.cost import CostModel
from trimtab.mapping.route import Router
from trimtab.mapping.service import ProfileService
from trimtab.serving.simulate import simulate
from trimtab.store.codec import digest
from trimtab.store.packet import Packet
from trimtab.store.study import load_study


def profile_of(plan: str) -> CompileProfile:
    return CompileProfile(
        plan=plan, entry="any", backend="null", versions={}, options=CompileOptions(), compile_ns=1, memory_bytes=1,
        peak_bytes=1, inspection=Inspection(executed=(1, 1), operators=(), operators_before=0),
        timings=tuple(
            ShapeTiming(executed=(size, width), first_ns=400_000, wall_ns=(300_000,), cpu_ns=(300_000,))
            for size in (1, 4) for width in (1, 100)
        ),
    )  # fmt: skip


class Pretended:
    """Two machines. ``plays`` says what becomes of each group; the default: ``BESIDE`` makes all of it."""

    def __init__(self, plays: Callable[[Group, Watch], None] | None = None, lent: tuple[str, ...] = (THERE,)) -> None:
        self.plays, self.lent = plays or self.beside, lent
        self.asked: list[tuple[list[str], str]] = []

    def identity(self) -> object:
        return "pretended"

    def probe(self, cores: tuple[int, ...], runtimes: tuple[str, ...]) -> Envelope:
        return HOME

    def lends(self, envelope: str) -> bool:
        return envelope in self.lent

    def bars_controllers(self) -> str:
        return ""

    def told(self) -> tuple[str, ...]:
        return ("Two machines.",)

    def perform(self, material: Material, groups: Sequence[Group], watch: Watch) -> None:
        for group in groups:
            self.asked.append(([trial.note for trial in group.trials], group.envelope))
            self.plays(group, watch)

    def beside(self, group: Group, watch: Watch) -> None:
        for trial in group.trials:
            if isinstance(trial, Profile):
                watch.began(trial, BESIDE)
                watch.made(trial, Profiled(profiles=(profile_of(trial.plan.id),), failures=()), BESIDE)
            else:
                assert isinstance(trial, Replay)
                replayed(trial, watch, BESIDE)


def replayed(trial: Replay, watch: Watch, envelope: Envelope) -> None:
    placed = replace(trial, run=replace(trial.run, envelope_sha256=digest(envelope)))
    watch.began(placed, envelope)
    costs = CostModel.from_profiles(trial.profiles, trial.plan.compile.entries)
    service = ProfileService(costs, 1)
    trace = simulate(trial.workload, trial.plan, Router(trial.plan.compile), costs, service, placed.run)
    watch.made(placed, Replayed(trace=trace), envelope)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return begun(tmp_path, STUDY)


def begun(folder: Path, text: str) -> Context:
    """Everything up to the baseline's profile."""
    study = load_study(write_study(folder, text))
    ctx = Context(
        study=study, folder=folder, packet=Packet(folder / "packet"), budget_s=60.0, progress=Silent(),
        executor=Pretended(),
    )  # fmt: skip
    stages.workload(ctx)
    ctx.packet.write_envelope(HOME, ())
    ctx.packet.write_profiles(study.baseline.id, [profile_of("today")], HERE)
    ctx.packet.write_plan(study.baseline)
    ctx.written.clear()
    return ctx


def compare(ctx: Context, times: int) -> list[str]:
    """The runs of one comparison, as envelopes by number."""
    found = runs.in_turn(ctx, [ctx.study.baseline], ctx.slice("tune"), times, label="tune", stage="replay")
    return [trace.run.envelope_sha256 for trace in found["today"]]


def asked(ctx: Context) -> list[tuple[list[str], str]]:
    assert isinstance(ctx.executor, Pretended)
    return ctx.executor.asked


def test_a_run_carries_the_envelope_that_made_it_and_the_packet_keeps_that_beside(context: Context) -> None:
    assert compare(context, 2) == [THERE, THERE]
    kept = context.packet.machine_path(THERE)
    assert context.packet.read_machine(THERE) == BESIDE
    assert kept in context.written
    assert context.envelope_of(THERE) == BESIDE
    assert context.envelope_of(HERE) == HOME
    assert context.packet.read_machines() == (HOME, BESIDE)


def test_what_the_home_machine_makes_needs_no_other_envelope(context: Context) -> None:
    def at_home(group: Group, watch: Watch) -> None:
        for trial in group.trials:
            assert isinstance(trial, Replay)
            replayed(trial, watch, HOME)

    context.executor = Pretended(at_home)
    assert compare(context, 1) == [HERE]
    assert not (context.packet.folder / "envelopes").exists()


def test_a_comparison_is_continued_by_the_machine_that_began_it(context: Context) -> None:
    compare(context, 1)
    assert compare(context, 3) == [THERE, THERE, THERE]
    assert asked(context) == [(["tune-today-1"], ""), (["tune-today-2", "tune-today-3"], THERE)]


def test_a_comparison_whose_machine_is_not_there_any_more_is_made_again_as_a_whole(context: Context) -> None:
    compare(context, 1)
    context.executor = Pretended(lent=())
    compare(context, 2)
    assert asked(context) == [(["tune-today-1", "tune-today-2"], "")]


def test_a_finished_comparison_is_read_and_its_envelope_stays_evidence(context: Context) -> None:
    compare(context, 2)
    context.written.clear()
    context.executor = Pretended()
    assert compare(context, 2) == [THERE, THERE]
    assert asked(context) == []
    assert context.packet.machine_path(THERE) in context.written


def test_the_rows_of_a_machine_that_is_lost_become_a_cut_trace_of_its_own(context: Context) -> None:
    def lost(group: Group, watch: Watch) -> None:
        (trial,) = group.trials
        assert isinstance(trial, Replay)
        broken = replace(trial, run=replace(trial.run, envelope_sha256=THERE))
        watch.began(broken, BESIDE)
        watch.rows(broken, "samples", [(0, -1, 0.5, 0.0, 0.0, -1, -1, 0.0, -1)])
        replayed(trial, watch, HOME)

    context.executor = Pretended(lost)
    assert compare(context, 1) == [HERE]
    cut = context.packet.read_trace("tune-today-1.cut1")
    assert not cut.run.complete
    assert cut.run.envelope_sha256 == THERE
    assert len(cut.samples) == 1
    assert not context.packet.telemetry_path("tune-today-1").exists()


def test_every_condition_is_a_comparison_of_its_own(tmp_path: Path) -> None:
    text = STUDY + "".join(f'[[conditions]]\nkind = "{kind}"\n' for kind in ("higher load", "cold start"))
    ctx = begun(tmp_path, text)
    found = dict(conditions.replays(ctx, [ctx.study.baseline]))
    assert list(found) == ["higher load", "cold start"]
    assert [group for group, _ in asked(ctx)] == [
        ["higher-load-today-1", "higher-load-today-2"],
        ["cold-start-today-1", "cold-start-today-2"],
    ]


def test_profiles_are_independent_of_each_other_and_say_who_made_them(context: Context) -> None:
    base = context.study.baseline
    other = replace(base, id="other", compile=replace(base.compile, options={"base_us": "1"}))
    same = replace(base, id="same")
    compiling.profile(context, [base, base, same, other])
    assert asked(context) == [(["profiling today"], ""), (["profiling other"], "")]
    assert context.packet.profiled_on("other") == THERE
    assert context.packet.machine_path(THERE) in context.written
    compiling.profile(context, [base, other])
    assert len(asked(context)) == 2, "a profile is made once"


def test_a_profile_of_another_home_promises_nothing_here_and_is_made_again(context: Context) -> None:
    base = context.study.baseline
    compiling.profile(context, [base])
    context.packet.write_envelope(replace(HOME, host="elsewhere"), ())
    moved = Context(
        study=context.study, folder=context.folder, packet=context.packet, budget_s=60.0, progress=Silent(),
        executor=Pretended(),
    )  # fmt: skip
    compiling.profile(moved, [base])
    assert asked(moved) == [(["profiling today"], "")]


def test_an_executor_that_does_not_exist_is_refused_by_name(context: Context) -> None:
    with (
        pytest.raises(UsageError, match="there is no executor 'spark'") as refused,
        executor.chosen("spark", context.study, tuple, Silent()),
    ):
        pass
    assert refused.value.fix == "known: local, ray, ray:ADDRESS"


def test_a_server_is_driven_from_this_machine_only(context: Context) -> None:
    workload = replace(context.study.workload, target="kserve-v2://host:8001/net")
    with (
        pytest.raises(UsageError, match="a server is driven from this machine only"),
        executor.chosen("ray", replace(context.study, workload=workload), tuple, Silent()),
    ):
        pass


@pytest.mark.parametrize("address", ["auto", "ray://head:10001", "head", "head:"])
def test_what_is_no_address_of_a_cluster_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is no address of a cluster"):
        ray_cluster.knock(address)


def test_where_nobody_answers_it_says_so_at_once() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(MachineError, match="cannot be joined") as refused:
            ray_cluster.knock(f"127.0.0.1:{unused.getsockname()[1]}")
    assert "ray start --address" in refused.value.fix


def test_without_ray_its_executor_says_how_to_get_it(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool) as refused, executor.chosen("ray", context.study, tuple, Silent()):
        pass
    assert refused.value.fix == "pip install 'trimtab[ray]'"
