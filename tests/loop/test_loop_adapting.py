"""Static and adapted replays of a study that asks for them. Null backend: plumbing only."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_kit import STUDY, Silent, need_two_cores, write_study
from msgspec.structs import replace

from trimtab.evidence.score.measured import Measured
from trimtab.loop import adapting, compiling, stages
from trimtab.loop.context import Context
from trimtab.loop.schedule import plan_time
from trimtab.store.packet import Packet
from trimtab.store.study import load_study

ASKED = STUDY.replace("replays = 2", "replays = 1") + "\n[adapt]\nreplay = true\nspare = 1\ncompile_s = 20.0\n"


def context(folder: Path, text: str) -> Context:
    study = load_study(write_study(folder, text))
    return Context(study=study, folder=folder, packet=Packet(folder / "packet"), budget_s=60, progress=Silent())


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """The traffic is read, and every candidate profiled."""
    need_two_cores()
    made = context(tmp_path_factory.mktemp("adapting"), ASKED)
    for stage in (stages.workload, stages.plan, stages.compile_):
        stage(made)
    return made


def test_replays_under_the_controller_take_their_share_of_the_budget() -> None:
    assert plan_time(600, 3, 4, None).tune_s == pytest.approx((600 - 30 - 4 - 12 * 3.5) / (6 + 6 * 1.5))
    assert plan_time(600, 3, 4, None, adapting=6).tune_s == pytest.approx((600 - 30 - 4 - 18 * 3.5) / (12 + 6 * 1.5))


@pytest.mark.slow
def test_static_and_adapted_replays_are_made_in_turn_and_kept(asked: Context) -> None:
    found = adapting.measured(asked)
    assert isinstance(found, Measured)
    (static,), (adapted,) = found.static, found.adapted
    assert (static.run.plan, adapted.run.plan) == ("today", "today-adapted")
    assert (static.run.source, adapted.run.source) == ("measured", "measured")
    assert static.requests["scheduled"].tolist() == adapted.requests["scheduled"].tolist()
    assert (adapted.requests["error"] == 0).all()
    again = asked.packet.read_trace("adapting-today-adapted-1")
    assert again.requests["done"].tolist() == adapted.requests["done"].tolist()


@pytest.mark.slow
def test_a_proposal_bounds_what_a_controller_may_do(asked: Context) -> None:
    bounds = adapting.permitted(asked, asked.study.baseline)
    assert bounds is not None
    assert (bounds.entries, bounds.spare, bounds.low, bounds.high, bounds.compile_s) == (2, 1, (1,), (100,), 20.0)


def test_nothing_is_replayed_or_permitted_where_the_study_does_not_ask(tmp_path: Path) -> None:
    plain = context(tmp_path, STUDY)
    assert adapting.measured(plain) is None
    assert adapting.permitted(plain, plain.study.baseline) is None


def test_more_than_one_dim_is_no_case_for_a_controller(tmp_path: Path) -> None:
    asks = context(tmp_path, ASKED)
    asks.study = replace(asks.study, dims={"width": asks.study.dims["width"], "height": asks.study.dims["width"]})
    assert adapting.measured(asks) == "buckets are refitted to one dynamic dim only"
    assert adapting.permitted(asks, asks.study.baseline) is None


def test_the_reference_is_profiled_at_every_shape(tmp_path: Path) -> None:
    """The baseline's own entry is, where it is alone; beside a bucket it sees only what the bucket leaves."""
    alone = context(tmp_path, STUDY)
    assert compiling.reference_plan(alone) == (alone.study.baseline, "any")
    (entry,) = alone.study.baseline.compile.entries
    bucket = replace(entry, id="to-50", kind="bucket", hi=(50,))
    spec = replace(alone.study.baseline.compile, entries=(bucket, entry))
    alone.study = replace(alone.study, baseline=replace(alone.study.baseline, compile=spec))
    plan, name = compiling.reference_plan(alone)
    assert [one.id for one in plan.compile.entries] == [name]
    assert (plan.compile.entries[0].lo, plan.compile.entries[0].hi) == ((1,), (100,))
