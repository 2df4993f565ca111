"""Recorded traffic into a workload: exact times, checked sizes, slices by time, and refusals that name the row."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers_kit import arrivals, study, write, write_parquet

from trimtab.domain.noun import NEVER
from trimtab.domain.study import DimSpec, ShapeSource, Sla, SliceSpec
from trimtab.errors import DataError
from trimtab.readers.traffic import peek, read_workload, require_streams

ROWS = "t,w,who\n0.5,40,a\n1.0,320,b\n2.5,40,a\n10.5,96,c\n"


def refusal(folder: Path, **changes: object) -> DataError:
    with pytest.raises(DataError) as caught:
        read_workload(study(**changes), folder)
    return caught.value


def test_a_csv_becomes_a_workload(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.csv", ROWS)
    load = read_workload(
        study(
            shapes=ShapeSource(dims={"width": "w"}, stream="who"), sla=Sla(metric="p95", bound_ms=9, deadline_ms=0.5)
        ),
        tmp_path,
    )
    assert load.scheduled.tolist() == [0, 500_000_000, 2_000_000_000, 10_000_000_000]
    assert load.dims.tolist() == [[40], [320], [40], [96]]
    assert (load.streams, load.stream.tolist()) == (("a", "b", "c"), [0, 1, 0, 2])
    assert load.deadline.tolist() == [500_000] * 4
    assert (load.payload_kind, load.payload.tolist()) == ("random", [0, 1, 2, 3])
    assert [(p.name, p.start, p.stop) for p in load.slices] == [("tune", 0, 3), ("held-out", 3, 4)]
    assert [(f.name, f.sha256, f.rows, f.used) for f in load.provenance.files] == [
        ("trace.csv", hashlib.sha256(path.read_bytes()).hexdigest(), 4, 4)
    ]
    assert (load.provenance.time_scale, load.provenance.joined) == (1.0, "")


def test_without_a_deadline_and_a_stream_there_is_none(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    load = read_workload(study(), tmp_path)
    assert load.deadline.tolist() == [NEVER] * 4
    assert load.streams == ("all",)
    assert load.stream.tolist() == [0, 0, 0, 0]


def test_a_stream_may_have_a_deadline_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    by_stream = {"shapes": ShapeSource(dims={"width": "w"}, stream="who"), "deadlines_ms": {"b": 20.0, "c": 0.25}}
    usual = study(**by_stream, sla=Sla(metric="p95", bound_ms=9, deadline_ms=500.0))
    load = read_workload(usual, tmp_path)
    assert load.deadline.tolist() == [500_000_000, 20_000_000, 500_000_000, 250_000]
    assert read_workload(study(**by_stream), tmp_path).deadline.tolist() == [NEVER, 20_000_000, NEVER, 250_000]
    require_streams(usual, load)
    other = study(shapes=by_stream["shapes"], deadlines_ms={"aa": 1.0})
    with pytest.raises(DataError, match="there is no stream 'aa'") as caught:
        require_streams(other, read_workload(other, tmp_path))
    assert caught.value.where == "workload.deadlines_ms"


JSONL = '{"t": 0.5, "w": 40, "x": [1, 2]}\n\n{"w": 320, "t": 1}\n{"t": 2.5, "w": 40.0}\n{"t": "10.5", "w": "96"}\n'
SELECT = "SELECT unnest([0.5, 1, 2.5, 10.5]) AS t, unnest([40, 320, 40, 96])::FLOAT AS w"


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_says_the_same(tmp_path: Path, kind: str, packed: str) -> None:
    path = tmp_path / f"trace.{kind}{packed}"
    if kind == "parquet":
        write_parquet(path, SELECT)
    else:
        write(path, {"csv": ROWS, "tsv": ROWS.replace(",", "\t"), "jsonl": JSONL}[kind])
    load = read_workload(study(arrivals=arrivals(path.name)), tmp_path)
    assert load.scheduled.tolist() == [0, 500_000_000, 2_000_000_000, 10_000_000_000]
    assert load.dims.tolist() == [[40], [320], [40], [96]]


@pytest.mark.parametrize(
    ("unit", "times", "gap"),
    [
        ("s", ("1700000000.123456789", "1700000000.123456790"), 1),
        ("ms", ("1700000000123.000001", "1700000000123.000002"), 1),
        ("us", ("5e3", "5.001e3"), 1000),
        ("ns", ("1700000000123456789", "1700000000123456790"), 1),
        ("iso", ("2023-11-16 18:17:03.9799600", "2023-11-16 18:17:04.0319601"), 52_000_100),
        ("iso", ("2023-11-16T18:17:03Z", "2023-11-16T20:17:03+02:00"), 0),
        ("iso", ("2024-02-28T23:59:59.999999999", "2024-02-29T00:00:00"), 1),
    ],
)
def test_times_are_exact_to_the_nanosecond(tmp_path: Path, unit: str, times: tuple[str, str], gap: int) -> None:
    write(tmp_path / "trace.csv", f"t,w\n{times[0]},1\n{times[1]},1\n{times[1]},1\n")
    only = (SliceSpec(name="all"),)
    with_tune = study(arrivals=arrivals(unit=unit), slices=only, tune_share=0.5)
    if gap == 0:
        assert refusal(tmp_path, arrivals=arrivals(unit=unit)).what.startswith("the slice 'tune' is empty")
        return
    assert read_workload(with_tune, tmp_path).scheduled.tolist() == [0, gap, gap]


def test_arrivals_are_stretched_to_the_rate(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    load = read_workload(study(rate=3.0), tmp_path)
    assert load.scheduled.tolist() == [0, 50_000_000, 200_000_000, 1_000_000_000]
    assert load.provenance.time_scale == 0.1


def test_skip_and_limit_count_rows_and_only_used_rows_are_checked(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", f"t,w\nnever,x\n{ROWS.removeprefix('t,w,who')[1:]}-1,0\n")
    load = read_workload(study(skip=1, limit=4), tmp_path)
    assert load.dims.tolist() == [[40], [320], [40], [96]]
    assert load.provenance.files[0].dropped == {"outside skip and limit": 2}


def test_shapes_of_a_second_file_are_used_from_their_start_again(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", "t\n0\n1\n2\n3\n4\n")
    write(tmp_path / "lines.jsonl", '{"w": 7, "page": "p1"}\n{"w": 9, "page": "p2"}\n')
    load = read_workload(study(shapes=ShapeSource(dims={"width": "w"}, file="lines.jsonl", stream="page")), tmp_path)
    assert load.dims.tolist() == [[7], [9], [7], [9], [7]]
    assert load.stream.tolist() == [0, 1, 0, 1, 0]
    assert load.provenance.joined == (
        "arrivals of trace.csv and shapes of lines.jsonl are two sources joined row by row; "
        "its 2 rows were used 2.50 times over"
    )
    assert [(f.name, f.rows, f.used) for f in load.provenance.files] == [("trace.csv", 5, 5), ("lines.jsonl", 2, 2)]


def test_of_a_longer_second_file_only_the_first_rows_are_used(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", "t\n0\n1\n")
    write(tmp_path / "lines.csv", "w\n7\n9\nbroken\n")
    load = read_workload(study(shapes=ShapeSource(dims={"width": "w"}, file="lines.csv")), tmp_path)
    assert load.dims.tolist() == [[7], [9]]
    assert load.provenance.files[1].dropped == {"outside skip and limit": 1}


def test_slices_are_shares_of_the_time(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", "t,w,who\n0,10,a\n1,20,b\n2,30,a\n8,40,a\n10,50,b\n")
    declared = (
        SliceSpec(name="late", start=0.2),
        SliceSpec(name="a-only", streams=("a",)),
        SliceSpec(name="small", band={"width": (10, 30)}),
        SliceSpec(name="middle", start=0.2, stop=0.8),
    )
    load = read_workload(
        study(shapes=ShapeSource(dims={"width": "w"}, stream="who"), slices=declared, tune_share=0.2), tmp_path
    )
    assert {part.name: load.index(part).tolist() for part in load.slices} == {
        "tune": [0, 1],
        "held-out": [2, 3, 4],
        "late": [2, 3, 4],
        "a-only": [0, 2, 3],
        "small": [0, 1, 2],
        "middle": [2],
    }


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 10**12), min_size=2, max_size=30), st.floats(0.01, 0.99), st.none() | st.floats(0.1, 1e4)
)
def test_tune_and_held_out_part_the_workload(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], share: float, rate: float | None
) -> None:
    folder = tmp_path_factory.mktemp("w")
    write(folder / "trace.csv", "t,w\n" + "".join(f"{t},1\n" for t in sorted(times)))
    wanted = study(arrivals=arrivals(unit="ns"), tune_share=share, rate=rate)
    try:
        load = read_workload(wanted, folder)
    except DataError as error:
        if "is empty" not in error.what and "at one time" not in error.what:
            raise
        return
    tune, held = load.slices
    assert (tune.start, tune.stop, held.stop) == (0, held.start, len(load))
    assert np.all(np.diff(load.scheduled) >= 0)
    assert load.scheduled[tune.stop - 1] < share * load.span <= load.scheduled[held.start]
    if rate is not None:
        assert (len(load) - 1) / load.span * 1e9 == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "the time is missing: no value"),
        ("soon", "the time is not a number: 'soon'"),
        ("nan", "the time is not a number: 'nan'"),
        ("inf", "the time is not a number: 'inf'"),
        ("1_0", "the time is not a number: '1_0'"),
        ("-1", "the time is negative: '-1'"),
        ("1e300", "the time is too large to be one in this unit: '1e300'"),
        ("1e999999999", "the time is not a number"),
        ("9" * 5000, "the time is too large to be one in this unit"),
        ("1700000000000", "the time is too large to be one in this unit"),
        ("0.4", "this time is earlier than the one before it: '0.4'"),
    ],
)
def test_a_time_that_is_none_is_refused_with_its_line(tmp_path: Path, value: str, said: str) -> None:
    write(tmp_path / "trace.csv", f"t,w\n\n0.5,40\n{value},320\n")
    error = refusal(tmp_path)
    assert error.what.startswith(said)
    assert error.where == f"{tmp_path}/trace.csv, line 4, column 't'; workload.arrivals.time"


def test_unsorted_times_say_how_to_fix_them(tmp_path: Path) -> None:
    write(tmp_path / "trace.jsonl", '{"t": 2, "w": 1}\n{"t": 3, "w": 1}\n{"t": 2.5, "w": 1}\n')
    error = refusal(tmp_path, arrivals=arrivals("trace.jsonl"))
    assert str(error) == (
        "this time is earlier than the one before it: '2.5'\n"
        f"where: {tmp_path}/trace.jsonl, line 3, column 't'; workload.arrivals.time\n"
        "fix: sort the file by 't'"
    )


@pytest.mark.parametrize(
    "value", ["5", "2023-13-01 00:00:00", "2023-11-16", "2023-11-16 25:00:00", "1969-01-01 00:00:00"]
)
def test_a_wrong_iso_time_is_refused(tmp_path: Path, value: str) -> None:
    write(tmp_path / "trace.csv", f"t,w\n{value},1\n")
    assert "line 2, column 't'" in refusal(tmp_path, arrivals=arrivals(unit="iso")).where


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "the size is missing: no value"),
        ("0", "the size is not above 0: '0'"),
        ("-3", "the size is not above 0: '-3'"),
        ("2.5", "the size is not a whole number: '2.5'"),
        ("wide", "the size is not a number: 'wide'"),
        ("1e300", "the size is too large: '1e300'"),
        ("99999999999", "the size is too large: '99999999999'"),
        ("nan", "the size is not a number: 'nan'"),
    ],
)
def test_a_size_that_is_none_is_refused_with_its_line(tmp_path: Path, value: str, said: str) -> None:
    write(tmp_path / "trace.csv", f"t,w\n0,40\n1,{value}\n")
    error = refusal(tmp_path)
    assert error.what == said
    assert error.where == f"{tmp_path}/trace.csv, line 3, column 'w'; workload.shapes.dims.width"


def test_sizes_outside_the_range_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "trace.parquet", "SELECT i AS t, 10 * i + 1 AS w FROM range(10) r(i)")
    error = refusal(tmp_path, arrivals=arrivals("trace.parquet"), dims={"width": DimSpec(lo=11, hi=61)})
    assert error.what == "sizes outside 11..61 in 4 rows, the first: '1'"
    assert error.where == f"{tmp_path}/trace.parquet, row 1, column 'w'; workload.shapes.dims.width"
    assert error.fix == "widen dims.width if the network accepts them, or filter these rows"


def test_a_missing_stream_is_refused_and_so_are_too_many(tmp_path: Path) -> None:
    shapes = ShapeSource(dims={"width": "w"}, stream="who")
    write(tmp_path / "trace.csv", "t,w,who\n0,1,a\n1,1,\n")
    assert refusal(tmp_path, shapes=shapes).what == "the stream is missing: no value"
    write(tmp_path / "trace.csv", "t,w,who\n" + "".join(f"{k},1,id{k}\n" for k in range(5000)))
    error = refusal(tmp_path, shapes=shapes)
    assert error.what == "more than 4096 streams; this looks like an id of requests, not of clients: 'id4096'"


@pytest.mark.parametrize("unit", ["s", "iso"])
@pytest.mark.parametrize("text", ["t,w\n", "t,w", "t,w\n\n\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str, unit: str) -> None:
    write(tmp_path / "trace.csv", text)
    assert refusal(tmp_path, arrivals=arrivals(unit=unit)).what == "trace.csv has no rows to use"


def test_skipping_everything_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    assert refusal(tmp_path, skip=4).what == "trace.csv has no rows to use"


def test_an_empty_second_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    write(tmp_path / "lines.csv", "w\n")
    assert refusal(tmp_path, shapes=ShapeSource(dims={"width": "w"}, file="lines.csv")).what == "lines.csv has no rows"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (SliceSpec(name="quiet", start=0.5, stop=0.6), "the slice 'quiet' is empty: none of 4 requests is in it"),
        (SliceSpec(name="huge", band={"width": (999, 1000)}), "the slice 'huge' is empty: none of 4 requests is in it"),
        (SliceSpec(name="d", streams=("d",)), "there is no stream 'd'"),
    ],
)
def test_an_empty_slice_is_refused_by_name(tmp_path: Path, part: SliceSpec, said: str) -> None:
    write(tmp_path / "trace.csv", ROWS)
    assert refusal(tmp_path, shapes=ShapeSource(dims={"width": "w"}, stream="who"), slices=(part,)).what == said


def test_a_rate_needs_two_times(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", "t,w\n5,1\n5,1\n")
    assert refusal(tmp_path, rate=2.0).what.startswith("all arrivals are at one time")


def test_a_rate_that_lasts_for_ever_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    assert "more than 36 years" in refusal(tmp_path, rate=1e-9).what


def test_a_missing_column_and_a_missing_file_name_what_was_meant(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", "time_s,width\n0,1\n")
    error = refusal(tmp_path, arrivals=arrivals(time="times"))
    assert (error.what, error.fix) == ("there is no column 'times' in trace.csv", "did you mean `time_s`?")
    error = refusal(tmp_path, arrivals=arrivals("trace.cvs"))
    assert (error.what, error.fix) == ("there is no file trace.cvs", "did you mean `trace.csv`?")


def test_a_peek_shows_every_column(tmp_path: Path) -> None:
    write(tmp_path / "trace.csv", ROWS)
    assert peek(tmp_path / "trace.csv", rows=2) == {"t": ["0.5", "1.0"], "w": ["40", "320"], "who": ["a", "b"]}
