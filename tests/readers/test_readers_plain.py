"""The quick ways through a table say exactly what the careful ones say: of every value, every row, every mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_kit import write, write_parquet

from trimtab.domain.imported import Imported, ReadReport
from trimtab.errors import DataError, TrimtabError
from trimtab.readers import _cells, _csv, _file, _parquet, _plain
from trimtab.readers._cells import Cells
from trimtab.readers._packed import Cut, Stored
from trimtab.readers._plain import Many
from trimtab.readers._rows import Chunk, Text, Want
from trimtab.readers._table import read_table
from trimtab.readers._values import Place, iso_ns, number, scaled, whole
from trimtab.readers.table import read_requests

PLACE = Place(Path("t.csv"), "c", "key")
TEXTS = st.one_of(
    st.decimals(0, 10**10, allow_nan=False, places=4).map(str),
    st.decimals(0, 2 * 10**9, allow_nan=False, places=9).map(str),
    st.floats(0, 1e6).map(repr),
    st.integers(0, 10**20).map(str),
    st.sampled_from(["0.5", "1.5", "0.0000005", "2.5000000005", ".5", "5.", ".", "", "1_0", "+1", "-1", "1e3", "nan",
                     "1,5", "1\n5", "\n", "٣", "007", "9" * 400, "4611686018.427387904", "4611686018427387904",
                     "9007199254740993", "1.2.3", "0.00000000015", "0" * 19, "0." + "0" * 19, "é", "2500.0"]),
)  # fmt: skip
WAYS = [
    *((_plain.times(unit), scaled(unit), "int64", -1) for unit in ("s", "ms", "us", "ns")),
    (_plain.numbers, number, "float64", np.nan),
    (_plain.sizes, whole, "int64", -1),
]
Way = tuple[Many, Callable[[str], Any], str, float]


def filled(way: Way, values: Sequence[Text], *, quick: bool) -> tuple[list[str], int, object]:
    """The values as text, so that nan equals nan; how many were none; the first of these."""
    many, one, dtype, absent = way
    cells = Cells(PLACE, one, dtype, absent, many if quick else None)
    cells.add("line", range(len(values)), values)
    return [repr(value) for value in cells.values().tolist()], cells.bad, cells.bad_first


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=100)
@given(texts=st.lists(st.none() | TEXTS, min_size=1, max_size=8))
def test_many_values_are_those_of_one_by_one(way: Way, texts: list[Text]) -> None:
    assert filled(way, texts, quick=True) == filled(way, texts, quick=False)


MOMENTS = st.builds(
    "{}{}{}{}{}".format,
    st.dates().map(str),
    st.sampled_from(["T", " ", "t", ""]),
    st.times().map(lambda time: time.replace(microsecond=0).isoformat()),
    st.sampled_from(["", ".5", ",25", ".9799600", ".12345678999", f".{'9' * 18}", f".{'9' * 19}", ".", ".x"]),
    st.sampled_from(["", "", "Z", " Z", "UTC", "+01:00", "-0330", "Z "]),
)
ODD_MOMENTS = st.sampled_from([
    "", "5", "2023-11-16", "2023-1-1 00:00:00", "2023-02-29 00:00:00", "2024-02-29 00:00:00", "1969-12-31T23:59:59",
    "2116-02-20T00:00:00", "2023-13-01T00:00:00", "2023-00-10T00:00:00", "2023-01-00T00:00:00", "2023-01-01T24:00:00",
    "2023-01-01T23:60:00", "2023-01-01T23:59:60", "2023/01/01 00:00:00", "2023-01-01 00-00:00", "é023-11-16 18:17:03",
])  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(texts=st.lists(st.none() | MOMENTS | ODD_MOMENTS, min_size=1, max_size=6))
def test_many_moments_are_those_of_one_by_one(texts: list[Text]) -> None:
    way = (_plain.isos, iso_ns, "int64", -1)
    assert filled(way, texts, quick=True) == filled(way, texts, quick=False)


def test_moments_as_machines_write_them_go_the_quick_way() -> None:
    found = _plain.isos(["2023-11-16 18:17:03.9799600", "2024-02-29T23:59:59Z", "1970-01-01 00:00:00,000000001"])
    assert found.values.tolist() == [1_700_158_623_979_960_000, 1_709_251_199_000_000_000, 1]
    assert found.odd.size == 0


FLOATS = st.one_of(
    st.floats(0, 1e6),
    st.floats(),
    st.decimals(0, 10**7, places=6).map(float),
    st.integers(0, 10**13).map(lambda ns: (ns + 0.5) / 1e6),
    st.integers(0, 2**31).map(lambda s: 1.7e9 + s / 1e6),
    st.sampled_from([0.0, -0.0, 0.5, 1.5, 2.5e-9, 4611686018.4273879, 1e-5, 1e16, 5e-324, 2500.0, -1.0]),
)


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=100)
@given(numbers=st.lists(st.none() | FLOATS, min_size=1, max_size=8) | st.lists(st.integers(-5, 2**62), min_size=1))
def test_stored_numbers_are_what_their_text_says(way: Way, numbers: list[float | int | None]) -> None:
    missing = np.array([value is None for value in numbers])
    stored = Stored(np.array([0 if value is None else value for value in numbers]), missing)
    kept = stored.numbers.tolist()
    texts = [None if value is None else repr(number) for value, number in zip(numbers, kept, strict=True)]
    assert list(stored) == [stored[k] for k in range(len(stored))] == texts
    assert filled(way, stored, quick=True) == filled(way, texts, quick=False)


@pytest.mark.parametrize(
    ("unit", "text", "ns"),
    [("ms", "7.25", 7_250_000), ("s", "1700000000.123456789", 1_700_000_000_123_456_789), ("us", "0.0015", 2),
     ("us", "0.0025", 2), ("s", "0", 0), ("ns", "9007199254740993", 9_007_199_254_740_993), ("ms", ".5", 500_000)],
)  # fmt: skip
def test_what_is_plain_goes_the_quick_way(unit: str, text: str, ns: int) -> None:
    found = _plain.times(unit)([text])
    assert (found.values.tolist(), found.odd.tolist()) == ([ns], [])


@pytest.mark.parametrize("text", ["-1", "1e3", "+1", " 1", "", ".", "1.2.3", "9" * 20, "1700000000.1234567891", "٣"])
def test_what_is_not_plain_is_left_to_the_careful_way(text: str) -> None:
    assert _plain.times("s")(["5", text, "7"]).odd.tolist() == [1]


def test_a_cut_block_makes_text_only_of_what_is_asked_for() -> None:
    cut = Cut(b"a, b,,c", np.array([0, 2, 5, 6]), np.array([1, 4, 5, 7]), np.array([False, False, True, False]))
    assert (cut[1], cut[2], cut[1:3], list(cut), len(cut)) == ("b", None, ["b", None], ["a", "b", None, "c"], 4)


@settings(deadline=None, max_examples=80)
@given(texts=st.lists(st.none() | st.sampled_from(["1", "2.5", "-", "x", "nan", "-1"]), max_size=60))
def test_repeated_values_and_bad_ones_are_counted_alike(texts: list[str | None]) -> None:
    def counted(repeated: int) -> Cells:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_cells, "REPEATED", repeated)
            cells = Cells(PLACE, scaled("ms"), "int64", -1)
            cells.add("line", range(len(texts)), texts)
        return cells

    quick, slow = counted(4), counted(10**9)
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
                        '"open,1', "1,2\r", "\r", " , \t", "\x00,\x1c"])  # fmt: skip


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


def test_a_quoted_cell_makes_only_its_own_block_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[int] = []
    by_row = _csv._by_row

    def noted(*given: Any) -> None:
        slow.append(given[4])
        by_row(*given)

    monkeypatch.setattr(_csv, "_by_row", noted)
    monkeypatch.setattr(_file, "BLOCK", 64)
    lines = [f"{k},client-{k % 3}" for k in range(100)]
    lines[50] = '"5\n0","a ""b"""'
    found = rows(write(tmp_path / "t.csv", "\n".join(["a,b", *lines])), every=True)
    assert (found[49], found[50], found[51]) == ((51, "client-1", "49"), (53, 'a "b"', "5\n0"), (54, "client-0", "51"))
    assert (len(found), found[99], len(slow)) == (100, (102, "client-0", "99"), 1)


def test_a_line_without_an_end_is_refused_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "LONGEST_LINE", 64)
    monkeypatch.setattr(_file, "BLOCK", 16)
    path = write(tmp_path / "t.csv", "a,b\n1,2\n" + "3" * 200)
    assert str(rows(path, every=True)).startswith("line 3 is longer than")
    assert rows(path, every=True) == rows(path, every=False)


def told(path: Path, *, strict: bool = False) -> tuple[Any, ...]:
    """All that a table of requests is read into, or how it is refused."""
    try:
        table, report = read_requests(path, {}, strict=strict)
    except TrimtabError as error:
        return error.what, error.where
    return report, table.origin, columns(table)


def columns(table: Imported) -> dict[str, list[str]]:
    held = {**table.trace.requests.columns, **table.stages.columns}
    return {name: [repr(value) for value in column.tolist()] for name, column in held.items()}


CELL = st.sampled_from(["", "0", "1", "2.5", "7.125", "-1", "x", "nan", "1e3", " 3", "16", "2500.0", "a"])


@settings(deadline=None, max_examples=100)
@given(table=st.lists(st.tuples(*[CELL] * 6), min_size=1, max_size=12), strict=st.booleans(),
       block=st.sampled_from([16, 1 << 20]))  # fmt: skip
def test_a_table_is_read_the_same_in_blocks_and_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, ...]], strict: bool, block: int
) -> None:
    header = "start_s,latency_ms,shape.width,queue_ms,peak_mb,stream"
    path = write(tmp_path_factory.mktemp("t") / "t.csv", "\n".join([header, *map(",".join, table)]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_file, "BLOCK", block)
        quick = told(path, strict=strict)
        patch.setattr(_csv, "_columns", lambda data, shape: None)
        patch.setattr(_plain, "_digits", nothing_plain)
        assert quick == told(path, strict=strict)


def nothing_plain(cut: Cut) -> _plain._Digits:
    zeros = np.zeros(len(cut), dtype=np.int64)
    return _plain._Digits(zeros.astype(np.uint64), zeros, zeros > 0)


COUNT = 3000


def report_of(path: Path) -> ReadReport:
    table, report = read_requests(path, {})
    widths = table.trace.requests["dim.width"]
    assert widths.tolist() == [1 + k % 7 for k in range(COUNT)]
    return report


def test_one_odd_cell_amid_plain_ones_is_counted_and_named(tmp_path: Path) -> None:
    lines = [f"{k / 1000},5.25,{1 + k % 7},{'x' if k == 1500 else '1.5'}" for k in range(COUNT)]
    path = write(tmp_path / "t.csv", "\n".join(["start_s,latency_ms,shape.width,queue_ms", *lines]))
    assert report_of(path).unreadable == {"queue": 1}
    with pytest.raises(DataError, match="the time is not a number: 'x'") as refused:
        read_requests(path, {}, strict=True)
    assert "line 1502, column 'queue_ms'" in refused.value.where


def test_one_odd_number_amid_stored_ones_is_counted_and_named(tmp_path: Path) -> None:
    select = f"""SELECT i / 1000.0::DOUBLE AS start_s, 5.25::DOUBLE AS latency_ms, 1 + i % 7 AS "shape.width",
        CASE WHEN i = 1500 THEN -1.5 WHEN i = 7 THEN 'nan'::DOUBLE WHEN i = 9 THEN NULL ELSE 1.5 END::DOUBLE AS queue_ms
        FROM range({COUNT}) t(i)"""
    path = write_parquet(tmp_path / "t.parquet", select)
    assert report_of(path).unreadable == {"queue": 1}
    with pytest.raises(DataError, match=r"the time is negative: '-1\.5'") as refused:
        read_requests(path, {}, strict=True)
    assert "row 1501, column 'queue_ms'" in refused.value.where


def test_stored_columns_of_every_type_are_read_as_their_text_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
             "DOUBLE", "DECIMAL(9, 3)", "VARCHAR"]  # fmt: skip
    made = ", ".join(
        f'CASE WHEN i % 11 = {k} THEN NULL ELSE (1 + i % 90) END::{kind} AS "shape.{k}"' for k, kind in enumerate(kinds)
    )
    select = f"""SELECT 1.7e9::DOUBLE + i / 1e6 AS start_s, (hash(i) % 100000000) / 7.0::DOUBLE AS latency_us,
        sqrt(i)::DOUBLE AS peak_mb, i * 0.75 AS queue_ms, (i % 5 <> 3) AS ok, 'c' || (i % 3) AS stream, {made}
        FROM range(400) t(i)"""
    path = write_parquet(tmp_path / "t.parquet", select)
    stored = told(path)
    assert len(stored[2]["scheduled"]) == 400
    monkeypatch.setattr(_parquet, "_STORED", {})
    assert stored == told(path)
