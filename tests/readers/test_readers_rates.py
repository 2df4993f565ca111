"""ServeGen's table of rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import DataError, TrimtabError
from trimtab.readers.arrivals import headers_of
from trimtab.readers.rates import NO_RATE, TWICE, holds, read_rates

TABLE = "client,window_start_s,rate_rps,cv,pattern\n7,0.0,1.5,0.5,Gamma\n7,1200.0,2.5,1,Weibull\n9,600.0,0.5,,Gamma\n"


def test_rates_by_client_and_window(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(TABLE + "7,0.0,9,9,Gamma\n,0,1,1,Gamma\n9,soon,1,1,Gamma\n9,0,-1,1,Gamma\n")
    headers = headers_of(path)
    assert holds(headers)
    held, report = read_rates(path, headers)
    assert (held.clients, held.width, held.starts.tolist()) == (("7", "9"), 600.0, [0.0, 600.0, 1200.0])
    assert held.rate.tolist() == [[1.5, 0.0, 2.5], [0.0, 0.5, 0.0]]
    np.testing.assert_equal(held.cv, [[0.5, np.nan, 1.0], [np.nan, np.nan, np.nan]])
    assert (report.rows, report.used, report.dropped) == (7, 3, {NO_RATE: 3, TWICE: 1})
    assert report.ignored == ("pattern",)
    with pytest.raises(DataError, match=NO_RATE):
        read_rates(path, headers, strict=True)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("1,0,1\n2,0,1\n", "holds one window only"),
        ("1,0,1\n1,0.000001,1\n1,9000000,1\n", "too many to hold"),
        ("1,0,1\n1,600,1\n1,1000,1\n", "windows of different widths"),
        ("1,99999999999,1\n", "without anything to read"),
        ("", "without anything to read"),
    ],
)
def test_rates_that_are_none_are_refused(rows: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"client,window_start_s,rate_rps\n{rows}")
    with pytest.raises(DataError, match=what):
        read_rates(path, headers_of(path))


@settings(deadline=None, max_examples=60)
@given(at=st.integers(0, 200), gone=st.integers(0, 20), piece=st.binary(max_size=20))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, at: int, gone: int, piece: bytes) -> None:
    data = bytearray(TABLE.encode())
    data[at % len(data) : at % len(data) + gone] = piece
    path = tmp_path_factory.mktemp("fuzz") / "r.csv"
    path.write_bytes(bytes(data))
    try:
        headers = headers_of(path)
        if not holds(headers):
            return
        held, report = read_rates(path, headers)
    except TrimtabError:
        return
    assert held.rate.shape == held.cv.shape == (len(held.clients), held.starts.size)
    assert np.isfinite(held.rate).all()
    assert report.used > 0
