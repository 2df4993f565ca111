"""Traces, workloads and tables as Parquet: exact both ways, readable by other tools, the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import duckdb
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from store_examples import AWKWARD, same_table, trace, workload

from trimtab.domain.trace import Table, Trace
from trimtab.errors import PacketError
from trimtab.store.codec import (
    read_table,
    read_trace,
    read_workload,
    workload_digest,
    write_table,
    write_trace,
    write_workload,
)


def check_round_trip(before: Trace, folder: Path) -> None:
    write_trace(folder, before)
    back = read_trace(folder)
    assert (back.dim_names, back.streams, back.entries, back.details) == (
        before.dim_names,
        before.streams,
        before.entries,
        before.details,
    )
    assert msgspec.structs.replace(back.run, driver_cpu_share=0.0) == msgspec.structs.replace(
        before.run, driver_cpu_share=0.0
    )
    for name in ("requests", "batches", "marks", "samples"):
        assert same_table(getattr(back, name), getattr(before, name)), name


@pytest.mark.parametrize("requests", [0, 1, 9, 3000])
def test_a_trace_comes_back_exactly(tmp_path: Path, requests: int) -> None:
    check_round_trip(trace(requests), tmp_path / "run")


def test_another_tool_reads_words_instead_of_codes(tmp_path: Path) -> None:
    write_trace(tmp_path, trace(9))
    rows = duckdb.sql(f"SELECT error, stream, scheduled FROM '{tmp_path}/requests.parquet' LIMIT 3").fetchall()
    assert [(row[0], row[2]) for row in rows] == [("none", 2**60), ("rejected", 2**60 + 1), ("crash", 2**60 + 2)]
    assert {row[1] for row in rows} <= set(AWKWARD)
    assert duckdb.sql(f"SELECT kind, detail, value FROM '{tmp_path}/marks.parquet'").fetchall() == [
        ("pace", None, 1.5),
        ("stopped", "zero\0byte", None),
    ]


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_trace(tmp_path / name, trace(500))
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", ["run.json", "requests.parquet", "batches.parquet", "marks.parquet"])
@pytest.mark.parametrize("keep", [0, 40])
def test_a_run_with_a_broken_or_missing_file_is_refused(tmp_path: Path, name: str, keep: int) -> None:
    write_trace(tmp_path, trace())
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(PacketError) as caught:
        read_trace(tmp_path)
    assert name in caught.value.where
    path.unlink()
    with pytest.raises(PacketError, match=name):
        read_trace(tmp_path)


def test_a_foreign_parquet_file_is_refused(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/t.parquet'")
    with pytest.raises(PacketError, match="not written by trimtab"):
        read_table(tmp_path / "t.parquet")


def test_a_workload_comes_back_exactly(tmp_path: Path) -> None:
    before = workload()
    write_workload(tmp_path / "workload.parquet", before)
    back = read_workload(tmp_path / "workload.parquet")
    for field in type(before).__struct_fields__:
        a, b = getattr(before, field), getattr(back, field)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field
            assert np.array_equal(a, b), field
        else:
            assert a == b, field
    assert workload_digest(back) == workload_digest(before)


@pytest.mark.parametrize("field", ["scheduled", "dims", "stream", "payload", "deadline"])
def test_a_workload_with_one_other_value_has_another_digest(field: str) -> None:
    before = workload()
    column = getattr(before, field).copy()
    column.flat[-1] += 1
    assert workload_digest(msgspec.structs.replace(before, **{field: column})) != workload_digest(before)


_TABLES = st.integers(0, 20).flatmap(
    lambda n: st.dictionaries(
        st.text(max_size=6).map(lambda text: f"c{text.lower()}").filter(str.isprintable),
        st.one_of(
            hnp.arrays(np.int64, n),
            hnp.arrays(np.int32, n),
            hnp.arrays(np.int8, n),
            hnp.arrays(np.float64, n),
            hnp.arrays(np.bool_, n),
        ),
        max_size=4,
    )
)


@settings(deadline=None, max_examples=25)
@given(_TABLES)
def test_any_table_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, columns: dict[str, np.ndarray]) -> None:
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    write_table(path, Table(columns))
    assert same_table(read_table(path), Table(columns))


@pytest.mark.parametrize("names", [("a", "A"), ("a\0",)])
def test_a_column_that_another_tool_could_not_name_is_a_bug(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="name"):
        write_table(tmp_path / "t.parquet", Table({name: np.zeros(1) for name in names}))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.text(), unique=True, min_size=1, max_size=6), st.data())
def test_any_words_come_back_as_codes(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], data: st.DataObject
) -> None:
    codes = np.array(data.draw(st.lists(st.integers(-1, len(words) - 1), max_size=9)), dtype=np.int32)
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    write_table(path, Table({"code": codes}), {"code": tuple(words)})
    assert same_table(read_table(path), Table({"code": codes}))


@pytest.mark.parametrize(("codes", "words"), [([0, 2], ("a", "b")), ([-2], ("a",)), ([0], ("a", "a"))])
def test_a_code_without_one_word_is_a_bug(tmp_path: Path, codes: list[int], words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="column code"):
        write_table(tmp_path / "t.parquet", Table({"code": np.array(codes, dtype=np.int8)}), {"code": words})
