"""Nouns as JSON: exact both ways, also for what JSON does not have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_examples import STUDY, run_info

from trimtab.domain.figure import Figure, Findings, Interval, Series
from trimtab.domain.study import Study
from trimtab.domain.trace import RunInfo
from trimtab.errors import PacketError
from trimtab.store.codec import digest, from_json, read_json, to_json, write_json
from trimtab.store.study import parse_study


def test_a_percentile_among_the_failed_stays_infinite_and_readable() -> None:
    figure = Figure(id="p99", value=math.inf, unit="ms", samples=9, scope="tune", artifact="a")
    text = to_json(figure)
    assert b'"value": "inf"' in text
    assert from_json(text, Figure) == figure


def test_a_stream_that_is_called_nan_is_not_a_number() -> None:
    table = Series(id="s", columns={"nan": ("nan", math.inf, "=inf", "", None, True, 3, 3.0)})
    back = from_json(to_json(table), Series)
    assert back == table
    assert [type(cell) for cell in back.columns["nan"]] == [type(cell) for cell in table.columns["nan"]]


def test_nan_comes_back_as_nan() -> None:
    assert math.isnan(from_json(to_json(run_info()), RunInfo).driver_cpu_share)


_NUMBERS = st.floats(allow_nan=False) | st.none()
_CELLS = st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans() | st.none()
_FINDINGS = st.builds(
    lambda value, interval, cells, text: Findings(
        stage="score",
        headline=text,
        figures=(Figure(id=text, value=value, unit="1", samples=1, scope="s", artifact="a", interval=interval),),
        series=(Series(id="t", columns={text: tuple(cells)}),),
    ),
    _NUMBERS,
    st.none() | st.builds(lambda lo, hi: Interval(lo=lo, hi=hi), st.floats(allow_nan=False), st.just(math.inf)),
    st.lists(_CELLS, max_size=5),
    st.text() | st.sampled_from(["nan", "inf", "-inf", "=nan", "==inf"]),
)


@settings(deadline=None, max_examples=200)
@given(_FINDINGS)
def test_round_trip(findings: Findings) -> None:
    text = to_json(findings)
    back = from_json(text, Findings)
    assert back == findings
    assert to_json(back) == text


def test_a_study_keeps_the_order_of_its_dims() -> None:
    text = STUDY.replace('"width"]', '"width", "depth"]').replace(
        "[dims.width]", "[dims.width]\nlo = 16\nhi = 640\n[dims.depth]"
    )
    text = (
        text.replace('{ width = "w" }', '{ width = "w", depth = "d" }')
        .replace("[16]", "[16, 16]")
        .replace("[640]", "[640, 640]")
    )
    study = parse_study(text)
    assert from_json(to_json(study), Study).dim_names == ("width", "depth")


def test_equal_nouns_have_equal_digests_and_others_do_not() -> None:
    assert digest(run_info()) == digest(run_info())
    assert digest(run_info("a")) != digest(run_info("b"))
    assert digest((1, "x")) != digest(("1", "x"))
    assert digest(math.inf) != digest("inf")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"id": 3}', b"\xff", b'{"lo": 1, "hi": 2, "more": 3}', b"[" * 99999]
)
def test_what_is_broken_or_from_another_version_is_a_packet_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "interval.json"
    path.write_bytes(data)
    with pytest.raises(PacketError) as caught:
        read_json(path, Interval)
    assert caught.value.where == str(path)


def test_writing_and_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "interval.json"
    write_json(path, Interval(lo=-math.inf, hi=1))
    assert read_json(path, Interval) == Interval(lo=-math.inf, hi=1)
    assert [p.name for p in path.parent.iterdir()] == ["interval.json"]
