"""Real runs, one of each fault, recorded with everything that their analysis needs: each is named as it was live."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from faults import catalogue, recorded

HERE = Path(__file__).parent / "recorded"
RUNS = recorded.names(HERE)
MIB = 2**20


@pytest.mark.parametrize("run", RUNS)
def test_the_expected_class_is_named_first(run: str) -> None:
    kept = recorded.read(HERE, run)
    diagnosis = recorded.judge(kept).diagnosis
    assert diagnosis.classes[0].id == kept.case.expected
    also = catalogue.fault(kept.case.fault).also
    assert {one.id for one in diagnosis.classes} <= {kept.case.expected, *also}
    assert diagnosis.classes[0].evidence


def test_the_same_run_gets_the_same_answer_twice() -> None:
    kept = recorded.read(HERE, RUNS[0])
    assert recorded.judge(kept).diagnosis == recorded.judge(kept).diagnosis


def test_every_fault_is_recorded_once() -> None:
    assert sorted(run.rpartition("-")[0] for run in RUNS) == sorted(fault.id for fault in catalogue.FAULTS)


def test_expectations_are_those_of_the_catalogue() -> None:
    for run in RUNS:
        case = recorded.read(HERE, run).case
        fault = catalogue.fault(case.fault)
        assert case.expected in (fault.expected, fault.unfelt)


def test_the_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < 4 * MIB
