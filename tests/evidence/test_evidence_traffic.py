"""What the traffic is like: rate, bursts, shapes, clients and drift, worked out by hand and held by laws."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parts import workload_of
from trimtab.domain.workload import Provenance, Slice, Workload
from trimtab.evidence.traffic import describe, distance, per_second

S = 1_000_000_000
HALVES = (Slice(name="tune", start=0, stop=3), Slice(name="held-out", start=3, stop=6))


def load(times: list[int], widths: list[int], streams: list[int] | None = None, **more: object) -> Workload:
    numbers = streams or [0] * len(times)
    base = {
        "stream": np.array(numbers, dtype=np.int32),
        "streams": tuple(f"s{k}" for k in range(1 + max(numbers, default=0))),
        "provenance": Provenance(files=(), time_scale=0.5),
    }
    return workload_of(times, widths, **(base | more))


SIX = load([0, 100, S, 4 * S, 4 * S + 1, 5 * S], [10, 20, 20, 30, 20, 40], [0, 1, 1, 1, 0, 1], slices=HALVES)


def test_figures_of_six_requests_worked_out_by_hand() -> None:
    found = {figure.id: figure.value for figure in describe(SIX).figures}
    gaps = np.array([100, S - 100, 3 * S, 1, S - 1])
    assert found == {
        "workload.requests": 6,
        "workload.span": 5.0,
        "workload.rate": 1.0,
        "workload.gap_cv": pytest.approx(gaps.std() / gaps.mean()),
        "workload.peak": 2,
        "workload.peak_to_mean": 2.0,
        "workload.time_scale": 0.5,
        "workload.width.min": 10,
        "workload.width.p50": 20,
        "workload.width.p95": 40,
        "workload.width.p99": 40,
        "workload.width.max": 40,
        "workload.width.distinct": 4,
        "workload.shapes": 4,
        "workload.width.drift": pytest.approx(2 / 3),
        "workload.new_shapes": pytest.approx(2 / 3),
        "workload.streams": 2,
    }


def test_the_sentences_say_what_the_figures_hold() -> None:
    assert [finding.text for finding in describe(SIX).findings] == [
        "6 requests at 1/s over 5 s; the busiest second has 2.0 times the mean.",
        "4 distinct shapes: width 10 to 40 (median 20).",
        "66.7 % of the held-out requests have a shape that the tune slice never showed; "
        "the distributions differ by up to 66.7 %.",
    ]


def test_every_finding_rests_on_figures_that_exist() -> None:
    found = describe(SIX)
    known = {figure.id for figure in found.figures}
    assert all(set(finding.figures) <= known for finding in found.findings)
    assert all(figure.artifact == "workload.parquet" for figure in found.figures)


def test_joined_sources_are_said() -> None:
    joined = msgspec.structs.replace(SIX.provenance, joined="arrivals of a and shapes of b are two sources")
    found = describe(msgspec.structs.replace(SIX, provenance=joined))
    assert found.findings[-1].text == "Arrivals of a and shapes of b are two sources."


def test_series_for_the_charts() -> None:
    found = describe(SIX)
    tables = {table.id: table.columns for table in found.series}
    assert tables["workload.arrivals"] == {
        "start": (0, 1, 2, 3, 4, 5),
        "rate": (2, 1, 0, 0, 2, 1),
        "peak": (2, 1, 0, 0, 2, 1),
    }
    assert tables["workload.width"]["requests"] == (1, *[0] * 9, 3, *[0] * 9, 1, *[0] * 9, 1)
    assert tables["workload.streams"] == {
        "stream": ("s1", "s0"),
        "requests": (4, 2),
        "share": (0.666667, 0.333333),
        "width.p50": (25.0, 15.0),
    }
    assert tables["workload.slices"] == {
        "slice": ("tune", "held-out"),
        "requests": (3, 3),
        "start": (0.0, 4.0),
        "stop": (1.0, 5.0),
        "what": ("", ""),
    }


def test_one_request_has_no_rate_and_says_why() -> None:
    rate = describe(load([0], [5])).figure("workload.rate")
    assert rate is not None
    assert (rate.value, rate.note) == (None, "one request has no gaps")


def test_no_request_is_partial() -> None:
    assert describe(load([], [])).status == "partial"


def test_many_streams_are_summed_up() -> None:
    streams = [*range(30), *range(5)]
    table = describe(load([0] * 35, [1] * 35, streams)).table("workload.streams")
    assert table is not None
    assert table.columns["stream"][:5] == ("s0", "s1", "s2", "s3", "s4")
    assert (table.columns["stream"][-1], table.columns["requests"][-1]) == ("10 others", 10)


def test_years_of_quiet_make_no_large_arrays() -> None:
    arrivals = describe(load([0, 10**9 * S], [1, 1])).table("workload.arrivals")
    assert arrivals is not None
    assert len(arrivals.columns["start"]) <= 600
    assert (arrivals.columns["peak"][0], arrivals.columns["peak"][-1]) == (1, 1)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5 * S), min_size=1, max_size=60), st.lists(st.integers(1, 90), min_size=60, max_size=60))
def test_no_request_is_lost_in_a_chart(times: list[int], widths: list[int]) -> None:
    n = len(times)
    found = describe(load(sorted(times), widths[:n]))
    tables = {table.id: table.columns for table in found.series}
    assert sum(tables["workload.width"]["requests"]) == n
    assert sum(tables["workload.streams"]["requests"]) == n
    assert per_second(np.array(sorted(times)))[1].sum() == n
    lo, hi = tables["workload.width"]["lo"], tables["workload.width"]["hi"]
    assert all(b == a + 1 for a, b in zip(hi[:-1], lo[1:], strict=True))
    assert (lo[0], hi[-1]) == (min(widths[:n]), max(widths[:n]))


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_the_distance_agrees_with_its_definition(a: list[int], b: list[int]) -> None:
    def below(sample: list[int], x: int) -> float:
        return sum(value <= x for value in sample) / len(sample)

    found = distance(np.array(a), np.array(b))
    assert found == pytest.approx(max(abs(below(a, x) - below(b, x)) for x in range(21)))
    assert found == distance(np.array(b), np.array(a))
    assert distance(np.array(a), np.array(a)) == 0


def test_the_distance_of_nothing_is_unknown() -> None:
    assert math.isnan(distance(np.array([1]), np.array([], dtype=np.int64)))
