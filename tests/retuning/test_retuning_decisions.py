"""A small, seeded edition of bench/decisions.py: decisions about simulated studies whose truth is known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from decisions import LONGER, in_turn, study

pytestmark = pytest.mark.slow


def test_the_same_plan_twice_is_neither_shipped_nor_called_worse() -> None:
    """40 A/A studies near saturation, where intervals are too narrow: by chance alone at most 2 may fail a guard."""
    verdicts = [one.verdict for one in in_turn(0.9, 1000, 1.0, range(40))]
    assert verdicts.count("guard-failed") <= 2
    assert "ship" not in verdicts


def test_a_tail_that_is_a_tenth_longer_is_found() -> None:
    """A little less than pilots at this load ask for; most are found, and half of them are bound to be."""
    found = in_turn(0.75, 6000, LONGER, range(12))
    assert sum(one.found for one in found) >= 6
    assert not any(one.verdict == "ship" for one in found)


def test_a_guard_whose_margin_is_the_truth_does_not_pass_near_saturation() -> None:
    found = in_turn(0.9, 2000, LONGER, range(40))
    assert sum(one.passed for one in found) <= 2


def test_a_study_is_a_function_of_its_seed() -> None:
    assert study(0.5, 500, 1.0, 7) == study(0.5, 500, 1.0, 7)
