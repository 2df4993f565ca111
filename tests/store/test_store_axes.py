"""Which axes are the batch and which are dims: by the file's own names where these say something."""

from __future__ import annotations

import pytest

from trimtab.store._axes import Axis, dim_name, named

CASES: dict[str, tuple[list[tuple[Axis, ...]], list[tuple[int | str, ...]]]] = {
    "an image of open width": ([(None, 3, 48, None)], [("batch", 3, 48, "width")]),
    "names that an exporter made up": (
        [("DynamicDimension.0", 3, "DynamicDimension.1", "DynamicDimension.2")],
        [("batch", 3, "height", "width")],
    ),
    "marks for any size": ([(-1, 3, "?", "?")], [("batch", 3, "height", "width")]),
    "names with a prefix": (
        [("p2o.DynamicDimension.0", 3, "?", "p2o.DynamicDimension.1")],
        [("batch", 3, "height", "width")],
    ),
    "a size of -1": ([(-1, 3, 48, -1)], [("batch", 3, 48, "width")]),
    "two inputs of one length": (
        [("batch_size", "sequence"), ("batch_size", "sequence")],
        [("batch", "sequence"), ("batch", "sequence")],
    ),
    "two lengths whose names say nothing": ([("s0", "s1"), ("s0", "s2")], [("batch", "length"), ("batch", "length_2")]),
    "an encoder and a decoder": (
        [("batch", "encoder_len"), ("batch", "decoder_len")],
        [("batch", "encoder_len"), ("batch", "decoder_len")],
    ),
    "lengths beside the sound": ([("N", 80, "T"), ("N",)], [("batch", 80, "t"), ("batch",)]),
    "the batch behind": ([("time", "batch", 40)], [("time", "batch", 40)]),
    "one request at a time": ([(1, 3, None, None)], [(1, 3, "height", "width")]),
    "five axes": ([("n", 1, "depth", "rows", "columns")], [("batch", 1, "depth", "rows", "columns")]),
}


@pytest.mark.parametrize(("axes", "shapes"), CASES.values(), ids=CASES)
def test_shapes_in_the_words_of_a_study(axes: list[tuple[Axis, ...]], shapes: list[tuple[int | str, ...]]) -> None:
    assert list(named(axes).inputs) == shapes


@pytest.mark.parametrize(
    ("output", "follows"),
    [
        (("batch", "tokens", 384), [(1, "tokens")]),
        (("batch", 384), []),
        (("batch", "steps", 96), [(1, "")]),
        (("batch", None, "tokens"), [(1, ""), (2, "tokens")]),
        (("batch", "batch"), [(1, "")]),
        (None, None),
    ],
)
def test_an_output_follows_the_dim_whose_name_it_bears(
    output: tuple[Axis, ...] | None, follows: list[tuple[int, str]] | None
) -> None:
    (found,) = named([("batch", "tokens")], [output]).outputs
    assert found == (None if follows is None else tuple(follows))


@pytest.mark.parametrize(
    ("given", "axis", "axes", "name"),
    [
        ("Seq Len", 1, 2, "seq_len"),
        ("", 3, 4, "width"),
        ("7", 2, 4, "height"),
        ("批", 1, 5, "axis1"),
        ("unk__12", 1, 3, "length"),
        ("dim_3", 3, 4, "width"),
        ("batch", 1, 2, "length"),
    ],
)
def test_names_of_axes(given: str, axis: int, axes: int, name: str) -> None:
    assert dim_name(given, axis, axes) == name
