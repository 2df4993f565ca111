"""The fusion example: its network and traffic are the embedder's, what is tried changes fusion alone, and the time that
it asks for is enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from trimtab.backends.torch import CHOICES, LEVELS
from trimtab.domain.study import PayloadSpec, Study
from trimtab.domain.workload import Workload
from trimtab.loop.schedule import cut, plan_time
from trimtab.readers.traffic import read_workload
from trimtab.retuning import moves
from trimtab.store.study import load_study

EXAMPLE = Path(__file__).parents[2] / "examples" / "fusion"
STUDY = load_study(EXAMPLE / "study.toml")
EMBEDDER = load_study(EXAMPLE.parent / "minilm" / "study.toml")


def traffic(study: Study) -> Workload:
    """The bank of texts is made, not kept, so the traffic is read without it."""
    random = replace(study.workload, payload=PayloadSpec(kind="random"))
    return read_workload(replace(study, workload=random), EXAMPLE)


def test_network_and_sources_of_traffic_are_those_of_the_embedder() -> None:
    ours, theirs, folder = STUDY.workload, EMBEDDER.workload, EXAMPLE.parent / "minilm"
    pairs = [
        (ours.arrivals.file, theirs.arrivals.file),
        (ours.payload.bank, theirs.payload.bank),
        (STUDY.model.path, EMBEDDER.model.path),
        (STUDY.model.torch, EMBEDDER.model.torch),
    ]
    assert [(EXAMPLE / one).resolve() for one, _ in pairs] == [folder / other for _, other in pairs]
    assert (STUDY.model.inputs, STUDY.dims) == (EMBEDDER.model.inputs, EMBEDDER.dims)


def test_today_is_what_the_compiler_does_by_itself_and_unfused_differs_in_nothing_else() -> None:
    spec = STUDY.baseline.compile
    assert (spec.backend, spec.optimisation, spec.options) == ("torch", "default", {"cache": "shared"})
    assert LEVELS["default"] == {}
    assert "shared" in CHOICES["cache"]
    assert STUDY.candidates == ()
    unfused = moves.optimise(STUDY.baseline, moves.LOWEST)
    assert moves.changed(STUDY.baseline, unfused) == ("optimisation",)
    assert LEVELS[unfused.compile.optimisation] == {"fusion": "off"}


def test_the_time_is_enough_for_traffic_that_can_decide() -> None:
    """Each slice holds 20 blocks of a dozen requests, which simulated queues take to forget; the replays take eight and
    a half of the twelve minutes, for starting torch twelve times and compiling it take the rest."""
    schedule = plan_time(0.0, STUDY.budget.replays, 0.0, STUDY.budget.replay_s)
    traffic_s = STUDY.budget.replays * (2 * schedule.held_out_s + schedule.tune_s) + 3 * schedule.tune_s
    whole = traffic(STUDY)
    tune, held_out = cut(whole, schedule)
    assert traffic_s <= 8.5 * 60
    assert tune.stop - tune.start >= 240
    assert held_out.stop - held_out.start >= 300


def test_the_load_is_even_and_long_texts_are_many() -> None:
    found = traffic(STUDY)
    assert len(found) == 4000
    by_minute = np.bincount(found.scheduled // 60_000_000_000)[:-1] / 60
    assert 7 < by_minute.min() < by_minute.max() < 11
    assert (found.dims > 384).mean() > 0.1
