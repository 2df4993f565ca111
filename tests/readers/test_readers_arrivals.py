"""Tables of arrivals: public traces by their columns, any other table by its roles."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import DataError, TrimtabError
from trimtab.readers.arrivals import NO_SIZE, NO_TIME, SORTED, read_arrivals

MOONCAKE = (
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
    '{"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n'
)
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
)
SERVEGEN = "t_s,client,input_tokens,output_tokens\n0.0,65,2500.0,1226.0\n0.0005,3,212.0,1259.0\n0.0005,65,21.0,113.0\n"
IMAGES = "t_s,client,image_count,image_tokens,text_tokens\n0.0,11,1.0,432.0,79.0\n"
OWN = "start_ms,shape.width,stream,other\n5,320,a,x\n2,160,b,y\n"


@pytest.mark.parametrize(
    ("name", "text", "known", "times", "dims", "streams"),
    [
        ("m.jsonl", MOONCAKE, "Mooncake trace", [0, 3_000_000_000], [[6758, 500], [7322, 490]], ("all",)),
        ("a.csv", AZURE, "Azure LLM inference trace", [0, 4_314_579_000], [[374, 44], [396, 109]], ("all",)),
        ("s.csv", SERVEGEN, "ServeGen requests", [0, 500_000, 500_000], [[2500, 1226], [212, 1259], [21, 113]],
         ("65", "3")),
        ("i.csv", IMAGES, "ServeGen requests", [0], [[1, 432, 79]], ("11",)),
        ("o.csv", OWN, "table of arrivals", [0, 3_000_000], [[160], [320]], ("a", "b")),
    ],
)  # fmt: skip
def test_what_a_table_says(
    name: str, text: str, known: str, times: list[int], dims: list[list[int]], streams: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(text.encode()))
    held, report = read_arrivals(path, {})
    assert (report.format, report.used) == (known, len(times))
    assert held.scheduled.tolist() == times
    assert held.dims.tolist() == dims
    assert held.streams == streams
    assert (SORTED in report.notes) == (name == "o.csv")


def test_columns_of_any_name_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("when,w,who\n1,5,a\n2,6,b\n")
    held, _ = read_arrivals(path, {"start_s": "when", "shape.width": "w", "stream": "who"})
    assert (held.dim_names, held.scheduled.tolist(), held.streams) == (("width",), [0, 1_000_000_000], ("a", "b"))


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("t_s,client,input_tokens,output_tokens\n0,a,5,5\nsoon,a,5,5\n1,a,0,5\n2,,5,5\n")
    held, report = read_arrivals(path, {})
    assert (report.rows, report.used, report.dropped) == (4, 2, {NO_TIME: 1, NO_SIZE: 1})
    assert held.streams == ("a", "(not named)")
    with pytest.raises(DataError, match="rows left out"):
        read_arrivals(path, {}, strict=True)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("client,window_start_s,field,value,probability\n0,0,x,1,1\n", "holds how often clients send which size"),
        ("num_prefill_tokens,num_decode_tokens\n1,2\n", "no column for a time of arrival"),
        ("start_s,latency_ms\n1,2\n", "no column for a size"),
        ("t_s,client,input_tokens,output_tokens\n", "without anything to read"),
        ("t_s,client,input_tokens,output_tokens\nx,1,1,1\n", "1 rows left out: no time"),
        ("", "is empty"),
    ],
)
def test_what_is_no_traffic_is_refused(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=what) as caught:
        read_arrivals(path, {})
    assert caught.value.fix


@settings(deadline=None, max_examples=60)
@given(
    at=st.integers(0, 400), gone=st.integers(0, 30), piece=st.binary(max_size=20),
    given_text=st.sampled_from([("m.jsonl", MOONCAKE), ("a.csv", AZURE), ("s.csv", SERVEGEN)]),
)  # fmt: skip
def test_no_bytes_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, at: int, gone: int, piece: bytes, given_text: tuple[str, str]
) -> None:
    name, text = given_text
    data = bytearray(text.encode())
    data[at % len(data) : at % len(data) + gone] = piece
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(bytes(data))
    try:
        held, report = read_arrivals(path, {})
    except TrimtabError:
        return
    assert len(held) == report.used > 0
    assert held.dims.min() > 0
    assert (held.scheduled[1:] >= held.scheduled[:-1]).all()
