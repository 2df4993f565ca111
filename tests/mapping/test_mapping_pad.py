"""Padding and cropping: literal in, literal out; and what goes in comes out again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.study import Crop, InputSpec, ModelSpec, OutputSpec
from trimtab.errors import DataError, ModelError
from trimtab.mapping.pad import assemble, filler, kept, split

DIMS = ("width",)
X = InputSpec(name="x", shape=("batch", 2, "width"), dtype="f32", pad=9.0)
SPEC = ModelSpec(
    path="m",
    revision="r",
    inputs=(X,),
    outputs=(OutputSpec(name="y", crop=(Crop(axis=2, dim="width"),)),),
)


def x(*rows: list[float]) -> dict[str, np.ndarray]:
    return {"x": np.array([rows], dtype=np.float32)}


def test_members_are_filled_up_behind_their_data_and_a_short_batch_repeats_its_last_member() -> None:
    got = assemble(SPEC, DIMS, [x([1, 2], [3, 4]), x([5], [6])], (3, 3))["x"]
    assert got.tolist() == [
        [[1, 2, 9], [3, 4, 9]],
        [[5, 9, 9], [6, 9, 9]],
        [[5, 9, 9], [6, 9, 9]],
    ]
    assert got.dtype == np.float32
    assert got.flags.c_contiguous


def test_a_lone_member_of_the_executed_shape_is_not_copied() -> None:
    member = x([1, 2], [3, 4])
    assert assemble(SPEC, DIMS, [member], (1, 2))["x"] is member["x"]


def test_outputs_are_cropped_to_each_members_true_dims() -> None:
    y = np.arange(12).reshape(2, 2, 3)
    first, second = split(SPEC, DIMS, {"y": y}, [(2,), (1,)])
    assert first["y"].tolist() == [[[0, 1], [3, 4]]]
    assert second["y"].tolist() == [[[6], [9]]]


@pytest.mark.parametrize(
    ("true", "up", "down", "positions"),
    [(25, 4, 2, 3), (24, 4, 2, 3), (33, 8, 1, 5), (7, 1, 1, 7), (1, 8, 4, 1)],
)
def test_positions_that_a_true_dim_accounts_for(true: int, up: int, down: int, positions: int) -> None:
    assert kept(Crop(axis=1, dim="width", up=up, down=down), true) == positions


def test_filler_holds_the_pad_value() -> None:
    assert filler(SPEC, DIMS, (1, 2))["x"].tolist() == [[[9, 9], [9, 9]]]


def test_an_input_without_a_batch_axis_is_shared_by_members_that_agree() -> None:
    spec = ModelSpec(path="m", revision="r", inputs=(InputSpec(name="k", shape=("width",), dtype="i64"),), outputs=())
    one, two = {"k": np.array([7])}, {"k": np.array([8])}
    assert assemble(spec, DIMS, [one, one], (2, 3))["k"].tolist() == [7, 0, 0]
    with pytest.raises(DataError, match="no batch axis"):
        assemble(spec, DIMS, [one, two], (2, 3))


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ({}, "no input 'x'"),
        (x([1, 2, 3, 4], [1, 2, 3, 4]), "does not fit"),
        ({"x": np.zeros((1, 2, 2))}, "float64"),
        ({"x": np.zeros((1, 3, 2), np.float32)}, "does not fit"),
        ({"x": np.zeros((2, 2, 2), np.float32)}, "does not fit"),
    ],
)
def test_a_member_that_does_not_fit_is_refused(member: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(DataError, match=message):
        assemble(SPEC, DIMS, [member], (2, 3))


def test_more_members_than_the_batch_holds_are_refused() -> None:
    with pytest.raises(DataError, match="2 members"):
        assemble(SPEC, DIMS, [x([1], [1])] * 2, (1, 3))


def test_outputs_that_do_not_fit_the_study_are_refused() -> None:
    with pytest.raises(ModelError, match="no output 'y'"):
        split(SPEC, DIMS, {"z": np.zeros((1, 2, 3))}, [(2,)])
    with pytest.raises(ModelError, match="no row for each of 2"):
        split(SPEC, DIMS, {"y": np.zeros((1, 2, 3))}, [(2,), (2,)])
    with pytest.raises(ModelError, match="its crop keeps 4"):
        split(SPEC, DIMS, {"y": np.zeros((1, 2, 3))}, [(4,)])


@settings(deadline=None)
@given(
    widths=st.lists(st.integers(1, 6), min_size=1, max_size=4), extra=st.tuples(st.integers(0, 2), st.integers(0, 3))
)
def test_what_is_assembled_splits_into_the_same_requests(widths: list[int], extra: tuple[int, int]) -> None:
    members = [{"x": np.full((1, 2, w), i, np.float32)} for i, w in enumerate(widths)]
    executed = (len(widths) + extra[0], max(widths) + extra[1])
    whole = assemble(SPEC, DIMS, members, executed)["x"]
    back = split(SPEC, DIMS, {"y": whole}, [(w,) for w in widths])
    assert whole.shape == (executed[0], 2, executed[1])
    for member, result in zip(members, back, strict=True):
        assert np.array_equal(member["x"], result["y"])
