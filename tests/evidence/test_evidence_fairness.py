"""Fairness over streams and over cores, literal in -> literal out."""

from __future__ import annotations

import numpy as np
import pytest
from account_cases import Formula, Scene, simulate

from trimtab.evidence.attribute.account import build
from trimtab.evidence.fairness import fairness

MS = 1_000_000


def scene(streams: list[int], eligible: tuple[tuple[int, ...], ...], workers: int) -> Scene:
    """One request each 10 ms, 8 ms of work."""
    n = len(streams)
    return Scene(
        arrivals=np.arange(n, dtype=np.int64) * 10 * MS,
        dims=np.ones(n, dtype=np.int64),
        workers=workers,
        streams=np.array(streams),
        eligible=eligible,
        reference=Formula(fixed=8 * MS, slope=0),
    )


def test_streams_that_are_served_alike() -> None:
    made = scene([0, 1] * 30, ((0, 1), (0, 1)), 2)
    trace = simulate(made)
    desk, said, tables = fairness(build(trace, made.promise, made.reference, "r", made.plan, made.by_entry), trace)
    values = {figure.id: figure.value for figure in desk.figures}
    assert values == {
        "fairness.streams.jain": pytest.approx(1),
        "fairness.streams.jain_p95": pytest.approx(1),
        "fairness.streams.worst_to_best": pytest.approx(1),
        "fairness.cores.jain": pytest.approx(1),
        "fairness.cores.most_to_mean": pytest.approx(1),
    }
    assert said == []
    assert tables[0].columns["speed"] == (1.0, 1.0)
    assert tables[1].columns["batches"] == (30, 30)


def test_a_stream_on_a_crowded_worker_is_named() -> None:
    made = scene([0, 0, 0, 0, 0, 1] * 20, ((0,), (1,)), 2)
    slow = Formula(fixed=13 * MS, slope=0)  # five of six arrivals on one worker: 1.08 of what it can do
    made = Scene(**{name: getattr(made, name) for name in made.__dataclass_fields__} | {"reference": slow})
    trace = simulate(made)
    desk, said, tables = fairness(build(trace, made.promise, made.reference, "r", made.plan, made.by_entry), trace)
    values = {figure.id: figure.value for figure in desk.figures}
    assert tables[1].columns["work"] == (1300.0, 260.0)
    assert values["fairness.cores.jain"] == pytest.approx(1560**2 / (2 * (1300**2 + 260**2)))
    assert values["fairness.cores.most_to_mean"] == pytest.approx(1300 / 780)
    assert [finding.text.split(":")[0] for finding in said] == [
        "Streams are served unevenly",
        "Work is uneven over the cores",
    ]
    assert "of s0's time is its own work" in said[0].text
    assert "worker 0 did 83.3 % of it" in said[1].text


def test_one_stream_and_one_worker_cannot_be_unfair() -> None:
    made = scene([0] * 5, ((0,),), 1)
    trace = simulate(made)
    desk, said, _ = fairness(build(trace, made.promise, made.reference, "r", made.plan, made.by_entry), trace)
    notes = {figure.id: (figure.value, figure.note) for figure in desk.figures}
    assert notes["fairness.streams.jain"] == (1.0, "one stream only")
    assert notes["fairness.streams.worst_to_best"] == (None, "one stream only")
    assert notes["fairness.cores.jain"] == (1.0, "one worker only")
    assert said == []
