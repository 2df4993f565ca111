"""Quality metrics: literal outputs in, literal scores out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from trimtab.errors import StudyError
from trimtab.evidence.quality import (
    argmax_agreement,
    blind,
    cosine,
    max_error,
    meets,
    mismatch,
    neighbour_agreement,
    refusal,
    require_judge,
    scores,
    summary,
)

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


def test_infinities_that_the_reference_gives_agree_and_count_for_nothing_else() -> None:
    masked = np.array([-np.inf, 3.0, 4.0])
    assert cosine(masked, masked) == 1.0
    assert cosine(np.array([-np.inf, 4.0, -3.0]), masked) == 0.0
    assert mismatch({"y": masked}, {"y": masked}) == ""
    assert scores("argmax-agreement", [{"y": masked}], [{"y": masked}]).tolist() == [1.0]


@pytest.mark.parametrize(
    ("metric", "shapes", "why"),
    [
        ("argmax-agreement", [(1, 1)], "one class"),
        ("argmax-agreement", [(1, 5, 1), (1, 9, 1)], "one class"),
        ("argmax-agreement", [(1,)], "one class"),
        ("cosine", [(1, 1)], "one value"),
        ("neighbour-agreement", [(1,), (1,)], "one value"),
        ("argmax-agreement", [(1, 1), (1, 2)], ""),  # cropped to one position in one request only
        ("cosine", [(1, 4)], ""),
        ("max-error", [(1, 1)], ""),
        ("error-function", [(1, 1)], ""),
        ("argmax-agreement", [], ""),
    ],
)
def test_a_metric_that_is_blind_to_an_output_judges_nothing(
    metric: str, shapes: list[tuple[int, ...]], why: str
) -> None:
    given = [{"classes": np.ones((1, 9)), "score": np.ones(shape)} for shape in shapes]
    if not why:
        require_judge(metric, given)
        return
    with pytest.raises(StudyError, match=f"{metric} cannot judge output .score. .*{why}") as caught:
        require_judge(metric, given)
    assert (caught.value.where, "max-error" in caught.value.fix) == ("quality.metric", True)


@settings(deadline=None, max_examples=60)
@drawn(
    metric=st.sampled_from(["argmax-agreement", "cosine"]), shape=st.lists(st.integers(1, 4), min_size=1, max_size=3)
)
def test_what_a_metric_is_blind_to_agrees_whatever_is_answered_and_nothing_else_does(
    metric: str, shape: list[int]
) -> None:
    """All ones, against an answer whose last value stands out."""
    ref, other = np.ones(shape), np.full(shape, 1e-3)
    other[(-1,) * len(shape)] = 2.0
    assert (one(metric, {"y": other}, {"y": ref}) == 1.0) is bool(blind(metric, ref))


def one(metric: str, test: dict[str, np.ndarray] | None, ref: dict[str, np.ndarray]) -> float:
    return float(scores(metric, [test], [ref])[0])


def test_a_request_scores_its_worst_output() -> None:
    good, bad = {"y": np.array([1.0]), "z": np.array([2.0])}, {"y": np.array([1.0]), "z": np.array([2.5])}
    assert one("max-error", bad, good) == 0.5
    pair = {"y": np.array([1.0, 0.0]), "z": np.array([3.0, 4.0])}
    assert one("cosine", {"y": pair["y"], "z": -pair["z"]}, pair) == -1.0


@pytest.mark.parametrize(
    "test", [None, {}, {"y": REF[:3]}, {"y": np.full((4, 2), np.nan)}, {"other": REF}], ids=lambda t: str(t)[:12]
)
def test_no_comparable_answer_scores_the_worst_there_is(test: dict[str, np.ndarray] | None) -> None:
    assert one("argmax-agreement", test, {"y": REF}) == 0.0
    assert one("max-error", test, {"y": REF}) == math.inf
    assert one("cosine", test, {"y": REF}) == -1.0


@pytest.mark.parametrize(
    ("test", "ref", "why"),
    [
        ({"y": REF}, {"y": REF + 1}, ""),
        ({"z": REF}, {"y": REF}, "it gives z, the reference y"),
        ({"y": REF[:3]}, {"y": REF}, "output 'y' has shape [3, 2], the reference's [4, 2]"),
        ({"y": REF * np.inf}, {"y": REF}, "output 'y' is not finite where the reference is"),
        ({"y": np.array([np.inf])}, {"y": np.array([-np.inf])}, "output 'y' is not finite where the reference is"),
        ({"y": REF}, {"y": REF * -np.inf}, ""),
        ({"y": REF[:0]}, {"y": REF[:0]}, "output 'y' is empty"),
    ],
)
def test_a_mismatch_names_the_output_and_both_shapes(test, ref, why: str) -> None:
    assert mismatch(test, ref) == why


def test_without_a_reference_answer_nothing_is_judged() -> None:
    values = scores("cosine", [{"y": REF}, {"y": REF}, None], [{"y": REF}, None, {"y": REF}])
    assert values.tolist() == pytest.approx([1.0, math.nan, -1.0], nan_ok=True)


# Four directions in a plane; the reference pairs 0 with 1, and 2 with 3.
PAIRS = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]])


def test_neighbours_agree_where_the_nearest_other_row_is_the_same() -> None:
    turned = PAIRS.copy()
    turned[3] = [-0.9, 0.05]  # its nearest is still row 2, and row 2's is now row 1
    assert neighbour_agreement(PAIRS * 5, PAIRS).tolist() == [True] * 4
    assert neighbour_agreement(turned, PAIRS).tolist() == [True, True, False, True]


def test_equally_near_neighbours_are_as_good() -> None:
    twins = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8], [-1.0, 0.0]])
    swapped = np.array([[1.0, 0.0], [0.6, 0.81], [0.6, 0.8], [-1.0, 0.0]])
    assert neighbour_agreement(swapped, twins).tolist() == [True] * 4


def test_a_missing_embedding_has_no_neighbour_and_is_nobodys() -> None:
    given = [{"y": row} for row in PAIRS]
    values = scores("neighbour-agreement", [given[0], None, given[2], given[3]], given)
    assert values.tolist() == [0.0, 0.0, 1.0, 1.0]
    known = scores("neighbour-agreement", given, [given[0], given[1], given[2], None])
    assert known.tolist() == pytest.approx([1.0, 1.0, 1.0, math.nan], nan_ok=True)


def test_two_embeddings_say_nothing_of_neighbours() -> None:
    given = [{"y": row} for row in PAIRS[:2]]
    assert np.isnan(scores("neighbour-agreement", given, given)).all()


def test_embeddings_of_different_sizes_are_refused() -> None:
    given = [{"y": np.ones((1, size))} for size in (3, 4, 5)]
    with pytest.raises(StudyError, match=r"output 'y' has shapes \[1, 3\] and \[1, 5\]"):
        scores("neighbour-agreement", given, given)


@pytest.mark.parametrize(
    ("metric", "value", "refused"),
    [
        ("agreement-function", 1.0, False),
        ("agreement-function", 1.1, True),
        ("agreement-function", math.nan, True),
        ("error-function", math.inf, False),
        ("error-function", -0.1, True),
    ],
)
def test_what_a_function_may_say(metric: str, value: float, refused: bool) -> None:
    assert bool(refusal(metric, value)) is refused


def test_the_summary_is_a_mean_but_for_errors_the_largest() -> None:
    assert summary("argmax-agreement", np.array([1.0, 0.5])) == 0.75
    assert summary("neighbour-agreement", np.array([1.0, 0.0])) == 0.5
    assert summary("max-error", np.array([1.0, 0.5])) == 1.0
    assert summary("error-function", np.array([1.0, 0.5])) == 1.0
    assert math.isnan(summary("cosine", np.array([])))


def test_a_floor_is_a_ceiling_for_errors_and_nan_never_meets_it() -> None:
    assert meets("argmax-agreement", 0.97, 0.97)
    assert not meets("argmax-agreement", 0.96, 0.97)
    assert meets("max-error", 0.01, 0.01)
    assert not meets("max-error", 0.02, 0.01)
    assert not meets("cosine", math.nan, 0.9)
    assert not meets("max-error", math.nan, 0.9)
