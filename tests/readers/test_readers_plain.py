"""The quick ways through a table say exactly what the careful ones say: of every value, every row, every mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_kit import write

from trimtab.errors import DataError
from trimtab.readers import _cells, _file, _plain
from trimtab.readers._cells import Cells
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._table import read_table
from trimtab.readers._values import Place, number, scaled, whole

PLACE = Place(Path("t.csv"), "c", "key")
TEXTS = st.one_of(
    st.decimals(0, 10**10, allow_nan=False, places=4).map(str),
    st.decimals(0, 2 * 10**9, allow_nan=False, places=9).map(str),
    st.floats(0, 1e6).map(repr),
    st.integers(0, 10**20).map(str),
    st.sampled_from(["0.5", "1.5", "0.0000005", "2.5000000005", ".5", "5.", ".", "", "1_0", "+1", "-1", "1e3", "nan",
                     "1,5", "1\n5", "\n", "٣", "007", "9" * 400, "4611686018.427387904", "4611686018427387904"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("many", "one"),
    [*((_plain.times(unit), scaled(unit)) for unit in ("s", "ms", "us", "ns")), (_plain.numbers, number),
     (_plain.sizes, whole)],
)  # fmt: skip
@settings(deadline=None, max_examples=120)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_many_values_are_those_of_one_by_one(
    many: Callable[[list[str]], np.ndarray | None], one: Callable[[str], float], texts: list[str]
) -> None:
    found = many(list(texts))
    if found is not None:
        assert found.tolist() == [one(text) for text in texts]


@pytest.mark.parametrize(
    ("unit", "text", "ns"),
    [("ms", "7.25", 7_250_000), ("s", "1700000000.123456789", 1_700_000_000_123_456_789), ("us", "0.0015", 2),
     ("s", "0", 0), ("ns", "9007199254740993", 9_007_199_254_740_993)],
)  # fmt: skip
def test_what_is_plain_goes_the_quick_way(unit: str, text: str, ns: int) -> None:
    found = _plain.times(unit)([text])
    assert found is not None or text == "0.0015"  # a half is never left to a float
    assert scaled(unit)(text) == ns
    assert found is None or found.tolist() == [ns]


@settings(deadline=None, max_examples=80)
@given(texts=st.lists(st.none() | st.sampled_from(["1", "2.5", "-", "x", "nan", "-1"]), max_size=60))
def test_repeated_values_and_bad_ones_are_counted_alike(texts: list[str | None]) -> None:
    def filled(repeated: int) -> Cells:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_cells, "REPEATED", repeated)
            cells = Cells(PLACE, scaled("ms"), "int64", -1)
            cells.add("line", range(len(texts)), texts)
        return cells

    quick, slow = filled(4), filled(10**9)
    assert quick.values().tolist() == slow.values().tolist()
    assert (quick.bad, quick.bad_first) == (slow.bad, slow.bad_first)


def rows(path: Path, *, every: bool) -> list[tuple[object, ...]] | str:
    """(place, a, b) of every row: in blocks, or one by one where a limit is given; or what is wrong with the file."""
    out: list[tuple[object, ...]] = []

    def accept(chunk: Chunk) -> None:
        out.extend(zip(chunk.places, chunk.columns["b"], chunk.columns["a"], strict=True))

    want = Want({"b": "key", "a": "key"}, 0, None if every else 10**9)
    try:
        count = read_table(path, want, "key", accept)
    except DataError as error:
        return error.what
    assert count == len(out)
    return out


LINE = st.sampled_from(["1,2", "3.5,x", ",", "1,", "a b,c", "1,2,3", "1", "", " ", '"q",1', '"q\nr",1', "é,1", "1\v,2",
                        '"open,1', "1,2\r", "\r"])  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(lines=st.lists(LINE, max_size=12), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans(),
       block=st.sampled_from([4, 16, 1 << 20]))  # fmt: skip
def test_blocks_give_the_rows_that_single_lines_give(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, last: bool, block: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes((end.join(["a,b", *lines]) + (end if last else "")).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_file, "BLOCK", block)
        assert rows(path, every=True) == rows(path, every=False)


def test_a_line_without_an_end_is_refused_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "LONGEST_LINE", 64)
    monkeypatch.setattr(_file, "BLOCK", 16)
    path = write(tmp_path / "t.csv", "a,b\n1,2\n" + "3" * 200)
    assert str(rows(path, every=True)).startswith("line 3 is longer than")
    assert rows(path, every=True) == rows(path, every=False)
