"""Simulated runs of what would run, on redrawn arrivals. Null backend: its profile is what it is told to take."""

from __future__ import annotations

import numpy as np
import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study
from msgspec.structs import replace

from trimtab.loop import compiling, rehearsing, stages
from trimtab.loop.context import Context
from trimtab.retuning.rollback import FAULTY, RUNS, Rehearsal
from trimtab.store.packet import Packet
from trimtab.store.study import load_study


@pytest.fixture(scope="module")
def ctx(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """The traffic is read and the baseline profiled."""
    need_two_cores()
    folder = tmp_path_factory.mktemp("rehearsing")
    study = load_study(write_study(folder, STUDY))
    made = Context(study=study, folder=folder, packet=Packet(folder / "packet"), budget_s=60, progress=Silent())
    stages.workload(made)
    stages.plan(made)
    compiling.profile(made, [study.baseline])
    return made


@pytest.fixture(scope="module")
def found(ctx: Context) -> Rehearsal:
    made = rehearsing.rehearsal(ctx, ctx.study.baseline)
    assert isinstance(made, Rehearsal)
    return made


def test_healthy_and_faulty_runs_stand_for_the_held_out_slice(ctx: Context, found: Rehearsal) -> None:
    held_out = len(ctx.workload.take(ctx.slice("held-out")))
    assert found.recorded.rows.tolist() == list(range(held_out))
    assert len(found.healthy) == 2 * RUNS
    assert {name: len(runs) for name, runs in found.faulty.items()} == dict.fromkeys(
        ("service x 1.25", "service x 1.5", "service x 2", "the baseline"), FAULTY
    )
    assert {run.latency.size for run in found.healthy} == {held_out}
    assert len({run.rows.tobytes() for run in found.healthy}) == 2 * RUNS


def test_slower_service_makes_slower_runs(found: Rehearsal) -> None:
    def middle(runs: object) -> float:
        return float(np.median([np.median(run.latency) for run in runs]))  # type: ignore[attr-defined]

    means = [middle(found.healthy), *(middle(found.faulty[f"service x {factor}"]) for factor in ("1.25", "1.5", "2"))]
    assert means == sorted(means)
    assert means[-1] > 1.9 * means[0]


def test_it_is_made_once_and_comes_out_the_same(ctx: Context, found: Rehearsal) -> None:
    assert rehearsing.rehearsal(ctx, ctx.study.baseline) is found
    ctx.rehearsed.clear()
    again = rehearsing.rehearsal(ctx, ctx.study.baseline)
    assert isinstance(again, Rehearsal)
    assert [run.latency.tolist() for run in again.healthy[:3]] == [run.latency.tolist() for run in found.healthy[:3]]


def test_a_profile_that_cannot_say_how_long_is_told_and_not_hidden(ctx: Context) -> None:
    """Nothing is known of the entry that this plan serves with."""
    (entry,) = ctx.study.baseline.compile.entries
    widened = replace(ctx.study.baseline.compile, entries=(replace(entry, id="unknown"),), fallback="unknown")
    plan = replace(ctx.study.baseline, id="unprofiled", compile=widened)
    ctx.packet.write_profiles("unprofiled", ())
    found = rehearsing.rehearsal(ctx, plan)
    assert isinstance(found, str)
    assert found.startswith("it cannot be simulated, the profile cannot say how long entry 'unknown' takes")
