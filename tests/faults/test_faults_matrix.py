"""Rows, the matrix and macro-F1 from literal diagnoses; the page says what was missed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from faults.matrix import Row

from faults import catalogue, matrix


def row(fault: str, seed: int, expected: str, *named: str, decoys: tuple[str, ...] = ()) -> Row:
    return Row(
        fault=fault,
        seed=seed,
        injected="nothing",
        expected=expected,  # type: ignore[arg-type]
        named=named,  # type: ignore[arg-type]
        rank=named.index(expected) + 1 if expected in named else 0,
        decoys=decoys,  # type: ignore[arg-type]
        evidence="seen",
        p95_ms=20.0,
        bound_ms=40.0,
        requests=500,
    )


ROWS = (
    row("healthy", 1, "healthy", "healthy"),
    row("healthy", 2, "healthy", "envelope"),
    row("quota", 1, "envelope", "envelope"),
    row("quota", 2, "envelope", "envelope", "cold-shape", decoys=("cold-shape",)),
)


def test_confusion_counts_the_first_named_class() -> None:
    assert matrix.confusion(ROWS) == {"healthy": {"healthy": 1, "envelope": 1}, "envelope": {"envelope": 2}}


def test_macro_f1_is_the_mean_over_the_expected_classes() -> None:
    # healthy: 1 hit, 1 missed -> 2/3; envelope: 2 hits, 1 false -> 4/5
    assert matrix.f1_by_class(ROWS) == pytest.approx({"healthy": 2 / 3, "envelope": 4 / 5})
    assert matrix.macro_f1(ROWS) == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_the_summary_counts_runs_and_decoys() -> None:
    text = matrix.summary(ROWS)
    assert "3 of 4 runs named first; a decoy beside it in 1" in text
    assert "| healthy | 1 | 1 | 0.67 |" in text


def test_the_page_shows_what_was_missed() -> None:
    page = matrix.page(ROWS, ["Machine: a machine"], "the command")
    assert "- Missed: healthy, seed 2: `envelope` instead of `healthy`: seen." in page
    assert "| quota | `envelope` | 2 of 2 | `cold-shape` | 20 ms (40) | nothing | seen |" in page


def test_every_fault_has_a_reason_and_its_own_name() -> None:
    assert len({fault.id for fault in catalogue.FAULTS}) == len(catalogue.FAULTS)
    assert all(fault.why and fault.what for fault in catalogue.FAULTS)


def test_an_unknown_fault_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no fault 'heat'; known: healthy, overload"):
        catalogue.fault("heat")
