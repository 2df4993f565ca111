"""A table of requests: its headers, what is missing, and whatever can be wrong with it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_kit import write, write_parquet

from trimtab.domain.noun import NEVER
from trimtab.errors import DataError, TrimtabError, UsageError
from trimtab.readers.table import read_requests

JSONL = '{"start_s":0,"latency_ms":5,"shape.width":10}\n{"start_s":1.5,"latency_ms":7.25,"shape.width":12}'
PLAIN = "start_s,latency_ms,shape.width\n0,5,10\n1.5,7.25,12\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", PLAIN),
        ("t.tsv", PLAIN.replace(",", "\t")),
        ("t.csv.gz", PLAIN),
        ("t.jsonl", JSONL),
        ("t.csv", "start_ns,latency_us,shape.width\n100,5000,10\n1500000100,7250,12\n"),
        ("t.csv", "scheduled_s,latency_s,shape.width\n0,0.005,10\n1.5,0.00725,12\n"),
        ("t.csv", "start,latency_ms,shape.width\n2026-01-05T10:00:00Z,5,10\n2026-01-05 11:00:01.5+01:00,7.25,12\n"),
        ("t.csv", "start_s,end_s,shape.width\n10,10.005,10\n11.5,11.50725,12\n"),
        ("t.csv", "start_s,latency_ms,shape.width\n1.5,7.25,12\n0,5,10\n"),
    ],
)  # fmt: skip
def test_one_table_in_many_forms(tmp_path: Path, name: str, text: str) -> None:
    table, report = read_requests(write(tmp_path / name, text), {})
    trace = table.trace
    assert trace.run.source == "imported"
    assert trace.requests["scheduled"].tolist() == [0, 1_500_000_000]
    assert trace.latency.tolist() == [0.005, 0.00725]
    assert trace.requests["dim.width"].tolist() == [10, 12]
    assert (report.rows, report.used, report.dropped) == (2, 2, {})


def test_parquet(tmp_path: Path) -> None:
    select = 'SELECT i * 0.5 AS start_s, 3.5 AS latency_ms, i + 1 AS "shape.width" FROM range(3) t(i)'
    table, _ = read_requests(write_parquet(tmp_path / "t.parquet", select), {})
    assert table.trace.latency.tolist() == [0.0035] * 3
    assert table.trace.requests["dim.width"].tolist() == [1, 2, 3]


def test_what_is_missing_stays_missing(tmp_path: Path) -> None:
    text = "start_s,latency_ms,queue_ms,peak_mb\n0,5,,\n1,7,2,300\n"
    table, report = read_requests(write(tmp_path / "t.csv", text), {})
    assert table.stages["queue"].tolist() == [NEVER, 2_000_000]
    assert table.stages["compute"].tolist() == [NEVER, NEVER]
    assert np.isnan(table.stages["peak_mb"][0])
    assert table.trace.requests["enqueued"].tolist() == [NEVER, NEVER]
    assert table.trace.requests["batch"].tolist() == [NEVER, NEVER]
    assert (len(table.trace.batches), table.trace.run.workers, table.trace.dim_names) == (0, 0, ())
    assert report.columns == {"start": "start_s", "latency": "latency_ms", "queue": "queue_ms", "peak_mb": "peak_mb"}


def test_every_role_lands_where_it_belongs(tmp_path: Path) -> None:
    text = (
        "start_s,issued_s,latency_ms,stream,batch,worker,hold_ms,compute_us,executed.width,ok,route,declared\n"
        "0,0.001,9,a,b1,gpu0,2,3000,16,true,padded,int8\n"
        "1,1.002,8,b,b1,gpu1,1,4000,16,oom,fallback,int8\n"
        "2,2.003,7,,b2,gpu0,1,4000,16,yes,exact,int8\n"
    )
    table, _ = read_requests(write(tmp_path / "t.csv", text), {})
    req, stage = table.trace.requests, table.stages
    assert req["enqueued"].tolist() == [1_000_000, 1_002_000_000, 2_003_000_000]
    assert (table.trace.streams, req["stream"].tolist()) == (("a", "b", "(not named)"), [0, 1, 2])
    assert (req["batch"].tolist(), stage["worker"].tolist()) == ([0, 0, 1], [0, 1, 0])
    assert (stage["hold"].tolist()[0], stage["compute"].tolist()[0]) == (2_000_000, 3_000_000)
    assert stage["exec.width"].tolist() == [16, 16, 16]
    assert (req["error"].tolist(), req["route"].tolist()) == ([0, 4, 0], [1, 3, 0])
    assert table.trace.latency.tolist() == [0.009, np.inf, 0.007]
    assert (table.trace.run.workers, table.texts) == (2, {"declared": "int8"})


def test_columns_of_other_names_are_mapped(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "when,total,w\n0,0.5,10\n")
    table, report = read_requests(path, {"start_s": "when", "latency_s": "total", "shape.width": "w"})
    assert (table.trace.latency.tolist(), table.trace.requests["dim.width"].tolist()) == ([0.5], [10])
    assert report.columns["latency"] == "total"


def test_rows_that_cannot_be_used_are_counted_or_refused(tmp_path: Path) -> None:
    text = "start_s,latency_ms,ok\n0,5,true\n1,,true\n,5,true\n2,abc,true\n3,,false\n4,-1,true\n"
    path = write(tmp_path / "t.csv", text)
    table, report = read_requests(path, {})
    assert (report.rows, report.used) == (6, 2)
    assert report.dropped == {
        "no start (first in line 4)": 1,
        "no latency, and not marked as failed (first in line 3)": 3,
    }
    assert table.trace.latency.tolist() == [0.005, np.inf]
    with pytest.raises(DataError) as refused:
        read_requests(path, {}, strict=True)
    assert (refused.value.what, "line 5" in refused.value.where) == ("the time is not a number: 'abc'", True)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_row_that_is_left_out_takes_its_own_values_with_it(tmp_path: Path, lost: int) -> None:
    rows = [f"{k},{k + 5},{10 * k + 1}" for k in range(3)]
    rows[lost] = f"{lost},,{10 * lost + 1}"
    path = write(tmp_path / "t.csv", "\n".join(["start_s,latency_ms,shape.width", *rows]))
    table, report = read_requests(path, {})
    kept = [k for k in range(3) if k != lost]
    assert table.trace.requests["dim.width"].tolist() == [10 * k + 1 for k in kept]
    assert report.dropped == {f"no latency, and not marked as failed (first in line {lost + 2})": 1}


def test_values_of_a_stage_that_are_none_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "start_s,latency_ms,queue_ms\n0,5,x\n1,5,-2\n2,5,nan\n")
    table, report = read_requests(path, {})
    assert (report.unreadable, table.stages["queue"].tolist()) == ({"queue": 2}, [NEVER] * 3)


def test_a_latency_shorter_than_its_issue_delay_was_counted_from_the_issue(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "start_s,issued_s,latency_ms\n0,0,500\n0.1,0.5,100\n")
    table, report = read_requests(path, {})
    assert table.trace.latency.tolist() == [0.5, 0.5]
    assert "counted from the issue" in report.notes[0]


def test_a_header_that_is_nearly_known_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "start_s,latency_ms,queu_ms,colour\n0,5,1,red\n")
    _, report = read_requests(path, {})
    assert (report.ignored, report.notes) == (("queu_ms", "colour"), ("`queu_ms` is not read; `queue_ms` would be",))
    with pytest.raises(DataError, match="nothing is read from 'queu_ms'"):
        read_requests(path, {}, strict=True)


@pytest.mark.parametrize(
    ("text", "mapped", "kind", "what"),
    [
        ("start_s,latncy_ms\n0,5\n", {}, DataError, "did you mean `latncy_ms`?"),
        ("latency_ms\n5\n", {}, DataError, "no column for the start"),
        ("start_s,mean_ms,p99_ms\n0,5,9\n", {}, DataError, "holds summaries"),
        ("start_s,avg\n0,5\n", {"latency_ms": "avg"}, DataError, "looks like an average"),
        ("start_s,latency_ms\n0,5\n", {"latency": "latency_ms"}, UsageError, "say the unit: latency_s, latency_ms"),
        ("start_s,latency_ms\n0,5\n", {"quue_ms": "latency_ms"}, UsageError, "did you mean `queue_ms`"),
        ("start_s,latency_ms\n0,5\n", {"queue_ms": "waited"}, DataError, "there is no column 'waited'"),
        ("start_s,latency_ms,latency_s\n0,5,5\n", {}, DataError, "both say latency"),
        ("start_s,latency_ms,ok\n0,5,true\n1,5,maybe\n", {}, DataError, "line 3, column 'ok'"),
        ("start_s,latency_ms,route\n0,5,scenic\n", {}, DataError, "'scenic'"),
        ("start_s,latency_ms\n,\n", {}, DataError, "no usable row"),
        ("start_s,latency_ms\n", {}, DataError, "it has no rows"),
        ("start_s,latency_ms,start_s\n0,5,0\n", {}, DataError, "start"),
        ("start_s,end_s\n5,4\n", {}, DataError, "ended before it started"),
        ('start_s,latency_ms\n0,"5\n', {}, DataError, "not valid CSV"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, mapped: dict[str, str], kind: type, what: str) -> None:
    with pytest.raises(kind) as refused:
        read_requests(write(tmp_path / "t.csv", text), mapped)
    assert isinstance(refused.value, TrimtabError)
    assert what in str(refused.value)
    assert refused.value.fix


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t.csv", b"start_s,latency_ms\n0,\xff\n"),
        ("t.csv.gz", b"start_s"),
        ("t.jsonl", b"[1]\n"),
        ("t.parquet", b"PAR1"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError):
        read_requests(path, {})


def test_a_thousand_ids_are_no_streams(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},5,{i}" for i in range(5000))
    with pytest.raises(DataError, match="looks like an id of requests"):
        read_requests(write(tmp_path / "t.csv", f"start_s,latency_ms,stream\n{rows}\n"), {})


def test_a_field_that_the_first_row_lacks_is_read(tmp_path: Path) -> None:
    text = '{"start_s": 0, "ok": false}\n{"start_s": 1, "latency_ms": 5, "ok": true}\n'
    table, _ = read_requests(write(tmp_path / "t.jsonl", text), {})
    assert table.trace.latency.tolist() == [np.inf, 0.005]


def test_the_report_is_plain_json(tmp_path: Path) -> None:
    _, report = read_requests(write(tmp_path / "t.csv", PLAIN), {})
    assert msgspec.json.decode(msgspec.json.encode(report))["used"] == 2


FULL = (
    "start_s,latency_ms,shape.width,executed.width,stream,batch,worker,queue_ms,compute_ms,ok,route,peak_mb\n"
    "0,5,10,16,a,1,g0,1,3,true,padded,100\n0.5,7.25,12,16,b,1,g0,2,4,true,padded,100\n1,,12,16,b,2,g1,2,4,oom,exact,\n"
)


@settings(deadline=None, max_examples=120)
@given(
    at=st.integers(0, 400),
    gone=st.integers(0, 30),
    piece=st.binary(max_size=16)
    | st.sampled_from([b"1e999", b"-", b"nan", b'"', b"\n", b",,", b"9" * 25, b"2026-01-01"]),
    kind=st.sampled_from(["csv", "tsv", "jsonl"]),
)
def test_no_bytes_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, at: int, gone: int, piece: bytes, kind: str
) -> None:
    text = {"csv": FULL, "tsv": FULL.replace(",", "\t"), "jsonl": JSONL}[kind]
    data = bytearray(text.encode())
    data[at % len(data) : at % len(data) + gone] = piece
    path = tmp_path_factory.mktemp("fuzz") / f"t.{kind}"
    path.write_bytes(bytes(data))
    try:
        table, report = read_requests(path, {})
    except TrimtabError:
        return
    req = table.trace.requests
    assert len(req) == report.used > 0
    assert np.all(np.diff(req["scheduled"]) >= 0)
    ended = req["done"] != NEVER
    assert np.all(req["done"][ended] >= req["scheduled"][ended])
    assert all(len(column) == report.used for column in table.stages.columns.values())
