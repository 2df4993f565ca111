"""How numbers are said: literal in, literal out; and the law that an interval bounds the decimals."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.domain.figure import Figure, Interval
from trimtab.report import words

G = words.GAP


@pytest.mark.parametrize(
    ("value", "half_width", "said"),
    [
        (412.4, None, "412"),
        (41.23, None, "41.2"),
        (0.0123, None, "0.0123"),
        (1240.0, None, "1,240"),
        (3.90, None, "3.9"),
        (0.0, None, "0"),
        (-7.04, None, "−7.04"),
        (412.4, 14.0, "412"),
        (41.23, 0.4, "41.2"),
        (9.87, 2.0, "10"),
        (-0.2, 3.0, "0"),
        (math.inf, None, "∞"),
        (None, None, "–"),
        (math.nan, None, "–"),
    ],
)
def test_a_number_has_three_digits_or_what_its_interval_supports(
    value: float | None, half_width: float | None, said: str
) -> None:
    assert words.number(value, half_width) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (231.0, "ms", f"231{G}ms"),
        (math.inf, "ms", "> deadline"),
        (0.442, "share", f"44{G}%"),
        (0.0421, "share", f"4.2{G}%"),
        (0.0004, "share", f"0.04{G}%"),
        (1 - 0.95, "share", f"5{G}%"),
        (3.4 * 2**30, "bytes", f"3.4{G}GiB"),
        (118 * 2**20, "bytes", f"118{G}MiB"),
        (1_310_000_000, "ns", f"1.31{G}s"),
        (38_000, "ns", f"38{G}µs"),
        (412.0, "us", f"0.412{G}ms"),
        (3312, "requests", "3,312"),
        (1.71, "x", f"1.71{G}x"),
        (None, "ms", "–"),
    ],
)
def test_a_quantity_carries_its_unit(value: float | None, unit: str, said: str) -> None:
    assert words.quantity(value, unit) == said


@pytest.mark.parametrize(
    ("value", "half_width", "said"),
    [(-0.44, 0.05, f"−44{G}%"), (0.034, None, f"+3.4{G}%"), (0.0, None, f"0{G}%"), (0.002, 0.03, f"0{G}%")],
)
def test_a_change_is_signed(value: float, half_width: float | None, said: str) -> None:
    assert words.change(value, half_width) == said


def test_intervals_are_said_in_the_unit_of_their_figure() -> None:
    assert words.spread(Interval(lo=-0.49, hi=-0.38), "change") == f"(−49 to −38{G}%)"
    assert words.spread(Interval(lo=0.589, hi=0.636), "share") == f"(59 to 64{G}%)"
    assert words.spread(Interval(lo=398.2, hi=431.9), "ms") == "(398 to 432)"
    assert words.spread(None, "ms") == ""


def test_a_figure_without_a_value_is_a_dash() -> None:
    gap = Figure(id="a", value=None, unit="ms", samples=0, scope="this run", artifact="x", note="too few")
    assert words.figure(gap) == words.figure(None) == "–"


def test_small_words() -> None:
    assert words.many(2, "entry", "entries") == "two entries"
    assert words.many(1, "entry", "entries") == "one entry"
    assert words.many(1240, "request") == "1,240 requests"
    assert words.listed(["p50", "p95", "p99"]) == "p50, p95 and p99"
    assert words.listed(["p50"]) == "p50"
    assert words.ended("It holds") == "It holds."
    assert words.short("a-very-long-plan-name", 8) == "a-very-…"


def test_what_turns_hides_or_goes_on_forever_is_written_out_or_cut() -> None:
    assert words.shown("Ship \u202eplan\x1b[31m") == "Ship \\u202eplan\\u001b[31m"
    assert words.shown("مرحبا, a\nb") == "مرحبا, a\nb"
    cut = words.shown(f"before {'x' * 5000}end after")
    assert cut == f"before {'x' * 120}…{'x' * 36}end after"
    assert words.shown("a b " * 1250) == f"{'a b ' * 1000}… (1,000 more signs)"
    assert words.short("a\u202eb", 8) == "a\\u202eb"


def test_a_number_too_large_to_be_written_out() -> None:
    assert words.number(1.234e15) == "1.23e15"
    assert words.number(-1e12) == "−1e12"
    assert words.percent(1.2e20) == f"1.2e22{G}%"


@settings(deadline=None)
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_no_decimals_below_the_interval(value: float, half_width: float) -> None:
    said = words.number(value, half_width)
    decimals = len(said.partition(".")[2])
    assert decimals == 0 or 10.0**-decimals > half_width / 10.0000001
    assert abs(float(said.replace("−", "-").replace(",", "")) - value) <= 0.500001 * 10.0**-decimals


@settings(deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_float_can_be_said(value: float) -> None:
    for unit in ("ms", "s", "share", "bytes", "ns", "count", "MiB", "1/s", "anything"):
        assert words.quantity(value, unit)
    assert words.change(value)
