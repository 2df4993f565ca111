"""Files as they are found in the wild: broken, torn, foreign, hostile. Each is read exactly or refused by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_kit import write, write_parquet

from trimtab.errors import DataError
from trimtab.readers import _file, _parquet, _rows
from trimtab.readers._rows import Chunk, Want
from trimtab.readers._table import peek, read_table


def read(path: Path, *names: str, skip: int = 0, limit: int | None = None) -> list[tuple[int, ...]]:
    """(place, values...) of each wanted row."""
    rows: list[tuple[int, ...]] = []

    def accept(chunk: Chunk) -> None:
        rows.extend(zip(chunk.places, *[chunk.columns[name] for name in names], strict=True))

    read_table(path, Want(dict.fromkeys(names, "key"), skip, limit), "key", accept)
    return rows


def refusal(path: Path, *names: str) -> str:
    with pytest.raises(DataError) as caught:
        read(path, *names)
    assert str(path) in caught.value.where
    return caught.value.what


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffa,b\r\n1,x\r\n2,y\r\n",
        "a;b\n1;x\n2;y\n",
        " a | b\n 1 | x\n2|y",
        'b,a,"c,d"\n"x",1,0\ny,"2",0\n',
    ],
)
def test_csv_as_people_write_it(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path / "t.csv", text), "a", "b") == [(2, "1", "x"), (3, "2", "y")]


def test_a_quoted_line_break_keeps_the_count_of_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", 'a,b\n"x\ny",1\nz,2\n')
    assert read(path, "a", "b") == [(3, "x\ny", "1"), (4, "z", "2")]


def test_a_short_row_lacks_its_last_values(tmp_path: Path) -> None:
    assert read(write(tmp_path / "t.csv", "a,b\n1\n"), "a", "b") == [(2, "1", None)]


def test_chunks_are_handed_on_as_they_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rows, "CHUNK", 3)
    sizes: list[int] = []
    path = write(tmp_path / "t.csv", "a\n" + "".join(f"{k}\n" for k in range(10)))
    rows = read_table(path, Want({"a": "key"}, skip=1, limit=8), "key", lambda chunk: sizes.append(len(chunk.places)))
    assert (rows, sizes) == (10, [3, 3, 2])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("skip", "limit", "expected"), [(0, 2, [0, 1]), (2, None, [2, 3]), (3, 9, [3]), (4, 1, [])])
def test_skip_and_limit(tmp_path: Path, kind: str, skip: int, limit: int | None, expected: list[int]) -> None:
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        write_parquet(path, "SELECT i AS a FROM range(4) r(i)")
    else:
        rows = range(4)
        text = "a\n" + "".join(f"{k}\n" for k in rows) if kind == "csv" else "".join(f'{{"a": {k}}}\n' for k in rows)
        write(path, text)
    assert [int(row[1]) for row in read(path, "a", skip=skip, limit=limit)] == expected


def test_json_numbers_keep_every_digit_and_other_fields_are_not_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl", '{"a": 1700000000123456789.5, "z": {"deep": [1]}}\n{"a": null}\n{"a": "\\u00e9"}\n{}\n'
    )
    assert read(path, "a") == [(1, "1700000000123456789.5"), (2, None), (3, "é"), (4, None)]


@pytest.mark.parametrize("line", ["[1]", "{", "nope", '{"a": }', '{"a": "\\ud800x', "[" * 100_000])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "t.jsonl", f'{{"a": 1}}\n\n{line}\n')
    assert refusal(path, "a").startswith("line 3 is not a JSON object")


def test_an_open_quote_is_named(tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "t.csv", 'a\n1\n"2\n3\n'), "a").startswith("line 4 is not valid CSV")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_foreign_encoding_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a\n1\n\xe9\n" if name == "t.csv" else b'{"a": "\xe9"}\n')
    said = refusal(tmp_path / name, "a")
    assert said == "line 3 is not UTF-8 text" if name == "t.csv" else said.startswith("line 1 is not a JSON object")


def test_utf_16_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    assert refusal(tmp_path / "t.csv", "a") == "line 1 is not UTF-8 text"


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl.gz", "t.parquet.gz"])
def test_a_torn_or_foreign_gzip_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = gzip.compress(b'{"a": 1}\n' * 3000)
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(path, "a") in ("the gzip file ends too early", "there is no column 'a' in t.csv.gz")
    path.write_bytes(b"a\n1\n")
    assert refusal(path, "a").startswith("not a valid gzip file")
    path.write_bytes(whole[:-6] + b"\0" * 6)
    assert refusal(path, "a").startswith(("not a valid gzip file", "there is no column"))


def test_a_torn_csv_gzip_is_refused_even_beyond_the_wanted_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"a\n" + b"".join(b"%d\n" % (k * 7919) for k in range(20_000)))
    path.write_bytes(whole[:-100])
    with pytest.raises(DataError, match="ends too early"):
        read(path, "a", limit=2)


def test_a_line_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_file, "LONGEST_LINE", 1 << 20)
    for name in ("t.csv.gz", "t.jsonl.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"a" * (5 << 20)))
        assert refusal(tmp_path / name, "a") == "line 1 is longer than 1 MiB"


def test_a_parquet_file_that_unpacks_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parquet, "_LARGEST", 100)
    assert refusal(write_parquet(tmp_path / "t.parquet.gz", "SELECT 1 AS a"), "a").startswith("it unpacks to more")


def test_a_parquet_file_of_rows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "t.parquet", "SELECT 1 AS a FROM range(200000)")
    assert len(read(path, "a")) == 200_000
    monkeypatch.setattr(_parquet, "HARMLESS", 1 << 18)
    assert refusal(path, "a") == "t.parquet would take more than 200 times its size in memory"
    assert read(path, "a", limit=1) == [(1, "1")]


@pytest.mark.parametrize("data", [b"PAR1", b"PAR1" * 9, b"a,b\n1,2\n"])
def test_a_broken_parquet_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(data)
    assert refusal(tmp_path / "t.parquet", "a").startswith("not a readable Parquet file")


def test_a_torn_parquet_file_is_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "t.parquet", "SELECT i AS a FROM range(1000) r(i)")
    path.write_bytes(path.read_bytes()[:-50])
    assert refusal(path, "a").startswith("not a readable Parquet file")


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    folder = tmp_path / "x'; DROP TABLE y; --*[a]?"
    folder.mkdir()
    path = folder / "t.parquet"
    write_parquet(tmp_path / "t.parquet", """SELECT 1 AS "a""; --", 2 AS "b'" """).rename(path)
    assert read(path, 'a"; --', "b'") == [(1, "1", "2")]
    assert peek(path) == {'a"; --': ["1"], "b'": ["2"]}


def test_a_parquet_time_column_reads_as_iso_text(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "t.parquet", "SELECT TIMESTAMP_NS '2023-11-16 18:17:03.979960012' AS a, NULL::INT AS b"
    )
    assert read(path, "a", "b") == [(1, "2023-11-16 18:17:03.979960012", None)]


@pytest.mark.parametrize("name", ["t.txt", "t", "t.gz", "t.csv.zip"])
def test_an_unknown_kind_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(write(tmp_path / name, "a\n1\n"), "a") == f"{name} is of no known kind"


def test_an_empty_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"")
    assert refusal(tmp_path / "t.csv", "a") == "t.csv is empty"
    (tmp_path / "u.csv").mkdir()
    assert refusal(tmp_path / "u.csv", "a") == "there is no file u.csv"


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "t.csv", "a,a\n1,2\n"), "a") == "two columns of t.csv are named 'a'"


_CELL = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(str.strip).filter(bool)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(_CELL, _CELL), min_size=1, max_size=6))
def test_whatever_the_cells_hold_csv_and_jsonl_agree(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]
) -> None:
    import csv
    import json

    folder = tmp_path_factory.mktemp("t")
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("a", "b"), *cells])
    lines = [json.dumps({"a": a, "b": b}, ensure_ascii=False) for a, b in cells]
    write(folder / "t.jsonl", "\n".join(lines))
    expected = [(a, b) for a, b in cells]
    assert [row[1:] for row in read(folder / "t.csv", "a", "b")] == expected
    assert [row[1:] for row in read(folder / "t.jsonl", "a", "b")] == expected
