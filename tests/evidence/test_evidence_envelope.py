"""What the machine did around a run: literal samples and counters in, literal figures and sentences out."""

from __future__ import annotations

from typing import Any

import pytest
from evidence_cases import Ran, trace

from trimtab.domain.figure import Findings
from trimtab.domain.trace import MARK_COLUMNS, MARK_KINDS, SAMPLE_COLUMNS, Table, Trace, empty
from trimtab.evidence import envelope

MIB = 2**20


def sampled(*rows: dict[str, Any]) -> Table:
    """Samples half a second apart; what a row does not name is not told."""
    made = empty(SAMPLE_COLUMNS, len(rows))
    for at, row in enumerate(rows):
        for name, value in ({"t": at * 500_000_000} | row).items():
            made[name][at] = value
    return made


def counted(run: Trace, **columns: list[int]) -> Trace:
    """``run`` with these counters of its batches."""
    for name, values in columns.items():
        run.batches[name][:] = values
    return run


TWO = [Ran((9,), wall=1), Ran((9,), wall=1, arrived=5)]


def row(run: Trace) -> dict[str, Any]:
    found = envelope.told(Findings(stage="replay", headline=""), [run]).table("replay.envelope")
    assert found is not None
    return {name: column[0] for name, column in found.columns.items()}


def test_a_machine_that_tells_everything() -> None:
    """Core 0 is the worker's. Its clock counts where it was busy; memory and throttled time are the machine's."""
    samples = sampled(
        {"core": -1, "celsius": 61, "rss_bytes": 300 * MIB, "throttled_ns": 0},
        {"core": 0, "busy": 0.9, "stolen": 0.0, "mhz": 3000},
        {"core": 0, "busy": 0.8, "stolen": 0.04, "mhz": 2000},
        {"core": 0, "busy": 0.1, "stolen": 0.02, "mhz": 800},
        {"core": 1, "busy": 1.0, "stolen": 0.9, "mhz": 100},
        {"core": -1, "celsius": 74, "rss_bytes": 420 * MIB, "throttled_ns": 250_000_000},
    )
    marks = empty(MARK_COLUMNS, 4)
    marks["kind"][:] = [MARK_KINDS.index(kind) for kind in ("pace", "pace", "pace", "compile")]
    marks["value"][:], marks["value2"][:] = [40e3, 50e3, 60e3, 9e9], [90e3, 80e3, 70e3, 1]
    run = counted(trace(TWO, samples, marks), migrations=[0, 3], minor_faults=[7, -1], major_faults=[2, 0])
    assert row(run) == {
        "run": "r1", "plan": "base", "clock": 2500, "clock_lowest": 2000, "stolen": 0.02, "throttled": 0.1,
        "temperature": 74, "resident": 420, "migrations": 3, "minor_faults": 7, "major_faults": 2,
        "pace_compute": 50, "pace_stream": 80,
    }  # fmt: skip


def test_what_this_machine_does_not_tell_has_no_value_and_says_so() -> None:
    found = envelope.told(Findings(stage="replay", headline=""), [trace(TWO)])
    assert {figure.value for figure in found.figures} == {None}
    assert {figure.note for figure in found.figures} == {envelope.UNTOLD}
    assert [figure.id for figure in found.figures] == [f"replay.r1.{one.name}" for one in envelope.QUANTITIES]
    assert found.findings == ()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"migrations": [0, 0], "major_faults": [0, 0]}, []),
        ({"migrations": [1, 1]}, ["Run r1: threads of its workers changed their core 2 times while batches ran."]),
        ({"major_faults": [1200, 5]}, ["Run r1: 1,205 pages were read from disk while batches ran."]),
        ({"minor_faults": [9999, 0]}, []),
    ],
)
def test_what_should_not_have_happened_is_said(columns: dict[str, list[int]], said: list[str]) -> None:
    found = envelope.told(Findings(stage="replay", headline=""), [counted(trace(TWO), **columns)])
    assert [finding.text for finding in found.findings] == said
    assert all(found.figure(id_) is not None for finding in found.findings for id_ in finding.figures)


@pytest.mark.parametrize(("stolen", "said"), [(0.005, 0), (0.02, 1)])
def test_a_little_stolen_time_is_no_news(stolen: float, said: int) -> None:
    run = trace(TWO, sampled({"core": 0, "busy": 0.9, "stolen": stolen}))
    found = envelope.told(Findings(stage="replay", headline=""), [run])
    assert [finding.text for finding in found.findings] == ["Run r1: 2.0 % of its cores' time was stolen."] * said


def test_every_run_has_a_row_and_no_run_leaves_the_findings_as_they_are() -> None:
    empty_ = Findings(stage="replay", headline="")
    assert envelope.told(empty_, []) is empty_
    found = envelope.told(empty_, [trace(TWO, id="a"), trace(TWO, id="b")]).table("replay.envelope")
    assert found is not None
    assert found.columns["run"] == ("a", "b")


def test_one_sample_of_a_quota_says_nothing_of_time() -> None:
    assert envelope.throttled(trace(TWO, sampled({"core": -1, "throttled_ns": 5}))) is None
