"""Quality metrics: literal outputs in, literal scores out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trimtab.evidence.quality import argmax_agreement, cosine, max_error, meets, score, scores, summary

REF = np.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])


def test_argmax_agreement_is_the_share_of_positions_with_the_same_class() -> None:
    assert argmax_agreement(REF + 0.05, REF) == 1.0
    assert argmax_agreement(np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]), REF) == 0.75


def test_max_error_is_the_largest_difference() -> None:
    assert max_error(np.array([1.0, 2.5]), np.array([1.0, 2.0])) == 0.5
    assert max_error(np.array([-np.inf, 1.0]), np.array([-np.inf, 1.0])) == 0.0


@pytest.mark.parametrize(
    ("test", "ref", "value"),
    [
        ([1, 0], [2, 0], 1.0),
        ([1, 0], [0, 3], 0.0),
        ([1, 0], [-1, 0], -1.0),
        ([0, 0], [0, 0], 1.0),
        ([0, 0], [1, 0], 0.0),
    ],
)
def test_cosine(test: list[float], ref: list[float], value: float) -> None:
    assert cosine(np.array(test, dtype=np.float32), np.array(ref, dtype=np.float32)) == value


def test_a_request_scores_its_worst_output() -> None:
    good, bad = {"y": np.array([1.0]), "z": np.array([2.0])}, {"y": np.array([1.0]), "z": np.array([2.5])}
    assert score("max-error", bad, good) == 0.5
    assert score("cosine", {"y": np.array([1.0]), "z": np.array([-2.0])}, good) == -1.0


@pytest.mark.parametrize(
    "test", [None, {}, {"y": REF[:3]}, {"y": np.full((4, 2), np.nan)}, {"other": REF}], ids=lambda t: str(t)[:12]
)
def test_no_comparable_answer_scores_the_worst_there_is(test: dict[str, np.ndarray] | None) -> None:
    assert score("argmax-agreement", test, {"y": REF}) == 0.0
    assert score("max-error", test, {"y": REF}) == math.inf
    assert score("cosine", test, {"y": REF}) == -1.0


def test_the_summary_is_a_mean_but_for_errors_the_largest() -> None:
    values = scores("cosine", [({"y": REF}, {"y": REF}), (None, {"y": REF})])
    assert values.tolist() == pytest.approx([1.0, -1.0])
    assert summary("argmax-agreement", np.array([1.0, 0.5])) == 0.75
    assert summary("max-error", np.array([1.0, 0.5])) == 1.0
    assert math.isnan(summary("cosine", np.array([])))


def test_a_floor_is_a_ceiling_for_errors_and_nan_never_meets_it() -> None:
    assert meets("argmax-agreement", 0.97, 0.97)
    assert not meets("argmax-agreement", 0.96, 0.97)
    assert meets("max-error", 0.01, 0.01)
    assert not meets("max-error", 0.02, 0.01)
    assert not meets("cosine", math.nan, 0.9)
    assert not meets("max-error", math.nan, 0.9)
