"""The example of widths that shift: its study loads, its entries fit what comes first, and the shift is replayed."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from trimtab.domain.study import PayloadSpec
from trimtab.loop.schedule import cut, plan_time
from trimtab.readers.traffic import read_workload
from trimtab.store.study import load_study, seconds

EXAMPLE = Path(__file__).parents[2] / "examples" / "shift"
STUDY = load_study(EXAMPLE / "study.toml")
NARROW = 300


def test_the_buckets_cover_the_narrow_lines_and_nothing_after_the_shift() -> None:
    """The bank of images is made, not kept, so the traffic is read without it."""
    found = read_workload(replace(STUDY, workload=replace(STUDY.workload, payload=PayloadSpec())), EXAMPLE)
    padded = [entry for entry in STUDY.baseline.compile.entries if entry.kind != "dynamic"]
    most = max(entry.hi[0] for entry in padded)
    assert found.dims[:NARROW, 0].max() == most
    assert found.dims[NARROW:, 0].min() > most
    assert len(padded) == max(STUDY.space.buckets)


def test_the_shift_lies_in_the_middle_of_what_is_replayed() -> None:
    found = read_workload(replace(STUDY, workload=replace(STUDY.workload, payload=PayloadSpec())), EXAMPLE)
    budget = STUDY.budget
    schedule = plan_time(seconds(budget.time, "budget.time"), budget.replays, 30.0, budget.replay_s, adapting=6)
    tune = next(part for part in cut(found, schedule) if part.name == "tune")
    assert 0.3 < NARROW / (tune.stop - tune.start) < 0.7
    assert STUDY.adapt.replay
