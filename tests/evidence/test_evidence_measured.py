"""What replays under the online controller won, from runs that are given."""

from __future__ import annotations

import numpy as np
import pytest
from adaptation_cases import adaptation
from evidence_cases import MS, SLA, Ran, trace

from trimtab.domain.figure import Figure
from trimtab.domain.trace import MARK_COLUMNS, MARK_KINDS, Table, Trace, empty
from trimtab.evidence.figures import Desk
from trimtab.evidence.score import measured
from trimtab.evidence.score.measured import Measured, beside


def prepared(*spans: tuple[int, int]) -> Table:
    """Compiles beside worker 0, ms."""
    marks = empty(MARK_COLUMNS, len(spans))
    marks["kind"][:] = MARK_KINDS.index("prepare")
    marks["worker"][:] = 0
    for row, (start, end) in enumerate(spans):
        marks["t"][row], marks["end"][row] = start * MS, end * MS
    return marks


def replay(name: str, slow: float = 1.0, *spans: tuple[int, int], beside_slow: float = 1.0, **info: str) -> Trace:
    """600 requests 20 ms apart, widths 100..299; batches beside a compile take ``beside_slow`` times as long."""
    batches = []
    for i in range(600):
        width, start = 100 + i * 73 % 200, 20.0 * i
        warm = 1 + 0.01 * width
        under_way = any(lo <= start < hi for lo, hi in spans)
        wall = warm * slow * (beside_slow if under_way else 1.0)
        batches.append(Ran((width,), wall=wall, promised=warm, arrived=start))
    return trace(batches, marks=prepared(*spans), id=name, plan=name.partition("-")[0], **info)


def arm(name: str, *slow: float) -> tuple[Trace, ...]:
    return tuple(replay(f"{name}-{number}", factor) for number, factor in enumerate(slow))


def found(given: Measured) -> tuple[dict[str, Figure], str]:
    """The figures by name, and the sentence."""
    desk = Desk("score", "this run", "traces")
    won = measured.figures(given, SLA, np.random.default_rng(1), desk)
    return {figure.id.removeprefix("score."): figure for figure in desk.figures}, measured.said(given, won, SLA).text


def test_a_gain_beyond_what_replays_differ_by_is_real() -> None:
    given = Measured(static=arm("static", 1.0, 1.01, 1.02), adapted=arm("adapted", 0.7, 0.71, 0.72))
    figures, text = found(given)
    won = figures["measured_gain"]
    assert won.value == pytest.approx(0.3, abs=0.01)
    assert won.interval is not None
    assert won.interval.lo > 0.25
    assert figures["measured_static"].value == pytest.approx(3.89 * 1.01, abs=0.01)
    assert figures["measured_adapted"].value == pytest.approx(3.89 * 0.71, abs=0.01)
    assert figures["measured_floor"].value == pytest.approx(0.72 / 0.7 - 1, abs=0.001)
    assert text.startswith("In 3 replays of each arm, in turn, refitting while serving makes p95 ")
    assert "The gain is real." in text
    assert given.typical(SLA).run.id == "adapted-1"


@pytest.mark.parametrize(
    ("static", "adapted", "verdict"),
    [
        ((1.0, 1.01, 1.02), (1.01, 1.0, 1.02), "No difference is shown."),
        ((1.0, 1.01, 1.02), (1.3, 1.31, 1.32), "The loss is real."),
        ((1.0, 1.2, 1.1), (0.9, 1.1, 1.0), "No difference is shown."),  # within the floor
        ((1.0, 1.01), (0.7, 0.71), "That proves nothing yet."),
    ],
)
def test_what_replays_of_one_arm_differ_by_decides(
    static: tuple[float, ...], adapted: tuple[float, ...], verdict: str
) -> None:
    _, text = found(Measured(static=arm("static", *static), adapted=arm("adapted", *adapted)))
    assert verdict in text


def test_what_a_compile_does_to_the_batches_beside_it_is_measured() -> None:
    run = replay("adapted-0", 1.0, (2000, 2400), beside_slow=2.0)
    slow = beside([run])
    assert slow.batches == 20
    assert slow.slower == pytest.approx(1.0, abs=0.001)
    figures, text = found(Measured(static=arm("static", 1.0), adapted=(run,)))
    assert (figures["measured_compiling"].value, figures["measured_compiling"].samples) == (400.0, 1)
    assert figures["measured_beside"].samples == 20
    assert "1 compile beside serving; the 20 warm batches beside took 100.0 % longer than others." in text


def test_an_entry_that_misses_its_promise_anyway_is_not_slowed_by_the_compile_that_it_causes() -> None:
    """Before: half of the batches on an entry that takes twice its promise; during a compile: nothing but those."""
    batches = [
        Ran((150,), wall=4.0 if entry == "dyn" else 2.0, promised=2.0, entry=entry, arrived=20.0 * i)
        for i, entry in enumerate(["dyn", "to-200"] * 50 + ["dyn"] * 20)
    ]
    slow = beside([trace(batches, marks=prepared((2000, 2400)))])
    assert (slow.batches, slow.slower) == (20, 0.0)


def test_an_entry_that_ran_beside_compiles_only_is_compared_with_nothing() -> None:
    batches = [Ran((150,), wall=2.0, promised=2.0, arrived=20.0 * i) for i in range(20)]
    assert beside([trace(batches, marks=prepared((0, 400)))]) == (0, None)


def test_without_a_compile_nothing_is_said_of_batches_beside_it() -> None:
    assert beside(arm("adapted", 1.0)) == (0, None)


def test_measured_and_simulated_runs_stand_in_one_table_with_their_source() -> None:
    given = Measured(static=arm("static", 1.0, 1.02, 1.01), adapted=arm("adapted", 0.7))
    rows = measured.runs(given, adaptation(), SLA).columns
    assert rows["run"] == ("static", "adapted", "static", "adapted", "clairvoyant")
    assert rows["source"] == ("measured",) * 2 + ("simulated",) * 3
    assert rows["replays"] == (3, 1, 1, 1, 1)
    assert (rows["lowest"][0], rows["value"][0], rows["highest"][0]) == pytest.approx((3.89, 3.93, 3.97), abs=0.01)
    assert measured.runs(given, None, SLA).columns["run"] == ("static", "adapted")


def test_runs_that_differ_are_not_compared() -> None:
    other = (replay("adapted-0", 0.5, workload_sha256="other"),)
    figures, text = found(Measured(static=arm("static", 1.0), adapted=other))
    assert figures["measured_gain"].value is None
    assert text == "In 1 replay of each arm, in turn, the gain is unknown: refused: the runs differ in workload."


def test_why_nothing_was_replayed_is_said() -> None:
    desk = Desk("score", "this run", "traces")
    measured.absent("torch cannot compile beside serving", desk)
    assert (desk.figures[0].value, desk.figures[0].note) == (
        None, "not measured: torch cannot compile beside serving",
    )  # fmt: skip


def test_the_worked_example_of_the_page() -> None:
    given = Measured(static=arm("static", 1.0, 1.01, 1.02), adapted=arm("adapted", 0.7, 0.71, 0.72))
    assert found(given)[0]["measured_floor"].value == pytest.approx(0.029, abs=0.0005)
    batches = [Ran((100,), wall=4, promised=2, arrived=10), Ran((100,), wall=2, promised=2, arrived=50)]
    assert beside([trace(batches, marks=prepared((5, 20)))]) == (1, 1.0)
